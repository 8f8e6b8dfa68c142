//! A disk in memory that loses power: the second body of [`Disk`], for tests.
//!
//! Every write goes to a cache and is remembered by 512-byte sector; a flush makes a file durable.
//! A power cut keeps of each sector any version since the last flush, of each file apart, and any
//! of the name changes since the names were flushed. The end of a process keeps the cache.
//! Operations are counted and can be made to fail: from the n-th on (a crash), or only the n-th (an
//! error). After a failed flush the cache holds what the medium does not, as kernels do it.

mod sink;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use self::sink::SimulatedSink;
use super::disk::{Disk, FileFlusher, FileReader, FileWriter, Opened, Stable};
use super::region::{Region, RegionWriter};
use super::torn::SECTOR_BYTES;
use crate::sync::{Mutex, lock};

type Sector = [u8; SECTOR_BYTES];

/// What happens at the chosen operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It and all later ones fail: the process is gone. A write gets halfway.
    Crash,
    /// It fails, later ones go on. A write gets halfway.
    Error(io::ErrorKind),
}

/// A source of numbers below a bound.
pub(crate) type Draw<'a> = &'a mut dyn FnMut(usize) -> usize;

#[derive(Debug, Default, Clone)]
struct Content {
    /// What everybody reads.
    cache: Vec<u8>,
    /// What is on the medium; sectors of `dirty` may be there instead.
    durable: Vec<u8>,
    /// Versions since the last flush, the oldest first.
    dirty: BTreeMap<usize, Vec<Sector>>,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set { name: String, file: usize },
    Rename { from: String, to: String },
    Remove { name: String },
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    name_changes: Vec<NameChange>,
    /// Files elsewhere; their names are durable at once.
    sinks: BTreeMap<String, usize>,
    operations: usize,
    bytes_read: usize,
    fault: Option<(usize, Fault)>,
}

/// The disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

impl SimulatedDisk {
    fn with<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        action(&mut lock(&self.0))
    }

    /// Operations so far.
    pub(crate) fn operations(&self) -> usize {
        self.with(|state| state.operations)
    }

    /// Bytes copied for readers so far.
    pub(crate) fn bytes_read(&self) -> usize {
        self.with(|state| state.bytes_read)
    }

    /// Makes the operation of this number (from 0) fail.
    pub(crate) fn fail_at(&self, operation: usize, fault: Fault) {
        self.with(|state| state.fault = Some((operation, fault)));
    }

    /// What another process finds after this one was killed.
    pub(crate) fn after_kill(&self) -> Self {
        let state = self.with(|state| State {
            files: state.files.clone(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            name_changes: state.name_changes.clone(),
            sinks: state.sinks.clone(),
            ..State::default()
        });
        Self(Arc::new(Mutex::new(state)))
    }

    /// What is left after a power cut, as `draw` will have it.
    pub(crate) fn after_power_cut(&self, draw: Draw<'_>) -> Self {
        let state = self.with(|state| {
            let mut names = state.durable_names.clone();
            // Half of the cuts keep a prefix of the changes, the others any of them.
            let is_prefix = draw(2) == 0;
            let kept = draw(state.name_changes.len() + 1);
            for (index, change) in state.name_changes.iter().enumerate() {
                if if is_prefix { index < kept } else { draw(2) == 0 } {
                    change.apply(&mut names);
                }
            }
            let files = state.files.iter().map(|file| file.after_power_cut(draw)).collect();
            let sinks = state.sinks.clone();
            State { files, sinks, durable_names: names.clone(), names, ..State::default() }
        });
        Self(Arc::new(Mutex::new(state)))
    }

    /// What is left after a power cut that keeps nothing but what was flushed.
    pub(crate) fn after_bare_power_cut(&self) -> Self {
        let state = self.with(|state| State {
            files: state.files.iter().map(|file| Content::settled(file.durable.clone())).collect(),
            names: state.durable_names.clone(),
            durable_names: state.durable_names.clone(),
            sinks: state.sinks.clone(),
            ..State::default()
        });
        Self(Arc::new(Mutex::new(state)))
    }

    /// What is left when the system had written the whole log by itself, and nothing of the sinks
    /// that was not flushed.
    pub(crate) fn after_write_back(&self) -> Self {
        let left = self.after_kill();
        left.with(|state| {
            for &file in state.sinks.values() {
                state.files[file] = Content::settled(state.files[file].durable.clone());
            }
        });
        left
    }

    /// Changes bytes of a file on the medium and in the cache, behind everybody's back.
    pub(crate) fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        self.with(|state| {
            let file = &mut state.files[state.names[name]];
            change(&mut file.cache);
            *file = Content::settled(std::mem::take(&mut file.cache));
        });
    }

    /// What a file holds.
    pub(crate) fn contents(&self, name: &str) -> Vec<u8> {
        self.with(|state| state.files[state.names[name]].cache.clone())
    }

    /// A file that can grow, apart from the directory: it is made if it is not there.
    pub(crate) fn sink(&self, name: &str) -> SimulatedSink {
        let file = self.with(|state| {
            *state.sinks.entry(name.to_owned()).or_insert_with(|| {
                state.files.push(Content::default());
                state.files.len() - 1
            })
        });
        SimulatedSink { disk: self.clone(), file }
    }

    /// What such a file holds.
    pub(crate) fn sink_text(&self, name: &str) -> String {
        self.with(|state| {
            let held = state.files[state.sinks[name]].cache.clone();
            String::from_utf8(held).expect("what was written is text")
        })
    }

    /// All names with what they hold.
    pub(crate) fn everything(&self) -> BTreeMap<String, Vec<u8>> {
        self.with(|state| {
            let held = |&file: &usize| state.files[file].cache.clone();
            state.names.iter().map(|(name, file)| (name.clone(), held(file))).collect()
        })
    }

    /// Puts a durable file there.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        self.with(|state| {
            state.files.push(Content::settled(bytes));
            state.names.insert(name.to_owned(), state.files.len() - 1);
            state.durable_names.insert(name.to_owned(), state.files.len() - 1);
        });
    }
}

