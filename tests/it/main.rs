//! The public surface, one binary: a file per topic, a test per row of ARCHITECTURE.md's table.

mod api;
mod batches;
mod cycles;
mod durable;
mod faults;
mod letters;
mod lifecycle;
mod liveness;
mod memory;
mod ownership;
mod panics;
mod ported;
mod retry;
mod reuse;
mod sinks;
mod slips;
mod smoke;
mod still_clock;
mod suite;
mod support;
