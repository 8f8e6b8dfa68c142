//! What can go wrong with a bus. Publish errors give the envelope back.

use std::fmt;

use crate::envelope::{Envelope, SlipError};
use crate::stage::settings::SettingError;
use crate::worker::PoolError;

/// Why a bus could not be started, or refused a change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// A setting of the bus is out of range.
    #[error("bus settings: {0}")]
    Setting(#[from] SettingError),
    /// A setting of a stage is out of range.
    #[error("stage `{stage}`: {source}")]
    StageSetting {
        /// The stage's name.
        stage: String,
        /// The setting.
        source: SettingError,
    },
    /// The pool refused.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A durable level was asked for.
    #[error(
        "stage `{stage}`: durable levels and saved state need a log; start the bus with \
         `Bus::start_durable`, or use `Level::AtMostOnce` and `saves: 0`"
    )]
    NotDurable {
        /// The stage's name.
        stage: String,
    },
    /// A stage of that name is open already.
    #[error("a stage named `{0}` is open already; close it first or choose another name")]
    StageExists(String),
    /// No stage of that name is open.
    #[error("no stage named `{name}` is open{}", suggestion(.nearest))]
    UnknownStage {
        /// The name asked for.
        name: String,
        /// The open stage with the nearest name.
        nearest: Option<String>,
    },
    /// A slip with too many hops.
    #[error(transparent)]
    Slip(#[from] SlipError),
    /// A name that cannot be a stage's.
    #[error("`{0}` cannot name a stage: a name has 1 to 255 bytes and no control characters")]
    BadName(String),
    /// The bus knows as many names as it can.
    #[error("a bus knows at most 65,535 stage names, and this one knows them all")]
    TooManyNames,
    /// The process started as many buses as it can tell apart.
    #[error("a process can start at most 65,534 buses")]
    TooManyBuses,
    /// The bus was shut down.
    #[error("the bus was shut down")]
    Stopped,
    /// The log could not be opened, or not be written.
    #[error(transparent)]
    Log(#[from] crate::log::LogError),
    /// The log has envelopes for stages that are not open.
    #[error(
        "the log has envelopes for stages that are not open: {}; add these, or say by `Missing` \
         what shall become of them",
        .0.join(", ")
    )]
    MissingStages(Vec<String>),
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Why a publish was refused. The envelope was not accepted: it is in the [`PublishError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The stage was full, or hops were waiting, for as long as the call waited.
    #[error("the stage is full")]
    Full,
    /// The stage, or the bus, is paused.
    #[error("the stage is paused")]
    Paused,
    /// The stage is closed, or the bus is shutting down.
    #[error("the stage is closed")]
    Closed,
    /// The slip is empty, or its first hop names no open stage.
    #[error("no open stage of that name")]
    NoRoute,
    /// The slip was made by another bus.
    #[error("the slip belongs to another bus; make it with this bus's `slip`")]
    ForeignSlip,
    /// The stage has no handler.
    #[error("the stage has no handler")]
    NoConsumer,
    /// The stage keeps nothing in a log.
    #[error("the stage is in memory only; give it a durable level, or use `publish`")]
    NotDurable,
    /// The stage is durable, and the log has envelopes that were not taken up yet.
    #[error("the log has earlier work; call `recover` first")]
    NotRecovered,
    /// An envelope with this id is on its way; what becomes of it is not told here.
    #[error("an envelope with this id is on its way")]
    InFlight,
    /// An envelope with this id has reached its end already, and is remembered.
    #[error("an envelope with this id was handled before")]
    Duplicate,
    /// The payload cannot be encoded, or the envelope is larger than a record of the log may be.
    #[error("the envelope cannot be written to the log: no encoding, or too large")]
    NoWireForm,
    /// There is no room for another segment of the log. Nothing is lost.
    #[error("the log has no room; free some space")]
    LogFull,
    /// A write or a flush of the log failed. Whether the envelope is in it shows when it is opened
    /// next: publish it again then, with the same id.
    #[error("the log failed, and has to be opened again")]
    LogFailed,
    /// The log has as many dead letters as it may keep.
    #[error("the log keeps no more dead letters; re-drive or purge some of them")]
    TooManyDeadLetters,
}

impl Refused {
    /// Whether the same publish may succeed later without anything else being changed.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Full | Self::Paused | Self::LogFull)
    }
}

/// A refused publish, with its envelope.
pub struct PublishError<P> {
    /// Why.
    pub reason: Refused,
    /// The envelope with the slip it was given; it keeps the id it got.
    pub envelope: Box<Envelope<P>>,
    /// The stage it was meant for, when that is known.
    pub stage: Option<String>,
}

impl<P> fmt::Debug for PublishError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishError")
            .field("reason", &self.reason)
            .field("stage", &self.stage)
            .field("id", &self.envelope.id())
            .finish()
    }
}

impl<P> fmt::Display for PublishError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stage {
            Some(stage) => write!(f, "publish to `{stage}` refused: {}", self.reason),
            None => write!(f, "publish refused: {}", self.reason),
        }
    }
}

impl<P> std::error::Error for PublishError<P> {}

/// A batch of which a part was refused.
pub struct BatchError<P> {
    /// Why the first of `rest` was refused.
    pub reason: Refused,
    /// How many were accepted before.
    pub accepted: usize,
    /// Those that were taken and not accepted, in order: at most a block of them.
    pub rest: Vec<Envelope<P>>,
}

impl<P> fmt::Debug for BatchError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchError")
            .field("reason", &self.reason)
            .field("accepted", &self.accepted)
            .field("rest", &self.rest.len())
            .finish()
    }
}

impl<P> fmt::Display for BatchError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, accepted, rest } = self;
        write!(f, "{accepted} of {} accepted, then: {reason}", accepted + rest.len())
    }
}

impl<P> std::error::Error for BatchError<P> {}
