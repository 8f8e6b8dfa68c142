//! All that is wrong with the records of a log, by the judge's rules.

use super::Surveyed;
use super::finding::{Finding, What};
use super::opening::Opening;
use super::stretch::Stretch;
use crate::log::error::LogError;
use crate::log::judge::{Damage, Flaw, is_hole};
use crate::log::segment::{self, HEADER_BYTES, Location};
use crate::log::survey::{Ending, Order, Run, check_order};

/// The highest watermark of all valid records.
pub(super) fn watermark(all: &[Surveyed]) -> u64 {
    let surveys = all.iter().filter_map(|segment| segment.survey.as_ref().ok());
    surveys.map(|survey| survey.watermark).max().unwrap_or(0)
}

/// Goes over the stretches of all segments in order.
pub(super) fn search(
    all: &[Surveyed],
    opening: &Result<Option<Opening>, LogError>,
) -> Vec<Finding> {
    let mut search = Search {
        all,
        watermark: watermark(all),
        first_needed: match opening {
            Ok(Some(opening)) => opening.first_segment,
            Ok(None) | Err(_) => 0,
        },
        before: None,
        is_explained: false,
        is_cut: false,
        findings: Vec::new(),
    };
    let mut previous: Option<&Surveyed> = None;
    for (index, segment) in all.iter().enumerate() {
        search.enter(segment, previous);
        if segment.header().is_some() {
            search.segment(index);
            previous = Some(segment);
        }
    }
    search.end(opening);
    search.findings
}

struct Search<'a> {
    all: &'a [Surveyed],
    watermark: u64,
    first_needed: u64,
    /// The last records seen.
    before: Option<Run>,
    /// Whether it was told why the next record may not follow.
    is_explained: bool,
    /// Whether a torn place was met: opening cuts there, so what follows is of no account.
    is_cut: bool,
    findings: Vec<Finding>,
}

impl Search<'_> {
    fn tell(&mut self, segment: u64, offset: u64, what: What, is_torn: bool) {
        let sequence = self.before.map_or(0, |run| run.last + 1);
        self.tell_of(segment, offset, sequence, what, is_torn);
    }

    fn tell_of(&mut self, segment: u64, offset: u64, sequence: u64, what: What, is_torn: bool) {
        let is_needed = segment >= self.first_needed;
        let location = Location { segment, offset };
        self.findings.push(Finding { location, sequence, what, is_torn, is_needed });
        self.is_explained = true;
    }

    /// What is wrong with a file as such.
    fn enter(&mut self, segment: &Surveyed, previous: Option<&Surveyed>) {
        let number = segment.number;
        let last = self.all.iter().map(|other| other.number).filter(|&other| other < number).max();
        if let Some(last) = last
            && last + 1 != number
        {
            self.tell(last + 1, 0, What::Flaw(Flaw::Segment), false);
        }
        match &segment.survey {
            Err(LogError::Damaged(damage)) => self.tell(number, 0, What::Flaw(damage.flaw), false),
            Err(error) => self.tell(number, 0, What::File(copy(error)), false),
            Ok(survey) => {
                let other = previous.and_then(Surveyed::header).map(|header| header.log);
                if other.is_some_and(|log| log != survey.header.log) {
                    let error = LogError::OtherLog(segment::name(number));
                    self.tell(number, 0, What::File(error), false);
                }
            }
        }
    }

    fn segment(&mut self, index: usize) {
        let all = self.all;
        let Surveyed { number, stretches, .. } = &all[index];
        for (place, stretch) in stretches.iter().enumerate() {
            if let Some(run) = &stretch.run {
                self.run(*number, stretch, run);
            }
            let is_last = place + 1 == stretches.len();
            if let Some(ending) = stretch.ending
                && !(is_last && self.goes_on_behind(index))
            {
                self.ending(*number, stretch.end, ending);
            }
        }
    }

    /// Whether these records follow those before.
    fn run(&mut self, number: u64, stretch: &Stretch, run: &Run) {
        let joined = match &self.before {
            Some(before) => check_order(before, run.first, run.first_time, run.first_watermark),
            None if number == 1 && run.first != 1 => {
                Err(Order::Sequence { expected: 1, found: run.first })
            }
            None => Ok(()),
        };
        if let Err(order) = joined
            && !self.is_explained
        {
            let is_torn = self.is_cut || is_hole(order) && self.is_above();
            self.tell(number, stretch.start, What::Flaw(Flaw::Order(order)), is_torn);
            self.is_cut |= is_torn;
        }
        self.is_explained = false;
        self.before = Some(*run);
    }

    fn ending(&mut self, number: u64, offset: u64, ending: Ending) {
        let (flaw, is_torn, sequence) = match ending {
            Ending::Clean => return,
            Ending::Bad(bad) => (Flaw::Record(bad.fault), bad.is_torn, bad.sequence),
            Ending::Order(order) => (Flaw::Order(order), false, None),
        };
        let is_torn = self.is_cut || is_torn && self.is_above();
        let next = self.before.map_or(0, |run| run.last + 1);
        let sequence = sequence.unwrap_or(next);
        self.tell_of(number, offset, sequence, What::Flaw(flaw), is_torn);
        self.is_cut |= is_torn;
    }

    /// Whether what comes next is above the known watermark.
    fn is_above(&self) -> bool {
        self.before.map_or(0, |run| run.last) >= self.watermark
    }

    /// Whether the next segment that holds something goes on without a gap.
    fn goes_on_behind(&self, index: usize) -> bool {
        let first_of = |segment: &Surveyed| segment.stretches.first().and_then(|first| first.run);
        let next = self.all[index + 1..].iter().find_map(first_of);
        match (&self.before, next) {
            (Some(before), Some(run)) => {
                check_order(before, run.first, run.first_time, run.first_watermark).is_ok()
            }
            // What stood here is not known.
            (None, _) | (_, None) => false,
        }
    }

    /// What only the whole can say.
    fn end(&mut self, opening: &Result<Option<Opening>, LogError>) {
        let Err(LogError::Damaged(Damage { segment, offset, flaw, .. })) = *opening else { return };
        let place = Location { segment, offset };
        let is_told = |finding: &Finding| !finding.is_torn && finding.location == place;
        if !self.findings.iter().any(is_told) {
            let at_start = offset <= HEADER_BYTES as u64 && flaw == Flaw::Segment;
            let sequence = if at_start { 0 } else { self.before.map_or(0, |run| run.last + 1) };
            self.tell_of(segment, offset, sequence, What::Flaw(flaw), false);
        }
        self.findings.sort_by_key(|finding| (finding.location.segment, finding.location.offset));
    }
}

/// The same error once more, as far as files have them.
fn copy(error: &LogError) -> LogError {
    match error {
        LogError::Foreign(name) => LogError::Foreign(name.clone()),
        LogError::Version { name, version } => {
            LogError::Version { name: name.clone(), version: *version }
        }
        LogError::Storage { action, name, source } => {
            let source = std::io::Error::new(source.kind(), source.to_string());
            LogError::Storage { action, name: name.clone(), source }
        }
        other => LogError::Foreign(other.to_string()),
    }
}
