//! A disk of the smallest kind for models of the log: files on the heap, and what is durable of
//! each.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use waystage::model::{
    Disk, FileFlusher, FileReader, FileWriter, Opened, Region, RegionWriter, Stable,
};

/// Files of one model. The list of files and the counts are std's: they are no part of what is
/// explored, and nothing of loom's happens under that lock.
#[derive(Debug, Default)]
pub struct HeapDisk {
    files: Mutex<BTreeMap<String, Arc<HeapFile>>>,
    /// Whether flushes fail.
    pub is_broken: Arc<AtomicBool>,
}

#[derive(Debug)]
struct HeapFile {
    writer: loom::sync::Mutex<RegionWriter>,
    size: u64,
    durable: AtomicU64,
    flushes: AtomicU64,
    is_broken: Arc<AtomicBool>,
}

impl HeapDisk {
    /// Bytes that are durable of the segment with this number.
    #[must_use]
    pub fn durable(&self, segment: u64) -> u64 {
        self.file(segment).map_or(0, |file| file.durable.load(Relaxed))
    }

    /// How often a segment was flushed.
    #[must_use]
    pub fn flushes(&self, segment: u64) -> u64 {
        self.file(segment).map_or(0, |file| file.flushes.load(Relaxed))
    }

    fn file(&self, segment: u64) -> Option<Arc<HeapFile>> {
        let name = waystage::log::segment::name(segment);
        lock(&self.files).get(&name).cloned()
    }

    fn named(&self, name: &str) -> io::Result<Arc<HeapFile>> {
        lock(&self.files).get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl HeapFile {
    fn writer(&self) -> loom::sync::MutexGuard<'_, RegionWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk for HeapDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.files).keys().cloned().collect())
    }

    fn create(&self, name: &str, size: u64, start: &[u8]) -> io::Result<()> {
        let bytes = usize::try_from(size).map_err(io::Error::other)?;
        let file = HeapFile {
            writer: loom::sync::Mutex::new(Region::heap(bytes, start)?),
            size,
            durable: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            is_broken: Arc::clone(&self.is_broken),
        };
        lock(&self.files).insert(name.to_owned(), Arc::new(file));
        Ok(())
    }

    fn open(&self, name: &str, stable: Stable) -> io::Result<Opened> {
        let file = self.named(name)?;
        let writer = file.writer();
        assert_eq!(writer.position(), stable, "models never recover");
        drop(writer);
        Ok(Opened { writer: Box::new(Writer(Arc::clone(&file))), flusher: file })
    }

    fn view(&self, name: &str) -> io::Result<Arc<Region>> {
        let file = self.named(name)?;
        let bytes = usize::try_from(file.size).map_err(io::Error::other)?;
        let mut all = vec![0; bytes];
        let region = Arc::clone(file.writer().region());
        let held = region.bytes(0..region.stable()).unwrap_or_default();
        all[..held.len()].copy_from_slice(held);
        Ok(Arc::clone(Region::heap(bytes, &all)?.region()))
    }

    fn reader(&self, name: &str) -> io::Result<Box<dyn FileReader>> {
        Ok(Box::new(Reader(self.named(name)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self.named(from)?;
        let mut files = lock(&self.files);
        files.remove(from);
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        lock(&self.files).remove(name);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Reader(Arc<HeapFile>);

impl FileReader for Reader {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.size)
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let region = Arc::clone(self.0.writer().region());
        let held = region.bytes(0..region.stable()).unwrap_or_default();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let held = held.get(offset..).unwrap_or_default();
        let left = usize::try_from(self.0.size).map_err(io::Error::other)? - offset;
        let count = bytes.len().min(left);
        let copied = count.min(held.len());
        bytes[..copied].copy_from_slice(&held[..copied]);
        bytes[copied..count].fill(0);
        Ok(count)
    }
}

#[derive(Debug)]
struct Writer(Arc<HeapFile>);

impl FileWriter for Writer {
    fn position(&self) -> u64 {
        self.0.writer().position()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().append(bytes)
    }
}

impl FileFlusher for HeapFile {
    fn flush(&self) -> io::Result<()> {
        if self.is_broken.load(Relaxed) {
            return Err(io::Error::other("broken"));
        }
        let position = self.writer().position();
        // Other threads write while the medium works.
        loom::thread::yield_now();
        self.durable.fetch_max(position, Relaxed);
        self.flushes.fetch_add(1, Relaxed);
        Ok(())
    }
}
