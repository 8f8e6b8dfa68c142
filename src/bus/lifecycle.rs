//! Pause, closing, shutdown.
//!
//! Shutdown: (1) intake stops, hops stay open, what was paused goes on; (2) itineraries are
//! finished until the books say that nothing is in flight, or the deadline; (3) all stages close;
//! (4) what still waits is handed back as undelivered and named in the report, and so is a handler
//! that has not returned.

use std::sync::Arc;
use std::time::Duration;

use super::Bus;
use super::core::{Core, Lifecycle};
use super::error::BusError;
use crate::coord::attendance::{CLOSED, DRAINING, PAUSED, PAUSED_ALONE, PAUSED_WITH_BUS};
use crate::coord::on_worker::is_in_turn;
use crate::coord::parker::Parker;
use crate::coord::ticket::Desk;
use crate::envelope::{EnvelopeId, Settled};
use crate::metrics::Conservation;
use crate::stage::Stage;
use crate::stage::engine::{Engine as _, StageMap};
use crate::sync::{MutexGuard, lock};

/// How often a shutdown looks at the books.
const LOOK: Duration = Duration::from_micros(200);

/// Something that was still there at the end of a shutdown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leftover {
    /// An envelope that waited; it was handed back as undelivered.
    Waiting {
        /// The stage it waited for.
        stage: String,
        /// Its id.
        id: EnvelopeId,
    },
    /// Envelopes in handler calls that have not returned, in flight until they do.
    Running {
        /// The stage.
        stage: String,
        /// How many.
        envelopes: u64,
    },
    /// Envelopes that the log keeps, to be taken up when it is opened next. Those that waited here
    /// are named apart as well.
    InLog {
        /// The stage.
        stage: String,
        /// How many.
        envelopes: u64,
    },
    /// Envelopes in the hands of workers whose calls have not returned: the rest of a batch, or
    /// handled and not yet passed on. They are handed back once the calls return.
    InHand {
        /// How many.
        envelopes: u64,
    },
}

/// What a shutdown found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether everything accepted had ended by itself.
    pub drained: bool,
    /// Everything that had not, in the order of stages.
    pub leftovers: Vec<Leftover>,
    /// The books at the end.
    pub conservation: Conservation,
}

impl<P: Send + 'static> Bus<P> {
    /// Pauses every stage: publishes are refused, queued work is held, running work finishes,
    /// hops are taken in.
    pub fn pause(&self) {
        let changing = lock(&self.core.changing);
        if self.core.lifecycle() == Lifecycle::Running {
            self.core.set_lifecycle(Lifecycle::Paused);
            self.core.each_stage(|stage| stage.mark(PAUSED_WITH_BUS));
            self.unlock_and_wake(changing);
        }
    }

    /// Ends a pause of the bus; stages that were paused by name stay so.
    pub fn resume(&self) {
        // The clock is the embedder's code, which runs under no lock.
        let now = self.core.clock().monotonic_ns();
        let changing = lock(&self.core.changing);
        if self.core.lifecycle() == Lifecycle::Paused {
            self.core.set_lifecycle(Lifecycle::Running);
            self.core.each_stage(|stage| stage.unmark(&*self.core, PAUSED_WITH_BUS, now));
            self.unlock_and_wake(changing);
        }
    }

    /// Wakes all publishers that wait, so that they see the change: wakers are foreign code, which
    /// runs under no lock.
    fn unlock_and_wake(&self, changing: MutexGuard<'_, ()>) {
        drop(changing);
        self.core.each_stage(|stage| stage.wake_publishers(&*self.core, usize::MAX));
    }

    /// Pauses one stage.
    ///
    /// # Errors
    /// [`BusError::UnknownStage`]; [`BusError::Stopped`] once the bus drains, which a pause would
    /// hold up.
    pub fn pause_stage(&self, name: &str) -> Result<(), BusError> {
        let changing = lock(&self.core.changing);
        if matches!(self.core.lifecycle(), Lifecycle::Draining | Lifecycle::Stopped) {
            return Err(BusError::Stopped);
        }
        let stage = self.find(name)?;
        stage.mark(PAUSED_ALONE);
        drop(changing);
        stage.wake_publishers(&*self.core, usize::MAX);
        Ok(())
    }

    /// Ends the pause of one stage; while the whole bus is paused it stays so.
    ///
    /// # Errors
    /// [`BusError::UnknownStage`].
    pub fn resume_stage(&self, name: &str) -> Result<(), BusError> {
        self.find(name)?.readmit(&*self.core, PAUSED_ALONE);
        Ok(())
    }

    /// Closes a stage at once: what waits in it becomes dead letters (`StageClosed`), calls that
    /// run finish. Its name may be opened again.
    ///
    /// # Errors
    /// [`BusError::UnknownStage`].
    pub fn close_stage(&self, name: &str) -> Result<(), BusError> {
        let changing = lock(&self.core.changing);
        let stage = self.find(name)?;
        stage.mark(CLOSED);
        let mut stages = self.core.stages().0.clone();
        for place in &mut stages {
            if place.as_ref().is_some_and(|open| Arc::ptr_eq(open, &stage)) {
                *place = None;
            }
        }
        self.core.set_stages(stages);
        drop(changing);
        // Callbacks are foreign code, which runs under no lock.
        stage.settle_closed(&*self.core);
        stage.retire(&*self.core.shared);
        stage.forget_handler();
        self.core.forget_scratches();
        Ok(())
    }

    /// Ends the bus: stops intake, finishes itineraries until `limit`, hands back what is left.
    ///
    /// Called from a handler or a callback, of any bus, it only starts: intake stops, and the
    /// report says what is in flight.
    ///
    /// Called again after the end it does nothing but report anew: what was [`Leftover::InHand`]
    /// and has been handed back since is then named as [`Leftover::Waiting`], once.
    pub fn shutdown(&self, limit: Duration) -> ShutdownReport {
        let core = &self.core;
        let now = core.clock().monotonic_ns();
        let changing = lock(&core.changing);
        if core.lifecycle() == Lifecycle::Stopped {
            drop(changing);
            return core.report(core.take_late());
        }
        core.set_lifecycle(Lifecycle::Draining);
        core.each_stage(|stage| {
            stage.mark(DRAINING);
            stage.unmark(&**core, PAUSED, now);
        });
        self.unlock_and_wake(changing);
        if is_in_turn() {
            return ShutdownReport { drained: false, ..core.report(core.running(&core.stages())) };
        }
        self.finish(limit);
        self.end()
    }

    /// Closes all stages and hands back what waits in them: the end, wherever it is called from.
    pub(super) fn end(&self) -> ShutdownReport {
        let core = &self.core;
        let changing = lock(&core.changing);
        core.set_lifecycle(Lifecycle::Stopped);
        core.each_stage(|stage| stage.mark(CLOSED));
        let stages = core.stages();
        core.set_stages(Vec::new());
        drop(changing);
        // Callbacks and destructors are foreign code, which runs under no lock.
        core.forget_scratches();
        let mut leftovers = core.hand_back(&stages);
        leftovers.extend(core.end_journal());
        leftovers.extend(core.take_late());
        leftovers.extend(core.running(&stages));
        for stage in stages.0.iter().flatten() {
            stage.retire(&*core.shared);
            stage.forget_handler();
        }
        core.report(leftovers)
    }

    /// Waits until nothing is in flight, or for `limit`: by the bus's clock or, should that stand
    /// still, by what was slept.
    fn finish(&self, limit: Duration) {
        let core = &self.core;
        let clock = core.clock();
        let begin = clock.monotonic_ns();
        let mut slept = Duration::ZERO;
        let parker = Parker::new();
        while core.conservation().in_flight > 0 {
            let gone = Duration::from_nanos(clock.monotonic_ns() - begin).max(slept);
            if gone >= limit {
                return;
            }
            if self.turn() > 0 {
                continue;
            }
            let pause = LOOK.min(limit - gone);
            parker.park(Some(pause));
            slept += pause;
        }
    }
}

