//! Ends that wait until they are safe: who wants to know is told then, and not before (J3).

use std::collections::VecDeque;
use std::time::Duration;

use crate::envelope::{Envelope, Settled};
use crate::sync::{Condvar, Mutex, lock, wait_on};

/// The end of an envelope that is written and may not be safe yet.
pub(crate) struct End<P> {
    /// The record that says so.
    pub(crate) sequence: u64,
    /// What is left of it.
    pub(crate) envelope: Envelope<P>,
    /// What became of it.
    pub(crate) end: Settled,
}

struct Waiting<P> {
    ends: VecDeque<End<P>>,
    stop: bool,
}

/// Those that wait. Bound: envelopes in flight.
pub(crate) struct Ends<P> {
    waiting: Mutex<Waiting<P>>,
    news: Condvar,
}

impl<P> Ends<P> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Mutex::new(Waiting { ends: VecDeque::new(), stop: false }),
            news: Condvar::new(),
        }
    }

    /// Adds one; hands it back when nobody waits any more.
    pub(crate) fn push(&self, end: End<P>) -> Result<(), End<P>> {
        let mut waiting = lock(&self.waiting);
        if waiting.stop {
            return Err(end);
        }
        waiting.ends.push_back(end);
        drop(waiting);
        self.news.notify_all();
        Ok(())
    }

    /// Takes out those that are safe when everything up to `durable` is; all of them without it.
    pub(crate) fn take(&self, durable: Option<u64>) -> Vec<End<P>> {
        let mut waiting = lock(&self.waiting);
        let all = std::mem::take(&mut waiting.ends);
        let is_safe = |end: &End<P>| durable.is_none_or(|durable| end.sequence <= durable);
        let (safe, left): (Vec<_>, VecDeque<_>) = {
            let (mut safe, mut left) = (Vec::new(), VecDeque::new());
            for end in all {
                if is_safe(&end) { safe.push(end) } else { left.push_back(end) }
            }
            (safe, left)
        };
        waiting.ends = left;
        safe
    }

    /// Whether any waits.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.waiting).ends.is_empty()
    }

    /// Waits until one is there, or for `limit`; false when nobody shall wait any more.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut waiting = lock(&self.waiting);
        if waiting.ends.is_empty() && !waiting.stop {
            waiting = wait_on(&self.news, waiting, Some(limit));
        }
        !waiting.stop
    }

    /// Ends the waiting.
    pub(crate) fn stop(&self) {
        lock(&self.waiting).stop = true;
        self.news.notify_all();
    }
}
