//! Waystage: a staged message bus inside your program.

pub mod clock;
pub mod envelope;
pub mod metrics;

#[cfg(all(loom, feature = "loom"))]
#[doc(hidden)]
pub mod model;

mod bus;
mod coord;
mod stage;
mod sync;
mod worker;

pub use bus::{
    BatchError, Bus, BusError, BusSettings, Completion, DeadLetter, DeadLetterInfo, Ending, Handle,
    Leftover, Lifecycle, PublishError, PublishFuture, Publisher, Redrive, Redriven, Refused,
    ShutdownReport, WaitError,
};
pub use envelope::{Cause, Envelope, EnvelopeId, Route, Settled, Slip, SlipError};
pub use metrics::{Conservation, Snapshot, StageSnapshot};
pub use stage::context::{Batch, Context, EmitError};
pub use stage::handler::{Failure, Handler};
pub use stage::settings::{Level, OnFull, Retry, SettingError, StageSettings};
pub use worker::{Idle, Pin, Pool, PoolError, PoolSettings};
