//! Timers: one list for retries, time-outs and other things due later.
//!
//! Off the fast path: a turn only reads `next`. Entries are bounded by their makers: one per
//! delayed retry (at most a stage's capacity; taken out with it when the stage is closed) and one
//! per stage whose hops wait.

use std::collections::BTreeMap;
use std::fmt;

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// No timer is set.
pub const NEVER: u64 = u64::MAX;

/// Names a timer, to cancel it. Earlier ones are less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId {
    deadline: u64,
    number: u64,
}

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Entries {
    waiting: BTreeMap<TimerId, Action>,
    made: u64,
}

/// Actions waiting for their deadline, earliest first, equal deadlines in the order they were set.
pub struct Timers {
    entries: Mutex<Entries>,
    /// The earliest deadline, or [`NEVER`]; written under the lock, read by anyone.
    next: AtomicU64,
}

impl Timers {
    /// No timers.
    pub fn new() -> Self {
        Self { entries: Mutex::new(Entries::default()), next: AtomicU64::new(NEVER) }
    }

    /// Adds a timer.
    pub fn add(&self, deadline: u64, action: Action) -> TimerId {
        let mut entries = lock(&self.entries);
        entries.made += 1;
        let timer = TimerId { deadline, number: entries.made };
        entries.waiting.insert(timer, action);
        self.publish_next(&entries);
        timer
    }

    /// Takes a timer out, if it is not due yet. Who waits for it looks once in vain.
    pub fn cancel(&self, timer: TimerId) {
        let mut entries = lock(&self.entries);
        let action = entries.waiting.remove(&timer);
        self.publish_next(&entries);
        drop(entries);
        drop(action);
    }

    /// The earliest deadline in monotonic nanoseconds, or [`NEVER`].
    #[inline]
    pub fn next(&self) -> u64 {
        // ORDERING: SeqCst: a parking worker reads it after its announcement; whoever adds a
        // timer reads the mask after this store.
        self.next.load(Ordering::SeqCst)
    }

    /// Takes one action that is due at `now`.
    pub fn pop_due(&self, now: u64) -> Option<Action> {
        if self.next() > now {
            return None;
        }
        let mut entries = lock(&self.entries);
        let first = entries.waiting.first_entry()?;
        if first.key().deadline > now {
            return None;
        }
        let action = first.remove();
        self.publish_next(&entries);
        Some(action)
    }

    /// Timers that wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        lock(&self.entries).waiting.len()
    }

    fn publish_next(&self, entries: &Entries) {
        let next = entries.waiting.first_key_value().map_or(NEVER, |(timer, _)| timer.deadline);
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
