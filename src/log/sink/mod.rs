//! Sinks: output files in which every line stands exactly once, power loss included.
//!
//! What an attempt adds to a sink and the settlement that it led to are one: both are there after
//! a crash, or neither is.
//!
//! - **S0** Where a sink begins is a durable record before anything is added to it.
//! - **S1** What is added is written behind the known end of the file before the settlement's
//!   record is appended, by one attempt at a time: until the record has its place nobody else adds
//!   to the sink. Only then the known end moves; what stands behind it is cut off, or written over.
//! - **S2** The record says where the file ends now, how much was added, and its checksum.
//! - **S3** A flush of the log flushes the sinks first, so what a durable record says is there.
//! - **S4** The system may write the log out by itself before the sink. So on opening, the first
//!   record above the known watermark whose addition is not there is where the log ends: it is cut
//!   like a torn tail. At or below the watermark that is an error, and nothing is mended. What is
//!   there above it is written again, and flushed before the log is: an earlier flush of it may
//!   have failed.
//! - **S5** Then what stands behind the known end is cut off.
//!
//! A checkpoint above the known watermark says only where sinks end, not all that was added since
//! the last flush: an older one is taken, which is there still as long as that is so.

mod check;
mod file;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::disk::FileFlusher;
use super::entry::{Entry, PATH_BYTES_MAX, Sink};
use super::error::LogError;
use super::flusher::Flusher;
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering, lock};

pub(crate) use check::{agree, settle};
pub(crate) use file::{RegularFile, SinkStorage};
pub(crate) use writes::{Writes, Written};

/// An addition is read back and checked in pieces of this size.
const PIECE_BYTES: usize = 1 << 16;

/// An output file of a durable bus.
///
/// ```
/// use waystage::log::SinkSettings;
/// let settings = SinkSettings::new("alerts", "out/alerts.ndjson");
/// assert!(!settings.empties);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkSettings {
    /// The name under which the log knows it: 1 to 4,096 bytes. The file may move, the name must
    /// not.
    pub name: String,
    /// The file. It is made if it is not there, with the directories above it.
    pub path: PathBuf,
    /// Whether what the file holds goes when the log does not know the sink yet. Default: it stays,
    /// and new lines come behind it.
    pub empties: bool,
}

impl SinkSettings {
    /// A sink of this name in this file, whose content stays.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: path.into(), empties: false }
    }
}

/// What is wrong with the file of a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SinkFault {
    /// It is another file than the one that was written.
    Replaced,
    /// It is shorter than what was written.
    Shorter {
        /// Bytes that were written.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// The last addition to it is not there any more.
    Changed {
        /// Where it began, in bytes from the beginning of the file.
        offset: u64,
    },
}

impl std::fmt::Display for SinkFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Replaced => write!(f, "it is another file than the one that was written"),
            Self::Shorter { expected, found } => {
                write!(f, "it has {found} bytes, and {expected} were written")
            }
            Self::Changed { offset } => {
                write!(f, "what was written at byte {offset} is not there any more")
            }
        }
    }
}

/// An output file of a durable bus, open for adding to it. Cheap to share in an `Arc`.
///
/// Handlers add to it with [`Context::write`](crate::Context::write).
#[derive(Debug)]
pub struct SinkFile {
    name: Box<str>,
    path: PathBuf,
    /// Its place among the sinks of its log: the order in which their locks are taken.
    number: usize,
    empties: bool,
    storage: Box<dyn SinkStorage>,
    /// The bus it belongs to.
    bus: OnceLock<u16>,
    known: Mutex<Known>,
    /// Told when it can be added to again.
    given: Condvar,
    /// Whether something was written since the last flush.
    is_dirty: AtomicBool,
    /// Settlements that added something, since it was opened.
    additions: AtomicU64,
}

/// What is known of a sink.
#[derive(Debug, Default)]
struct Known {
    /// Where it ends, as far as the log knows; `None` before it was begun.
    end: Option<Sink>,
    is_closed: bool,
    /// Whether somebody adds to it. Not a lock: payloads are encoded meanwhile, which is foreign
    /// code.
    is_taken: bool,
}

