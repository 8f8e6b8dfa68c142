//! Which workers are parked, and whom to wake. Protocol and argument: `README.md`, part two.
//!
//! Posting: queue the ticket, fence, read the mask. Parking: set the bit, fence, look at the
//! queues, park. One of the two sees the other. Whoever clears a bit wakes that worker, so one
//! ticket wakes one worker.

use std::time::Duration;

use super::parker::Parker;
use crate::sync::{AtomicU32, AtomicU64, CachePadded, Ordering, fence};

/// The most workers of one pool: they share one word of bits.
pub const WORKERS_MAX: usize = 64;

/// No worker is the sentinel.
const NOBODY: u32 = u32::MAX;
/// Beside the sentinel's number: it sleeps until the next timer, as nobody works.
const DOZES: u32 = 1 << 31;

/// The parked workers of one pool.
#[derive(Debug)]
pub struct Sleep {
    /// One bit per parked worker: set by the worker itself, cleared by it or by its waker.
    parked: CachePadded<AtomicU64>,
    /// The parked worker that waits with a time-out; written by that worker alone, apart from
    /// `NOBODY`, which it leaves behind.
    sentinel: CachePadded<AtomicU32>,
    parkers: Box<[CachePadded<Parker>]>,
}

impl Sleep {
    /// Places for `workers` workers, none parked.
    pub fn new(workers: usize) -> Self {
        assert!(workers <= WORKERS_MAX, "a pool has at most {WORKERS_MAX} workers");
        Self {
            parked: CachePadded::new(AtomicU64::new(0)),
            sentinel: CachePadded::new(AtomicU32::new(NOBODY)),
            parkers: (0..workers).map(|_| CachePadded::new(Parker::new())).collect(),
        }
    }

