//! The log's files in a directory of the operating system.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, FileFlusher, FileReader, FileWriter, Opened, Stable};
use super::region::{Region, RegionWriter};

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: usize = 1 << 20;

/// How records reach the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WritePath {
    /// By `pwrite`. A page made dirty this way is flushed more than twice as fast.
    #[default]
    Call,
    /// Through the map: no system call for each record.
    Map,
}

/// A directory: locked for this process, or only to be read.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held for its lock, which goes with the handle and cannot be deleted like a lock file.
    handle: File,
    write_path: WritePath,
}

impl Folder {
    /// Opens a directory for writing; `None` when somebody else has it.
    ///
    /// # Errors
    /// When it is not there, no directory, or not to be opened.
    pub fn lock(path: &Path, write_path: WritePath) -> io::Result<Option<Self>> {
        let handle = open_directory(path)?;
        match handle.try_lock() {
            Ok(()) => Ok(Some(Self { path: path.to_owned(), handle, write_path })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Opens a directory for reading, without a lock.
    ///
    /// # Errors
    /// When it is not there, no directory, or not to be opened.
    pub fn unlocked(path: &Path) -> io::Result<Self> {
        let handle = open_directory(path)?;
        Ok(Self { path: path.to_owned(), handle, write_path: WritePath::Call })
    }
}

/// Makes a directory with all above it, and their names durable.
///
/// # Errors
/// When one cannot be made or flushed.
pub(super) fn make(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    std::fs::create_dir_all(path)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn open_directory(path: &Path) -> io::Result<File> {
    let handle = File::open(path)?;
    if handle.metadata()?.is_dir() { Ok(handle) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Refuses what is no regular file, before it is opened: a named pipe would wait for its other end.
fn check_regular(path: &Path) -> io::Result<()> {
    let irregular = |words: String| io::Error::new(io::ErrorKind::IsADirectory, words);
    let metadata = std::fs::metadata(path).map_err(|error| {
        // A link that leads nowhere is there all the same, and no segment that went.
        if path.is_symlink() {
            return irregular(format!("it is a link that leads nowhere: {error}"));
        }
        error
    })?;
    if metadata.is_file() {
        return Ok(());
    }
    Err(irregular("it is no regular file".to_owned()))
}

impl Disk for Folder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            // Segments have names in ASCII; what is no text is none of them.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create(&self, name: &str, size: u64, start: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(self.path.join(name))?;
        file.write_all(start)?;
        let zeros = vec![0; ZEROS_BYTES];
        let mut left = size.saturating_sub(start.len() as u64);
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(ZEROS_BYTES).min(ZEROS_BYTES);
            file.write_all(&zeros[..piece])?;
            left -= piece as u64;
        }
        file.sync_all()
    }

    fn open(&self, name: &str, stable: Stable) -> io::Result<Opened> {
        let file = OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        let file = Arc::new(file);
        let is_mapped = self.write_path == WritePath::Map;
        let writer = Region::mapped(&file, stable, is_mapped)?;
        Ok(Opened {
            writer: Box::new(SegmentWriter {
                file: (!is_mapped).then(|| Arc::clone(&file)),
                writer,
            }),
            flusher: Arc::new(SegmentFlusher(file)),
        })
    }

    fn view(&self, name: &str) -> io::Result<Arc<Region>> {
        let path = self.path.join(name);
        check_regular(&path)?;
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        if size == 0 {
            // Nothing can be mapped.
            return Ok(Arc::clone(Region::heap(0, &[])?.region()));
        }
        Ok(Arc::clone(Region::mapped(&file, size, false)?.region()))
    }

    fn reader(&self, name: &str) -> io::Result<Box<dyn FileReader>> {
        let path = self.path.join(name);
        check_regular(&path)?;
        Ok(Box::new(SegmentReader(File::open(path)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn release(&self) {
        // It would go with the handle too.
        let _ = self.handle.unlock();
    }
}

#[derive(Debug)]
struct SegmentReader(File);

impl FileReader for SegmentReader {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.0.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

#[derive(Debug)]
struct SegmentWriter {
    /// Where `pwrite` goes; `None`: through the map.
    file: Option<Arc<File>>,
    writer: RegionWriter,
}

impl FileWriter for SegmentWriter {
    fn position(&self) -> u64 {
        self.writer.position()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &self.file {
            None => self.writer.append(bytes),
            Some(file) => {
                // Writing behind the end would make the file grow.
                self.writer.check_room(bytes.len())?;
                file.write_all_at(bytes, self.writer.position())?;
                self.writer.written(bytes.len())
            }
        }
    }
}

#[derive(Debug)]
struct SegmentFlusher(Arc<File>);

impl FileFlusher for SegmentFlusher {
    fn flush(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
