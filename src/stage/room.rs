//! Waiting for room: one line of hops, and behind it the publishers that block.
//!
//! Steps (the loom model is `loom-tests/tests/room.rs`):
//!
//! 1. A waiter registers under the lock and sets its bit of the state word, then looks again at
//!    room and *closed*.
//! 2. Whoever frees a slot reads the word after the pop; if a bit is set it places the oldest
//!    hops itself, in order, and then lets go of the permits they held.
//! 3. When the line of hops is empty its bit is cleared, and a publisher is woken: per freed slot
//!    where calls are slow; where they are fast once the ring is half empty, since a wake-up costs
//!    as much as hundreds of hops, or when many slots were taken by others meanwhile.
//! 4. A waiter that leaves otherwise (time-out, closing) passes the turn on.
//!
//! Bounds: a hop in line holds a permit of the stage it left, so there are at most as many as the
//! upstream permits allow, times what one turn's batch and its emits yield; blocked publishers are
//! threads or tasks of the embedder.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use crate::coord::parker::Parker;
use crate::coord::ticket::{Scheduler, Task, Ticket};
use crate::coord::timers::TimerId;
use crate::envelope::{Envelope, EnvelopeId};

/// The permit of the stage a waiting envelope comes from. When the last envelope that holds it is
/// placed or given up, the permit becomes a ticket again.
pub(crate) struct Hold {
    source: Option<Arc<dyn Task>>,
    scheduler: Arc<dyn Scheduler>,
}

impl Hold {
    /// Holds a permit of `source`, which the caller gives up.
    pub(crate) fn new(source: Arc<dyn Task>, scheduler: Arc<dyn Scheduler>) -> Arc<Self> {
        Arc::new(Self { source: Some(source), scheduler })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(source) = self.source.take() {
            source.hold_ended();
            self.scheduler.post(Ticket::new(source));
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").finish_non_exhaustive()
    }
}

/// An envelope on its way into a stage without room.
pub(crate) struct WaitingHop<P> {
    pub(crate) envelope: Envelope<P>,
    pub(crate) hold: Option<Arc<Hold>>,
    /// Monotonic nanoseconds at which it joined.
    pub(crate) since: u64,
}

/// How a blocked publisher is woken.
#[derive(Debug, Clone)]
pub(crate) enum Wake {
    Thread(Arc<Parker>),
    Task(Waker),
}

impl Wake {
    /// Wakes it: a waker is foreign code, so the caller guards this and holds no lock.
    pub(crate) fn wake(self) {
        match self {
            Self::Thread(parker) => parker.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// A blocked publisher in line.
#[derive(Debug)]
pub(crate) struct WaitingPublisher {
    pub(crate) number: u64,
    pub(crate) wake: Wake,
}

/// A failed envelope during its pause.
pub(crate) struct Delayed<P> {
    pub(crate) envelope: Envelope<P>,
    /// The end of the pause, as soon as it is set.
    pub(crate) timer: Option<TimerId>,
}

/// The two lines of one stage.
pub(crate) struct Room<P> {
    pub(crate) hops: VecDeque<WaitingHop<P>>,
    /// What the log holds for the stage, the oldest first: before all that waits in line.
    pub(crate) backlog: VecDeque<EnvelopeId>,
    /// Whether somebody takes from the backlog, and whether more room came meanwhile.
    pub(crate) refilling: Option<bool>,
    pub(crate) publishers: VecDeque<WaitingPublisher>,
    /// Failed envelopes during their pause.
    pub(crate) delayed: BTreeMap<u64, Delayed<P>>,
    /// Numbers given to publishers and delayed envelopes.
    pub(crate) numbers: u64,
    /// When the stage was last resumed, in monotonic nanoseconds.
    pub(crate) resumed_at: u64,
    /// Whether the time-out of the line is set.
    pub(crate) watched: bool,
}

impl<P> Room<P> {
    pub(crate) fn new() -> Self {
        Self {
            hops: VecDeque::new(),
            backlog: VecDeque::new(),
            refilling: None,
            publishers: VecDeque::new(),
            delayed: BTreeMap::new(),
            numbers: 0,
            resumed_at: 0,
            watched: false,
        }
    }

    /// Puts a publisher at the end of its line.
    pub(crate) fn join(&mut self, wake: Wake) -> u64 {
        self.numbers += 1;
        self.publishers.push_back(WaitingPublisher { number: self.numbers, wake });
        self.numbers
    }

    /// Puts a publisher where it was in line; returns how it was to be woken if it is there yet.
    pub(crate) fn rejoin(&mut self, number: u64, wake: Wake) -> Option<Wake> {
        let place = self.publishers.partition_point(|other| other.number < number);
        match self.publishers.get_mut(place) {
            Some(publisher) if publisher.number == number => {
                Some(std::mem::replace(&mut publisher.wake, wake))
            }
            _ => {
                self.publishers.insert(place, WaitingPublisher { number, wake });
                None
            }
        }
    }

    /// Takes a publisher out; `None` when it was woken already.
    pub(crate) fn leave(&mut self, number: u64) -> Option<WaitingPublisher> {
        let place = self.publishers.iter().position(|publisher| publisher.number == number)?;
        self.publishers.remove(place)
    }
}
