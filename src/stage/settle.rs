//! Attempts and settlement: what a handler's call means for its envelope.
//!
//! **Settlement is one place**: [`Turn::conclude`] decides, with what the attempt changed taking
//! effect wholly or not at all, and [`Turn::carry_out`] moves the envelope, once. The order is:
//! changes of the slip, headers, emits accepted, next hop; the source's permit is released after
//! the turn.

use std::sync::Arc;

use super::Stage;
use super::context::{Batch, Change, Context};
use super::engine::{Fate, Unwritten, collect};
use super::handler::{Batched, Each, Failure, guarded};
use super::lasting::Left;
use super::settings::{Level, Retry};
use super::turn::Turn;
use crate::envelope::{Cause, Envelope, Route, Settled};

/// Emits of one attempt whose buffer is kept for the next.
const USUAL_EMITS: usize = 64;

/// Why an attempt failed.
#[derive(Clone)]
pub(super) enum Failed {
    Said(Failure),
    Panicked(String),
}

/// How one call ended.
pub(super) type Outcome = Result<(), Failed>;

impl Failed {
    fn is_permanent(&self) -> bool {
        matches!(self, Self::Said(failure) if failure.is_permanent())
    }

    fn into_cause(self) -> Cause {
        match self {
            Self::Said(failure) => Cause::HandlerFailed(failure.reason().to_owned()),
            Self::Panicked(words) => Cause::HandlerPanicked(words),
        }
    }
}

/// What becomes of an envelope after an attempt.
pub(super) enum Verdict {
    /// Its itinerary ended.
    End,
    /// It goes on to this next hop.
    Go(Route),
    /// It is tried again at once.
    Retry,
    /// It is tried again after a pause.
    Delay,
    /// It is given up.
    GiveUp(Cause),
}

#[inline]
fn flatten(outcome: Result<Result<(), Failure>, String>) -> Outcome {
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(Failed::Said(failure)),
        Err(words) => Err(Failed::Panicked(words)),
    }
}

impl<P: Send + 'static> Turn<'_, P> {
    /// Calls the handler once.
    #[inline]
    pub(super) fn attempt(
        &mut self,
        stage: &Stage<P>,
        handle: &Each<P>,
        envelope: &mut Envelope<P>,
    ) -> Outcome {
        let timed = envelope.is_metered() || stage.meters.is_doubtful();
        let start = if timed { self.start_timing(stage, envelope) } else { 0 };
        let mut context = Context {
            envelope,
            notebook: &mut self.scratch.notebooks[0],
            stage: &stage.name,
            emits_max: stage.settings.emits,
            saved: stage.saved.as_ref(),
        };
        let outcome = guarded(|| handle(&mut context));
        if timed {
            self.end_timing(stage, envelope, start);
        }
        flatten(outcome)
    }

    pub(super) fn attempt_batch(
        &mut self,
        stage: &Stage<P>,
        handle: &Batched<P>,
        batch: &mut [Envelope<P>],
    ) -> Outcome {
        let mut start = 0;
        for envelope in batch.iter_mut().filter(|envelope| envelope.is_metered()) {
            start = self.start_timing(stage, envelope);
        }
        let timed = start != 0 || stage.meters.is_doubtful();
        if timed && start == 0 {
            start = self.engine.clock().monotonic_ns();
        }
        // No more pages than envelopes: what is written beyond would be a later batch's.
        let mut whole = Batch {
            notebooks: &mut self.scratch.notebooks[..batch.len()],
            envelopes: &mut *batch,
            stage: &stage.name,
            emits_max: stage.settings.emits,
            saved: stage.saved.as_ref(),
        };
        let outcome = guarded(|| handle(&mut whole));
        if timed {
            let elapsed = self.engine.clock().monotonic_ns().saturating_sub(start);
            stage.meters.learn(elapsed);
            let share = elapsed / batch.len() as u64;
            for envelope in batch.iter_mut().filter(|envelope| envelope.is_metered()) {
                stage.meters.service.record(share);
                envelope.set_stamp(start + elapsed);
            }
        }
        flatten(outcome)
    }

    #[cold]
    fn start_timing(&self, stage: &Stage<P>, envelope: &Envelope<P>) -> u64 {
        let now = self.engine.clock().monotonic_ns();
        if envelope.is_metered() {
            let waited = envelope.waited(now);
            stage.meters.wait.record(waited);
            stage.meters.hot.last_entered.set(now.saturating_sub(waited));
        }
        now
    }

