//! Tickets: a permit in a run queue, "drain this stage". The pool knows only this much of a stage.

use std::fmt;
use std::sync::{Arc, Weak};

use super::timers::TimerId;

/// What a worker can do with a stage whose permit it holds.
pub trait Task: Send + Sync + 'static {
    /// Drains up to one batch. The ticket's permit is held on entry; it comes back in the answer,
    /// or has been given away.
    fn turn(self: Arc<Self>, ticket: Ticket, desk: &Desk<'_>) -> Turned;
    /// The release function; `Some` when work was found and a permit taken again.
    fn release(self: Arc<Self>, ticket: Ticket) -> Option<Ticket>;
    /// A permit that waited with hops is about to be queued again.
    fn hold_ended(&self) {}
    /// Whether it has several permits.
    fn is_shared(&self) -> bool;
    /// The number of the worker that should run it by preference (modulo the pool's size).
    fn home(&self) -> usize;
    /// A worker has been inside one turn for long: let others in, if permits are left.
    fn rescue(self: Arc<Self>, scheduler: &dyn Scheduler);
}

/// A held permit on its way through the run queues.
pub struct Ticket(Arc<dyn Task>);

impl Ticket {
    /// The ticket of a permit of `task` that the caller holds.
    pub fn new(task: Arc<dyn Task>) -> Self {
        Self(task)
    }

    /// The stage behind it.
    pub fn task(&self) -> &Arc<dyn Task> {
        &self.0
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticket").field(&self.0.home()).finish()
    }
}

/// How a turn ended.
#[derive(Debug)]
pub enum Turned {
    /// The permit is still held: to the back of the queue.
    Keep {
        /// The ticket.
        ticket: Ticket,
        /// Envelopes taken up; zero when nothing was there.
        taken: usize,
    },
    /// The permit must go through the release function.
    Release {
        /// The ticket.
        ticket: Ticket,
        /// Envelopes taken up.
        taken: usize,
    },
    /// The permit was given away: queued already, or held by a hop that waits for room.
    Gone {
        /// Envelopes taken up.
        taken: usize,
    },
}

/// Where tickets and timers go: the pool, as stages see it.
pub trait Scheduler: Send + Sync + 'static {
    /// Queues a ticket that is not in any queue, and wakes a worker for it if one is parked.
    fn post(&self, ticket: Ticket);
    /// Queues a ticket behind the other work of `worker` without waking anyone.
    fn requeue(&self, worker: usize, ticket: Ticket);
    /// Wakes one parked worker, if there is one, to look for work in the queues of others.
    fn wake_other(&self, worker: usize);
    /// Gives back places in the run queues that permits of a closed stage no longer need.
    fn unreserve(&self, permits: usize);
    /// Remembers the stage with several permits in whose handler `worker` may get stuck.
    fn working_on(&self, worker: usize, task: Weak<dyn Task>);
    /// Runs `action` on some worker at `deadline` (monotonic nanoseconds) or soon after.
    fn at(&self, deadline: u64, action: Box<dyn FnOnce() + Send>) -> TimerId;
    /// Forgets what is not due yet.
    fn cancel(&self, timer: TimerId);
}

/// What a turn knows of the worker that runs it.
#[derive(Clone, Copy)]
pub struct Desk<'a> {
    /// The worker's number; `usize::MAX` for a thread that is none of them.
    pub worker: usize,
    /// The pool.
    pub scheduler: &'a dyn Scheduler,
}

impl Desk<'_> {
    /// The desk of a thread that is no worker.
    pub fn outside(scheduler: &dyn Scheduler) -> Desk<'_> {
        Desk { worker: usize::MAX, scheduler }
    }

    /// Whether a worker sits here.
    pub fn is_worker(&self) -> bool {
        self.worker != usize::MAX
    }
}

impl fmt::Debug for Desk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("worker", &self.worker).finish_non_exhaustive()
    }
}
