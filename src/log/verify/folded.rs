//! What the records of a log say, folded with the one function.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::finding::{Finding, What};
use super::opening::Opening;
use super::{Depth, Surveyed, holds_entries};
use crate::log::checkpoint::{self, Complete, Reading};
use crate::log::disk::Disk;
use crate::log::entry::entries;
use crate::log::error::LogError;
use crate::log::fold::{FoldError, fold_record};
use crate::log::frame::{Kind, Record};
use crate::log::read::{Cursor, Peek};
use crate::log::segment::Location;
use crate::log::state::State;

/// What folding came to.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) state: Option<State>,
    pub(super) compared: usize,
    pub(super) findings: Vec<Finding>,
}

/// Folds the log as far as `depth` says.
///
/// # Errors
/// What the storage says.
pub(super) fn fold(
    disk: &Arc<dyn Disk>,
    all: &[Surveyed],
    opening: &Opening,
    depth: Depth,
    found: &[Finding],
) -> Result<Folded, LogError> {
    let seen = all.iter().filter_map(|segment| segment.survey.as_ref().ok());
    let seen = seen.map(|survey| &survey.checkpoints);
    let newest = opening.checkpoint.map_or(0, |found| found.sequence);
    let mut complete = checkpoint::complete(&seen);
    complete.retain(|found| found.sequence <= newest);
    complete.reverse();
    let readable = readable_from(all, found);
    let base = match depth {
        Depth::Records | Depth::Entries => opening.checkpoint,
        Depth::All if readable == 1 => None,
        Depth::All => complete.iter().find(|found| found.end.at + 1 >= readable).copied(),
    };
    let mut folding = Folding { last: opening.verdict.last, ..Folding::default() };
    folding.needed = opening.first_segment;
    let mut state = match base {
        Some(base) => folding.read_checkpoint(disk, all, base)?,
        None => Some(State::default()),
    };
    if let Some(state) = &mut state {
        if depth == Depth::All {
            let at = state.sequence();
            let later = complete.iter().filter(|found| found.end.at >= at && Some(**found) != base);
            folding.pending = later.map(|&found| Pending::new(found)).collect();
            folding.decode_until(disk, all, readable, at)?;
        }
        folding.fold_on(disk, all, state)?;
    }
    let is_whole = folding.findings.is_empty();
    Ok(Folded {
        state: state.filter(|_| is_whole),
        compared: folding.compared,
        findings: folding.findings,
    })
}

/// The first record from which on all can be read one after the other.
fn readable_from(all: &[Surveyed], found: &[Finding]) -> u64 {
    let behind = found.iter().filter(|finding| !finding.is_torn).map(|finding| finding.location);
    let behind = behind.map(|place| (place.segment, place.offset)).max().unwrap_or((0, 0));
    let stretches = all.iter().flat_map(|segment| {
        segment.stretches.iter().map(|stretch| ((segment.number, stretch.start), stretch.run))
    });
    let mut later = stretches.filter(|(place, _)| *place >= behind).filter_map(|(_, run)| run);
    later.next().map_or(1, |run| run.first)
}

/// A checkpoint that is compared when its end comes by.
#[derive(Debug)]
struct Pending {
    found: Complete,
    reading: Option<Reading>,
    /// The state at its record.
    at: Option<State>,
}

impl Pending {
    fn new(found: Complete) -> Self {
        Self { found, reading: Some(Reading::new(found.end)), at: None }
    }

    fn is_part(&self, sequence: u64) -> bool {
        (self.found.end.first_part..self.found.sequence).contains(&sequence)
    }
}

#[derive(Debug, Default)]
struct Folding {
    /// The last record that counts.
    last: u64,
    /// The first segment needed to open the log.
    needed: u64,
    pending: VecDeque<Pending>,
    compared: usize,
    findings: Vec<Finding>,
}

impl Folding {
    fn tell(&mut self, location: Location, sequence: u64, what: What) {
        let is_needed = location.segment >= self.needed;
        self.findings.push(Finding { location, sequence, what, is_torn: false, is_needed });
    }