    #[cold]
    fn end_timing(&self, stage: &Stage<P>, envelope: &mut Envelope<P>, start: u64) {
        let now = self.engine.clock().monotonic_ns();
        let service = now.saturating_sub(start);
        stage.meters.learn(service);
        if envelope.is_metered() {
            stage.meters.service.record(service);
            envelope.set_stamp(now);
        }
    }

    /// Decides what becomes of an envelope: the one settlement.
    #[inline]
    pub(super) fn conclude(
        &mut self,
        stage: &Arc<Stage<P>>,
        envelope: &mut Envelope<P>,
        notebook: usize,
        outcome: Outcome,
    ) -> Verdict {
        if let Err(failed) = outcome {
            return self.conclude_failure(stage, envelope, notebook, failed);
        }
        let alone = stage.is_alone();
        stage.meters.hot.done.add_as(alone, 1);
        stage.meters.hot.left.add_as(alone, 1);
        let page = &self.scratch.notebooks[notebook];
        if !(page.changes.is_empty() && page.emits.is_empty() && page.headers.is_none()) {
            self.apply(envelope, notebook);
            self.emit(envelope, notebook);
        }
        if envelope.attempts() != 0 {
            envelope.set_attempts(0);
        }
        let Some(next) = envelope.slip().peek_next() else {
            return Verdict::End;
        };
        if envelope.hops() >= self.engine.hop_limit() {
            envelope.arrive();
            return Verdict::GiveUp(Cause::HopLimit);
        }
        Verdict::Go(next)
    }

    #[cold]
    pub(super) fn conclude_failure(
        &mut self,
        stage: &Arc<Stage<P>>,
        envelope: &mut Envelope<P>,
        notebook: usize,
        failed: Failed,
    ) -> Verdict {
        for emit in self.scratch.notebooks[notebook].reset() {
            if guarded(|| drop(emit)).is_err() {
                self.engine.count_panic();
            }
        }
        let meters = &stage.meters;
        meters.failed.add(1);
        if matches!(failed, Failed::Panicked(_)) {
            meters.panicked.add(1);
        }
        let attempts = envelope.attempts().saturating_add(1);
        envelope.set_attempts(attempts);
        if failed.is_permanent() || attempts >= stage.settings.attempts {
            meters.hot.left.add_as(stage.is_alone(), 1);
            return Verdict::GiveUp(failed.into_cause());
        }
        meters.retried.add(1);
        if matches!(stage.settings.retry, Retry::InPlace) || stage.has_many_delayed() {
            return Verdict::Retry;
        }
        meters.put_aside.add(1);
        meters.hot.left.add_as(stage.is_alone(), 1);
        Verdict::Delay
    }

    /// Moves an envelope to where the verdict says.
    #[inline]
    pub(super) fn carry_out(
        &mut self,
        stage: &Arc<Stage<P>>,
        envelope: Envelope<P>,
        verdict: Verdict,
    ) {
        match verdict {
            Verdict::Go(next) => {
                let scratch = &mut *self.scratch;
                match scratch.map.get(next) {
                    // Moved first and written then: copying what was just written in small pieces
                    // stalls.
                    Some(target) => {
                        collect(&mut scratch.out, &mut scratch.spare, target, envelope).arrive();
                    }
                    None => self.go_to_newer(stage, envelope, next),
                }
            }
            Verdict::End => self.end(stage, envelope),
            Verdict::Delay => stage.delay(self.engine, envelope),
            Verdict::GiveUp(cause) => self.give_up(stage, envelope, cause),
            Verdict::Retry => self.scratch.hand.push_front(envelope),
        }
    }

    /// Sends an envelope to a stage that the turn's view does not have: opened meanwhile, or not
    /// there.
    #[cold]
    fn go_to_newer(&mut self, stage: &Arc<Stage<P>>, mut envelope: Envelope<P>, next: Route) {
        envelope.arrive();
        match self.find(next) {
            Some(target) => {
                let scratch = &mut *self.scratch;
                collect(&mut scratch.out, &mut scratch.spare, &target, envelope);
            }
            None => self.give_up(stage, envelope, Cause::NoRoute),
        }
    }

    #[cold]
    pub(super) fn end(&mut self, stage: &Stage<P>, mut envelope: Envelope<P>) {
        let cause = envelope.extras_if_any().and_then(|extras| extras.cause.take());
        let end = cause.map_or(Settled::Completed, |cause| {
            stage.meters.dead.add(1);
            Settled::Dead(*cause)
        });
        self.engine.settle(self.desk, envelope, end);
    }

