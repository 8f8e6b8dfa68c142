//! The segment log: an append-only store of checksummed records that survives crash and power cut.
//!
//! `README.md` beside this file has the format, the order of writes and the rules of recovery;
//! names like *W3* refer to it. Files: [`frame`] (one record as bytes), [`mask`] (bodies without
//! runs of zeros), [`torn`] (a record cut short against a damaged one), [`segment`] (a file and its
//! header), [`survey`] and [`judge`] (what recovery finds and what it means), [`disk`] and
//! [`region`] (where the bytes are). What records say: [`entry`] (the bytes), [`fold`] and
//! [`state`] (what is true after them), [`checkpoint`] and [`restore`] (a state as records, and
//! back).

mod background;
pub mod checkpoint;
pub mod disk;
pub mod entry;
pub mod error;
mod flush;
mod flusher;
pub mod fold;
pub mod folder;
pub mod frame;
pub mod judge;
pub mod mask;
mod poison;
mod prepare;
mod receipt;
pub mod recover;
pub mod region;
pub mod restore;
pub mod segment;
mod settings;
pub mod settled;
pub mod state;
mod store;
pub mod survey;
pub mod tail;
pub mod torn;
mod writer;

pub use error::LogError;
pub use receipt::Receipt;
pub use settings::{LogSettings, Sync};
pub use store::Log;

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
