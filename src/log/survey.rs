//! What one segment holds: the first half of recovery, segment by segment.
//!
//! A survey reads every record of a segment once, checks it, and says where the records end and
//! how. It judges nothing: whether a bad place is damage depends on what other segments know.

use super::checkpoint::Seen;
use super::frame::{self, Bad, Found};
use super::segment::{HEADER_BYTES, SegmentHeader};

/// How the records of a segment end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// In zeros, up to the end of the file.
    Clean,
    /// In bytes that are no record.
    Bad(Bad),
    /// In a record that cannot follow the one before.
    Order(Order),
}

/// How a record cannot follow the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Its sequence is not the next one.
    Sequence {
        /// The one that has to come.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// Its time is earlier.
    Time,
    /// Its watermark is lower, or not below its own sequence.
    Watermark,
}

/// The first and the last record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Sequence of the first.
    pub first: u64,
    /// Its watermark.
    pub first_watermark: u64,
    /// Its time.
    pub first_time: u64,
    /// Sequence of the last.
    pub last: u64,
    /// Its time.
    pub last_time: u64,
    /// Its watermark.
    pub last_watermark: u64,
}

/// What one segment holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Its header.
    pub header: SegmentHeader,
    /// Its records from the beginning, as long as each follows the one before.
    pub run: Option<Run>,
    /// Where they end, in bytes from the beginning of the file.
    pub end: u64,
    /// How they end.
    pub ending: Ending,
    /// The highest watermark of all valid records, those behind a bad place included.
    pub watermark: u64,
    /// The records of checkpoints, among those of the run.
    pub checkpoints: Seen,
}

/// Surveys the bytes of a whole segment.
pub(crate) fn survey(bytes: &[u8], header: SegmentHeader) -> Survey {
    let identity = header.identity;
    let mut survey = Survey {
        header,
        run: None,
        end: 0,
        ending: Ending::Clean,
        watermark: 0,
        checkpoints: Seen::default(),
    };
    let mut offset = HEADER_BYTES;
    survey.ending = loop {
        match frame::read(bytes, offset, identity) {
            Found::End => break Ending::Clean,
            Found::Bad(bad) => break Ending::Bad(bad),
            Found::Record(record) => {
                let stamp = record.stamp;
                match follow(survey.run, &stamp) {
                    Ok(run) => survey.run = Some(run),
                    Err(order) => break Ending::Order(order),
                }
                survey.watermark = survey.watermark.max(stamp.watermark);
                survey.checkpoints.note(&record);
                offset += record.size();
            }
        }
    };
    survey.end = offset as u64;
    if survey.ending != Ending::Clean {
        look_beyond(&mut survey, bytes, offset);
    }
    survey
}

/// The run with one more record at its end.
///
/// # Errors
/// How the record cannot follow.
pub(super) fn follow(run: Option<Run>, stamp: &frame::Stamp) -> Result<Run, Order> {
    if stamp.watermark >= stamp.sequence {
        return Err(Order::Watermark);
    }
    let (first, first_time, first_watermark) = match run {
        None => (stamp.sequence, stamp.time, stamp.watermark),
        Some(run) => {
            check_order(&run, stamp.sequence, stamp.time, stamp.watermark)?;
            (run.first, run.first_time, run.first_watermark)
        }
    };
    Ok(Run {
        first,
        first_watermark,
        first_time,
        last: stamp.sequence,
        last_time: stamp.time,
        last_watermark: stamp.watermark,
    })
}

/// Whether a record can come next behind `run`.
///
/// # Errors
/// How it cannot.
pub(crate) fn check_order(
    run: &Run,
    sequence: u64,
    time: u64,
    watermark: u64,
) -> Result<(), Order> {
    if sequence != run.last + 1 {
        return Err(Order::Sequence { expected: run.last + 1, found: sequence });
    }
    if time < run.last_time {
        return Err(Order::Time);
    }
    if watermark < run.last_watermark {
        return Err(Order::Watermark);
    }
    Ok(())
}

fn look_beyond(survey: &mut Survey, bytes: &[u8], from: usize) {
    let mut offset = from;
    while let Some((place, record)) = frame::find(bytes, offset, survey.header.identity) {
        survey.watermark = survey.watermark.max(record.stamp.watermark);
        offset = place + record.size();
    }
}
