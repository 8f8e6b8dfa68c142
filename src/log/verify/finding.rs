//! One thing that is wrong: where, what, and whether a crash explains it.

use std::fmt;

use crate::log::checkpoint::CheckpointError;
use crate::log::error::LogError;
use crate::log::fold::FoldError;
use crate::log::frame::Fault;
use crate::log::judge::Flaw;
use crate::log::segment::{self, Location};
use crate::log::survey::Order;

/// One thing that is wrong with a log.
#[derive(Debug)]
pub struct Finding {
    /// Where it is.
    pub location: Location,
    /// The sequence of the record there, or of the one that belongs there; 0: not known.
    pub sequence: u64,
    /// What is wrong.
    pub what: What,
    /// Whether it is a tail whose writing was cut short: opening the log cuts it, and nothing that
    /// was durable is lost. Everything else is damage.
    pub is_torn: bool,
    /// Whether opening the log meets it. What stands before the oldest record needed does not
    /// matter to that.
    pub is_needed: bool,
}

/// What is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum What {
    /// Bytes, records or segments are not what was written.
    Flaw(Flaw),
    /// The file is no segment of this log.
    File(LogError),
    /// A record is whole, and what it says cannot be.
    Record(FoldError),
    /// A checkpoint cannot be read.
    Checkpoint(CheckpointError),
    /// A checkpoint says something else than the entries before it.
    Differs {
        /// The number of the checkpoint.
        number: u64,
    },
}

impl Finding {
    /// A stable name of what is wrong, for reports.
    pub fn kind(&self) -> &'static str {
        match &self.what {
            What::Flaw(Flaw::Record(fault)) => match fault {
                Fault::Header => "record_header",
                Fault::Length => "record_length",
                Fault::Checksum => "record_checksum",
                Fault::Kind => "record_kind",
                Fault::Rest => "rest_not_zero",
            },
            What::Flaw(Flaw::Order(order)) => match order {
                Order::Sequence { .. } => "record_sequence",
                Order::Time => "record_time",
                Order::Watermark => "record_watermark",
            },
            What::Flaw(Flaw::Missing { .. }) => "records_missing",
            What::Flaw(Flaw::Segment) => "segment_missing",
            What::Flaw(Flaw::Header) => "segment_header",
            What::Flaw(Flaw::Size { .. }) => "segment_size",
            What::Flaw(Flaw::Number(_)) => "segment_number",
            What::File(LogError::Foreign(_)) => "segment_foreign",
            What::File(LogError::OtherLog(_)) => "segment_of_other_log",
            What::File(LogError::Version { .. }) => "segment_version",
            What::File(_) => "segment_unreadable",
            What::Record(_) => "record_content",
            What::Checkpoint(_) => "checkpoint",
            What::Differs { .. } => "checkpoint_differs",
        }
    }

    /// The name of the segment's file.
    pub fn file(&self) -> String {
        segment::name(self.location.segment)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flaw(flaw) => write!(f, "{flaw}"),
            Self::File(error) => {
                write!(f, "{error}")?;
                match std::error::Error::source(error) {
                    Some(source) => write!(f, ": {source}"),
                    None => Ok(()),
                }
            }
            Self::Record(error) => write!(f, "the record says what cannot be: {error}"),
            Self::Checkpoint(error) => write!(f, "{error}"),
            Self::Differs { number } => {
                write!(f, "checkpoint {number} says something else than the entries before it")
            }
        }
    }
}
