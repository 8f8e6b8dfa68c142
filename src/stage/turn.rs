//! One turn of a stage: take up to a batch, handle, settle, pass on.
//!
//! 1. Envelopes are taken one at a time. Those that come in a block stay in hand while the stage
//!    has one permit and its handler is known to be fast; otherwise the rest goes to the side list
//!    before each call, so that nobody waits behind a stuck handler who could be served elsewhere.
//! 2. What goes on to a next stage is collected per stage and passed on at the end of the turn,
//!    or before the next call where the handler is slow.
//! 3. **Run-on**: at the end of the turn, when the next stage's permit is free and nothing waits
//!    there, this stage's permit goes back to the queue as a ticket and the same worker runs the
//!    next stage on what it has in hand. At most `batch` handler calls run on per turn.
//! 4. A hop without room takes this stage's permit along into the line ([`super::hop`]).
//!
//! **Settlement is one place** ([`Turn::settle`]), whose last step releases the source.

use std::sync::Arc;

use super::Stage;
use super::context::{Batch, Change, Context, Notebook};
use super::engine::{Engine, Scratch, StageMap};
use super::handler::{Failure, Kind, guarded};
use super::queue::{Block, Slot};
use super::room::Hold;
use super::settings::Retry;
use crate::coord::attendance::{CLOSED, HOPS_WAIT, PAUSED, SLOW};
use crate::coord::ticket::{Desk, Task, Ticket, Turned};
use crate::envelope::envelope::{Cause, Settled};
use crate::envelope::{Envelope, Route};

/// Runs one turn. The permit behind `ticket` is held.
pub(crate) fn turn<P: Send + 'static>(
    stage: &Arc<Stage<P>>,
    engine: &dyn Engine<P>,
    ticket: Ticket,
    desk: &Desk<'_>,
) -> Turned {
    stage.attendance.mark_attended();
    if stage.attendance.has(PAUSED) {
        return Turned::Release { ticket, taken: 0 };
    }
    if stage.queue.is_empty() {
        let others = stage.attendance.used() > 1;
        return if others || stage.attendance.has(CLOSED) {
            Turned::Release { ticket, taken: 0 }
        } else {
            Turned::Keep { ticket, taken: 0 }
        };
    }
    let mut scratch = engine.scratch();
    let end = Turn::new(engine, desk, &mut scratch, stage.settings.batch).run(stage);
    engine.put_scratch(scratch);
    match end {
        End::Held(taken) => Turned::Keep { ticket, taken },
        End::Given(taken) => Turned::Gone { taken },
    }
}

/// Runs a turn of an idle stage on the thread of a publisher, on the envelope it brings; gives it
/// back when the stage is not idle.
pub(crate) fn caller_runs<P: Send + 'static>(
    stage: &Arc<Stage<P>>,
    engine: &dyn Engine<P>,
    desk: &Desk<'_>,
    envelope: Envelope<P>,
) -> Result<(), Envelope<P>> {
    let mut scratch = engine.scratch();
    let mut turn = Turn::new(engine, desk, &mut scratch, stage.settings.batch);
    let outcome = if turn.take_idle(stage) {
        turn.scratch.hand.push_back(envelope);
        let end = turn.run(stage);
        if matches!(end, End::Held(_)) {
            give_back(stage, desk);
        }
        Ok(())
    } else {
        Err(envelope)
    };
    engine.put_scratch(scratch);
    outcome
}

/// Puts a permit through the release function; what comes back is queued.
fn give_back<P: Send + 'static>(stage: &Arc<Stage<P>>, desk: &Desk<'_>) {
    let ticket = Ticket::new(Arc::clone(stage) as Arc<dyn Task>);
    if let Some(ticket) = Arc::clone(stage).release(ticket) {
        desk.scheduler.post(ticket);
    }
}

/// Whether the permit of the stage the turn began with is still in our hand.
enum End {
    Held(usize),
    Given(usize),
}

struct Turn<'a, P> {
    engine: &'a dyn Engine<P>,
    desk: &'a Desk<'a>,
    map: Arc<StageMap<P>>,
    scratch: &'a mut Scratch<P>,
    /// Handler calls left.
    budget: usize,
    /// Whether only what is in hand is handled: the part of a stage that is run on.
    only_hand: bool,
    taken: usize,
    /// The permit of the stage being run, once it was given to hops that wait.
    hold: Option<Arc<Hold>>,
}

