//! What can go wrong with a log: where, what, and what to do.

use std::io;

use super::checkpoint::CheckpointError;
use super::fold::FoldError;
use super::judge::{Damage, Flaw};
use super::sink::SinkFault;
use super::survey::Order;

/// An error of the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The storage refused.
    #[error("cannot {action} `{name}`")]
    Storage {
        /// What was tried.
        action: &'static str,
        /// The file, or the directory.
        name: String,
        /// What the storage said.
        #[source]
        source: io::Error,
    },
    /// The log holds bytes that are not what was written. Nothing was changed.
    #[error("{0}; salvage what is readable into another directory")]
    Damaged(Damage),
    /// A record is whole, and what it says cannot be: written by a faulty or a newer program.
    #[error("record in `{name}` at byte {offset}: {source}; salvage what is readable")]
    Record {
        /// The file.
        name: String,
        /// Where the record begins.
        offset: u64,
        /// What cannot be.
        #[source]
        source: FoldError,
    },
    /// A checkpoint is there as a whole, and does not say what was written.
    #[error("{0}; salvage what is readable into another directory")]
    Checkpoint(#[from] CheckpointError),
    /// The file of a sink does not hold what the log says it does. Nothing was changed.
    #[error(
        "output `{name}` in {path}: {fault}; put it back as it was, or begin anew without the log"
    )]
    Sink {
        /// The name of the sink.
        name: String,
        /// Its file.
        path: String,
        /// What is wrong.
        fault: SinkFault,
    },
    /// What the last records added to a sink may not be there, and the sink is not among those
    /// given.
    #[error(
        "the log was not closed, and what its last records added to output `{0}` may not be there; \
         open it once with that output"
    )]
    SinkNotGiven(String),
    /// The file of a sink is open for another log, or for the same one elsewhere.
    #[error("output {0} is written by another log; stop that first, or write elsewhere")]
    SinkTaken(String),
    /// Somebody writes to it.
    #[error(
        "the log in `{0}` is open for writing elsewhere; stop that first, or open it read-only"
    )]
    Locked(String),
    /// A file with the name of a segment is none.
    #[error("`{0}` has the name of a segment and is none; move it away")]
    Foreign(String),
    /// The segment belongs to another log.
    #[error("`{0}` belongs to another log than the segments before it; move it back to its own")]
    OtherLog(String),
    /// Written by a newer version of this crate.
    #[error("`{name}` has format version {version}, this is 1; open it with a newer waystage")]
    Version {
        /// The file.
        name: String,
        /// Its version.
        version: u32,
    },
    /// Records were removed, as nothing needs them any more.
    #[error("records before {first} are gone; begin with record {first}, or with the oldest")]
    Gone {
        /// The first that is still there.
        first: u64,
    },
    /// The directory holds no segment.
    #[error("there is no log in `{0}`")]
    NoLog(String),
    /// No record of the log can be read.
    #[error("no record of the log in `{0}` can be read")]
    NothingLeft(String),
    /// A log is to be made where something is already.
    #[error("`{0}` is not empty; name a new directory, or an empty one")]
    NotEmpty(String),
    /// A log is to be made inside another.
    #[error("`{0}` is in the log's own directory; name one elsewhere")]
    Inside(String),
    /// A record does not fit into a segment.
    #[error("a record of {size} bytes is above the limit of {limit}; make segments larger")]
    TooLarge {
        /// Bytes of its body.
        size: usize,
        /// The most bytes of a body.
        limit: usize,
    },
    /// A new segment cannot be made. Nothing is lost: free some space and append again.
    #[error("there is no room for `{name}`; what was appended before is intact")]
    NoRoom {
        /// The segment.
        name: String,
        /// What the storage said.
        #[source]
        source: io::Error,
    },
    /// A setting is out of its range.
    #[error("`{field}` is {value}, and has to be {expected}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// The log was closed, or dropped.
    #[error("the log is closed; what was not acknowledged by then may be there or not")]
    Closed,
    /// A write or a flush failed, and nothing is certain any more until the log is opened again.
    #[error("the log was poisoned ({cause}); open it again")]
    Poisoned {
        /// What failed first.
        action: &'static str,
        /// Where, and what the storage said.
        cause: String,
    },
}

impl LogError {
    /// Wraps what the storage said.
    pub fn storage(action: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Storage { action, name: name.to_owned(), source }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, offset, flaw, watermark } = self;
        write!(
            f,
            "the log is damaged in {} at byte {offset}: {flaw}",
            super::segment::name(*segment)
        )?;
        write!(f, " (durable up to record {watermark})")
    }
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Record(fault) => write!(f, "{}", fault.text()),
            Self::Order(Order::Sequence { expected, found }) => {
                write!(f, "record {found} stands where {expected} belongs")
            }
            Self::Order(Order::Time) => write!(f, "a record is older than the one before"),
            Self::Order(Order::Watermark) => write!(f, "a record's watermark cannot be true"),
            Self::Missing { first, last } => write!(f, "records {first} to {last} are missing"),
            Self::Segment => write!(f, "the segment is missing"),
            Self::Header => write!(f, "the segment's header does not check"),
            Self::Size { expected, found } => {
                write!(f, "the file has {found} bytes where its header says {expected}")
            }
            Self::Number(found) => write!(f, "the header says that this is segment {found}"),
        }
    }
}
