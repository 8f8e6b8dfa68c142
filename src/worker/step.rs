//! One turn of a worker, as plain functions.
//!
//! 1. [`Worker::step`]: run what is due, take a ticket from the own queue, run its stage's turn,
//!    queue the ticket again. A stage that had nothing keeps its permit with the worker that polls
//!    it: a hot stage is not attended anew per message.
//! 2. [`Worker::steal`]: only when a whole round of the own queue found nothing, and only from a
//!    worker that is inside a turn: what waits behind it may be served here.
//! 3. [`Worker::settle_down`]: before parking all own permits go through the release function;
//!    then announce, look at all queues once more, park (`coord/README.md`, part two).
//! 4. While another worker is awake, one parked worker is the *sentinel*: it waits with a time-out,
//!    and looks whether a turn counter stands still. A sentinel that takes work appoints the next.
//!    When all are parked it dozes until the next timer; whoever works then wakes it.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::coord::on_worker::InTurn;
use crate::coord::ticket::{Desk, Ticket, Turned};
use crate::coord::timers::NEVER;
use crate::sync::{Ordering, SMALL, lock, pause_point};

/// How long the sentinel waits before it looks for a worker that stands still.
pub const SENTINEL_NS: u64 = 10_000_000;

/// Envelopes and empty steps between two readings of the clock by a worker that may have to look
/// after others.
const LOOK_EVERY: usize = 16;

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Took up this many envelopes.
    Worked(usize),
    /// Polled a stage that had nothing.
    Polled,
    /// Had no ticket.
    Empty,
}

/// What a worker shall do after settling down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// There is work after all.
    Work,
    /// Park, for at most this long when given.
    Park(Option<Duration>),
}

