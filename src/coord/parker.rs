//! Parks one thread until it is woken: a token, a lock and a condition.
//!
//! A wake-up before the park is kept (one token), so *announce, look again, park* loses nothing.
//! `unpark` swaps rather than compares, so that it releases to the parker what the waker did even
//! when the token was already there.

use std::time::Duration;

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, lock, wait_on};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const TOKEN: u32 = 2;

/// Parks one thread at a time.
#[derive(Debug)]
pub struct Parker {
    /// EMPTY, PARKED or TOKEN; written by the parking thread and by wakers.
    state: AtomicU32,
    gate: Mutex<()>,
    condition: Condvar,
}

impl Parker {
    /// A parker without a token.
    pub fn new() -> Self {
        Self { state: AtomicU32::new(EMPTY), gate: Mutex::new(()), condition: Condvar::new() }
    }

    /// Waits for a token and takes it; true when one came, false after `timeout` (or now and then
    /// without reason).
    pub fn park(&self, timeout: Option<Duration>) -> bool {
        if self.take_token() {
            return true;
        }
        let guard = lock(&self.gate);
        // ORDERING: AcqRel/Acquire, pairs with the swap in `unpark`: a token found here carries
        // what the waker did before.
        if self.state.compare_exchange(EMPTY, PARKED, Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            drop(guard);
            return self.take_token();
        }
        let guard = wait_on(&self.condition, guard, timeout);
        drop(guard);
        // ORDERING: AcqRel, pairs with the swap in `unpark`.
        self.state.swap(EMPTY, Ordering::AcqRel) == TOKEN
    }

    /// Leaves a token, and wakes the thread if it is parked.
    pub fn unpark(&self) {
        // ORDERING: AcqRel, pairs with `park`: what we did happens before its return.
        if self.state.swap(TOKEN, Ordering::AcqRel) == PARKED {
            // The parker holds the lock from PARKED until it waits: after this it does wait.
            drop(lock(&self.gate));
            self.condition.notify_one();
        }
    }

    /// Whether a park would return at once.
    #[cfg(test)]
    pub(crate) fn has_token(&self) -> bool {
        // ORDERING: Relaxed: for the simulator, which is one thread.
        self.state.load(Ordering::Relaxed) == TOKEN
    }

    fn take_token(&self) -> bool {
        // ORDERING: AcqRel/Relaxed, pairs with the swap in `unpark`; a failed try learns nothing.
        self.state.compare_exchange(TOKEN, EMPTY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}
