//! One turn of a stage: take up to a batch, handle, settle, pass on.
//!
//! 1. Envelopes are taken one at a time. Those that come in a block stay in hand while the stage
//!    has one permit and its handler is known to be fast; otherwise the rest goes to the side list
//!    before each call, so that nobody waits behind a stuck handler who could be served elsewhere.
//! 2. What goes on to a next stage is collected per stage and passed on at the end of the turn,
//!    or before the next call where the handler is slow.
//! 3. **Run-on**: at the end of the turn, when the next stage's permit is free and nothing waits
//!    there, this stage's permit goes back to the queue as a ticket and the same worker runs the
//!    next stage on what it has in hand, and so on; the permit of a stage that was run on goes
//!    through the release function. At most `batch` handler calls run on per turn.
//! 4. A hop without room takes this stage's permit along into the line ([`super::hop`]).
//!
//! What an attempt means is decided in [`super::settle`].

use std::sync::Arc;

use super::Stage;
use super::context::Notebook;
use super::engine::{Engine, Scratch};
use super::handler::{Batched, Each, Handler, Kind, guarded};
use super::queue::{Block, Slot};
use super::room::Hold;
use super::settle::{Failed, Verdict};
use crate::coord::attendance::{CLOSED, HOPS_WAIT, NO_CONSUMER, PAUSED, SLOW};
use crate::coord::ticket::{Desk, Task, Ticket, Turned};
use crate::envelope::{Envelope, Route, Settled};

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
        turn.begin_outside(stage);
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
    end_outside(stage, desk);
}

/// The permit of a thread that is no worker is given up: see [`Turn::begin_outside`].
fn end_outside<P: Send + 'static>(stage: &Stage<P>, desk: &Desk<'_>) {
    if !desk.is_worker() {
        stage.hold_ended();
    }
}

/// Whether the permit of the stage the turn began with is still in our hand.
enum End {
    Held(usize),
    Given(usize),
}