impl<P: Send + 'static> Core<P> {
    fn each_stage(&self, act: impl Fn(&Arc<Stage<P>>)) {
        for stage in self.stages().0.iter().flatten() {
            act(stage);
        }
    }

    /// What arrived at a stage after the end and was not named yet.
    fn take_late(&self) -> Vec<Leftover> {
        let late = std::mem::take(&mut *lock(&self.late));
        late.into_iter().map(|(stage, id)| Leftover::Waiting { stage, id }).collect()
    }

    fn report(&self, mut leftovers: Vec<Leftover>) -> ShutdownReport {
        let conservation = self.conservation();
        let running = leftovers.iter().map(|leftover| match leftover {
            Leftover::Running { envelopes, .. } => *envelopes,
            _ => 0,
        });
        let envelopes = conservation.in_flight.saturating_sub(running.sum());
        if envelopes > 0 && self.lifecycle() == Lifecycle::Stopped {
            leftovers.push(Leftover::InHand { envelopes });
        }
        let drained = conservation.undelivered == 0 && conservation.in_flight == 0;
        ShutdownReport { drained: drained && leftovers.is_empty(), leftovers, conservation }
    }

    /// Envelopes in handler calls that run now, by stage.
    fn running(&self, stages: &StageMap<P>) -> Vec<Leftover> {
        let now = self.clock().monotonic_ns();
        let snapshots = stages.0.iter().flatten().map(|stage| stage.snapshot(now));
        snapshots
            .filter(|stage| stage.in_flight > 0)
            .map(|stage| Leftover::Running { stage: stage.name, envelopes: stage.in_flight })
            .collect()
    }

    /// Hands back everything that waits in any of the closed stages.
    fn hand_back(&self, stages: &StageMap<P>) -> Vec<Leftover> {
        let desk = Desk::outside(&**self.scheduler());
        let mut leftovers = Vec::new();
        for stage in stages.0.iter().flatten() {
            // That stays in the log.
            self.recovered.subtract(stage.forget_backlog() as u64);
            while let Some(envelope) = stage.take_inside() {
                let id = envelope.id();
                leftovers.push(Leftover::Waiting { stage: stage.name().to_owned(), id });
                stage.meters().undelivered.add(1);
                self.settle(&desk, envelope, Settled::Undelivered);
            }
            stage.wake_publishers(self, usize::MAX);
        }
        leftovers
    }
}
