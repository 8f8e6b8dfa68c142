//! What the comparisons with other crates share: when a run counts, and how runs become a table.

#![expect(clippy::disallowed_methods, reason = "a harness reads the machine's clock")]

pub mod gate;
pub mod interleaved;
pub mod statistics;
