//! The end of a log: closed, or poisoned because it could not write or flush. Nothing is done any
//! more until it is opened again.

use super::error::LogError;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// What failed, and all that its error says.
type Failure = (&'static str, String);

/// Whether the log has ended, and by what.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    is_set: AtomicBool,
    /// What failed first; `None`: it was closed.
    failed: Mutex<Option<Failure>>,
}

impl Poison {
    /// Refuses when the log has ended.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] with what failed first, or [`LogError::Closed`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), LogError> {
        // ORDERING: Acquire, pairs with `end`.
        if self.is_set.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }
    }

    /// Poisons the log, and gives the error back for the one who met it.
    pub(crate) fn set(&self, action: &'static str, error: LogError) -> LogError {
        self.end(Some((action, words(&error))));
        error
    }

    /// Ends the log without a failure.
    pub(crate) fn close(&self) {
        self.end(None);
    }

    /// What ended the log, unless it was closed or goes on.
    pub(crate) fn failure(&self) -> Option<LogError> {
        let failed = lock(&self.failed).clone();
        failed.map(|(action, cause)| LogError::Poisoned { action, cause })
    }

    fn end(&self, failed: Option<Failure>) {
        let mut first = lock(&self.failed);
        // ORDERING: Relaxed under the lock, which every writer holds.
        if !self.is_set.load(Ordering::Relaxed) {
            *first = failed;
        }
        // ORDERING: Release, pairs with `check`.
        self.is_set.store(true, Ordering::Release);
    }

    fn error(&self) -> LogError {
        self.failure().unwrap_or(LogError::Closed)
    }
}

/// An error with its causes.
fn words(error: &LogError) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}
