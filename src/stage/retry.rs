//! Delayed retries: off the ring for a pause, then back like a waiting hop without a source.
//!
//! Bound: `capacity` of them per stage, counted on the failure path; at the bound the retry happens
//! in place.

use std::sync::Arc;
use std::time::Duration;

use super::Stage;
use super::engine::Engine;
use super::hop::nanoseconds;
use super::room::Delayed;
use super::settings::Retry;
use crate::coord::attendance::CLOSED;
use crate::envelope::Envelope;
use crate::sync::lock;

impl<P: Send + 'static> Stage<P> {
    /// Whether as many envelopes wait for their retry as may.
    pub(crate) fn has_many_delayed(&self) -> bool {
        lock(&self.room).delayed.len() >= self.settings.capacity
    }

    /// Puts a failed envelope aside for its pause. Permit holders that saw room at the same time
    /// may exceed the bound by one each.
    pub(crate) fn delay(self: &Arc<Self>, engine: &dyn Engine<P>, envelope: Envelope<P>) {
        let (first, max, jitter) = match self.settings.retry {
            Retry::Delayed { first, max, jitter } => (first, max, jitter),
            Retry::InPlace => (Duration::ZERO, Duration::ZERO, 0.0),
        };
        let pause = pause(first, max, jitter, envelope.attempts(), engine.random());
        let deadline = engine.clock().monotonic_ns().saturating_add(pause);
        let mut room = lock(&self.room);
        room.numbers += 1;
        let number = room.numbers;
        room.delayed.insert(number, Delayed { envelope, timer: None });
        drop(room);
        let stage = Arc::downgrade(self);
        let due = move || {
            if let Some(stage) = stage.upgrade() {
                stage.retry_is_due(number);
            }
        };
        let timer = engine.scheduler().at(deadline, Box::new(due));
        let note = |delayed: &mut Delayed<P>| delayed.timer = Some(timer);
        let waits = lock(&self.room).delayed.get_mut(&number).map(note).is_some();
        if !waits {
            // Due already, or taken out by whoever closed the stage.
            engine.scheduler().cancel(timer);
        }
        if self.attendance.has(CLOSED) {
            // Whoever closed it may have looked before we came.
            self.settle_closed(engine);
        }
    }

    fn retry_is_due(self: &Arc<Self>, number: u64) {
        let delayed = lock(&self.room).delayed.remove(&number);
        if let Some(Delayed { envelope, .. }) = delayed {
            self.enter_without_source(&*self.engine, envelope);
        }
    }
}

/// The pause before the attempt after `failures` failures, in nanoseconds.
pub(crate) fn pause(
    first: Duration,
    max: Duration,
    jitter: f64,
    failures: u16,
    random: u64,
) -> u64 {
    let doublings = u32::from(failures.saturating_sub(1)).min(63);
    let grown = nanoseconds(first).saturating_mul(1 << doublings).min(nanoseconds(max));
    // 53 random bits as a fraction of one, stretched to -1..1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let spread = ((random >> 11) as f64 / (1_u64 << 53) as f64).mul_add(2.0, -1.0) * jitter;
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a pause needs no more than a double's precision, and spread is at least -1"
    )]
    let spread_out = (grown as f64 * (1.0 + spread)) as u64;
    spread_out
}

#[cfg(test)]
mod tests {
    use super::pause;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn check(failures: u16, want_ms: u64) {
        let (first, max) = (Duration::from_millis(50), Duration::from_secs(5));
        assert_eq!(pause(first, max, 0.0, failures, 7), want_ms * MS, "{failures} failures");
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        check(1, 50);
        check(2, 100);
        check(7, 3_200);
        check(8, 5_000);
        check(u16::MAX, 5_000);
    }

    #[test]
    fn jitter_spreads_in_both_directions() {
        let with =
            |random| pause(Duration::from_millis(100), Duration::from_secs(1), 0.2, 1, random);
        assert_eq!(with(0), 80 * MS);
        assert!(with(u64::MAX).abs_diff(120 * MS) < 10);
    }
}
