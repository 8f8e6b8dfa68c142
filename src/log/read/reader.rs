//! Reads a log from its directory alone, whether somebody writes to it or not.

use std::path::Path;
use std::sync::Arc;

use super::cursor::{Cursor, Peek};
use super::locate;
use super::walk::{Shown, Start, Walk};
use crate::log::disk::Disk;
use crate::log::error::LogError;
use crate::log::folder::Folder;
use crate::log::frame::Kind;
use crate::log::segment::Location;

/// Why a reader shows no more for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stop {
    /// There is nothing more, but perhaps the mark of a clean stop.
    End,
    /// This record is there, and nothing says yet that it would survive a power cut.
    Unsafe(u64),
    /// Here stands no valid record, though there is something. It may be one that is being
    /// written; [`verify`](crate::log::verify::verify) says what it is.
    Invalid(Location),
}

/// Reads a log in order without opening it for writing: takes no lock, changes nothing.
///
/// It shows what is known to be durable: records that a later record's watermark covers. Of
/// segments that were written under [`Sync::Os`](crate::log::Sync::Os), which nobody flushes, it
/// shows all valid records and marks those that are not known to be durable.
///
/// ```
/// use waystage::log::{Log, LogSettings, Reader, Start};
/// let directory = tempfile::tempdir()?;
/// let (log, _) = Log::open(directory.path(), LogSettings::default())?;
/// for body in [b"one", b"two"] {
///     log.append(body)?.wait()?;
/// }
/// log.append(b"three")?; // its watermark says that the two before are safe
/// log.flush()?;
///
/// let mut reader = Reader::open(directory.path(), Start::Oldest)?;
/// let mut bodies = Vec::new();
/// while let Some(shown) = reader.next()? {
///     bodies.push(shown.record.body().into_owned());
/// }
/// assert_eq!(bodies, [b"one", b"two"]);
/// assert_eq!(reader.position(), Start::Sequence(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    walk: Walk,
    /// Goes ahead, from the last segment that holds something, for the watermark.
    scout: Option<Cursor>,
    watermark: u64,
    stop: Stop,
}

impl Reader {
    /// Reads the log in a directory.
    ///
    /// # Errors
    /// When that is not there, or cannot be read.
    pub fn open(path: &Path, start: Start) -> Result<Self, LogError> {
        let shown = path.display().to_string();
        let folder = Folder::unlocked(path).map_err(LogError::storage("open", &shown))?;
        Ok(Self::on(Arc::new(folder), start))
    }

    /// Reads a log on any disk.
    pub(crate) fn on(disk: Arc<dyn Disk>, start: Start) -> Self {
        let walk = Walk::new(disk, start);
        Self { walk, scout: None, watermark: 0, stop: Stop::End }
    }

    /// The next record that may be shown; `None` when there is none now, and [`stop`](Self::stop)
    /// says why. Asked again it looks again.
    ///
    /// # Errors
    /// When a file is no segment of this log, when what comes next is gone, and what the storage
    /// says.
    #[expect(clippy::should_implement_trait, reason = "records borrow the reader's window")]
    pub fn next(&mut self) -> Result<Option<Shown<'_>>, LogError> {
        let stamp = match self.walk.peek()? {
            Peek::Record(stamp) => stamp,
            Peek::End => {
                self.stop = Stop::End;
                return Ok(None);
            }
            Peek::Invalid => {
                let location = self.walk.cursor.as_ref().map(Cursor::location);
                self.stop = Stop::Invalid(location.unwrap_or_default());
                return Ok(None);
            }
        };
        let is_os = self.walk.cursor.as_ref().is_some_and(|cursor| cursor.header().is_os);
        // Where it is shown anyway, it is enough that the scout has been here.
        let scouted = self.scout.as_ref().and_then(Cursor::passed).unwrap_or(0);
        if stamp.sequence > self.watermark && !(is_os && stamp.sequence <= scouted) {
            self.scout()?;
        }
        let is_durable = stamp.sequence <= self.watermark;
        if !is_durable && !is_os {
            // A mark says nothing: behind a clean stop, it is the last record.
            let is_mark = stamp.kind == Kind::Mark;
            self.stop = if is_mark { Stop::End } else { Stop::Unsafe(stamp.sequence) };
            return Ok(None);
        }
        Ok(self.walk.show(is_durable))
    }

    /// Where another reader has to begin to go on from here.
    pub fn position(&self) -> Start {
        self.walk.position()
    }

    /// Why the last call of [`next`](Self::next) gave nothing.
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// Everything up to this sequence is known to be durable, as far as was looked.
    pub fn durable(&self) -> u64 {
        self.watermark
    }

    /// Goes on to the end of what is there, and notes what it says of what is durable.
    fn scout(&mut self) -> Result<(), LogError> {
        let disk = &self.walk.disk;
        if self.scout.is_none() {
            let numbers = locate::numbers(&**disk)?;
            let holds_some = |number: &&u64| locate::first_stamp(&**disk, **number).is_some();
            if let Some(&last) = numbers.iter().rev().find(holds_some) {
                self.scout = Cursor::open(disk, last)?;
            }
        }
        if let Some(scout) = &mut self.scout {
            while let Peek::Record(stamp) = scout.peek()? {
                self.watermark = self.watermark.max(stamp.watermark);
                scout.pass();
            }
        }
        Ok(())
    }
}