impl<'a, P: Send + 'static> Turn<'a, P> {
    fn new(
        engine: &'a dyn Engine<P>,
        desk: &'a Desk<'a>,
        scratch: &'a mut Scratch<P>,
        budget: usize,
    ) -> Self {
        let map = engine.stages();
        Self { engine, desk, map, scratch, budget, only_hand: false, taken: 0, hold: None }
    }

    /// The stage of the ticket, then those that are run on.
    fn run(&mut self, first: &Arc<Stage<P>>) -> End {
        self.drain(first);
        self.budget = first.settings.batch;
        self.only_hand = true;
        let mut current = Arc::clone(first);
        let mut first_is_held = true;
        while let Some(next) = self.pass_on(&current) {
            if Arc::ptr_eq(&current, first) {
                first_is_held = false;
            }
            self.leave(&current);
            current = next;
            self.drain(&current);
        }
        let gave_hold = self.hold.take().is_some();
        if !Arc::ptr_eq(&current, first) || !first_is_held {
            if !gave_hold {
                give_back(&current, self.desk);
            }
            return End::Given(self.taken);
        }
        if gave_hold { End::Given(self.taken) } else { End::Held(self.taken) }
    }

    /// Gives up the permit of a stage before another is run on: it stays a ticket.
    fn leave(&mut self, stage: &Arc<Stage<P>>) {
        if self.hold.take().is_some() {
            return;
        }
        stage.attendance.mark_attended();
        let ticket = Ticket::new(Arc::clone(stage) as Arc<dyn Task>);
        self.desk.scheduler.requeue(self.desk.worker, ticket);
    }

    /// Takes envelopes of one stage, from the hand first, and handles them.
    fn drain(&mut self, stage: &Arc<Stage<P>>) {
        let Some(handler) = stage.handler.get() else {
            return;
        };
        if !stage.is_alone() {
            let task = Arc::clone(stage) as Arc<dyn Task>;
            self.desk.scheduler.working_on(self.desk.worker, task);
        }
        let fast = stage.meters.is_fast();
        match &handler.0 {
            Kind::Each(_) => self.drain_each(stage, fast),
            Kind::Batch(_) => self.drain_batch(stage, fast),
        }
        if stage.meters.is_fast() && !stage.is_alone() && stage.attendance.has(SLOW) {
            stage.attendance.clear(SLOW);
        }
        let mut hand = std::mem::take(&mut self.scratch.hand);
        stage.queue.stash(&mut hand);
        self.scratch.hand = hand;
    }

    fn drain_each(&mut self, stage: &Arc<Stage<P>>, fast: bool) {
        let keeps_block = fast && stage.is_alone();
        while self.budget > 0 && self.hold.is_none() {
            let Some(mut envelope) = self.take(stage) else {
                return;
            };
            if !keeps_block {
                stage.queue.stash(&mut self.scratch.hand);
            }
            if !fast {
                self.pass_on_now(stage);
                if self.hold.is_some() {
                    // The permit went with a hop that waits.
                    return self.put_back(stage, envelope);
                }
                self.call_for_help(stage);
            }
            self.budget -= 1;
            loop {
                let outcome = self.attempt(stage, &mut envelope);
                let Some(again) = self.settle(stage, envelope, 0, outcome) else {
                    break;
                };
                if self.budget == 0 {
                    return self.put_back(stage, again);
                }
                self.budget -= 1;
                envelope = again;
            }
        }
    }

    /// Puts an envelope that was taken up back to the front of its stage.
    #[cold]
    fn put_back(&mut self, stage: &Stage<P>, envelope: Envelope<P>) {
        stage.meters.hot.started.subtract(1);
        self.scratch.hand.push_front(envelope);
    }

    fn drain_batch(&mut self, stage: &Arc<Stage<P>>, fast: bool) {
        while self.budget > 0 && self.hold.is_none() {
            let mut batch = std::mem::take(&mut self.scratch.batch);
            while batch.len() < self.budget.min(stage.settings.batch)
                && let Some(envelope) = self.take(stage)
            {
                batch.push(envelope);
            }
            let count = batch.len();
            if count == 0 {
                self.scratch.batch = batch;
                return;
            }
            stage.queue.stash(&mut self.scratch.hand);
            self.budget -= count;
            self.scratch
                .notebooks
                .resize_with(count.max(self.scratch.notebooks.len()), Notebook::new);
            let outcome = self.attempt_batch(stage, &mut batch);
            let mut again = Block::new();
            for (index, envelope) in batch.drain(..).enumerate() {
                let result = match (&outcome, self.scratch.notebooks[index].failure.take()) {
                    (Err(failed), _) => Err(failed.clone()),
                    (Ok(()), Some(failure)) => Err(Failed::Said(failure)),
                    (Ok(()), None) => Ok(()),
                };
                again.extend(self.settle(stage, envelope, index, result));
            }
            self.scratch.batch = batch;
            // Those to be tried again in place come first in the next round of this stage.
            stage.meters.hot.started.subtract(again.len() as u64);
            stage.queue.stash(&mut again);
            if !fast {
                self.pass_on_now(stage);
            }
        }
    }

    /// The next envelope: from the hand, the side list, the ring. Expired ones end here.
    #[inline]
    fn take(&mut self, stage: &Arc<Stage<P>>) -> Option<Envelope<P>> {
        loop {
            let envelope = match self.scratch.hand.pop_front() {
                Some(envelope) => envelope,
                None if self.only_hand => return None,
                None => match stage.queue.pop()? {
                    Slot::One(envelope) => {
                        stage.after_pop(self.engine);
                        envelope
                    }
                    Slot::Block(block) => {
                        stage.after_pop(self.engine);
                        let empty = std::mem::replace(&mut self.scratch.hand, block);
                        self.scratch.spare.push(empty);
                        continue;
                    }
                },
            };
            self.taken += 1;
            stage.meters.hot.started.add_as(stage.is_alone(), 1);
            if let Some(extras) = envelope.extras()
                && let Some(deadline) = extras.expires_at
                && deadline <= self.engine.clock().monotonic_ns()
            {
                stage.meters.expired.add(1);
                stage.meters.hot.left.add_as(stage.is_alone(), 1);
                self.engine.settle(self.desk, envelope, Settled::Expired);
                continue;
            }
            return Some(envelope);
        }
    }

    /// Rule (a): before a call that may take long, someone else is called for what would wait.
    #[cold]
    fn call_for_help(&mut self, stage: &Arc<Stage<P>>) {
        if !stage.is_alone() {
            stage.look(self.desk.scheduler);
        }
        if !stage.meters.is_unmeasured() {
            self.desk.scheduler.wake_other(self.desk.worker);
        }
    }

    /// Calls the handler once.
    #[inline]
    fn attempt(&mut self, stage: &Arc<Stage<P>>, envelope: &mut Envelope<P>) -> Outcome {
        let Some(Kind::Each(handle)) = stage.handler.get().map(|handler| &handler.0) else {
            return Ok(());
        };
        let timed = envelope.is_metered() || stage.meters.is_unmeasured();
        let start = if timed { self.start_timing(stage, envelope) } else { 0 };
        let mut context = Context {
            envelope,
            notebook: &mut self.scratch.notebooks[0],
            stage: &stage.name,
            emits_max: stage.settings.emits,
        };
        let outcome = guarded(|| handle(&mut context));
        if timed {
            self.end_timing(stage, envelope, start, 1);
        }
        flatten(outcome)
    }

    fn attempt_batch(&mut self, stage: &Arc<Stage<P>>, batch: &mut [Envelope<P>]) -> Outcome {
        let Some(Kind::Batch(handle)) = stage.handler.get().map(|handler| &handler.0) else {
            return Ok(());
        };
        let mut start = 0;
        for envelope in batch.iter_mut().filter(|envelope| envelope.is_metered()) {
            start = self.start_timing(stage, envelope);
        }
        let timed = start != 0 || stage.meters.is_unmeasured();
        if timed && start == 0 {
            start = self.engine.clock().monotonic_ns();
        }
        let mut whole = Batch {
            envelopes: &mut *batch,
            notebooks: &mut self.scratch.notebooks,
            stage: &stage.name,
            emits_max: stage.settings.emits,
        };
        let outcome = guarded(|| handle(&mut whole));
        if timed {
            let count = batch.len() as u64;
            for envelope in batch.iter_mut() {
                self.end_timing(stage, envelope, start, count);
            }
        }
        flatten(outcome)
    }

    #[cold]
    fn start_timing(&self, stage: &Stage<P>, envelope: &Envelope<P>) -> u64 {
        let now = self.engine.clock().monotonic_ns();
        if envelope.stamp() != 0 {
            stage.meters.wait.record(now.saturating_sub(envelope.stamp()));
            stage.meters.hot.last_entered.set(envelope.stamp());
        }
        now
    }

    #[cold]
    fn end_timing(&self, stage: &Stage<P>, envelope: &mut Envelope<P>, start: u64, shared: u64) {
        let now = self.engine.clock().monotonic_ns();
        let service = now.saturating_sub(start) / shared;
        stage.meters.learn(service);
        if envelope.is_metered() {
            stage.meters.service.record(service);
            envelope.set_stamp(now);
        }
    }

    /// The one settlement: what the attempt changed takes effect wholly or not at all. Returns the
    /// envelope when it must be tried again at once.
    #[inline]
    fn settle(
        &mut self,
        stage: &Arc<Stage<P>>,
        mut envelope: Envelope<P>,
        notebook: usize,
        outcome: Outcome,
    ) -> Option<Envelope<P>> {
        if let Err(failed) = outcome {
            return self.settle_failure(stage, envelope, notebook, failed);
        }
        let alone = stage.is_alone();
        stage.meters.hot.done.add_as(alone, 1);
        stage.meters.hot.left.add_as(alone, 1);
        let page = &mut self.scratch.notebooks[notebook];
        if !(page.changes.is_empty() && page.emits.is_empty() && page.headers.is_none()) {
            self.apply(&mut envelope, notebook);
        }
        if envelope.attempts() != 0 {
            envelope.set_attempts(0);
        }
        match envelope.slip_mut().ratchet() {
            Some(next) => self.send(stage, envelope, next),
            None => self.end(stage, envelope),
        }
        None
    }

    #[inline]
    fn end(&mut self, stage: &Stage<P>, mut envelope: Envelope<P>) {
        let cause = envelope.extras_if_any().and_then(|extras| extras.cause.take());
        let end = cause.map_or(Settled::Completed, |cause| {
            stage.meters.dead.add(1);
            Settled::Dead(*cause)
        });
        self.engine.settle(self.desk, envelope, end);
    }

    /// Applies what a successful attempt wrote down.
    #[cold]
    fn apply(&mut self, envelope: &mut Envelope<P>, notebook: usize) {
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
        let mut emits = std::mem::take(&mut self.scratch.notebooks[notebook].emits);
        for (ordinal, mut emit) in emits.drain(..).enumerate() {
            let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
            self.engine.accept_emit(self.desk, envelope, ordinal, &mut emit);
            self.send_emit(emit);
        }
        self.scratch.notebooks[notebook].emits = emits;
    }

    fn send_emit(&mut self, mut emit: Envelope<P>) {
        let next =
            if emit.slip().is_at_stage() { emit.current() } else { emit.slip_mut().ratchet() };
        match next {
            None => self.engine.bury(self.desk, emit, Cause::NoRoute, ""),
            Some(next) => match self.map.get(next).cloned() {
                None => self.engine.bury(self.desk, emit, Cause::NoRoute, ""),
                Some(target) => self.scratch.collect(&target, emit),
            },
        }
    }

    /// Sends an envelope to its next stage, whose route is current already.
    #[inline]
    fn send(&mut self, stage: &Arc<Stage<P>>, mut envelope: Envelope<P>, next: Route) {
        let hops = envelope.hops() + 1;
        envelope.set_hops(hops);
        if hops > self.engine.hop_limit() {
            return self.give_up(stage, envelope, Cause::HopLimit);
        }
        match self.map.get(next) {
            Some(target) => self.scratch.collect(target, envelope),
            None => self.give_up(stage, envelope, Cause::NoRoute),
        }
    }

    #[cold]
    fn settle_failure(
        &mut self,
        stage: &Arc<Stage<P>>,
        mut envelope: Envelope<P>,
        notebook: usize,
        failed: Failed,
    ) -> Option<Envelope<P>> {
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
            self.give_up(stage, envelope, failed.into_cause());
            return None;
        }
        meters.retried.add(1);
        if matches!(stage.settings.retry, Retry::InPlace) {
            return Some(envelope);
        }
        match stage.delay(self.engine, envelope) {
            Ok(()) => {
                meters.hot.left.add_as(stage.is_alone(), 1);
                None
            }
            Err(envelope) => Some(envelope),
        }
    }

    /// Gives an envelope up: to the stage's dead-letter stage, or among the bus's dead letters.
    #[cold]
    fn give_up(&mut self, stage: &Arc<Stage<P>>, mut envelope: Envelope<P>, cause: Cause) {
        let target = stage
            .dead_letter
            .filter(|_| cause != Cause::HopLimit && envelope.hops() < self.engine.hop_limit())
            .and_then(|route| Some((route, self.map.get(route)?.clone())));
        let Some((route, target)) = target else {
            stage.meters.dead.add(1);
            return self.engine.bury(self.desk, envelope, cause, &stage.name);
        };
        envelope.extras_mut().cause = Some(Box::new(cause));
        envelope.set_attempts(0);
        envelope.set_hops(envelope.hops() + 1);
        let slip = envelope.slip_mut();
        slip.clear();
        if slip.push(route).is_ok() {
            slip.ratchet();
        }
        self.scratch.collect(&target, envelope);
    }

    /// Passes on all that was collected, without running on.
    fn pass_on_now(&mut self, stage: &Arc<Stage<P>>) {
        while let Some((target, block)) = self.scratch.out.pop() {
            self.hop(stage, &target, block);
        }
    }

    /// At the end of a stage's part: hops all but one target, and tries to run on with that one.
    fn pass_on(&mut self, stage: &Arc<Stage<P>>) -> Option<Arc<Stage<P>>> {
        while let Some((target, block)) = self.scratch.out.pop() {
            let last = self.scratch.out.is_empty();
            if last && self.hold.is_none() && block.len() <= self.budget && self.take_idle(&target)
            {
                let empty = std::mem::replace(&mut self.scratch.hand, block);
                self.scratch.spare.push(empty);
                return Some(target);
            }
            self.hop(stage, &target, block);
        }
        None
    }

    fn hop(&mut self, stage: &Arc<Stage<P>>, target: &Arc<Stage<P>>, mut block: Block<P>) {
        let (engine, hold) = (self.engine, &mut self.hold);
        target.enter_hops(engine, self.desk, &mut block, &mut || {
            // Our own clone keeps the permit here until what is in hand has been put back.
            Some(Arc::clone(hold.get_or_insert_with(|| stage.hold(engine))))
        });
        self.scratch.spare.push(block);
    }

    /// Takes the permit of a stage that is idle and empty. When it turns out not to be empty, the
    /// permit becomes a ticket.
    fn take_idle(&mut self, target: &Arc<Stage<P>>) -> bool {
        let attendance = &target.attendance;
        if target.handler.get().is_none()
            || attendance.has(PAUSED | CLOSED | HOPS_WAIT)
            || !target.queue.is_empty()
            || !attendance.try_take()
        {
            return false;
        }
        if target.queue.is_empty() && !attendance.has(PAUSED | CLOSED | HOPS_WAIT) {
            return true;
        }
        attendance.mark_attended();
        let ticket = Ticket::new(Arc::clone(target) as Arc<dyn Task>);
        self.desk.scheduler.post(ticket);
        false
    }
}

/// Why an attempt failed.
#[derive(Clone)]
enum Failed {
    Said(Failure),
    Panicked(String),
}

type Outcome = Result<(), Failed>;

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

#[inline]
fn flatten(outcome: Result<Result<(), Failure>, String>) -> Outcome {
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(Failed::Said(failure)),
        Err(words) => Err(Failed::Panicked(words)),
    }
}
