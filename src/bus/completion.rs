//! Completions: waiting for what becomes of one envelope, by thread or by task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::coord::on_worker::is_in_turn;
use crate::coord::parker::Parker;
use crate::envelope::{Envelope, Settled};
use crate::sync::{Exclusive, Mutex, lock};

/// What became of an envelope: the outcome, and the envelope unless that is kept among the dead
/// letters.
pub type Ending<P> = (Settled, Option<Envelope<P>>);

struct Shared<P> {
    state: Mutex<State<P>>,
    parker: Parker,
}

struct State<P> {
    ending: Option<Ending<P>>,
    waker: Option<Waker>,
}

/// What can be waited for after [`publish_tracked`](crate::Handle::publish_tracked). It is also a
/// future.
#[must_use = "a completion that nobody waits for tells nothing"]
pub struct Completion<P> {
    shared: Arc<Shared<P>>,
}

/// Why a wait ended without an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// Not settled within the time given; wait again.
    #[error("not settled within the time given")]
    Timeout,
    /// A handler or callback asked: waiting for the bus on a worker would be waiting for itself.
    #[error("a handler must not wait for the bus that runs it")]
    OnWorker,
}

/// Makes an envelope tell a completion, besides its own callback.
pub(crate) fn completion<P: Send + 'static>(
    mut envelope: Envelope<P>,
) -> (Envelope<P>, Completion<P>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State { ending: None, waker: None }),
        parker: Parker::new(),
    });
    let teller = Arc::clone(&shared);
    let tell = move |outcome, envelope| teller.tell((outcome, envelope));
    envelope.extras_mut().tracker = Some(Exclusive::new(Box::new(tell)));
    (envelope, Completion { shared })
}

impl<P> Shared<P> {
    fn tell(&self, ending: Ending<P>) {
        let mut state = lock(&self.state);
        state.ending = Some(ending);
        let waker = state.waker.take();
        drop(state);
        self.parker.unpark();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<P> Completion<P> {
    /// The ending, if there is one; at most once.
    pub fn poll_now(&mut self) -> Option<Ending<P>> {
        lock(&self.shared.state).ending.take()
    }

    /// Waits for the ending on this thread. On a bus without threads someone else must call
    /// [`turn`](crate::Bus::turn) meanwhile; the only thread turns until
    /// [`poll_now`](Self::poll_now) has it.
    ///
    /// # Errors
    /// [`WaitError`] when `limit` passed, or at once inside a handler or callback.
    pub fn wait(&mut self, limit: Duration) -> Result<Ending<P>, WaitError> {
        if let Some(ending) = self.poll_now() {
            return Ok(ending);
        }
        if is_in_turn() {
            return Err(WaitError::OnWorker);
        }
        let clock = crate::clock::SystemClock::new();
        loop {
            let gone = Duration::from_nanos(crate::clock::Clock::monotonic_ns(&clock));
            let left = limit.saturating_sub(gone);
            self.shared.parker.park(Some(left));
            match self.poll_now() {
                Some(ending) => return Ok(ending),
                None if left.is_zero() => return Err(WaitError::Timeout),
                None => {}
            }
        }
    }
}

impl<P> Future for Completion<P> {
    type Output = Ending<P>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ending<P>> {
        let waker = context.waker().clone();
        let mut state = lock(&self.shared.state);
        if let Some(ending) = state.ending.take() {
            return Poll::Ready(ending);
        }
        let before = state.waker.replace(waker);
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl<P> fmt::Debug for Completion<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").finish_non_exhaustive()
    }
}
