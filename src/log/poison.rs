//! The end of a log that could not write or flush: nothing is done any more until it is opened again.

use super::error::LogError;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// Whether the log is poisoned, and by what.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    is_set: AtomicBool,
    action: Mutex<&'static str>,
}

impl Poison {
    /// Refuses when poisoned.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] with what failed first.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), LogError> {
        // ORDERING: Acquire, pairs with `set`.
        if self.is_set.load(Ordering::Acquire) {
            return Err(LogError::Poisoned { action: *lock(&self.action) });
        }
        Ok(())
    }

    /// Poisons the log, and gives the error back for the one who met it.
    pub(crate) fn set(&self, action: &'static str, error: LogError) -> LogError {
        let mut first = lock(&self.action);
        if first.is_empty() {
            *first = action;
        }
        // ORDERING: Release, pairs with `check`.
        self.is_set.store(true, Ordering::Release);
        error
    }
}
