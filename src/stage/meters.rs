//! What a stage counts and measures.
//!
//! Counts are exact. A stage with one permit has one writer at a time, so its counts are plain
//! stores; with more permits they are additions. Durations are measured for metered envelopes
//! (one in N) and while the handler's class is unknown.

use crate::metrics::Histogram;
use crate::metrics::counter::Counter;
use crate::sync::CachePadded;

/// A handler call longer than this is worth waking another worker: the price of a wake-up.
pub(crate) const SLOW_NS: u64 = 50_000;

/// The meters of one stage.
#[derive(Debug, Default)]
pub(crate) struct StageMeters {
    /// Written per envelope by permit holders.
    pub(crate) hot: CachePadded<HotMeters>,
    pub(crate) failed: Counter,
    pub(crate) panicked: Counter,
    pub(crate) retried: Counter,
    /// Retries that were put aside for a pause; each is taken up anew.
    pub(crate) put_aside: Counter,
    pub(crate) dead: Counter,
    pub(crate) expired: Counter,
    pub(crate) dropped: Counter,
    pub(crate) refused: Counter,
    pub(crate) undelivered: Counter,
    pub(crate) wait: Histogram,
    pub(crate) service: Histogram,
}

/// The meters of the fast path.
#[derive(Debug, Default)]
pub(crate) struct HotMeters {
    /// Envelopes taken up.
    pub(crate) started: Counter,
    /// Envelopes handled with success.
    pub(crate) done: Counter,
    /// Envelopes whose visit here ended, whatever the outcome.
    pub(crate) left: Counter,
    /// The last measured call in nanoseconds; zero while unknown.
    last_ns: Counter,
    /// The shorter of the last two: one call that the machine interrupted makes no handler slow.
    service_ns: Counter,
    /// When the last metered envelope that was taken up had come, or when the stage last woke.
    pub(crate) last_entered: Counter,
}

impl StageMeters {
    /// Changes whenever an attempt is begun: envelopes taken up, and failures for those that are
    /// tried again in place.
    pub(crate) fn progress(&self) -> u64 {
        self.hot.started.get().wrapping_add(self.failed.get())
    }

    /// Takes one measurement of the handler into the class.
    pub(crate) fn learn(&self, service_ns: u64) {
        let last = self.hot.last_ns.get();
        let sample = service_ns.max(1);
        self.hot.last_ns.set(sample);
        self.hot.service_ns.set(if last == 0 { sample } else { sample.min(last) });
    }

    /// Whether nothing is known of the handler's speed.
    #[inline]
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.hot.last_ns.get() == 0
    }

    /// Whether the next call must be timed: nothing is known, or the last one was long.
    #[inline]
    pub(crate) fn is_doubtful(&self) -> bool {
        // Wraps for zero, "unknown", to the largest number: one comparison.
        self.hot.last_ns.get().wrapping_sub(1) >= SLOW_NS
    }

    /// Whether handler calls are known to be short.
    #[inline]
    pub(crate) fn is_fast(&self) -> bool {
        // As above.
        self.hot.service_ns.get().wrapping_sub(1) < SLOW_NS
    }
}
