//! Meters: counters, histograms and the plain data a reading returns. No threads, no I/O.

pub mod counter;
pub mod histogram;
pub mod snapshot;

pub use histogram::{Histogram, Quantiles};
pub use snapshot::{Conservation, Lint, Snapshot, StageSnapshot, WorkerSnapshot};
