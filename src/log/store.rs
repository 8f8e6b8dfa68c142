//! A log that many threads append to.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::background::Background;
use super::disk::Disk;
use super::error::LogError;
use super::folder::{Folder, WritePath};
use super::frame::{Kind, Record};
use super::read::{Follower, Start, lookup, numbers};
use super::receipt::Receipt;
use super::recover::{Recovered, recover};
use super::restore::fold_at;
use super::segment::{self, Location};
use super::settings::{LogSettings, Sync};
use super::sink::SinkFile;
use super::state::State;
use super::tail::{Tail, TailSettings};
use super::writer::{Appended, Writer};
use crate::clock::{Clock, SystemClock};

/// An open log. Threads share it by reference or in an `Arc`.
///
/// ```
/// use waystage::log::{Log, LogSettings};
/// let directory = tempfile::tempdir()?;
/// let (log, recovered) = Log::open(directory.path(), LogSettings::default())?;
/// assert!(recovered.is_none(), "nothing was there");
/// let receipt = log.append(b"a body")?;
/// assert_eq!(receipt.wait()?, 1, "now it survives a power cut");
/// log.close()?;
///
/// let (_log, recovered) = Log::open(directory.path(), LogSettings::default())?;
/// let mut bodies = Vec::new();
/// recovered.unwrap().visit(|_, record| {
///     bodies.push(record.body().into_owned());
///     Ok::<(), waystage::log::LogError>(())
/// })?;
/// assert_eq!(bodies[0], b"a body");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Log {
    pub(super) writer: Arc<Writer>,
    disk: Arc<dyn Disk>,
    sync: Sync,
}

impl Log {
    /// Opens the log in a directory, which is made if it is not there; `None` for what was
    /// recovered when there was no log. Torn records at the end are cut.
    ///
    /// # Errors
    /// When somebody else has it open, when it is damaged, and what the storage says. Then nothing
    /// was changed.
    pub fn open(path: &Path, settings: LogSettings) -> Result<(Self, Option<Recovered>), LogError> {
        Self::open_with(path, settings, &mut || Ok(None))
    }

    /// The same with all sinks of a bus, which are opened when nobody else can write to the log any
    /// more. Without any (`None`) whoever opens it does not care for what records added to sinks.
    ///
    /// # Errors
    /// As [`open`](Self::open), and what opening the sinks says.
    pub(crate) fn open_with(
        path: &Path,
        settings: LogSettings,
        sinks: &mut dyn FnMut() -> Result<Option<Vec<Arc<SinkFile>>>, LogError>,
    ) -> Result<(Self, Option<Recovered>), LogError> {
        settings.check()?;
        let shown = path.display().to_string();
        super::folder::make(path).map_err(LogError::storage("make", &shown))?;
        let folder = Folder::lock(path, settings.path());
        let Some(folder) = folder.map_err(LogError::storage("open", &shown))? else {
            return Err(LogError::Locked(shown));
        };
        let (folder, clock) = (Arc::new(folder), Arc::new(SystemClock::new()));
        let (log, recovered) = Self::on(folder, &settings, clock, sinks()?.as_deref())?;
        Background::start(&log.writer).map_err(LogError::storage("start a thread for", &shown))?;
        Ok((log, recovered))
    }

