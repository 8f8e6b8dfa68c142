//! What must hold between actions, while everybody sleeps, and at the end.

use std::sync::Arc;
use std::time::Duration;

use super::cargo::Cargo;
use super::world::{BATCH_MAX, World};
use crate::metrics::StageSnapshot;
use crate::stage::Stage;
use crate::stage::engine::Engine as _;
use crate::sync::{Ordering, lock};

/// Steps after which a world that is left alone must have come to rest.
const STEPS_MAX: usize = 300_000;

impl<P: Cargo> World<P> {
    fn stages(&self) -> Vec<Arc<Stage<P>>> {
        let stages = self.bus().map(|bus| bus.core.stages());
        stages.iter().flat_map(|map| map.0.iter().flatten().cloned()).collect()
    }

    /// What holds whenever no call is going on.
    pub(super) fn check_at_rest(&self) {
        let now = self.now();
        for stage in self.stages() {
            let reading = stage.snapshot(now);
            if reading.hops_waiting > 0 {
                self.ledger.note("hops that waited");
            }
            if reading.hops_waiting > 0 && !stage.queue().is_full() {
                self.complain(&reading, "hops wait for room that is there");
            }
            if reading.permits_used > reading.permits {
                self.complain(&reading, "more permits are out than there are");
            }
            let settings = stage.settings();
            let capacity = settings.capacity as u64;
            // A block on the side may come from a stage with larger batches.
            let side = u64::from(settings.permits + 1) * BATCH_MAX as u64;
            if reading.depth > 2 * capacity + side {
                self.complain(&reading, "more envelopes wait than may");
            }
            if reading.delayed > capacity {
                self.complain(&reading, "more retries wait than may");
            }
        }
        if let Some(bus) = self.bus() {
            let letters = bus.snapshot().dead_letters;
            if letters > self.plan.dead_letters {
                self.ledger.fail(format!("{letters} dead letters are kept"));
            }
        }
        self.check_parked();
    }

    /// What holds while all workers sleep and none was woken: nothing could be done.
    pub(super) fn check_idle_stages(&self) {
        let stages = self.stages();
        let now = self.now();
        let readings: Vec<_> = stages.iter().map(|stage| stage.snapshot(now)).collect();
        let somebody_waits = readings.iter().any(|reading| reading.hops_waiting > 0);
        for reading in &readings {
            let is_ready = reading.depth > 0 && !reading.paused;
            if is_ready && reading.permits_used < reading.permits {
                self.complain(reading, "work and a permit are there while all workers sleep");
            }
            if reading.permits_used > 0 && !somebody_waits {
                self.complain(reading, "a permit is out while all workers sleep");
            }
        }
    }

    fn complain(&self, reading: &StageSnapshot, problem: &str) {
        self.ledger.fail(format!(
            "`{}`: {problem} (depth {}, {} hops wait, {} delayed, permits {} of {}, paused {})",
            reading.name,
            reading.depth,
            reading.hops_waiting,
            reading.delayed,
            reading.permits_used,
            reading.permits,
            reading.paused
        ));
    }

    /// Publishes nothing more and lets everything come to its end.
    pub(super) fn come_to_rest(self: &Arc<Self>) {
        // ORDERING: Relaxed: one thread.
        self.is_ending.store(true, Ordering::Relaxed);
        let Some(bus) = self.bus() else {
            return;
        };
        bus.resume();
        for stage in self.stages() {
            // A shutdown in a callback may have closed it.
            let _ = bus.resume_stage(stage.name());
        }
        for _ in 0..STEPS_MAX {
            if self.ledger.has_failed() {
                return;
            }
            let has_woken = lock(&self.polled).iter().any(|polled| polled.is_woken());
            if has_woken {
                self.poll_some();
            }
            if self.run_a_worker() || has_woken {
                continue;
            }
            self.check_at_rest();
            let Some(alarm) = self.next_alarm() else {
                return self.check_end(&bus.core.conservation().in_flight);
            };
            self.clock.advance(Duration::from_nanos(alarm.saturating_sub(self.now())));
        }
        self.ledger.fail("the world does not come to rest");
    }

    /// Nothing can happen any more: everything must have ended.
    fn check_end(&self, in_flight: &u64) {
        let now = self.now();
        for reading in self.stages().iter().map(|stage| stage.snapshot(now)) {
            if reading.depth + reading.hops_waiting + reading.delayed + reading.in_flight > 0 {
                self.complain(&reading, "envelopes wait for ever");
            }
            if reading.permits_used > 0 {
                self.complain(&reading, "permits are lost");
            }
        }
        if *in_flight > 0 {
            self.ledger.fail(format!("{in_flight} envelopes are in flight for ever"));
        }
        for polled in lock(&self.polled).iter() {
            let place = polled.stage.and_then(|route| self.bus()?.name(route));
            self.ledger.fail(format!("a publisher waits for ever at {place:?}"));
        }
    }

    /// Ends the bus and compares the books.
    pub(super) fn close_the_books(self: &Arc<Self>) {
        let Some(bus) = self.take_bus() else {
            return;
        };
        let report = bus.shutdown(Duration::ZERO);
        // After an earlier shutdown it names what arrived since, and that was handed back.
        let named = report.leftovers.len() as u64;
        let moves = report.conservation.in_flight > 0 || named > report.conservation.undelivered;
        if moves || !report.conservation.holds() {
            self.ledger.fail(format!("{report:?}"));
        }
        for worker in bus.snapshot().workers {
            self.ledger.note_many("steals", worker.steals);
            self.ledger.note_many("wake-ups", worker.wakes);
        }
        let letters = bus.dead_letters().len() as u64;
        // ORDERING: Relaxed on both: one thread.
        let letters = letters + self.taken_out.load(Ordering::Relaxed);
        let redriven = self.redriven.load(Ordering::Relaxed);
        self.ledger.note_many("re-drives", redriven);
        self.check_completions();
        self.ledger.compare(bus.conservation(), redriven, letters);
        self.guard(|| drop(bus));
    }

    /// Lets go of everything that the simulator holds; the world must then be nobody else's.
    pub(super) fn check_leaks(self: &Arc<Self>) {
        lock(&self.workers).clear();
        drop(lock(&self.publisher).take());
        for mut envelope in std::mem::take(&mut *lock(&self.returned)) {
            envelope.payload_mut().disarm();
        }
        let holders = Arc::strong_count(self);
        if holders != 1 {
            self.ledger.fail(format!("{} stages or callbacks are leaked", holders - 1));
        }
        if self.ledger.alive() > 0 {
            self.ledger.fail(format!("{} payloads are leaked", self.ledger.alive()));
        }
    }
}