pub(super) struct Turn<'a, P> {
    pub(super) engine: &'a dyn Engine<P>,
    pub(super) desk: &'a Desk<'a>,
    pub(super) scratch: &'a mut Scratch<P>,
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
        engine.refresh(&mut scratch.map);
        Self { engine, desk, scratch, budget, only_hand: false, taken: 0, hold: None }
    }

    /// The stage of the ticket, then those that are run on.
    fn run(&mut self, first: &Arc<Stage<P>>) -> End {
        self.drain(first);
        self.budget = first.settings.batch;
        self.only_hand = true;
        let mut current = Arc::clone(first);
        let mut first_is_held = true;
        while let Some(next) = self.pass_on(&current) {
            self.leave(&current, first_is_held);
            first_is_held = false;
            current = next;
            self.begin_outside(&current);
            self.drain(&current);
        }
        let held = self.hold.take().is_none();
        if !held {
            if !current.is_alone() {
                // Our permit waits with hops: another one serves what is left here.
                current.look(self.desk.scheduler);
            }
            end_outside(&current, self.desk);
        }
        if first_is_held && held {
            return End::Held(self.taken);
        }
        if held {
            give_back(&current, self.desk);
        }
        End::Given(self.taken)
    }

    /// A permit of a stage with several was taken by a thread that is no worker: nobody watches
    /// over that, so while it is out publishers ask for another permit, and so do we for what came
    /// before they knew.
    fn begin_outside(&self, stage: &Arc<Stage<P>>) {
        if !self.desk.is_worker() && !stage.is_alone() {
            stage.count_held();
            stage.look(self.desk.scheduler);
        }
    }

    /// Gives up the permit of a stage before another is run on: that of the stage the turn began
    /// with stays a ticket of this worker, one that was run on goes back.
    fn leave(&mut self, stage: &Arc<Stage<P>>, is_first: bool) {
        if is_first && self.desk.is_worker() {
            stage.attendance.mark_attended();
            let ticket = Ticket::new(Arc::clone(stage) as Arc<dyn Task>);
            self.desk.scheduler.requeue(self.desk.worker, ticket);
        } else {
            give_back(stage, self.desk);
        }
    }

    /// Takes envelopes of one stage, from the hand first, and handles them.
    fn drain(&mut self, stage: &Arc<Stage<P>>) {
        let handler = stage.handler.load();
        if let Some(handler) = &*handler {
            self.handle(stage, handler);
        }
        // Of a stage that was closed meanwhile it may be the last: foreign code to drop.
        if guarded(|| drop(handler)).is_err() {
            self.engine.count_panic();
        }
        let mut hand = std::mem::take(&mut self.scratch.hand);
        stage.queue.stash(&mut hand);
        self.scratch.hand = hand;
        if stage.attendance.has(CLOSED) {
            // The closer may have looked before we put something back.
            stage.settle_closed(self.engine);
        }
    }

    fn handle(&mut self, stage: &Arc<Stage<P>>, handler: &Handler<P>) {
        if !stage.is_alone() {
            let stage = Arc::downgrade(stage);
            self.desk.scheduler.working_on(self.desk.worker, stage);
        }
        let fast = stage.meters.is_fast();
        if !fast && !stage.is_alone() && !stage.attendance.has(SLOW) {
            stage.attendance.set(SLOW);
        }
        match &handler.0 {
            Kind::Each(handle) => self.drain_each(stage, handle, fast),
            Kind::Batch(handle) => self.drain_batch(stage, handle, fast),
        }
        if stage.meters.is_fast() && !stage.is_alone() && stage.attendance.has(SLOW) {
            stage.note_fast();
        }
    }

    fn drain_each(&mut self, stage: &Arc<Stage<P>>, handle: &Each<P>, fast: bool) {
        let keeps_block = fast && stage.is_alone();
        while self.budget > 0 && self.hold.is_none() && !stage.attendance.has(PAUSED) {
            if let Some(envelope) = self.scratch.hand.pop_front() {
                if !keeps_block {
                    stage.queue.stash(&mut self.scratch.hand);
                }
                self.one(stage, handle, envelope, fast);
                continue;
            }
            if self.only_hand {
                return;
            }
            match stage.queue.pop() {
                None => return,
                Some(Slot::One(envelope)) => {
                    stage.after_pop(self.engine);
                    self.one(stage, handle, envelope, fast);
                }
                Some(Slot::Block(block)) => self.open(stage, block),
            }
        }
    }

    /// Takes a block in hand.
    fn open(&mut self, stage: &Arc<Stage<P>>, block: Block<P>) {
        stage.after_pop(self.engine);
        let empty = std::mem::replace(&mut self.scratch.hand, block);
        self.scratch.spare.push(empty);
    }

    /// Handles one envelope, up to its settlement.
    #[inline(never)]
    fn one(
        &mut self,
        stage: &Arc<Stage<P>>,
        handle: &Each<P>,
        mut envelope: Envelope<P>,
        fast: bool,
    ) {
        if !fast {
            self.pass_on_now(stage);
            if stage.attendance.has(PAUSED | CLOSED) {
                self.budget = 0;
                return self.scratch.hand.push_front(envelope);
            }
            if self.hold.is_some() {
                // The permit went with a hop that waits.
                return self.scratch.hand.push_front(envelope);
            }
            self.call_for_help(stage);
        }
        self.begin(stage);
        if self.is_expired(&envelope) {
            return self.expire(stage, envelope);
        }
        loop {
            self.budget -= 1;
            let outcome = self.attempt(stage, handle, &mut envelope);
            if envelope.is_durable() {
                match self.conclude_durable(stage, envelope, 0, outcome) {
                    Some(again) if self.budget > 0 => envelope = again,
                    Some(again) => return self.put_back(stage, again),
                    None => return,
                }
                continue;
            }
            match self.conclude(stage, &mut envelope, 0, outcome) {
                Verdict::Retry if self.budget > 0 => {}
                Verdict::Retry => return self.put_back(stage, envelope),
                // Not moved any more: dropped where it is.
                Verdict::End if envelope.is_plain() => return self.engine.settle_plain(self.desk),
                verdict => return self.carry_out(stage, envelope, verdict),
            }
        }
    }

    /// Counts an envelope as taken up.
    #[inline]
    fn begin(&mut self, stage: &Stage<P>) {
        self.taken += 1;
        stage.meters.hot.started.add_as(stage.is_alone(), 1);
    }

    #[inline]
    fn is_expired(&self, envelope: &Envelope<P>) -> bool {
        let deadline = envelope.extras().and_then(|extras| extras.expires_at);
        deadline.is_some_and(|deadline| deadline <= self.engine.clock().monotonic_ns())
    }

    #[cold]
    fn expire(&mut self, stage: &Stage<P>, envelope: Envelope<P>) {
        self.budget -= 1;
        stage.meters.expired.add(1);
        stage.meters.hot.left.add_as(stage.is_alone(), 1);
        self.engine.settle(self.desk, envelope, Settled::Expired);
    }

    /// Puts an envelope that was taken up back to the front of its stage.
    #[cold]
    fn put_back(&mut self, stage: &Stage<P>, envelope: Envelope<P>) {
        stage.meters.hot.started.subtract(1);
        self.scratch.hand.push_front(envelope);
    }

    fn drain_batch(&mut self, stage: &Arc<Stage<P>>, handle: &Batched<P>, fast: bool) {
        while self.budget > 0 && self.hold.is_none() && !stage.attendance.has(PAUSED) {
            let mut batch = self.take_batch(stage);
            let count = batch.len();
            if count == 0 {
                self.scratch.batch = batch;
                return;
            }
            self.budget -= count;
            if !fast {
                self.call_for_help(stage);
            }
            let outcome = self.attempt_batch(stage, handle, &mut batch);
            let mut again = Block::new();
            for (index, mut envelope) in batch.drain(..).enumerate() {
                let result = match (&outcome, self.scratch.notebooks[index].failure.take()) {
                    (Err(failed), _) => Err(failed.clone()),
                    (Ok(()), Some(failure)) => Err(Failed::Said(failure)),
                    (Ok(()), None) => Ok(()),
                };
                if envelope.is_durable() {
                    again.extend(self.conclude_durable(stage, envelope, index, result));
                    continue;
                }
                match self.conclude(stage, &mut envelope, index, result) {
                    Verdict::Retry => again.push_back(envelope),
                    verdict => self.carry_out(stage, envelope, verdict),
                }
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

    /// Up to a batch of envelopes that have not expired.
    fn take_batch(&mut self, stage: &Arc<Stage<P>>) -> Vec<Envelope<P>> {
        let mut batch = std::mem::take(&mut self.scratch.batch);
        while batch.len() < self.budget.min(stage.settings.batch) {
            let envelope = match self.scratch.hand.pop_front() {
                Some(envelope) => envelope,
                None if self.only_hand => break,
                None => match stage.queue.pop() {
                    None => break,
                    Some(Slot::Block(block)) => {
                        self.open(stage, block);
                        continue;
                    }
                    Some(Slot::One(envelope)) => {
                        stage.after_pop(self.engine);
                        envelope
                    }
                },
            };
            self.begin(stage);
            if self.is_expired(&envelope) {
                self.expire(stage, envelope);
            } else {
                batch.push(envelope);
            }
        }
        stage.queue.stash(&mut self.scratch.hand);
        let pages = batch.len().max(self.scratch.notebooks.len());
        self.scratch.notebooks.resize_with(pages, Notebook::new);
        batch
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
        let reopened = if target.attendance.has(CLOSED) { self.find(target.route) } else { None };
        let target = reopened.as_ref().unwrap_or(target);
        let (engine, hold) = (self.engine, &mut self.hold);
        target.enter_hops(engine, self.desk, &mut block, &mut || {
            // Our own clone keeps the permit here until what is in hand has been put back.
            Some(Arc::clone(hold.get_or_insert_with(|| stage.hold(engine))))
        });
        if block.capacity() == 0 {
            // It went into the ring; those that come out elsewhere are given to all.
            block = engine.empty_block();
        }
        self.scratch.spare.push(block);
    }

    /// The stage behind a route as of now: the turn's own view may be older than the stage.
    #[cold]
    pub(super) fn find(&mut self, route: Route) -> Option<Arc<Stage<P>>> {
        self.engine.refresh(&mut self.scratch.map);
        self.scratch.map.get(route).cloned()
    }

    /// Takes the permit of a stage that is idle and empty. When it turns out not to be empty, the
    /// permit becomes a ticket.
    fn take_idle(&mut self, target: &Arc<Stage<P>>) -> bool {
        let attendance = &target.attendance;
        if attendance.has(PAUSED | CLOSED | HOPS_WAIT | NO_CONSUMER)
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