    /// Calls `visit` with the records from `first` up to `last`, both included.
    fn walk(
        &mut self,
        disk: &Arc<dyn Disk>,
        all: &[Surveyed],
        (first, last): (u64, u64),
        mut visit: impl FnMut(&mut Self, Location, &Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let holds = |segment: &&Surveyed| {
            let runs = segment.stretches.iter().filter_map(|stretch| stretch.run);
            runs.into_iter().any(|run| run.first <= first)
        };
        let Some(begin) = all.iter().rev().find(holds).or_else(|| all.first()) else {
            return Ok(());
        };
        let Some(mut cursor) = Cursor::open(disk, begin.number)? else { return Ok(()) };
        while let Peek::Record(stamp) = cursor.peek()? {
            if stamp.sequence > last {
                break;
            }
            if stamp.sequence >= first
                && let Some(record) = cursor.record()
                && visit(self, cursor.location(), &record).is_break()
            {
                break;
            }
            cursor.pass();
        }
        Ok(())
    }

    /// The state that a checkpoint holds; `None` when it cannot be read, which is told.
    fn read_checkpoint(
        &mut self,
        disk: &Arc<dyn Disk>,
        all: &[Surveyed],
        found: Complete,
    ) -> Result<Option<State>, LogError> {
        let mut reading = Ok(Reading::new(found.end));
        let mut place = Location::default();
        let range = (found.end.first_part, found.sequence);
        self.walk(disk, all, range, |_, location, record| {
            place = location;
            if record.stamp.kind == Kind::CheckpointPart
                && let Ok(parts) = &mut reading
                && let Err(error) = parts.part(&record.body())
            {
                reading = Err(error);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        match reading.and_then(Reading::finish) {
            Ok(state) => Ok(Some(state)),
            Err(error) => {
                self.tell(place, found.sequence, What::Checkpoint(error));
                Ok(None)
            }
        }
    }

    /// Reads the entries that are not folded.
    fn decode_until(
        &mut self,
        disk: &Arc<dyn Disk>,
        all: &[Surveyed],
        first: u64,
        last: u64,
    ) -> Result<(), LogError> {
        self.walk(disk, all, (first, last), |folding, location, record| {
            if holds_entries(record.stamp.kind) {
                let body = record.body();
                if let Some(Err(error)) = entries(&body).find(Result::is_err) {
                    let what = What::Record(FoldError::Entry(error));
                    folding.tell(location, record.stamp.sequence, what);
                }
            }
            ControlFlow::Continue(())
        })
    }

    /// Folds the entries behind `state`, and compares the checkpoints that come by.
    fn fold_on(
        &mut self,
        disk: &Arc<dyn Disk>,
        all: &[Surveyed],
        state: &mut State,
    ) -> Result<(), LogError> {
        let range = (state.sequence() + 1, self.last);
        self.walk(disk, all, range, |folding, location, record| {
            let sequence = record.stamp.sequence;
            match record.stamp.kind {
                Kind::Entries => {
                    for pending in &mut folding.pending {
                        if pending.at.is_none() && pending.found.end.at < sequence {
                            pending.at = Some(state.clone());
                        }
                    }
                    if let Err(error) = fold_record(state, sequence, location, &record.body()) {
                        // What follows builds on it.
                        folding.tell(location, sequence, What::Record(error));
                        return ControlFlow::Break(());
                    }
                }
                Kind::CheckpointPart => folding.part(location, record),
                Kind::CheckpointEnd => folding.compare(location, sequence, state),
                Kind::Mark => {}
            }
            ControlFlow::Continue(())
        })
    }

    fn part(&mut self, location: Location, record: &Record<'_>) {
        let sequence = record.stamp.sequence;
        for index in 0..self.pending.len() {
            let pending = &mut self.pending[index];
            if !pending.is_part(sequence) {
                continue;
            }
            let read = pending.reading.as_mut().map_or(Ok(()), |part| part.part(&record.body()));
            if let Err(error) = read {
                pending.reading = None;
                self.tell(location, sequence, What::Checkpoint(error));
            }
        }
    }

    fn compare(&mut self, location: Location, sequence: u64, state: &State) {
        let is_it = |pending: &Pending| pending.found.sequence == sequence;
        let Some(index) = self.pending.iter().position(is_it) else { return };
        let Some(pending) = self.pending.remove(index) else { return };
        let Some(reading) = pending.reading else { return };
        self.compared += 1;
        match reading.finish() {
            Err(error) => self.tell(location, sequence, What::Checkpoint(error)),
            Ok(written) if written != *pending.at.as_ref().unwrap_or(state) => {
                let number = pending.found.end.number;
                self.tell(location, sequence, What::Differs { number });
            }
            Ok(_) => {}
        }
    }
}
