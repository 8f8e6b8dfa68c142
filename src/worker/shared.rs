//! What the workers of one pool share: run queues, sleepers, timers. Implements [`Scheduler`].
//!
//! Bounds: a run queue holds as many tickets as the pool allows permits in all, so a push into one
//! cannot fail.

use std::fmt;
use std::sync::{Arc, Weak};

use super::settings::{PoolError, PoolSettings};
use crate::clock::Clock;
use crate::coord::sleep::Sleep;
use crate::coord::ticket::{Scheduler, Task, Ticket};
use crate::coord::timers::{TimerId, Timers};
use crate::metrics::WorkerSnapshot;
use crate::metrics::counter::Counter;
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, CachePadded, Mutex, Ordering, Ring, lock, pause_point,
};

/// One worker's place.
pub(crate) struct Seat {
    pub(crate) queue: Ring<Ticket>,
    /// Rises by one when a turn begins and when it ends: odd inside a turn. Written by its worker,
    /// read by others to see whether it stands still.
    pub(crate) turns: CachePadded<AtomicU64>,
    /// The stage with several permits the worker went into last.
    pub(crate) working_on: Mutex<Option<Weak<dyn Task>>>,
    pub(crate) counts: SeatCounts,
}

#[derive(Debug, Default)]
pub(crate) struct SeatCounts {
    pub(crate) parks: Counter,
    pub(crate) wakes: Counter,
    pub(crate) steals: Counter,
}

impl Seat {
    /// Rises with every turn that begins or ends.
    pub(crate) fn turns_begun(&self) -> u64 {
        // ORDERING: Relaxed: a heartbeat; a stale value costs one more look.
        self.turns.load(Ordering::Relaxed)
    }

    /// Whether its worker is inside a turn.
    pub(crate) fn is_in_turn(&self) -> bool {
        // ORDERING: SeqCst: read after an announcement; a worker that is not inside a turn looks
        // at its own queue before it parks.
        self.turns.load(Ordering::SeqCst) & 1 == 1
    }
}

/// What the workers of one pool share.
pub struct Shared {
    pub(crate) seats: Box<[Seat]>,
    pub(crate) sleep: Sleep,
    pub(crate) timers: Timers,
    pub(crate) clock: Arc<dyn Clock>,
    /// Permits of all stages; at most `limit`.
    reserved: AtomicUsize,
    limit: usize,
    has_threads: bool,
    /// Set once by whoever stops the pool.
    stopping: AtomicBool,
}

impl Shared {
    pub(crate) fn new(settings: &PoolSettings, clock: Arc<dyn Clock>) -> Self {
        let seats = settings.workers.max(1);
        let seat = || Seat {
            queue: Ring::new(settings.tickets),
            turns: CachePadded::new(AtomicU64::new(0)),
            working_on: Mutex::new(None),
            counts: SeatCounts::default(),
        };
        Self {
            seats: (0..seats).map(|_| seat()).collect(),
            sleep: Sleep::new(seats),
            timers: Timers::new(),
            clock,
            reserved: AtomicUsize::new(0),
            limit: settings.tickets,
            has_threads: settings.workers > 0,
            stopping: AtomicBool::new(false),
        }
    }

    /// Reserves tickets for a stage.
    ///
    /// # Errors
    /// [`PoolError::TooManyPermits`] beyond the pool's limit.
    pub(crate) fn reserve(&self, permits: usize) -> Result<(), PoolError> {
        // ORDERING: Relaxed: the number only bounds itself.
        self.reserved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(permits).filter(|total| *total <= self.limit)
            })
            .map(|_| ())
            .map_err(|used| PoolError::TooManyPermits {
                asked: permits,
                left: self.limit - used,
                limit: self.limit,
            })
    }

    /// Whether workers run by themselves; otherwise the embedder calls `turn`.
    pub(crate) fn has_threads(&self) -> bool {
        self.has_threads
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // ORDERING: SeqCst: read after an announcement, so that a stop is not slept through.
        self.stopping.load(Ordering::SeqCst)
    }

    /// Asks all workers to leave.
    pub(crate) fn stop(&self) {
        // ORDERING: SeqCst, pairs with `is_stopping`; the wake-ups come after it.
        self.stopping.store(true, Ordering::SeqCst);
        while self.sleep.wake(usize::MAX).is_some() {}
    }

    /// Lets go of all stages once nobody works: a ticket's stage holds its bus, which holds us.
    pub(crate) fn forget_tickets(&self) {
        for seat in &self.seats {
            while seat.queue.pop().is_some() {}
        }
    }

    /// A reading of each worker's meters.
    pub(crate) fn snapshot(&self) -> Vec<WorkerSnapshot> {
        let read = |seat: &Seat| WorkerSnapshot {
            // ORDERING: Relaxed: a reading for reports.
            turns: seat.turns.load(Ordering::Relaxed).div_ceil(2),
            parks: seat.counts.parks.get(),
            wakes: seat.counts.wakes.get(),
            steals: seat.counts.steals.get(),
        };
        self.seats.iter().map(read).collect()
    }

    /// Sees to it that one parked worker, if there is any, watches over those that work.
    #[inline]
    pub(crate) fn appoint_sentinel(&self) {
        if self.sleep.any_parked() {
            self.sleep.appoint_sentinel();
        }
    }

    pub(crate) fn push(&self, worker: usize, ticket: Ticket) {
        let fits = self.seats[worker].queue.push(ticket).is_ok();
        assert!(fits, "a run queue holds all tickets of its pool");
    }
}

impl Scheduler for Shared {
    fn post(&self, ticket: Ticket) {
        let home = ticket.task().home() % self.seats.len();
        pause_point();
        self.push(home, ticket);
        pause_point();
        self.sleep.wake(home);
    }

    fn requeue(&self, worker: usize, ticket: Ticket) {
        if worker < self.seats.len() {
            self.push(worker, ticket);
            // The caller goes on inside its turn, with this ticket behind it.
            self.appoint_sentinel();
        } else {
            self.post(ticket);
        }
    }

    fn wake_other(&self, worker: usize) {
        let waits = self.seats.get(worker).is_some_and(|seat| !seat.queue.is_empty());
        if waits && self.sleep.any_parked() {
            self.sleep.wake(usize::MAX);
        }
    }

    fn unreserve(&self, permits: usize) {
        // ORDERING: Relaxed, as in `reserve`.
        self.reserved.fetch_sub(permits, Ordering::Relaxed);
    }

    fn working_on(&self, worker: usize, task: Weak<dyn Task>) {
        if let Some(seat) = self.seats.get(worker) {
            // No more than a view: a stage that is closed ends without us.
            *lock(&seat.working_on) = Some(task);
        }
    }

    fn at(&self, deadline: u64, action: Box<dyn FnOnce() + Send>) -> TimerId {
        let timer = self.timers.add(deadline, action);
        if self.timers.next() == deadline {
            // Whoever waits for a later deadline must look again.
            self.sleep.wake(self.sleep.sentinel().unwrap_or(usize::MAX));
        }
        timer
    }

    fn cancel(&self, timer: TimerId) {
        self.timers.cancel(timer);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("workers", &self.seats.len()).finish_non_exhaustive()
    }
}
