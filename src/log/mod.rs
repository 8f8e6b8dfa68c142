//! The segment log: an append-only store of checksummed records that survives crash and power cut.
//!
//! [`Log`] is what threads append to; [`Receipt`] tells when a record is safe; what a crash left
//! comes back as [`Recovered`]. The bus writes what happens to durable envelopes into one.
//!
//! `README.md` beside this file has the format, the order of writes and the rules of recovery;
//! names like *W3* refer to it. Files: `frame` (one record as bytes), `mask` (bodies without runs
//! of zeros), `torn` (a record cut short against a damaged one), `segment` (a file and its header),
//! `survey` and `judge` (what recovery finds and what it means), `disk`, `folder` and `region`
//! (where the bytes are), `tail`, `writer` and `flush` (adding records), `read/` (a log that others
//! write to), [`mod@verify`] (what is wrong with one), [`mod@salvage`] (what is left of one),
//! [`letters`] (dead letters of one), [`mod@sink`] (output files that agree with the log). What
//! records say: [`entry`] (the bytes), [`fold`] and [`state`] (what is true after them),
//! [`checkpoint`] and [`restore`] (a state as records, and back).
#![allow(unreachable_pub, reason = "re-exported by crate::model in loom builds")]

mod background;
pub mod checkpoint;
pub(crate) mod disk;
pub mod entry;
pub mod error;
mod flush;
mod flusher;
pub mod fold;
mod folder;
pub mod frame;
mod judge;
pub mod letters;
mod mask;
mod poison;
mod prepare;
mod read;
mod receipt;
mod recover;
pub(crate) mod region;
pub mod restore;
pub mod salvage;
pub mod segment;
mod settings;
pub mod settled;
pub mod sink;
pub mod state;
mod store;
mod survey;
mod tail;
mod torn;
pub mod verify;
mod writer;

pub use error::LogError;
pub use folder::WritePath;
pub use judge::{Damage, Flaw, Verdict};
pub use read::{Follower, Outline, Reader, SegmentOutline, Shown, Start, Stop, outline};
pub use receipt::Receipt;
pub use recover::Recovered;
pub use settings::{LogSettings, Sync};
pub use sink::{SinkFault, SinkFile, SinkSettings};
pub use store::Log;
pub use survey::Order;

#[cfg(test)]
pub(crate) mod simulated;
#[cfg(test)]
mod tests;
