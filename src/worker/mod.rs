//! Workers: one pool of threads that drains all stages of all its buses.
//!
//! A worker looks at tickets, never at lists of stages, and knows nothing of payloads.
//! [`step`] is one turn as a plain function: threads loop it, a caller without threads calls it,
//! loom models and the simulator call it.
#![allow(unreachable_pub, reason = "re-exported by crate::model in loom builds")]

pub mod affinity;
pub mod pool;
pub mod settings;
pub mod shared;
pub mod step;

pub use pool::Pool;
pub use settings::{Idle, Pin, PoolError, PoolSettings};