impl State {
    /// Counts an operation, and fails it if it is the one.
    fn operate(&mut self) -> io::Result<()> {
        let operation = self.operations;
        self.operations += 1;
        match self.fault {
            Some((at, Fault::Crash)) if operation >= at => Err(io::Error::other("crashed")),
            Some((at, Fault::Error(kind))) if operation == at => Err(kind.into()),
            _ => Ok(()),
        }
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set { name, file } => {
                names.insert(name.clone(), *file);
            }
            Self::Rename { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Remove { name } => {
                names.remove(name);
            }
        }
    }
}

impl Content {
    fn settled(bytes: Vec<u8>) -> Self {
        Self { durable: bytes.clone(), cache: bytes, dirty: BTreeMap::new() }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.cache[offset..offset + bytes.len()].copy_from_slice(bytes);
        if bytes.is_empty() {
            return;
        }
        for sector in offset / SECTOR_BYTES..=(offset + bytes.len() - 1) / SECTOR_BYTES {
            let mut version = [0; SECTOR_BYTES];
            let held = self.cache[sector * SECTOR_BYTES..].chunks(SECTOR_BYTES).next();
            let held = held.unwrap_or_default();
            version[..held.len()].copy_from_slice(held);
            self.dirty.entry(sector).or_default().push(version);
        }
    }

    fn after_power_cut(&self, draw: Draw<'_>) -> Self {
        let mut bytes = self.durable.clone();
        if self.cache.len() > bytes.len() && draw(2) == 0 {
            // It grew, and what it grew by may hold nothing.
            bytes.resize(self.cache.len(), 0);
        }
        // Some cuts keep nearly nothing, some nearly everything, most a mixture.
        let bias = draw(4);
        for (sector, versions) in &self.dirty {
            let keep = match bias {
                0 => draw(16) == 0,
                1 => draw(16) != 0,
                _ => draw(2) == 0,
            };
            if keep {
                let latest = versions.len() - 1;
                let version = if draw(3) == 0 { draw(versions.len()) } else { latest };
                copy_sector(&mut bytes, *sector, versions.get(version));
            }
        }
        Self::settled(bytes)
    }
}

fn copy_sector(bytes: &mut [u8], sector: usize, version: Option<&Sector>) {
    if sector * SECTOR_BYTES >= bytes.len() {
        // The file did not grow.
        return;
    }
    let target = bytes[sector * SECTOR_BYTES..].chunks_mut(SECTOR_BYTES).next();
    if let (Some(target), Some(version)) = (target, version) {
        target.copy_from_slice(&version[..target.len()]);
    }
}

