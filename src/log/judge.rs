//! What the surveys of all segments mean together: where the log ends, what is cut, what is damage.
//!
//! Pure: surveys in, verdict out. The rules stand in `README.md` under *Recovery*.

use super::frame::Fault;
use super::segment::HEADER_BYTES;
use super::survey::{Ending, Order, Run, Survey, check_order};

/// What is wrong with a log that cannot be opened as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flaw {
    /// Bytes that are no record.
    Record(Fault),
    /// A record that cannot follow the one before.
    Order(Order),
    /// Records that are known to be durable are not there.
    Missing {
        /// The first of them.
        first: u64,
        /// The last that is known of.
        last: u64,
    },
    /// The segment of this number is not there.
    Segment,
    /// The header of the segment does not check.
    Header,
    /// The file was truncated, or has grown.
    Size {
        /// What its header says.
        expected: u64,
        /// What it has.
        found: u64,
    },
    /// The header has another number than the file's name.
    Number(u64),
}

/// A place that makes the log unreadable from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The number of the segment.
    pub segment: u64,
    /// Bytes from the beginning of its file.
    pub offset: u64,
    /// What is wrong.
    pub flaw: Flaw,
    /// The highest sequence known to have been durable.
    pub watermark: u64,
}

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Which of the surveys the last record stands in, or the first where there is no record.
    pub active: usize,
    /// Where the next record goes in that segment.
    pub end: u64,
    /// The sequence of the last record; zero: none.
    pub last: u64,
    /// The time of the last record.
    pub time: u64,
    /// The known watermark.
    pub watermark: u64,
    /// Whether something from `end` on has to go.
    pub is_cut: bool,
}

/// Judges segments in the order of their numbers; the first has to begin with record `first`, or
/// with an earlier one.
///
/// # Errors
/// The first damage.
pub(crate) fn judge(surveys: &[Survey], first: u64) -> Result<Verdict, Damage> {
    let watermark = surveys.iter().map(|survey| survey.watermark).max().unwrap_or(0);
    check_numbers(surveys, watermark)?;
    let end = surveys.first().map_or(0, |survey| survey.end);
    let (last, time) = (first - 1, 0);
    let mut verdict = Verdict { active: 0, end, last, time, watermark, is_cut: false };
    let mut before: Option<&Run> = None;
    for (index, survey) in surveys.iter().enumerate() {
        let damage = |offset, flaw| {
            let segment = survey.header.number;
            Err(Damage { segment, offset, flaw, watermark })
        };
        if let Some(run) = &survey.run {
            if let Err(order) = joins(before, run, first) {
                if !is_hole(order) || verdict.last < watermark {
                    return damage(HEADER_BYTES as u64, Flaw::Order(order));
                }
                // A whole group above the watermark never arrived, and what came after it did.
                verdict.is_cut = true;
                break;
            }
            before = Some(run);
            (verdict.active, verdict.end) = (index, survey.end);
            (verdict.last, verdict.time) = (run.last, run.last_time);
        }
        let (flaw, is_torn) = match survey.ending {
            // A checkpoint needs something of its lowest segment, so that is not empty.
            Ending::Clean if index == 0 && first > 1 && survey.run.is_none() => {
                (Flaw::Record(Fault::Header), false)
            }
            Ending::Clean => continue,
            Ending::Bad(bad) => (Flaw::Record(bad.fault), bad.is_torn),
            Ending::Order(order) => (Flaw::Order(order), false),
        };
        let next = surveys[index + 1..].iter().find_map(|survey| survey.run.as_ref());
        if before.is_some() && next.is_some_and(|next| joins(before, next, first).is_ok()) {
            // The log goes on in the next segment and misses nothing: these bytes belong to none.
            continue;
        }
        if !is_torn || verdict.last < watermark {
            return damage(survey.end, flaw);
        }
        (verdict.active, verdict.end) = (index, survey.end);
        verdict.is_cut = true;
        break;
    }
    if verdict.last < watermark {
        let flaw = Flaw::Missing { first: verdict.last + 1, last: watermark };
        let segment = surveys.get(verdict.active).map_or(1, |survey| survey.header.number);
        return Err(Damage { segment, offset: verdict.end, flaw, watermark });
    }
    Ok(verdict)
}

/// Whether the numbers rise by one.
fn check_numbers(surveys: &[Survey], watermark: u64) -> Result<(), Damage> {
    for pair in surveys.windows(2) {
        let segment = pair[0].header.number + 1;
        if pair[1].header.number != segment {
            return Err(Damage { segment, offset: 0, flaw: Flaw::Segment, watermark });
        }
    }
    Ok(())
}

/// Whether `run` goes on behind `before`, or is the first.
fn joins(before: Option<&Run>, run: &Run, first: u64) -> Result<(), Order> {
    match before {
        Some(before) => check_order(before, run.first, run.first_time, run.first_watermark),
        None if run.first <= first => Ok(()),
        None => Err(Order::Sequence { expected: first, found: run.first }),
    }
}

/// Whether records are missing, as opposed to being wrong.
pub(super) fn is_hole(order: Order) -> bool {
    matches!(order, Order::Sequence { expected, found } if found > expected)
}
