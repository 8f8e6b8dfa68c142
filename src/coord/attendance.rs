//! Attendance: who looks after a stage. The state word, the permits, and the release function.
//!
//! The protocol is `README.md` in this folder; the step names here are those of that page.
//!
//! Invariants: every change of the word is a `SeqCst` `fetch_or` or `fetch_and`; *attended* is set
//! only while a permit is held and before its ticket is queued; every release goes through
//! [`Attendance::release`].

use super::permits::Permits;
use crate::sync::{AtomicU32, CachePadded, Ordering, hot_fence, pause_point};

/// A permit is out as a ticket, so whoever pushes need not wake anyone.
pub const ATTENDED: u32 = 1;
/// The handler is slow or not yet measured: a publish takes a spare permit itself.
pub const SLOW: u32 = 1 << 1;
/// Hops wait for room: publishes see Full, hops join the line.
pub const HOPS_WAIT: u32 = 1 << 2;
/// Publishers wait for room.
pub const PUBLISHERS_WAIT: u32 = 1 << 3;
/// Paused by name: publishes are refused, queued work is held.
pub const PAUSED_ALONE: u32 = 1 << 4;
/// Paused with the whole bus.
pub const PAUSED_WITH_BUS: u32 = 1 << 8;
/// Paused, for either reason.
pub const PAUSED: u32 = PAUSED_ALONE | PAUSED_WITH_BUS;
/// Publishes are refused while the bus drains; hops are accepted.
pub const DRAINING: u32 = 1 << 5;
/// Closed: nothing enters, whoever finds something inside settles it.
pub const CLOSED: u32 = 1 << 6;
/// No handler yet: publishes and hops are refused.
pub const NO_CONSUMER: u32 = 1 << 7;

/// What a publisher must not meet before its push.
pub const REFUSES_PUBLISH: u32 = HOPS_WAIT | PAUSED | DRAINING | CLOSED | NO_CONSUMER;

/// What became of a released permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a permit that was taken again must be queued as a ticket"]
pub enum Released {
    /// Nothing to do: the permit is back.
    Free,
    /// Work was found and a permit taken again: queue a ticket.
    Again,
}

/// The state word and the permits of one stage.
#[derive(Debug)]
pub struct Attendance {
    /// Read by every publisher before and after its push; written only when something changes.
    word: CachePadded<AtomicU32>,
    permits: Permits,
    /// Bits that taking a ticket sets: stages with several permits count as slow until measured.
    on_attend: u32,
}

impl Attendance {
    /// A stage with `permits` permits, nobody attending, `word` as its first state.
    pub fn new(permits: u32, word: u32) -> Self {
        let on_attend = if permits > 1 { ATTENDED | SLOW } else { ATTENDED };
        Self {
            word: CachePadded::new(AtomicU32::new(word)),
            permits: Permits::new(permits),
            on_attend,
        }
    }

    /// P1, before the push: the state word.
    #[inline]
    pub fn before_push(&self) -> u32 {
        pause_point();
        // ORDERING: Acquire, pairs with `set` and `clear`: who sees a bit sees what led to it.
        self.word.load(Ordering::Acquire)
    }

    /// P3, after the push: the state word in the single total order.
    #[inline]
    pub fn after_push(&self) -> u32 {
        pause_point();
        hot_fence();
        // ORDERING: SeqCst, after the ring's SeqCst read-modify-write (P2); pairs with R2 and R3.
        self.word.load(Ordering::SeqCst)
    }

    /// Whether a word seen after a push says that somebody will come by.
    #[inline]
    #[must_use]
    pub fn is_looked_after(word: u32) -> bool {
        word & (ATTENDED | SLOW | CLOSED) == ATTENDED
    }

    /// P4: takes a permit and marks it attended. The caller queues the ticket.
    #[must_use]
    pub fn try_attend(&self) -> bool {
        if !self.permits.try_take() {
            return false;
        }
        pause_point();
        self.mark_attended();
        true
    }

    /// Marks a held permit as one whose ticket is about to be queued.
    pub fn mark_attended(&self) {
        if !self.has(ATTENDED) {
            self.set(self.on_attend);
        }
    }

    /// Takes a permit for a run-on: no ticket, so not attended.
    #[must_use]
    pub fn try_take(&self) -> bool {
        self.permits.try_take()
    }

    /// The release function, R1 to R4. `has_work` looks at ring and side list.
    pub fn release(&self, has_work: impl FnOnce() -> bool) -> Released {
        pause_point();
        let last = self.permits.release(); // R1
        pause_point();
        if last && self.has(ATTENDED) {
            self.clear(ATTENDED); // R2
        }
        pause_point();
        hot_fence();
        if has_work() && self.try_attend() {
            return Released::Again; // R3, R4
        }
        Released::Free
    }

    /// Sets bits; returns the word before.
    pub fn set(&self, bits: u32) -> u32 {
        // ORDERING: SeqCst: every change of the word stands in the single total order.
        let before = self.word.fetch_or(bits, Ordering::SeqCst);
        pause_point();
        hot_fence();
        before
    }

    /// Clears bits; returns the word before.
    pub fn clear(&self, bits: u32) -> u32 {
        // ORDERING: SeqCst: every change of the word stands in the single total order.
        let before = self.word.fetch_and(!bits, Ordering::SeqCst);
        pause_point();
        hot_fence();
        before
    }

    /// Whether any of `bits` is set.
    #[inline]
    pub fn has(&self, bits: u32) -> bool {
        // ORDERING: SeqCst: also used between R1 and R3, where the total order decides.
        self.word.load(Ordering::SeqCst) & bits != 0
    }

    /// Permits out right now.
    pub fn used(&self) -> u32 {
        self.permits.used()
    }
}

#[cfg(test)]
mod tests;
