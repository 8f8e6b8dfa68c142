//! The public surface, one binary: a file per topic, a test per row of ARCHITECTURE.md's table.

mod faults;
mod smoke;
mod suite;
mod support;
