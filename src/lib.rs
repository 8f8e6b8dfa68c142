//! A staged message bus inside your program.
//!
//! Envelopes travel a routing slip from stage to stage. Each stage is a bounded lock-free ring with
//! its own concurrency limit, a handler and a policy for when it is full; one pool of workers
//! drains them all. Nothing that was accepted is lost without a trace: each envelope is completed,
//! dead, expired, dropped, undelivered or in flight, and the books always add up.
//!
//! ```
//! use std::time::Duration;
//! use waystage::{Bus, BusSettings, Envelope, StageSettings};
//!
//! let bus: Bus<u64> = Bus::start(BusSettings::default())?;
//! bus.add_stage("halve", StageSettings::default(), |context| {
//!     *context.payload_mut() /= 2;
//!     Ok(())
//! })?;
//! let slip = bus.slip(["halve", "halve"])?;
//! let mut eight = bus.publish_tracked(Envelope::new(8, slip))?;
//! let (_outcome, envelope) = eight.wait(Duration::from_secs(5))?;
//! assert_eq!(envelope.expect("completed").into_payload(), 2);
//! assert!(bus.shutdown(Duration::from_secs(5)).conservation.holds());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to look
//!
//! * [`Bus`]: stages, pause, close, shutdown, re-drive. [`Handle`]: publishing and looking, from
//!   any thread. [`Publisher`]: the cheapest way in. [`Pool`]: workers that several buses share.
//! * [`StageSettings`], [`OnFull`], [`Retry`]: what a stage does.
//! * [`Context`], [`Batch`], [`Failure`]: what a handler sees and says.
//! * [`Envelope`], [`Slip`], [`Route`]: what travels. [`envelope`] has ids, headers, payload kinds
//!   and the wire form.
//! * [`Settled`], [`Cause`], [`DeadLetter`], [`Completion`]: what becomes of it.
//! * [`Snapshot`], [`Conservation`]: readings. [`clock`]: time, passed in.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `json` | the payload wrapper [`envelope::payload`]`::Json` (serde, serde_json) |
//! | `loom` | internal: the models' types under `--cfg loom`; outside semver |
//! | `shuttle` | internal: the same for random schedules under `--cfg shuttle`; outside semver |
//!
//! None is on by default.

pub mod clock;
pub mod envelope;
pub mod log;
pub mod metrics;

#[cfg(all(loom, feature = "loom"))]
#[doc(hidden)]
pub mod model;

mod bus;
mod coord;
mod stage;
mod sync;
#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod testing;
mod worker;

pub use bus::{
    BatchError, Bus, BusError, BusSettings, Completion, DeadLetter, DeadLetterInfo,
    DurableSettings, Ending, Handle, Leftover, Lifecycle, Missing, PublishError, PublishFuture,
    Publisher, Recovery, Refused, ShutdownReport, WaitError,
};
pub use envelope::{Cause, Envelope, EnvelopeId, Route, Settled, Slip, SlipError};
pub use log::letters::{LetterFilter, Redrive, Redriven};
pub use metrics::{Conservation, Lint, Snapshot, StageSnapshot};
pub use stage::context::{Batch, Context, EmitError, EmitRefused};
pub use stage::handler::{Failure, Handler};
pub use stage::lasting::LastingError;
pub use stage::settings::{Level, OnFull, Retry, SettingError, StageSettings};
pub use worker::{Idle, Pin, Pool, PoolError, PoolSettings};

/// The README's example is compiled and run with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