impl SinkFile {
    /// Opens the files of all these, and makes those that are not there.
    ///
    /// # Errors
    /// What the storage says, or that two have one name.
    pub(crate) fn open_all(settings: &[SinkSettings]) -> Result<Vec<Arc<Self>>, LogError> {
        let mut sinks: Vec<Arc<Self>> = Vec::new();
        let mut files = Vec::new();
        for (number, sink) in settings.iter().enumerate() {
            let shown = sink.path.display().to_string();
            let wrong = |words: &str| {
                let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, words);
                LogError::storage("open", &shown)(source)
            };
            if !(1..=PATH_BYTES_MAX).contains(&sink.name.len()) {
                return Err(wrong("the name of a sink has 1 to 4,096 bytes"));
            }
            let storage = RegularFile::open(&sink.path);
            let storage = storage.map_err(LogError::storage("open", &shown))?;
            let file = storage.identity().map_err(LogError::storage("look at", &shown))?;
            if files.contains(&file) || sinks.iter().any(|other| *other.name == *sink.name) {
                return Err(wrong("another sink has the same file or the same name"));
            }
            if !storage.lock().map_err(LogError::storage("lock", &shown))? {
                return Err(LogError::SinkTaken(shown));
            }
            files.push(file);
            sinks.push(Arc::new(Self::new(sink, number, Box::new(storage))));
        }
        Ok(sinks)
    }

    /// A sink in this storage.
    pub(crate) fn new(
        settings: &SinkSettings,
        number: usize,
        storage: Box<dyn SinkStorage>,
    ) -> Self {
        Self {
            name: settings.name.as_str().into(),
            path: settings.path.clone(),
            number,
            empties: settings.empties,
            storage,
            bus: OnceLock::new(),
            known: Mutex::new(Known::default()),
            given: Condvar::new(),
            is_dirty: AtomicBool::new(false),
            additions: AtomicU64::new(0),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file that settled envelopes wrote, and what was there before them.
    #[must_use]
    pub fn length(&self) -> u64 {
        lock(&self.known).end.map_or(0, |end| end.length)
    }

    /// Says which bus it belongs to.
    pub(crate) fn belong_to(&self, bus: u16) {
        // Whoever opened it has one bus for it.
        let _ = self.bus.set(bus);
    }

    /// Whether it belongs to this bus.
    pub(crate) fn is_of(&self, bus: u16) -> bool {
        self.bus.get() == Some(&bus)
    }

    /// How many settlements added to it since it was opened.
    #[must_use]
    pub fn additions(&self) -> u64 {
        // ORDERING: Relaxed: it is a count.
        self.additions.load(Ordering::Relaxed)
    }

    /// What flushes it (S3).
    pub(super) fn flusher(self: &Arc<Self>) -> Arc<Flusher> {
        let name = self.path.display().to_string();
        Arc::new(Flusher::new(&name, Arc::clone(self) as Arc<dyn FileFlusher>))
    }

    fn storage_error(&self, action: &'static str) -> impl FnOnce(std::io::Error) -> LogError {
        let name = self.path.display().to_string();
        move |source| LogError::Storage { action, name, source }
    }

    /// The entry that says where it ends now.
    pub(crate) fn entry(&self, sink: Sink) -> Entry<'_> {
        Entry::Sink { name: self.name.as_bytes(), sink }
    }

    /// Cuts off what stands behind the known end: of attempts that failed, say.
    ///
    /// # Errors
    /// What the storage says.
    pub(crate) fn trim(&self) -> Result<(), LogError> {
        let Some(end) = lock(&self.known).end else { return Ok(()) };
        let size = self.storage.size().map_err(self.storage_error("look at"))?;
        if size > end.length {
            self.storage.set_size(end.length).map_err(self.storage_error("shorten"))?;
        }
        Ok(())
    }
}

impl FileFlusher for SinkFile {
    fn flush(&self) -> std::io::Result<()> {
        // ORDERING: AcqRel, pairs with the store in `Writes::begin`: who sees the mark, flushes
        // what was written before it was set.
        if self.is_dirty.swap(false, Ordering::AcqRel) { self.storage.sync() } else { Ok(()) }
    }
}

/// The checksum of what was added: XXH3 with 64 bits over pieces of 64 KiB, each with that of the
/// pieces before it as its seed.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(PIECE_BYTES).fold(0, checksum_on)
}

/// The same with one piece more.
fn checksum_on(before: u64, piece: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(before, piece)
}
