//! Coordination: permits and attendance, parking, tickets, timers. What loom models.
//!
//! Nothing here knows of envelopes. `README.md` holds the protocols as numbered steps.
#![allow(unreachable_pub, reason = "re-exported by crate::model in loom builds")]

pub mod attendance;
pub mod on_worker;
pub mod parker;
pub mod permits;
pub mod sleep;
pub mod ticket;
pub mod timers;
