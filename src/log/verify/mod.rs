//! Says what a log holds and what is wrong with it, without changing anything.
//!
//! Every segment is read and surveyed as recovery does it, and the same judge says whether the log
//! opens; then the entries are folded with the one function. Beyond recovery, which stops at the
//! first damage and leaves alone what a checkpoint has made unneeded, everything that is there is
//! looked at and every damage is told. One segment is in memory at a time.
//!
//! `load` (bytes of a file that may be written to), `stretch` (records and what is between them),
//! `opening` (what recovery would say), `finding` and `search` (what is wrong), `folded` (what the
//! records say).

mod finding;
mod folded;
mod load;
mod opening;
mod search;
mod stretch;

use std::path::Path;
use std::sync::Arc;

pub use finding::{Finding, What};
pub(super) use load::load;
pub(super) use stretch::{Stretch, stretches};

use super::checkpoint::Complete;
use super::disk::Disk;
use super::error::LogError;
use super::folder::Folder;
use super::frame::Kind;
use super::read::numbers;
use super::segment::{self, Location, SegmentHeader};
use super::state::State;
use super::survey::{Survey, survey};

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Depth {
    /// Records: checks, order, watermarks. For logs whose bodies are not entries.
    Records,
    /// Also what opening a bus reads: the newest checkpoint, and the entries behind it.
    #[default]
    Entries,
    /// Also all entries before that. Where the log is there from a point that can be read, all
    /// entries are folded from there, and each checkpoint has to say the same.
    All,
}

/// What one segment holds.
#[derive(Debug)]
pub struct SegmentReport {
    /// Its number.
    pub number: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// What its header says; `None` where it cannot be read.
    pub header: Option<SegmentHeader>,
    /// Valid records.
    pub records: u64,
    /// The first record: its sequence and time.
    pub first: Option<(u64, u64)>,
    /// The last record: its sequence and time.
    pub last: Option<(u64, u64)>,
    /// Where the last valid record ends.
    pub end: u64,
    /// Whether opening the log needs it.
    pub is_needed: bool,
}

/// What a log holds, and what is wrong with it.
#[derive(Debug)]
pub struct Verified {
    /// All segments that are there, by their numbers.
    pub segments: Vec<SegmentReport>,
    /// What is wrong, in the order of the log.
    pub findings: Vec<Finding>,
    /// The highest sequence known to have been durable.
    pub watermark: u64,
    /// The sequence of the last record, before what would be cut.
    pub last: u64,
    /// The newest checkpoint that counts.
    pub checkpoint: Option<Complete>,
    /// How many checkpoints were compared with what the entries say.
    pub compared: usize,
    /// Names of files that are no segments.
    pub others: Vec<String>,
    /// What is true after all records; `None` where the log does not open, or that was not asked.
    pub state: Option<State>,
}

impl Verified {
    /// Whether something is damaged; a torn tail is not.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| !finding.is_torn)
    }
}

/// A segment as it was surveyed.
#[derive(Debug)]
struct Surveyed {
    number: u64,
    bytes: u64,
    survey: Result<Survey, LogError>,
    stretches: Vec<Stretch>,
}

impl Surveyed {
    /// Whether it is of that log.
    fn header(&self) -> Option<&SegmentHeader> {
        self.survey.as_ref().ok().map(|survey| &survey.header)
    }

    fn report(&self, is_needed: bool) -> SegmentReport {
        let mut runs = self.stretches.iter().filter_map(|stretch| stretch.run);
        let first = runs.clone().next().map(|run| (run.first, run.first_time));
        SegmentReport {
            number: self.number,
            bytes: self.bytes,
            header: self.header().copied(),
            records: runs.clone().map(|run| run.last - run.first + 1).sum(),
            first,
            last: runs.next_back().map(|run| (run.last, run.last_time)),
            end: self.stretches.last().map_or(0, |stretch| stretch.end),
            is_needed,
        }
    }
}

/// Looks at the log in a directory, whether somebody writes to it or not: what is written while it
/// looks may be told or not.
///
/// ```
/// use waystage::log::verify::{Depth, verify};
/// use waystage::log::{Log, LogSettings};
/// let directory = tempfile::tempdir()?;
/// let (log, _) = Log::open(directory.path(), LogSettings::default())?;
/// log.append(b"a body")?.wait()?;
/// log.close()?;
/// let verified = verify(directory.path(), Depth::Records)?;
/// assert!(!verified.is_damaged());
/// assert_eq!(verified.last, 2, "the record, and the mark of a clean stop");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the storage says. Damage is no error here.
pub fn verify(path: &Path, depth: Depth) -> Result<Verified, LogError> {
    let shown = path.display().to_string();
    let folder = Folder::unlocked(path).map_err(LogError::storage("open", &shown))?;
    verify_on(&(Arc::new(folder) as Arc<dyn Disk>), depth)
}

