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

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::coord::on_worker::InTurn;
use crate::coord::ticket::{Desk, Task, Ticket, Turned};
use crate::coord::timers::NEVER;
use crate::sync::{Ordering, SMALL, lock, pause_point};

/// How long the sentinel waits before it looks for a worker that stands still.
pub const SENTINEL_NS: u64 = 10_000_000;

/// Steps between two readings of the clock by a worker that may have to look after others.
const LOOK_EVERY: u32 = 16;

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
    /// Steps taken, wrapping.
    steps: u32,
    /// When it looks after the others next, in monotonic nanoseconds.
    next_look: u64,
    /// The turn counters as the sentinel saw them last.
    seen: Vec<u64>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Self {
        let seen = vec![0; shared.seats.len()];
        Self { shared, index, is_sentinel: false, steps: 0, next_look: 0, seen }
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
        self.steps = self.steps.wrapping_add(1);
        if SMALL || self.shared.seats.len() == 1 || !self.steps.is_multiple_of(LOOK_EVERY) {
            return;
        }
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
    fn run_due(&self) {
        if self.shared.timers.next() == NEVER {
            return;
        }
        let now = self.shared.clock.monotonic_ns();
        let turns = &self.shared.seats[self.index].turns;
        while let Some(action) = self.shared.timers.pop_due(now) {
            // Like a turn: it may call foreign code and get stuck there.
            // ORDERING: SeqCst on both, pairs with `Seat::is_in_turn`.
            turns.fetch_add(1, Ordering::SeqCst);
            let inside = InTurn::begin();
            action();
            drop(inside);
            turns.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn run(&mut self, ticket: Ticket) -> Step {
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
                let task = Arc::clone(ticket.task());
                if let Some(ticket) = task.release(ticket) {
                    shared.push(self.index, ticket);
                }
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
        self.keep_watched(others_may_help);
        Step::Worked(taken)
    }

    /// When others are parked and what we hold could be served by them, one must keep watch.
    fn keep_watched(&self, others_may_help: bool) {
        if others_may_help || self.tickets() > 1 {
            self.shared.appoint_sentinel();
        }
    }

    /// A ticket from the queue of a worker that is inside a turn.
    fn find_elsewhere(&self) -> Option<Ticket> {
        let seats = &self.shared.seats;
        for distance in 1..seats.len() {
            let victim = &seats[(self.index + distance) % seats.len()];
            if victim.is_in_turn()
                && let Some(ticket) = victim.queue.pop()
            {
                seats[self.index].counts.steals.add_alone(1);
                return Some(ticket);
            }
        }
        None
    }

    /// Gives all permits back and looks once more: work, or park.
    pub fn settle_down(&mut self) -> Rest {
        let shared = Arc::clone(&self.shared);
        let queue = &shared.seats[self.index].queue;
        for _ in 0..queue.len() {
            let Some(ticket) = queue.pop() else {
                break;
            };
            let task = Arc::clone(ticket.task());
            if let Some(ticket) = task.release(ticket) {
                shared.push(self.index, ticket);
            }
        }
        shared.seats[self.index].forget_task();
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
        let shared = &*self.shared;
        if !shared.sleep.try_become_sentinel(self.index) {
            return None;
        }
        // Read only now: whoever sets an earlier timer after this finds the post taken, wakes us.
        let all_parked = shared.sleep.parked() as usize == shared.seats.len();
        let next = shared.timers.next();
        if all_parked && next == NEVER {
            shared.sleep.resign_sentinel();
            return None;
        }
        self.is_sentinel = true;
        let until_next = next.saturating_sub(shared.clock.monotonic_ns());
        let wait = if all_parked { until_next } else { until_next.min(SENTINEL_NS) };
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
            self.look_after_others();
            if self.tickets() > 0 {
                // A sentinel that takes work appoints the next one.
                self.shared.appoint_sentinel();
            }
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
            let task: Option<Arc<dyn Task>> = lock(&seat.working_on).clone();
            if let Some(task) = task {
                task.rescue(&*shared);
            }
            while let Some(ticket) = seat.queue.pop() {
                seat_steal(&shared, self.index, ticket);
            }
        }
    }

    /// Lets go of all tickets: the pool has stopped.
    pub fn leave(&mut self) {
        while self.shared.seats[self.index].queue.pop().is_some() {}
    }

    /// Parks as told by [`settle_down`](Self::settle_down).
    pub fn park(&mut self, timeout: Option<Duration>) {
        let woken = self.shared.sleep.park(self.index, timeout);
        self.rise(woken);
    }
}

fn seat_steal(shared: &Shared, thief: usize, ticket: Ticket) {
    shared.seats[thief].counts.steals.add_alone(1);
    shared.push(thief, ticket);
}