    /// S1: says that `worker` is about to park. It must look at all queues after this.
    pub fn announce(&self, worker: usize) {
        // ORDERING: SeqCst and a fence, pairs with the fence in `wake`.
        self.parked.fetch_or(1 << worker, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Takes the announcement back; false when a waker was faster, whose token is then left.
    pub fn retract(&self, worker: usize) -> bool {
        // ORDERING: SeqCst, the same word as above.
        self.parked.fetch_and(!(1 << worker), Ordering::SeqCst) & (1 << worker) != 0
    }

    /// S3: parks until woken or for `timeout`. Returns true when woken by someone.
    pub fn park(&self, worker: usize, timeout: Option<Duration>) -> bool {
        let parker = &self.parkers[worker];
        let woken = parker.park(timeout);
        // Also when woken: the token may be of a waker that found an announcement we took back, and
        // who is awake must not stand among the parked, where the next waker would count on us.
        let was_announced = self.retract(worker);
        if !woken && !was_announced {
            // A waker cleared our bit after the time-out: its token is there, or soon is.
            while !parker.park(Some(Duration::from_millis(1))) {}
            return true;
        }
        woken
    }

    /// Whether a park of `worker` would return at once.
    #[cfg(test)]
    pub(crate) fn has_token(&self, worker: usize) -> bool {
        self.parkers[worker].has_token()
    }

    /// W1, W2: wakes `preferred` if it is parked, else any parked worker, the sentinel last.
    /// Returns whom.
    pub fn wake(&self, preferred: usize) -> Option<usize> {
        // ORDERING: SeqCst fence between the queueing before and the load after; pairs with
        // the fence in `announce`.
        fence(Ordering::SeqCst);
        loop {
            // ORDERING: SeqCst, as above.
            let parked = self.parked.load(Ordering::SeqCst);
            if parked == 0 {
                return None;
            }
            let choice = self.choose(parked, preferred);
            if self.wake_parked(choice) {
                return Some(choice);
            }
        }
    }

    /// Wakes `worker` if it is parked.
    fn wake_parked(&self, worker: usize) -> bool {
        // ORDERING: SeqCst: who clears the bit wakes the worker, nobody else does.
        let was_parked =
            self.parked.fetch_and(!(1 << worker), Ordering::SeqCst) & (1 << worker) != 0;
        if was_parked {
            self.parkers[worker].unpark();
        }
        was_parked
    }

    fn choose(&self, parked: u64, preferred: usize) -> usize {
        // Before all, even if it is the sentinel: a ticket in the queue of a parked worker is taken
        // by nobody else.
        if preferred < WORKERS_MAX && parked & (1 << preferred) != 0 {
            return preferred;
        }
        let sentinel = self.sentinel();
        let others = sentinel.map_or(parked, |sentinel| parked & !(1 << sentinel));
        let choice = if others == 0 { parked } else { others };
        choice.trailing_zeros() as usize
    }

    /// Whether any worker is parked: a hint.
    #[inline]
    pub fn any_parked(&self) -> bool {
        // ORDERING: Relaxed: a hint, checked again under the protocol where it matters.
        self.parked.load(Ordering::Relaxed) != 0
    }

    /// How many workers are parked: a reading for reports.
    pub fn parked(&self) -> u32 {
        // ORDERING: Relaxed: a reading for reports.
        self.parked.load(Ordering::Relaxed).count_ones()
    }

    /// Whether all of `workers` workers are parked at this moment: what is seen here was written
    /// before, also by whoever relied on something that the caller took back meanwhile.
    pub fn are_parked(&self, workers: usize) -> bool {
        // ORDERING: SeqCst, a read-modify-write: reads the last value, and whoever clears a bit
        // after it sees what came before it.
        self.parked.fetch_or(0, Ordering::SeqCst).count_ones() as usize == workers
    }

    /// The sentinel, if there is one.
    pub fn sentinel(&self) -> Option<usize> {
        // ORDERING: SeqCst: read after a timer or ticket was queued, written before the queues
        // are looked at.
        let sentinel = self.sentinel.load(Ordering::SeqCst);
        (sentinel != NOBODY).then_some((sentinel & !DOZES) as usize)
    }

    /// Sees to it that somebody watches over those that work, if anybody is parked: wakes the
    /// sentinel that dozes, or any worker when there is no sentinel.
    pub fn appoint_sentinel(&self) {
        // ORDERING: SeqCst, pairs with `doze`.
        let sentinel = self.sentinel.load(Ordering::SeqCst);
        if sentinel == NOBODY {
            self.wake(usize::MAX);
        } else if sentinel & DOZES != 0 {
            // Nobody else in its place: who does not find its bit knows that it is awake.
            self.wake_parked((sentinel & !DOZES) as usize);
        }
    }

    /// The sentinel `worker` goes to sleep until the next timer, since all `workers` workers are
    /// parked; false when one of them was woken meanwhile, over which it has to watch.
    pub fn doze(&self, worker: usize, workers: usize) -> bool {
        let number = u32::try_from(worker).expect("at most WORKERS_MAX workers");
        // ORDERING: SeqCst: whoever was woken before the look below and finds the sentinel without
        // this bit is seen by that look; pairs with `appoint_sentinel`.
        self.sentinel.store(number | DOZES, Ordering::SeqCst);
        if self.are_parked(workers) {
            return true;
        }
        // ORDERING: SeqCst, as above.
        self.sentinel.store(number, Ordering::SeqCst);
        false
    }

    /// Makes `worker` the sentinel if nobody is.
    pub fn try_become_sentinel(&self, worker: usize) -> bool {
        let worker = u32::try_from(worker).expect("at most WORKERS_MAX workers");
        // ORDERING: SeqCst, pairs with `sentinel`.
        self.sentinel.compare_exchange(NOBODY, worker, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Gives the role up.
    pub fn resign_sentinel(&self) {
        // ORDERING: SeqCst, pairs with `sentinel`.
        self.sentinel.store(NOBODY, Ordering::SeqCst);
    }
}