impl Disk for SimulatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.with(|state| Ok(state.names.keys().rev().cloned().collect()))
    }

    fn create(&self, name: &str, size: u64, start: &[u8]) -> io::Result<()> {
        self.with(|state| {
            let failed = state.operate();
            let mut bytes = start.to_vec();
            bytes.resize(usize::try_from(size).map_err(io::Error::other)?, 0);
            // Where it fails the file is there with nothing durable in it.
            let content = match failed {
                Ok(()) => Content::settled(bytes),
                Err(_) => Content::settled(bytes[..bytes.len() / 2].to_vec()),
            };
            state.files.push(content);
            let file = state.files.len() - 1;
            state.change_names(NameChange::Set { name: name.to_owned(), file });
            failed
        })
    }

    fn open(&self, name: &str, stable: Stable) -> io::Result<Opened> {
        let (file, bytes) = self.with(|state| {
            state.operate()?;
            let file = state.file(name)?;
            Ok::<_, io::Error>((file, state.files[file].cache.clone()))
        })?;
        let stable = usize::try_from(stable).map_err(io::Error::other)?;
        let stable_bytes = bytes.get(..stable).ok_or(io::ErrorKind::UnexpectedEof)?;
        let writer = Region::heap(bytes.len(), stable_bytes)?;
        Ok(Opened {
            writer: Box::new(SimulatedWriter { disk: self.clone(), file, writer }),
            flusher: Arc::new(SimulatedFlusher { disk: self.clone(), file }),
        })
    }

    fn view(&self, name: &str) -> io::Result<Arc<Region>> {
        let bytes = self.with(|state| {
            state.operate()?;
            Ok::<_, io::Error>(state.files[state.file(name)?].cache.clone())
        })?;
        Ok(Arc::clone(Region::heap(bytes.len(), &bytes)?.region()))
    }

    fn reader(&self, name: &str) -> io::Result<Box<dyn FileReader>> {
        // Reading is not counted: it changes nothing, and a reader is another process.
        let file = self.with(|state| state.file(name))?;
        Ok(Box::new(SimulatedReader { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.with(|state| {
            state.operate()?;
            state.file(from)?;
            let (from, to) = (from.to_owned(), to.to_owned());
            state.change_names(NameChange::Rename { from, to });
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|state| {
            state.operate()?;
            state.file(name)?;
            state.change_names(NameChange::Remove { name: name.to_owned() });
            Ok(())
        })
    }

    fn sync_names(&self) -> io::Result<()> {
        self.with(|state| {
            state.operate()?;
            state.durable_names = state.names.clone();
            state.name_changes.clear();
            Ok(())
        })
    }
}

#[derive(Debug)]
struct SimulatedWriter {
    disk: SimulatedDisk,
    file: usize,
    writer: RegionWriter,
}

impl FileWriter for SimulatedWriter {
    fn position(&self) -> u64 {
        self.writer.position()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(self.position()).map_err(io::Error::other)?;
        self.disk.with(|state| {
            let failed = state.operate();
            let file = &mut state.files[self.file];
            // A call is cut short between two sectors.
            let half = (offset + bytes.len() / 2) / SECTOR_BYTES * SECTOR_BYTES;
            let half = half.saturating_sub(offset);
            let written = if failed.is_ok() { bytes } else { &bytes[..half] };
            if offset + written.len() > file.cache.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            file.write(offset, written);
            failed
        })?;
        self.writer.append(bytes)
    }
}

#[derive(Debug)]
struct SimulatedReader {
    disk: SimulatedDisk,
    file: usize,
}

impl FileReader for SimulatedReader {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.with(|state| state.files[self.file].cache.len()) as u64)
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.with(|state| {
            let offset = usize::try_from(offset).map_err(io::Error::other)?;
            let held = state.files[self.file].cache.get(offset..).unwrap_or_default();
            let count = held.len().min(bytes.len());
            bytes[..count].copy_from_slice(&held[..count]);
            state.bytes_read += count;
            Ok(count)
        })
    }
}

#[derive(Debug)]
struct SimulatedFlusher {
    disk: SimulatedDisk,
    file: usize,
}

impl FileFlusher for SimulatedFlusher {
    fn flush(&self) -> io::Result<()> {
        self.disk.with(|state| {
            let failed = state.operate();
            let crashed = matches!(state.fault, Some((_, Fault::Crash))) && failed.is_err();
            let file = &mut state.files[self.file];
            if failed.is_ok() {
                file.durable.resize(file.cache.len(), 0);
                for (&sector, versions) in &file.dirty {
                    copy_sector(&mut file.durable, sector, versions.last());
                }
            }
            if !crashed {
                // After an error the pages are clean, and the medium does not have them.
                file.dirty.clear();
            }
            failed
        })
    }
}