    /// Applies what a successful attempt wrote down.
    #[cold]
    pub(super) fn apply(&mut self, envelope: &mut Envelope<P>, notebook: usize) {
        let page = &mut self.scratch.notebooks[notebook];
        if let Some(headers) = page.headers.take() {
            envelope.extras_mut().headers = headers;
        }
        for change in page.changes.drain(..) {
            let slip = envelope.slip_mut();
            let applied = match change {
                Change::Push(route) => slip.push(route),
                Change::Append(route) => slip.append(route),
                Change::Clear => {
                    slip.clear();
                    Ok(())
                }
            };
            debug_assert!(applied.is_ok(), "the context checked the change: {applied:?}");
        }
        if envelope.slip().remaining() > 0
            && let Some(extras) = envelope.extras_if_any()
        {
            // Routed on by a dead-letter stage: it lives again.
            extras.cause = None;
        }
    }

    /// Takes in what a successful attempt emitted, and sends it on its way.
    #[cold]
    fn emit(&mut self, envelope: &Envelope<P>, notebook: usize) {
        let mut emits = std::mem::take(&mut self.scratch.notebooks[notebook].emits);
        for (ordinal, mut emit) in emits.drain(..).enumerate() {
            let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
            self.engine.accept_emit(self.desk, envelope, ordinal, &mut emit);
            self.send_emit(envelope.current(), emit);
        }
        // A buffer for many is not kept for good, as there are many pages and scratches.
        emits.shrink_to(USUAL_EMITS);
        self.scratch.notebooks[notebook].emits = emits;
    }

    /// Sends an emit on its way.
    fn send_emit(&mut self, here: Option<Route>, mut emit: Envelope<P>) {
        let next = start_emit(here, &mut emit);
        if emit.hops() > self.engine.hop_limit() {
            return self.engine.bury(self.desk, emit, Cause::HopLimit, "");
        }
        match next.and_then(|next| self.find(next)) {
            Some(target) => {
                let level = target.settings.level;
                if level != Level::AtMostOnce {
                    match self.engine.record_emit(&mut emit, level) {
                        Ok(()) => {}
                        Err(Unwritten::Known) => {
                            return self.engine.settle(self.desk, emit, Settled::Dropped);
                        }
                        Err(_) => {
                            let name = &target.name;
                            return self.engine.bury(self.desk, emit, Cause::NotLogged, name);
                        }
                    }
                }
                let scratch = &mut *self.scratch;
                collect(&mut scratch.out, &mut scratch.spare, &target, emit);
            }
            None => self.engine.bury(self.desk, emit, Cause::NoRoute, ""),
        }
    }

    /// Sends on an emit that has its place, which is written down.
    pub(super) fn send_recorded(&mut self, emit: Envelope<P>) {
        if emit.hops() > self.engine.hop_limit() {
            return self.engine.bury(self.desk, emit, Cause::HopLimit, "");
        }
        match emit.current().and_then(|route| self.find(route)) {
            Some(target) => {
                let scratch = &mut *self.scratch;
                collect(&mut scratch.out, &mut scratch.spare, &target, emit);
            }
            None => self.engine.bury(self.desk, emit, Cause::NoRoute, ""),
        }
    }

    /// Gives an envelope up: to the stage's dead-letter stage, or among the bus's dead letters.
    #[cold]
    pub(super) fn give_up(
        &mut self,
        stage: &Arc<Stage<P>>,
        mut envelope: Envelope<P>,
        cause: Cause,
    ) {
        let target = stage
            .dead_letter
            .filter(|_| envelope.hops() < self.engine.hop_limit())
            .and_then(|route| Some((route, self.find(route)?)));
        let Some((route, target)) = target else {
            stage.meters.dead.add(1);
            return self.engine.bury(self.desk, envelope, cause, &stage.name);
        };
        envelope.extras_mut().cause = Some(Box::new(cause.clone()));
        envelope.set_attempts(0);
        envelope.set_hops(envelope.hops() + 1);
        let slip = envelope.slip_mut();
        slip.clear();
        if slip.push(route).is_ok() {
            slip.ratchet();
        }
        if envelope.is_durable()
            && let Err(unwritten) =
                self.engine.record(&mut envelope, Fate::Hop, &mut Vec::new(), &Left::default())
        {
            return self.not_written(stage, envelope, unwritten, cause);
        }
        let scratch = &mut *self.scratch;
        collect(&mut scratch.out, &mut scratch.spare, &target, envelope);
    }
}

/// Puts an emit at its first stage. A slip that stands at the stage that emits is a copy of its
/// own: the emit goes on to what remains of it.
pub(super) fn start_emit<P>(here: Option<Route>, emit: &mut Envelope<P>) -> Option<Route> {
    let slip = emit.slip_mut();
    let stands_elsewhere = slip.is_at_stage() && slip.current() != here;
    if stands_elsewhere { slip.current() } else { slip.ratchet() }
}
