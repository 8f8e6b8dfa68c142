//! A publisher: the cheapest way in, for one thread at a time.
//!
//! It has its own id generator, its own counter and its own view of the stages, so a publish writes
//! nothing that another thread writes except the ring.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Cache};

use super::core::Core;
use super::error::{BatchError, PublishError};
use super::publish::Wait;
use crate::envelope::{Envelope, EnvelopeId, IdGenerator};
use crate::metrics::counter::{Counter, Tally};
use crate::stage::engine::{Engine as _, StageMap};
use crate::sync::CachePadded;

/// Ids given between two readings of the wall clock.
const IDS_PER_READING: u32 = 64;

/// Fresh ids at the price of a counter.
#[derive(Debug)]
pub(crate) struct Ids {
    generator: IdGenerator,
    left: u32,
}

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self { generator: IdGenerator::new(seed, 0), left: 0 }
    }

    #[inline]
    pub(crate) fn next(&mut self, wall_ms: impl FnOnce() -> u64) -> EnvelopeId {
        self.next_without_reading().unwrap_or_else(|| self.next_at(wall_ms()))
    }

    /// The next id, unless it is time to read the clock.
    #[inline]
    pub(crate) fn next_without_reading(&mut self) -> Option<EnvelopeId> {
        self.left = self.left.checked_sub(1)?;
        Some(self.generator.next_without_time())
    }

    /// The next id, by a reading of the clock.
    pub(crate) fn next_at(&mut self, wall_ms: u64) -> EnvelopeId {
        self.left = IDS_PER_READING;
        self.generator.next(wall_ms)
    }
}

/// Publishes into one bus from one thread at a time. Clone it for other threads.
///
/// A handler of its own bus needs none: it has [`emit`](crate::Context::emit), or takes a
/// [`Handle`](crate::Handle), which needs no `&mut`. One that owns a publisher all the same keeps
/// no more alive than one with a handle: what a handler owns is dropped when its stage is closed
/// and when its bus ends.
///
/// ```
/// use waystage::{Bus, BusSettings, Envelope, StageSettings};
/// let bus: Bus<u64> = Bus::start(BusSettings { workers: 1, ..BusSettings::default() })?;
/// bus.add_stage("count", StageSettings::default(), |_| Ok(()))?;
/// let slip = bus.slip(["count"])?;
/// let mut publisher = bus.publisher();
/// for number in 0..100 {
///     publisher.publish(Envelope::new(number, slip.clone()))?;
/// }
/// let report = bus.shutdown(std::time::Duration::from_secs(5));
/// assert_eq!(report.conservation.completed, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Publisher<P> {
    core: Arc<Core<P>>,
    /// A view of the stages that costs one load while nothing changes.
    stages: Cache<Arc<ArcSwap<StageMap<P>>>, Arc<StageMap<P>>>,
    accepted: Arc<CachePadded<Counter>>,
    ids: Ids,
}

impl<P: Send + 'static> Publisher<P> {
    pub(crate) fn new(core: &Arc<Core<P>>) -> Self {
        Self {
            stages: Cache::new(Arc::clone(core.stage_map())),
            accepted: core.enlist(),
            ids: Ids::new(core.random()),
            core: Arc::clone(core),
        }
    }

    /// Publishes, waiting for room as long as the stage's `OnFull` says.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope. Inside a handler or a callback it never waits: a full
    /// stage is `Full` at once.
    #[inline]
    pub fn publish(&mut self, envelope: Envelope<P>) -> Result<(), PublishError<P>> {
        self.enter(envelope, Wait::Policy)
    }

    /// Publishes without waiting.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope.
    #[inline]
    pub fn try_publish(&mut self, envelope: Envelope<P>) -> Result<(), PublishError<P>> {
        self.enter(envelope, Wait::No)
    }

    /// Publishes, waiting for room at most `limit`; the stage's `OnFull` decides at the end.
    ///
    /// # Errors
    /// [`PublishError`] with the envelope.
    pub fn publish_within(
        &mut self,
        envelope: Envelope<P>,
        limit: Duration,
    ) -> Result<(), PublishError<P>> {
        self.enter(envelope, Wait::Within(limit))
    }

    /// Publishes many, in order, and pays for the notification once per block. What the iterator
    /// gave is held back until a block is full or the iterator ends: one that waits, like that of a
    /// channel, holds up what it gave before.
    ///
    /// # Errors
    /// [`BatchError`] at the first that is refused, with it and what was taken out behind it; the
    /// others are still in the iterator.
    pub fn publish_batch(
        &mut self,
        envelopes: &mut impl Iterator<Item = Envelope<P>>,
    ) -> Result<usize, BatchError<P>> {
        let Self { core, stages, accepted, ids } = self;
        let fresh_id = || ids.next(|| core.clock().wall_ms());
        core.publish_batch(stages.load(), Tally::alone(accepted), fresh_id, envelopes)
    }

    #[inline]
    fn enter(&mut self, envelope: Envelope<P>, wait: Wait) -> Result<(), PublishError<P>> {
        let Self { core, stages, accepted, ids } = self;
        let fresh_id = || ids.next(|| core.clock().wall_ms());
        core.publish(stages.load(), Tally::alone(accepted), fresh_id, envelope, wait)
    }
}

impl<P: Send + 'static> Clone for Publisher<P> {
    fn clone(&self) -> Self {
        Self::new(&self.core)
    }
}

impl<P> fmt::Debug for Publisher<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}
