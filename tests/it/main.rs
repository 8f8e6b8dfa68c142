//! The public surface, one binary: a file per topic, a test per row of ARCHITECTURE.md's table.

mod api;
mod cycles;
mod faults;
mod lifecycle;
mod liveness;
mod memory;
mod panics;
mod ported;
mod retry;
mod slips;
mod smoke;
mod suite;
mod support;
