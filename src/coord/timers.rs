//! Timers: one heap for retries, time-outs and other things due later.
//!
//! Off the fast path: a turn only reads `next`. Entries are bounded by their makers: one per
//! delayed retry (at most a stage's capacity) and one per stage whose hops wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// No timer is set.
pub const NEVER: u64 = u64::MAX;

struct Entry {
    deadline: u64,
    number: u64,
    action: Box<dyn FnOnce() + Send>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.deadline, self.number) == (other.deadline, other.number)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.deadline, self.number).cmp(&(other.deadline, other.number))
    }
}

#[derive(Default)]
struct Heap {
    entries: BinaryHeap<Reverse<Entry>>,
    made: u64,
}

/// Actions waiting for their deadline, earliest first, equal deadlines in the order they were set.
pub struct Timers {
    heap: Mutex<Heap>,
    /// The earliest deadline, or [`NEVER`]; written under the lock, read by anyone.
    next: AtomicU64,
}

impl Timers {
    /// No timers.
    pub fn new() -> Self {
        Self { heap: Mutex::new(Heap::default()), next: AtomicU64::new(NEVER) }
    }

    /// Adds a timer.
    pub fn add(&self, deadline: u64, action: Box<dyn FnOnce() + Send>) {
        let mut heap = lock(&self.heap);
        heap.made += 1;
        let number = heap.made;
        heap.entries.push(Reverse(Entry { deadline, number, action }));
        self.publish_next(&heap);
    }

    /// The earliest deadline in monotonic nanoseconds, or [`NEVER`].
    #[inline]
    pub fn next(&self) -> u64 {
        // ORDERING: SeqCst: a parking worker reads it after its announcement; whoever adds a
        // timer reads the mask after this store.
        self.next.load(Ordering::SeqCst)
    }

    /// Takes one action that is due at `now`.
    pub fn pop_due(&self, now: u64) -> Option<Box<dyn FnOnce() + Send>> {
        if self.next() > now {
            return None;
        }
        let mut heap = lock(&self.heap);
        if heap.entries.peek()?.0.deadline > now {
            return None;
        }
        let Reverse(entry) = heap.entries.pop()?;
        self.publish_next(&heap);
        drop(heap);
        Some(entry.action)
    }

    fn publish_next(&self, heap: &Heap) {
        let next = heap.entries.peek().map_or(NEVER, |Reverse(entry)| entry.deadline);
        // ORDERING: SeqCst, pairs with `next`.
        self.next.store(next, Ordering::SeqCst);
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("next", &self.next()).finish_non_exhaustive()
    }
}