/// One worker of a pool.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    index: usize,
    is_sentinel: bool,
    /// Whether it left the sentinel's post by itself, or took what waited behind another worker: it
    /// sees to it that somebody watches before it may get stuck.
    owes_watch: bool,
    /// Envelopes taken up and empty steps since it read the clock for that.
    steps: usize,
    /// When it looks after the others next, in monotonic nanoseconds.
    next_look: u64,
    /// The turn counters as the sentinel saw them last.
    seen: Vec<u64>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Self {
        let seen = vec![0; shared.seats.len()];
        Self { shared, index, is_sentinel: false, owes_watch: false, steps: 0, next_look: 0, seen }
    }

    /// Tickets in the own queue.
    pub fn tickets(&self) -> usize {
        self.shared.seats[self.index].queue.len()
    }

    /// One turn.
    pub fn step(&mut self) -> Step {
        self.look_around();
        self.run_due();
        match self.shared.seats[self.index].queue.pop() {
            Some(ticket) => self.run(ticket),
            None => Step::Empty,
        }
    }

    /// Now and then looks after the others, busy or not: a worker that always finds work neither
    /// steals nor parks, and must not leave what waits behind a stuck one for ever.
    fn look_around(&mut self) {
        self.steps += 1;
        if SMALL || self.shared.seats.len() == 1 || self.steps < LOOK_EVERY {
            return;
        }
        self.steps = 0;
        let now = self.shared.clock.monotonic_ns();
        if now >= self.next_look {
            self.next_look = now + SENTINEL_NS;
            self.look_after_others();
        }
    }

    /// Takes a ticket that waits behind another worker's turn, and runs it.
    pub fn steal(&mut self) -> Step {
        match self.find_elsewhere() {
            Some(ticket) => self.run(ticket),
            None => Step::Empty,
        }
    }

    /// Runs the actions that are due.
    fn run_due(&mut self) {
        if self.shared.timers.next() == NEVER {
            return;
        }
        let now = self.shared.clock.monotonic_ns();
        while let Some(action) = self.shared.timers.pop_due(now) {
            self.as_turn(action);
        }
    }

    /// Does something that may call foreign code and get stuck there, like a turn.
    fn as_turn(&mut self, body: impl FnOnce()) {
        self.hand_over();
        let turns = &self.shared.seats[self.index].turns;
        // ORDERING: SeqCst on both, pairs with `Seat::is_in_turn`.
        turns.fetch_add(1, Ordering::SeqCst);
        let inside = InTurn::begin();
        body();
        drop(inside);
        turns.fetch_add(1, Ordering::SeqCst);
    }

    /// Appoints the next sentinel, if that was left to this worker.
    fn hand_over(&mut self) {
        if std::mem::take(&mut self.owes_watch) {
            self.shared.sleep.appoint_sentinel();
        }
    }

    fn run(&mut self, ticket: Ticket) -> Step {
        self.hand_over();
        let shared = &*self.shared;
        let seat = &shared.seats[self.index];
        // ORDERING: SeqCst, pairs with `Seat::is_in_turn`.
        seat.turns.fetch_add(1, Ordering::SeqCst);
        pause_point();
        let desk = Desk { worker: self.index, scheduler: shared };
        let inside = InTurn::begin();
        let others_may_help = ticket.task().is_shared();
        let turned = Arc::clone(ticket.task()).turn(ticket, &desk);
        let taken = match turned {
            Turned::Keep { ticket, taken } => {
                shared.push(self.index, ticket);
                taken
            }
            Turned::Release { ticket, taken } => {
                release(shared, self.index, ticket);
                taken
            }
            Turned::Gone { taken } => taken,
        };
        drop(inside);
        // ORDERING: SeqCst, as above.
        seat.turns.fetch_add(1, Ordering::SeqCst);
        if taken == 0 {
            return Step::Polled;
        }
        self.steps += taken;
        self.keep_watched(others_may_help);
        Step::Worked(taken)
    }

    /// When others are parked and what we hold could be served by them, one must keep watch.
    fn keep_watched(&self, others_may_help: bool) {
        if others_may_help || self.tickets() > 1 {
            self.shared.appoint_sentinel();
        }
    }

    /// A ticket from the queue of a worker that is inside a turn. Whoever was woken to watch and
    /// found this instead does not watch.
    fn find_elsewhere(&mut self) -> Option<Ticket> {
        let seats = &self.shared.seats;
        for distance in 1..seats.len() {
            let victim = &seats[(self.index + distance) % seats.len()];
            if victim.is_in_turn()
                && let Some(ticket) = victim.queue.pop()
            {
                seats[self.index].counts.steals.add_alone(1);
                self.owes_watch = true;
                return Some(ticket);
            }
        }
        None
    }

    /// Gives all permits back and looks once more: work, or park.
    pub fn settle_down(&mut self) -> Rest {
        let (shared, index) = (Arc::clone(&self.shared), self.index);
        let queue = &shared.seats[index].queue;
        for _ in 0..queue.len() {
            let Some(ticket) = queue.pop() else {
                break;
            };
            // Of a closed stage it may be the last view: foreign code to drop.
            self.as_turn(|| release(&shared, index, ticket));
        }
        if !queue.is_empty() {
            return Rest::Work;
        }
        shared.sleep.announce(self.index); // S1
        if self.has_reason_to_stay() {
            // S2. A waker may have been faster: then its token ends the next park at once.
            shared.sleep.retract(self.index);
            return Rest::Work;
        }
        Rest::Park(self.watch())
    }

    fn has_reason_to_stay(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        if shared.is_stopping() || !shared.seats[self.index].queue.is_empty() {
            return true;
        }
        if let Some(ticket) = self.find_elsewhere() {
            shared.push(self.index, ticket);
            return true;
        }
        let next = shared.timers.next();
        next != NEVER && next <= shared.clock.monotonic_ns()
    }

    /// Takes the sentinel's post if it is vacant and needed; how long to wait then.
    fn watch(&mut self) -> Option<Duration> {
        self.owes_watch = false;
        let (sleep, workers) = (&self.shared.sleep, self.shared.seats.len());
        while sleep.try_become_sentinel(self.index) {
            let wait = self.time_to_watch();
            pause_point();
            if wait.is_some() {
                self.is_sentinel = true;
                return wait;
            }
            sleep.resign_sentinel();
            // Who was woken since our reading may have found the post taken.
            if sleep.are_parked(workers) {
                break;
            }
        }
        None
    }

    /// How long the sentinel waits; `None` when there is nothing to wait for.
    fn time_to_watch(&self) -> Option<Duration> {
        let shared = &*self.shared;
        // Read only now: whoever sets an earlier timer after this finds the post taken, wakes us.
        let all_parked = shared.sleep.parked() as usize == shared.seats.len();
        let next = shared.timers.next();
        if all_parked && next == NEVER {
            return None;
        }
        let until_next = next.saturating_sub(shared.clock.monotonic_ns());
        // While somebody works it looks often.
        let dozes = all_parked && shared.sleep.doze(self.index, shared.seats.len());
        let wait = if dozes { until_next } else { until_next.min(SENTINEL_NS) };
        Some(Duration::from_nanos(wait.max(1)))
    }

    /// After a park: gives the sentinel's post up, and looks after workers that stand still.
    pub fn rise(&mut self, woken: bool) {
        let counts = &self.shared.seats[self.index].counts;
        counts.parks.add_alone(1);
        if woken {
            counts.wakes.add_alone(1);
        }
        if !std::mem::take(&mut self.is_sentinel) {
            return;
        }
        self.shared.sleep.resign_sentinel();
        if woken {
            // It may have work now: the next one keeps watch.
            self.shared.sleep.wake(usize::MAX);
        } else {
            // A sentinel that takes work appoints the next one, wherever it finds it.
            self.owes_watch = true;
            self.look_after_others();
        }
    }

    /// Whoever is inside the same turn as last time is stuck: let others into its stage, and take
    /// what waits behind it.
    fn look_after_others(&mut self) {
        let shared = Arc::clone(&self.shared);
        for (index, seat) in shared.seats.iter().enumerate() {
            // ORDERING: Relaxed: a heartbeat; a stale value costs one more round.
            let turns = seat.turns.load(Ordering::Relaxed);
            let stands_still = turns & 1 == 1 && self.seen[index] == turns;
            self.seen[index] = turns;
            if index == self.index || !stands_still {
                continue;
            }
            let task = lock(&seat.working_on).clone();
            if let Some(task) = task.and_then(|task| task.upgrade()) {
                // Dropped inside too: it may be the last view of a closed stage.
                self.as_turn(|| task.rescue(&*shared));
            }
            while let Some(ticket) = seat.queue.pop() {
                seat_steal(&shared, self.index, ticket);
                self.owes_watch = true;
            }
        }
    }

    /// Lets go of all tickets: the pool has stopped.
    pub fn leave(&mut self) {
        let shared = Arc::clone(&self.shared);
        let index = self.index;
        self.as_turn(|| while shared.seats[index].queue.pop().is_some() {});
    }

    /// Parks as told by [`settle_down`](Self::settle_down).
    pub fn park(&mut self, timeout: Option<Duration>) {
        let woken = self.shared.sleep.park(self.index, timeout);
        self.rise(woken);
    }
}

/// Puts a ticket through the release function; it comes back into the queue if there is work.
fn release(shared: &Shared, worker: usize, ticket: Ticket) {
    let task = Arc::clone(ticket.task());
    if let Some(ticket) = task.release(ticket) {
        shared.push(worker, ticket);
    }
}

fn seat_steal(shared: &Shared, thief: usize, ticket: Ticket) {
    shared.seats[thief].counts.steals.add_alone(1);
    shared.push(thief, ticket);
}