/// What is true in a log that somebody may be writing to; `None` where there is none.
///
/// # Errors
/// What opening it would say, and what the storage says.
pub(in crate::log) fn state_on(disk: &Arc<dyn Disk>) -> Result<Option<State>, LogError> {
    let mut surveyed = survey_all(&**disk)?;
    let opening = match opening::opening(&surveyed) {
        Ok(Some(opening)) => opening,
        Ok(None) => return Ok(None),
        Err(error) => {
            // The file's own error has the details.
            let wrong = surveyed.iter().position(|segment| segment.survey.is_err());
            let wrong = wrong.and_then(|place| surveyed.remove(place).survey.err());
            return Err(wrong.unwrap_or(error));
        }
    };
    let folded = folded::fold(disk, &surveyed, &opening, Depth::Entries, &[])?;
    match folded.findings.into_iter().next() {
        None => Ok(folded.state),
        Some(Finding { location: Location { segment, offset }, what, .. }) => Err(match what {
            What::Record(source) => {
                LogError::Record { name: segment::name(segment), offset, source }
            }
            What::Checkpoint(error) => LogError::Checkpoint(error),
            What::File(error) => error,
            What::Flaw(_) | What::Differs { .. } => LogError::NothingLeft(segment::name(segment)),
        }),
    }
}

/// Looks at a log on any disk.
pub(crate) fn verify_on(disk: &Arc<dyn Disk>, depth: Depth) -> Result<Verified, LogError> {
    let surveyed = survey_all(&**disk)?;
    let names = disk.names().map_err(LogError::storage("list", "the log's directory"))?;
    let mut others: Vec<_> =
        names.into_iter().filter(|name| segment::number(name).is_none()).collect();
    others.sort_unstable();
    let opening = opening::opening(&surveyed);
    let mut findings = search::search(&surveyed, &opening);
    let mut folded = folded::Folded::default();
    if let (Ok(Some(opening)), true) = (&opening, depth > Depth::Records) {
        folded = folded::fold(disk, &surveyed, opening, depth, &findings)?;
        findings.append(&mut folded.findings);
        findings.sort_by_key(|finding| (finding.location.segment, finding.location.offset));
    }
    let needed = match &opening {
        Ok(Some(opening)) => opening.first_segment,
        Ok(None) | Err(_) => 0,
    };
    let report = |segment: &Surveyed| segment.report(segment.number >= needed);
    let highest = surveyed.iter().flat_map(|segment| &segment.stretches);
    let highest = highest.filter_map(|stretch| stretch.run).map(|run| run.last);
    let highest = highest.max().unwrap_or(0);
    let watermark = search::watermark(&surveyed);
    let opening = opening.ok().flatten();
    Ok(Verified {
        segments: surveyed.iter().map(report).collect(),
        findings,
        watermark,
        last: opening.as_ref().map_or(highest, |opening| opening.verdict.last),
        checkpoint: opening.and_then(|opening| opening.checkpoint),
        compared: folded.compared,
        others,
        state: folded.state,
    })
}

/// Surveys all segments, from the newest to the oldest, so that what others write meanwhile leaves
/// no hole. Those that go meanwhile are not there.
fn survey_all(disk: &dyn Disk) -> Result<Vec<Surveyed>, LogError> {
    let mut surveyed = Vec::new();
    for number in numbers(disk)?.into_iter().rev() {
        let Some(loaded) = load(disk, number)? else { continue };
        let (survey, stretches) = match loaded.header {
            Ok(header) => {
                (Ok(survey(&loaded.bytes, header)), stretches(&loaded.bytes, header.identity))
            }
            Err(error) => (Err(error), Vec::new()),
        };
        surveyed.push(Surveyed { number, bytes: loaded.size, survey, stretches });
    }
    surveyed.reverse();
    Ok(surveyed)
}

/// Whether a record of this kind holds entries.
fn holds_entries(kind: Kind) -> bool {
    kind == Kind::Entries
}
