//! A handle: what any thread may ask of a bus without owning it.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::completion::{Completion, completion};
use super::core::{Core, Lifecycle};
use super::dead_letter::DeadLetter;
use super::error::{BatchError, BusError, PublishError, Refused};
use super::future::PublishFuture;
use super::publish::Wait;
use super::publisher::Publisher;
use crate::coord::on_worker::{InTurn, is_in_turn};
use crate::coord::ticket::Desk;
use crate::envelope::slip::MAX_HOPS;
use crate::envelope::{Envelope, EnvelopeId, Route, Slip};
use crate::log::Receipt;
use crate::metrics::counter::Tally;
use crate::metrics::{Conservation, Snapshot};
use crate::stage::engine::Engine as _;
use crate::stage::settings::Level;
use crate::stage::turn;
use crate::sync::{lock, next_lane};

thread_local! {
    /// The number of this thread among those that publish through handles; zero before.
    static LANE: Cell<usize> = const { Cell::new(0) };
}

/// Asks a bus for things from any thread: publishing, looking. [`Bus`](crate::Bus) is one itself
/// and can do more.
///
/// Publishing through a handle takes a short lock for the id; a [`Publisher`] takes none.
pub struct Handle<P> {
    pub(crate) core: Arc<Core<P>>,
}

impl<P: Send + 'static> Handle<P> {
    /// Publishes, waiting for room as long as the stage's `OnFull` says.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope. Inside a handler or a callback it never waits: a full
    /// stage is `Full` at once.
    pub fn publish(&self, envelope: Envelope<P>) -> Result<(), PublishError<P>> {
        self.enter(envelope, Wait::Policy)
    }

    /// Publishes without waiting.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope.
    pub fn try_publish(&self, envelope: Envelope<P>) -> Result<(), PublishError<P>> {
        self.enter(envelope, Wait::No)
    }

    /// Publishes, waiting for room at most `limit`; the stage's `OnFull` decides at the end.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope.
    pub fn publish_within(
        &self,
        envelope: Envelope<P>,
        limit: Duration,
    ) -> Result<(), PublishError<P>> {
        self.enter(envelope, Wait::Within(limit))
    }

    /// Publishes into a durable stage, waiting for room as [`publish`](Self::publish) does, and
    /// returns a receipt that tells when the envelope is safe by the log's policy: from then on it
    /// is not lost. It may be handled before that.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope; [`Refused::NotDurable`] when its first stage is not.
    pub fn publish_durable(&self, mut envelope: Envelope<P>) -> Result<Receipt, PublishError<P>> {
        let core = &*self.core;
        let (map, lane) = (core.stages(), core.lane(lane()));
        let stage = match core.target(&map, &mut envelope) {
            Ok(stage) => stage,
            Err(reason) => return Err(core.refuse(envelope, reason)),
        };
        if stage.settings().level == Level::AtMostOnce {
            return Err(core.refuse(envelope, Refused::NotDurable));
        }
        core.stamp(&mut envelope, stage.settings().expiry, || lane.fresh_id(core.clock()));
        core.publish_durable(stage, Tally::shared(&lane.accepted), envelope, Wait::Policy)
    }

    /// Publishes when there is room, on any async runtime. It keeps its place in the line of those
    /// that wait, but not before others that publish at the moment: where they fill the stage as
    /// fast as it works it is woken again and again until it finds room. Nothing is published
    /// before the future is polled; dropping it takes the envelope back out of line and drops it.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope, for every reason but `Full`.
    pub fn publish_async(&self, envelope: Envelope<P>) -> PublishFuture<P> {
        PublishFuture::new(Arc::clone(&self.core), envelope)
    }

    /// Publishes many, in order, and pays for the notification once per block. What the iterator
    /// gave is held back until a block is full or the iterator ends: one that waits, like that of a
    /// channel, holds up what it gave before.
    ///
    /// # Errors
    /// [`BatchError`] at the first that is refused, with it and what was taken out behind it; the
    /// others are still in the iterator.
    pub fn publish_batch(
        &self,
        envelopes: &mut impl Iterator<Item = Envelope<P>>,
    ) -> Result<usize, BatchError<P>> {
        let core = &*self.core;
        let (map, lane) = (core.stages(), core.lane(lane()));
        let fresh_id = || lane.fresh_id(core.clock());
        core.publish_batch(&map, Tally::shared(&lane.accepted), fresh_id, envelopes)
    }

    /// Publishes and returns what can be waited for: what becomes of the envelope. The completion
    /// gets the envelope back; a callback of the envelope's own is told without it.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope.
    pub fn publish_tracked(&self, envelope: Envelope<P>) -> Result<Completion<P>, PublishError<P>> {
        let (envelope, completion) = completion(envelope);
        match self.publish(envelope) {
            Ok(()) => Ok(completion),
            Err(mut refused) => {
                // As it was given: the next try tracks it anew.
                refused.envelope.extras_mut().tracker = None;
                Err(refused)
            }
        }
    }

    /// Publishes and, if the stage is idle, handles the envelope on this thread: no worker is
    /// woken. Otherwise, and inside a handler, it is [`publish`](Self::publish).
    ///
    /// # Errors
    /// [`PublishError`] with the envelope.
    pub fn publish_inline(&self, mut envelope: Envelope<P>) -> Result<(), PublishError<P>> {
        let core = &*self.core;
        let map = core.stages();
        if is_in_turn() {
            return self.publish(envelope);
        }
        let stage = match core.target(&map, &mut envelope) {
            Ok(stage) => stage,
            Err(reason) => return Err(core.refuse(envelope, reason)),
        };
        if stage.refuses_publishes() || stage.settings().level != Level::AtMostOnce {
            return self.publish(envelope);
        }
        let lane = core.lane(lane());
        core.stamp(&mut envelope, stage.settings().expiry, || lane.fresh_id(core.clock()));
        lane.accepted.add(1);
        let desk = Desk::outside(&**core.scheduler());
        let inside = InTurn::begin();
        let ran = turn::caller_runs(stage, core, &desk, envelope);
        drop(inside);
        match ran {
            Ok(()) => Ok(()),
            Err(envelope) => {
                lane.accepted.subtract(1);
                self.publish(envelope)
            }
        }
    }

    fn enter(&self, envelope: Envelope<P>, wait: Wait) -> Result<(), PublishError<P>> {
        let core = &*self.core;
        let (map, lane) = (core.stages(), core.lane(lane()));
        let fresh_id = || lane.fresh_id(core.clock());
        core.publish(&map, Tally::shared(&lane.accepted), fresh_id, envelope, wait)
    }

    /// A publisher for one thread: the cheapest way in.
    #[must_use]
    pub fn publisher(&self) -> Publisher<P> {
        Publisher::new(&self.core)
    }

    /// Another handle.
    #[must_use]
    pub fn handle(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }

    /// The route to the stage of this name, open now or later.
    ///
    /// # Errors
    /// [`BusError`] when it cannot be a name, or the bus knows 65,535 names already.
    pub fn route(&self, name: &str) -> Result<Route, BusError> {
        lock(&self.core.registry).intern(self.core.number, name)
    }

    /// A slip that visits the stages of these names in this order.
    ///
    /// # Errors
    /// As [`route`](Self::route), or when there are more than 65,535 hops.
    pub fn slip<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Slip, BusError> {
        // One more than a slip may hold is enough to refuse the rest.
        let routes = names.into_iter().take(MAX_HOPS + 1).map(|name| self.route(name));
        let routes = routes.collect::<Result<Vec<_>, _>>()?;
        Ok(Slip::via(routes)?)
    }

    /// The name behind a route of this bus.
    #[must_use]
    pub fn name(&self, route: Route) -> Option<String> {
        let own = route.bus() == self.core.number;
        own.then(|| self.core.name(route)).filter(|name| !name.is_empty())
    }

    /// Where the bus is in its life.
    #[must_use]
    pub fn lifecycle(&self) -> Lifecycle {
        self.core.lifecycle()
    }

    /// The books: exact when nothing moves.
    #[must_use]
    pub fn conservation(&self) -> Conservation {
        self.core.conservation()
    }

    /// A reading of all meters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let core = &*self.core;
        let now = core.clock().monotonic_ns();
        let map = core.stages();
        let logged = core.journal.as_ref().map_or(0, |journal| journal.letters());
        Snapshot {
            conservation: core.conservation(),
            stages: map.0.iter().flatten().map(|stage| core.read_stage(stage, now)).collect(),
            workers: core.shared.snapshot(),
            dead_letters: lock(&core.dead).len() + logged,
            panics_outside_handlers: core.panics(),
        }
    }

    /// Takes one dead letter out of memory, to look at or to keep elsewhere. It stays counted as
    /// dead.
    #[must_use]
    pub fn take_dead_letter(&self, id: EnvelopeId) -> Option<DeadLetter<P>> {
        lock(&self.core.dead).take(id)
    }
}

/// The number of this thread, for spreading threads over the id generators.
fn lane() -> usize {
    if LANE.get() == 0 {
        LANE.set(next_lane());
    }
    LANE.get()
}

impl<P: Send + 'static> Clone for Handle<P> {
    fn clone(&self) -> Self {
        self.handle()
    }
}

impl<P> fmt::Debug for Handle<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("core", &self.core).finish()
    }
}
