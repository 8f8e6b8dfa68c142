//! Durations in nanoseconds, recorded under a lock by whoever was asked to measure.
//!
//! Two significant digits from 1 ns to one hour, about 43 KiB each, never growing. Recording is off
//! the fast path: the bus measures one envelope in N.

use std::fmt;

use crate::sync::{Mutex, SMALL, lock};

/// One hour, the longest duration told apart; next to nothing in models, which make thousands.
const MAX_NS: u64 = if SMALL { 2 } else { 3_600_000_000_000 };
/// Significant digits.
const DIGITS: u8 = if SMALL { 0 } else { 2 };

/// A bounded histogram of durations.
pub struct Histogram(Mutex<hdrhistogram::Histogram<u64>>);

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new_with_bounds(1, MAX_NS, DIGITS)
            .expect("the bounds are constants that hdrhistogram accepts");
        Self(Mutex::new(inner))
    }

    /// Records one duration; longer ones count as the longest told apart.
    pub fn record(&self, nanoseconds: u64) {
        lock(&self.0).saturating_record(nanoseconds.max(1));
    }

    /// A copy of what was recorded.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles(lock(&self.0).clone())
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").finish_non_exhaustive()
    }
}

/// A copy of a [`Histogram`]: all durations are nanoseconds.
#[derive(Clone)]
pub struct Quantiles(hdrhistogram::Histogram<u64>);

impl Quantiles {
    /// The duration that a share of `quantile` (0 to 1) stayed at or below; 0 when nothing was
    /// measured.
    #[must_use]
    pub fn at(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The longest duration measured.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// How many durations were measured.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The mean in nanoseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// Adds what another one measured: percentiles are merged, never averaged.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// The recorded values and how often each came, rising.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

impl fmt::Debug for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quantiles")
            .field("count", &self.count())
            .field("p50", &self.at(0.5))
            .field("p99", &self.at(0.99))
            .field("max", &self.max())
            .finish()
    }
}
