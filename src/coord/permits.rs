//! Permits: the right of one worker to drain a stage, counted.
//!
//! All changes are `SeqCst` read-modify-writes, because the release function of
//! [`super::attendance`] orders them against the state word and the ring.

use crate::sync::{AtomicU32, CachePadded, Ordering};

/// A bounded count of permits.
#[derive(Debug)]
pub struct Permits {
    /// Permits given out. Written by whoever takes or releases one; publishers read it only when
    /// the stage is idle or slow.
    used: CachePadded<AtomicU32>,
    limit: u32,
}

impl Permits {
    /// `limit` permits, none given out.
    pub fn new(limit: u32) -> Self {
        Self { used: CachePadded::new(AtomicU32::new(0)), limit }
    }

    /// Takes a permit if one is free.
    #[must_use]
    pub fn try_take(&self) -> bool {
        // ORDERING: SeqCst, so that a failed attempt stands in the one total order with the
        // release it missed: the releaser's look then comes after our push.
        let mut used = self.used.load(Ordering::SeqCst);
        while used < self.limit {
            // ORDERING: SeqCst, as above; pairs with `release`.
            match self.used.compare_exchange(used, used + 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => used = now,
            }
        }
        false
    }

    /// Gives a permit back; true when it was the last one out.
    pub fn release(&self) -> bool {
        // ORDERING: SeqCst, pairs with `try_take`: what the holder did happens before what the
        // next holder does.
        let before = self.used.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "a permit was released that nobody held");
        before == 1
    }

    /// Permits given out right now.
    pub fn used(&self) -> u32 {
        // ORDERING: Relaxed: a reading for reports and hints, it decides nothing alone.
        self.used.load(Ordering::Relaxed)
    }
}
