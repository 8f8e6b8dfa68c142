//! Makes a new log of what can be read of a damaged one. The damaged one is never touched.
//!
//! What is readable is folded with the one function into the state that is true, and the new log
//! begins with that: each open envelope and dead letter copied whole, then a checkpoint. It goes on
//! with the sequences and segment numbers of the old one, as if everything before had been removed
//! in good order, so every dead letter keeps its number. What ended long ago is not copied.
//!
//! Where records are missing, nobody knows what they said. So at a *hole*
//!
//! - each envelope that is open may have ended there: unless a later record tells how it went on,
//!   it becomes a dead letter whose cause is *uncertain*. It is never handled again by itself;
//! - each dead letter may have been re-driven or purged there: it stays, and is uncertain too;
//! - what came in there is lost, unless a later record carries all of it: that is an uncertain dead
//!   letter again.
//!
//! A checkpoint behind a hole says what was true there, so nothing is uncertain then.
//!
//! A log whose records hold no entries, of somebody who uses the log alone, is copied record by
//! record.
//!
//! `source` (the readable records), `replay` (entries as far as they fit) and `mend` (where they do
//! not), `target` (the new log), `raw` (one without entries).

mod mend;
mod raw;
mod replay;
mod source;
mod target;

use std::path::Path;
use std::sync::Arc;

use super::disk::Disk;
use super::error::LogError;
use super::folder::{self, Folder, WritePath};
use super::segment::Location;
use super::verify::{Depth, verify_on};
use crate::envelope::EnvelopeId;

use replay::Replay;
use source::Source;

/// Records that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// Where they would begin.
    pub location: Location,
    /// The sequence of the first.
    pub first: u64,
    /// The sequence of the last; `None` where the log ends in it.
    pub last: Option<u64>,
}

/// What became of a salvaged log.
#[derive(Debug, Clone, Default)]
pub struct Salvaged {
    /// Valid records that were found.
    pub records: u64,
    /// What could not be read.
    pub holes: Vec<Hole>,
    /// Whether the state of a checkpoint was begun with; what stands before it does not matter.
    pub has_checkpoint: bool,
    /// Open envelopes in the new log.
    pub open: usize,
    /// Dead letters in the new log, those that are uncertain among them.
    pub letters: usize,
    /// Envelopes that may have ended in a hole, and are dead letters for that.
    pub uncertain: Vec<EnvelopeId>,
    /// Dead letters of before that may have been dealt with in a hole.
    pub uncertain_letters: usize,
    /// Envelopes of which the body, or all but the id, cannot be read.
    pub lost: Vec<EnvelopeId>,
    /// Entries that did not fit what was before them, and were mended to.
    pub mended: u64,
    /// Envelopes of which a record could be read and not followed, each with the sequence of the
    /// first such record: an entry of it did not fit what was before, or says nothing that can be.
    pub unfit: Vec<(EnvelopeId, u64)>,
    /// Whether saved states, positions of inputs and outputs may be older than they were.
    pub is_behind: bool,
    /// Whether its records hold no entries. Then they were copied one by one, each with its
    /// sequence, and marks stand for those that are lost.
    pub is_raw: bool,
    /// The sequence of the first record of the new log.
    pub first: u64,
}

impl Salvaged {
    /// Adds a hole; one that goes on with the last is a part of it.
    fn note(&mut self, hole: Hole) {
        match self.holes.last_mut() {
            Some(before) if before.last.is_some_and(|last| last + 1 == hole.first) => {
                before.last = hole.last;
            }
            _ => self.holes.push(hole),
        }
    }
}

/// Makes a log in the directory `to` of what can be read in the directory `from`.
///
/// ```
/// use waystage::log::salvage::salvage;
/// use waystage::log::verify::{Depth, verify};
/// use waystage::log::{Log, LogSettings};
/// # use waystage::envelope::{EnvelopeId, codec::Parts};
/// # use waystage::log::entry::{DurableLevel, Entry};
/// let directory = tempfile::tempdir()?;
/// let (from, to) = (directory.path().join("old"), directory.path().join("new"));
/// let (log, _) = Log::open(&from, LogSettings::default())?;
/// # let id = EnvelopeId::from_key(b"order-17");
/// # let envelope = Parts { current: Some("price"), payload: Some(b"pears"), ..Parts::new(id) };
/// # let mut accept = Vec::new();
/// # Entry::Accept { level: DurableLevel::AtLeastOnce, envelope }.encode(&mut accept)?;
/// log.append(&accept)?.wait()?; // an envelope came in
/// log.close()?;
///
/// let salvaged = salvage(&from, &to)?;
/// assert_eq!((salvaged.open, salvaged.lost.len()), (1, 0));
/// assert!(!verify(&to, Depth::All)?.is_damaged());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When `to` has something in it or lies inside `from`, when somebody writes to `from`, when its
/// format is newer, when nothing can be read, and what the storage says. A new log that is not
/// finished does not open.
pub fn salvage(from: &Path, to: &Path) -> Result<Salvaged, LogError> {
    let (shown, shown_to) = (from.display().to_string(), to.display().to_string());
    let source = Folder::lock(from, WritePath::Call);
    let Some(source) = source.map_err(LogError::storage("open", &shown))? else {
        return Err(LogError::Locked(shown));
    };
    let to_whole = std::path::absolute(to).map_err(LogError::storage("make", &shown_to))?;
    let inside = to_whole.ancestors().find_map(|path| std::fs::canonicalize(path).ok());
    let own = std::fs::canonicalize(from).map_err(LogError::storage("open", &shown))?;
    if inside.is_some_and(|inside| inside.starts_with(&own)) {
        return Err(LogError::Inside(shown_to));
    }
    if std::fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(LogError::NotEmpty(shown_to));
    }
    let source: Arc<dyn Disk> = Arc::new(source);
    let found = Source::open(&source, &shown)?;
    folder::make(to).map_err(LogError::storage("make", &shown_to))?;
    let target = Folder::lock(to, WritePath::Call);
    let Some(target) = target.map_err(LogError::storage("open", &shown_to))? else {
        return Err(LogError::Locked(shown_to));
    };
    let target: Arc<dyn Disk> = Arc::new(target);
    transfer(found, &target, super::store::machine_seed())
}

/// The same on any disks.
#[cfg(test)]
pub(crate) fn salvage_on(
    from: &Arc<dyn Disk>,
    to: &Arc<dyn Disk>,
    seed: u64,
) -> Result<Salvaged, LogError> {
    transfer(Source::open(from, "the disk")?, to, seed)
}

fn transfer(mut source: Source, to: &Arc<dyn Disk>, seed: u64) -> Result<Salvaged, LogError> {
    let salvaged = if source.is_raw() {
        raw::write(&source, Arc::clone(to), seed)?
    } else {
        let mut replay = Replay::new(&source);
        source.replay(&mut replay)?;
        target::write(&mut source, replay, Arc::clone(to), seed)?
    };
    // What was made is looked at before anybody relies on it.
    let depth = if salvaged.is_raw { Depth::Records } else { Depth::Entries };
    let verified = verify_on(to, depth)?;
    match verified.findings.into_iter().next() {
        None => Ok(salvaged),
        Some(finding) => {
            let source = std::io::Error::other(finding.what.to_string());
            Err(LogError::storage("read back", &finding.file())(source))
        }
    }
}