    /// Removes the log in a directory, its segments, and leaves whatever else is there; how many
    /// segments it had. A crash in the middle leaves its newest segments or none.
    ///
    /// # Errors
    /// When somebody has it open, and what the storage says.
    pub fn discard(path: &Path) -> Result<usize, LogError> {
        let shown = path.display().to_string();
        let folder = match Folder::lock(path, WritePath::Call) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            opened => opened.map_err(LogError::storage("open", &shown))?,
        };
        let Some(folder) = folder else { return Err(LogError::Locked(shown)) };
        let names = folder.names().map_err(LogError::storage("list", &shown))?;
        let is_unfinished = |name: &&String| segment::is_unfinished(name);
        for name in names.iter().filter(is_unfinished) {
            folder.remove(name).map_err(LogError::storage("remove", name))?;
        }
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment::number(name)).collect();
        // The oldest first: without its newest segment it could be opened, and had lost something.
        numbers.sort_unstable();
        for &number in &numbers {
            let name = segment::name(number);
            folder.remove(&name).map_err(LogError::storage("remove", &name))?;
            folder.sync_names().map_err(LogError::storage("flush", &shown))?;
        }
        Ok(numbers.len())
    }

    /// Opens a log on any disk, without a thread of its own.
    pub(crate) fn on(
        disk: Arc<dyn Disk>,
        settings: &LogSettings,
        clock: Arc<dyn Clock>,
        sinks: Option<&[Arc<SinkFile>]>,
    ) -> Result<(Self, Option<Recovered>), LogError> {
        settings.check()?;
        let recovered = recover(&*disk, sinks)?;
        let tail_settings = TailSettings {
            segment_bytes: settings.segment_bytes,
            is_safe: settings.sync != Sync::Os,
            seed: settings.seed.unwrap_or_else(machine_seed),
        };
        let mut tail = Tail::open(Arc::clone(&disk), recovered.as_ref(), tail_settings)?;
        tail.set_sinks(sinks.unwrap_or_default().iter().map(SinkFile::flusher).collect());
        let writer = Arc::new(Writer::new(tail, clock, settings.sync));
        Ok((Self { writer, disk, sync: settings.sync }, recovered))
    }

    /// Appends a record. Records of one thread keep their order.
    ///
    /// # Errors
    /// When the body is too long, when there is no room for another segment, or when the log is
    /// poisoned, which a write that fails makes it.
    pub fn append(&self, body: &[u8]) -> Result<Receipt, LogError> {
        let appended = self.writer.append(Kind::Entries, body)?;
        Ok(Receipt::new(Arc::clone(&self.writer), self.sync, appended))
    }

    /// Appends a record if `admit` says so, which is told its sequence and where it will stand,
    /// while nobody else can append.
    ///
    /// # Errors
    /// As [`append`](Self::append), or what `admit` says; then nothing was appended.
    pub(crate) fn append_if(
        &self,
        kind: Kind,
        body: &[u8],
        admit: &mut dyn FnMut(u64, Location) -> Result<(), LogError>,
    ) -> Result<u64, LogError> {
        self.writer.append_if(kind, body, admit)
    }

    /// Appends entries and folds them into the state of the log, in one step; nobody is woken.
    ///
    /// # Errors
    /// As [`append`](Self::append), or what the state does not allow; then nothing was changed.
    pub(crate) fn append_entries(&self, state: &mut State, body: &[u8]) -> Result<u64, LogError> {
        self.append_if(Kind::Entries, body, &mut |sequence, location| {
            fold_at(state, sequence, location, body)
        })
    }

    /// Wakes those whom [`append_if`](Self::append_if) left; under no lock.
    pub(crate) fn wake(&self) {
        self.writer.wake();
    }

    /// Whether the next segment could not be made ahead, for want of room.
    pub(crate) fn is_short_of_room(&self) -> bool {
        self.writer.background.is_short_of_room()
    }

    /// The receipt of a record that was appended.
    pub(crate) fn receipt(&self, sequence: u64) -> Receipt {
        Receipt::new(Arc::clone(&self.writer), self.sync, Appended::Written(sequence))
    }

    /// Calls `read` with the record that stands there.
    ///
    /// # Errors
    /// When none does any more, and what the storage says.
    pub(crate) fn read<T>(
        &self,
        place: Location,
        read: impl FnOnce(Record<'_>) -> T,
    ) -> Result<T, LogError> {
        if self.writer.active().segment == place.segment {
            // It may still be in the buffer.
            self.writer.write_out()?;
        }
        lookup(&self.disk, place, read)
    }

    /// What the log failed of, if it did.
    pub(crate) fn failure(&self) -> Option<LogError> {
        self.writer.poison.failure()
    }

    /// Removes the segments before `lowest`, the oldest first.
    ///
    /// # Errors
    /// What the storage says.
    pub(crate) fn remove_before(&self, lowest: u64) -> Result<usize, LogError> {
        let mut removed = 0;
        for number in numbers(&*self.disk)? {
            if number < lowest {
                let name = segment::name(number);
                self.disk.remove(&name).map_err(LogError::storage("remove", &name))?;
                removed += 1;
            }
        }
        if removed > 0 {
            let synced = self.disk.sync_names();
            synced.map_err(LogError::storage("flush", "the log's directory"))?;
        }
        Ok(removed)
    }

    /// The longest body of a record.
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.writer.body_bytes_max()
    }

    /// The number of the segment that is written to.
    pub(crate) fn segment(&self) -> u64 {
        self.writer.active().segment
    }

    /// Flushes what has been written, and returns the highest sequence that is durable now.
    ///
    /// # Errors
    /// When the log is poisoned, which a flush that fails makes it.
    pub fn flush(&self) -> Result<u64, LogError> {
        self.writer.flush.now(&self.writer)
    }

    /// Everything up to this sequence survives a power cut.
    pub fn durable(&self) -> u64 {
        self.writer.progress.durable()
    }

    /// The last sequence given. Where a flush is waited for anyway, records are written out with
    /// it.
    pub fn appended(&self) -> u64 {
        self.writer.progress.appended()
    }

    /// Reads the log from `start` on as it grows.
    pub fn follow(&self, start: Start) -> Follower {
        Follower::new(Arc::clone(&self.disk), Arc::clone(&self.writer), start)
    }

    /// Flushes, and leaves a mark that says that all is durable, so that the next opening has
    /// nothing to repair. Dropping the log does not.
    ///
    /// # Errors
    /// When the log is or becomes poisoned.
    pub fn close(self) -> Result<(), LogError> {
        self.end()
    }

    /// As [`close`](Self::close), while others still have views of it: they are told that it is
    /// closed.
    ///
    /// # Errors
    /// When the log is or becomes poisoned.
    pub(crate) fn end(&self) -> Result<(), LogError> {
        let ended = self.mark();
        // What comes now is refused, and not left in the buffer.
        self.writer.poison.close();
        self.stop();
        ended
    }

    fn mark(&self) -> Result<(), LogError> {
        self.flush()?;
        self.writer.append(Kind::Mark, &[])?;
        self.flush().map(drop)
    }

    fn stop(&self) {
        self.writer.background.stop(&self.writer);
        // Receipts may live on: they are told, and do not keep others from the directory.
        self.writer.poison.close();
        self.writer.flush.wake(&self.writer, true);
        self.disk.release();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (appended, durable) = (self.appended(), self.durable());
        f.debug_struct("Log").field("appended", &appended).field("durable", &durable).finish()
    }
}

pub(super) fn machine_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
