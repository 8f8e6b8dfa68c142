//! The heart of a bus, shared by its handle, its publishers and its stages: implements
//! [`Engine`], that is routing, settlement and the books.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::dead_letter::{DeadLetter, DeadLetters};
use super::journal::Journal;
use super::publisher::Ids;
use super::registry::Registry;
use super::settings::BusSettings;
use crate::clock::Clock;
use crate::coord::on_worker::InTurn;
use crate::coord::ticket::{Desk, Scheduler};
use crate::envelope::envelope::{Callback, Cause, Settled};
use crate::envelope::{Envelope, EnvelopeId, Route};
use crate::metrics::counter::{Counter, Striped, Tally};
use crate::metrics::{Conservation, Lint, StageSnapshot};
use crate::stage::Stage;
use crate::stage::engine::{Engine, Fate, Scratch, StageMap, Unwritten};
use crate::stage::handler::guarded;
use crate::stage::hop::nanoseconds;
use crate::stage::lasting::Left;
use crate::stage::queue::Block;
use crate::stage::settings::Level;
use crate::sync::{
    AtomicU32, AtomicU64, AtomicUsize, CachePadded, Mutex, Ordering, Ring, SMALL, fence, lock,
};
use crate::worker::shared::Shared;

/// Scratches kept for later turns.
const SPARE: usize = if SMALL { 2 } else { 64 };
/// Empty blocks kept for all; as many may travel at once in a ring of default size.
const EMPTY_BLOCKS: usize = if SMALL { 2 } else { 512 };
/// The most memory that the empty blocks kept for all may take.
const EMPTY_BYTES: usize = 16 << 20;
/// Spare blocks one scratch keeps for itself.
const SPARE_BLOCKS: usize = 4;
/// The largest block or batch that a scratch keeps, in bytes.
const SPARE_BYTES: usize = 256 << 10;

/// Where a bus is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifecycle {
    /// Publishes are accepted.
    Running,
    /// Publishes are refused, queued work is held.
    Paused,
    /// Publishes are refused, itineraries are finished.
    Draining,
    /// Nothing moves any more.
    Stopped,
}

/// What became of envelopes, one set per worker and one for all other threads.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) accepted: Counter,
    completed: Counter,
    dead: Counter,
    expired: Counter,
    dropped: Counter,
    undelivered: Counter,
}

impl Books {
    fn of(&self, end: &Settled) -> &Counter {
        match end {
            Settled::Completed => &self.completed,
            Settled::Dead(_) => &self.dead,
            Settled::Expired => &self.expired,
            Settled::Dropped => &self.dropped,
            Settled::Undelivered => &self.undelivered,
        }
    }
}

/// Id generators and counters for threads that publish through handles.
const LANES: usize = if SMALL { 1 } else { 16 };

/// What some of these threads share.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) accepted: Counter,
    ids: Mutex<Ids>,
}

impl Lane {
    fn new(seed: u64) -> Self {
        Self { accepted: Counter::default(), ids: Mutex::new(Ids::new(seed)) }
    }

    pub(crate) fn fresh_id(&self, clock: &dyn Clock) -> EnvelopeId {
        let without_reading = lock(&self.ids).next_without_reading();
        // The clock is the embedder's code, which runs under no lock.
        without_reading.unwrap_or_else(|| {
            let wall_ms = clock.wall_ms();
            lock(&self.ids).next_at(wall_ms)
        })
    }
}

/// The bytes of so many envelopes.
const fn bytes_of<P>(count: usize) -> usize {
    count.saturating_mul(size_of::<Envelope<P>>())
}

/// A seed from the machine's source of randomness.
pub(crate) fn machine_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

pub(crate) struct Core<P> {
    /// Tells this bus's routes from those of others.
    pub(crate) number: u16,
    pub(crate) settings: BusSettings,
    pub(crate) shared: Arc<Shared>,
    scheduler: Arc<dyn Scheduler>,
    clock: Arc<dyn Clock>,
    pub(crate) registry: Mutex<Registry>,
    stages: Arc<ArcSwap<StageMap<P>>>,
    /// The address of what `stages` holds, or is about to hold: a view that has it is up to date.
    newest: AtomicUsize,
    /// Serialises changes of `stages` and of the lifecycle.
    pub(crate) changing: Mutex<()>,
    lifecycle: AtomicU32,
    books: Striped<Books>,
    /// Ids and counts of the threads that publish through handles.
    lanes: Box<[CachePadded<Lane>]>,
    /// Envelopes accepted by each [`super::Publisher`] made so far.
    publishers: Mutex<Vec<Arc<CachePadded<Counter>>>>,
    redriven: Counter,
    evicted: Counter,
    panics: Counter,
    pub(crate) dead: Mutex<DeadLetters<P>>,
    /// What arrived at a stage after the end of the bus, until the shutdown has named it.
    pub(crate) late: Mutex<Vec<(String, EnvelopeId)>>,
    random: AtomicU64,
    scratches: Ring<Box<Scratch<P>>>,
    blocks: Ring<Block<P>>,
    /// Bytes of `blocks`, and of those on their way in.
    block_bytes: CachePadded<AtomicUsize>,
    /// What happens to durable envelopes.
    pub(crate) journal: Option<Arc<Journal<P>>>,
    /// Envelopes taken up from the log.
    pub(crate) recovered: Counter,
}

impl<P: Send + 'static> Core<P> {
    pub(crate) fn new(
        number: u16,
        settings: BusSettings,
        shared: Arc<Shared>,
        seed: u64,
        journal: Option<Arc<Journal<P>>>,
    ) -> Self {
        let clock = Arc::clone(&shared.clock);
        Self {
            number,
            scheduler: Arc::clone(&shared) as Arc<dyn Scheduler>,
            clock,
            registry: Mutex::new(Registry::default()),
            stages: Arc::new(ArcSwap::from_pointee(StageMap(Vec::new()))),
            newest: AtomicUsize::new(0),
            changing: Mutex::new(()),
            lifecycle: AtomicU32::new(Lifecycle::Running as u32),
            books: Striped::new(shared.seats.len()),
            lanes: (0..LANES as u64).map(|lane| CachePadded::new(Lane::new(seed ^ lane))).collect(),
            publishers: Mutex::new(Vec::new()),
            redriven: Counter::default(),
            evicted: Counter::default(),
            panics: Counter::default(),
            dead: Mutex::new(DeadLetters::new(settings.dead_letters)),
            late: Mutex::new(Vec::new()),
            random: AtomicU64::new(seed),
            scratches: Ring::new(SPARE),
            blocks: Ring::new(EMPTY_BLOCKS),
            block_bytes: CachePadded::new(AtomicUsize::new(0)),
            journal,
            recovered: Counter::default(),
            shared,
            settings,
        }
    }

    pub(crate) fn lifecycle(&self) -> Lifecycle {
        // ORDERING: SeqCst: written together with the stages' words, off the fast path.
        match self.lifecycle.load(Ordering::SeqCst) {
            0 => Lifecycle::Running,
            1 => Lifecycle::Paused,
            2 => Lifecycle::Draining,
            _ => Lifecycle::Stopped,
        }
    }

    pub(crate) fn set_lifecycle(&self, lifecycle: Lifecycle) {
        // ORDERING: SeqCst, as in `lifecycle`.
        self.lifecycle.store(lifecycle as u32, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The registry of stages, for publishers that cache it.
    pub(crate) fn stage_map(&self) -> &Arc<ArcSwap<StageMap<P>>> {
        &self.stages
    }

    /// The name behind a route; empty when it is of another bus.
    pub(crate) fn name(&self, route: Route) -> String {
        if route.bus() != self.number {
            return String::new();
        }
        lock(&self.registry).name(route).unwrap_or("").to_owned()
    }

    /// A counter of its own for a publisher.
    pub(crate) fn enlist(&self) -> Arc<CachePadded<Counter>> {
        let counter = Arc::<CachePadded<Counter>>::default();
        let mut publishers = lock(&self.publishers);
        // Counters of publishers that are gone are folded into one, so the list stays bounded by
        // the publishers alive.
        let (gone, alive): (Vec<_>, Vec<_>) =
            publishers.drain(..).partition(|counter| Arc::strong_count(counter) == 1);
        // ORDERING: Acquire, pairs with the Release of the last publisher's `Arc`: what it counted
        // before it went is read below.
        fence(Ordering::Acquire);
        self.books.of(usize::MAX).0.accepted.add(gone.iter().map(|counter| counter.get()).sum());
        *publishers = alive;
        publishers.push(Arc::clone(&counter));
        counter
    }

    /// Counts an envelope as accepted on a thread that has no counter of its own.
    pub(crate) fn count_accepted(&self, worker: usize, count: u64) {
        let (books, alone) = self.books.of(worker);
        books.accepted.add_as(alone, count);
    }

    /// What the publishing thread number `lane` uses.
    pub(crate) fn lane(&self, lane: usize) -> &Lane {
        &self.lanes[lane % LANES]
    }

    /// Counts re-drives.
    pub(crate) fn redriven(&self) -> Tally<'_> {
        Tally::shared(&self.redriven)
    }

    /// A reading of one stage, with what is probably not meant about it.
    pub(crate) fn read_stage(&self, stage: &Stage<P>, now: u64) -> StageSnapshot {
        let mut reading = stage.snapshot(now);
        let (permits, workers) = (reading.permits, self.shared.seats.len());
        if permits as usize > workers {
            reading.lints.push(Lint::PermitsAboveWorkers { permits, workers });
        }
        reading
    }

    pub(crate) fn panics(&self) -> u64 {
        self.panics.get()
    }

    /// Replaces the registry of stages; the caller has locked `changing`.
    pub(crate) fn set_stages(&self, stages: Vec<Option<Arc<Stage<P>>>>) {
        let map = Arc::new(StageMap(stages));
        // ORDERING: SeqCst, before the map is there; pairs with `refresh`: a view that is older is
        // never taken for the newest, at worst it is fetched once more.
        self.newest.store(Arc::as_ptr(&map).addr(), Ordering::SeqCst);
        self.stages.store(map);
    }

    /// Lets go of the spare scratches, whose views of the stages would keep closed ones, and us,
    /// alive. The end of a stage is the end of what its envelopes own: under no lock.
    pub(crate) fn forget_scratches(&self) {
        for _ in 0..SPARE {
            if self.scratches.pop().is_none() {
                return;
            }
        }
    }

    /// The books now; exact at rest.
    pub(crate) fn conservation(&self) -> Conservation {
        // What was settled is read before what was accepted: so nothing seems settled that was
        // never accepted.
        let sum = |number: fn(&Books) -> &Counter| self.books.sum(|books| number(books).get());
        let evicted = self.evicted.get();
        let mut books = Conservation {
            completed: sum(|books| &books.completed),
            dead: sum(|books| &books.dead).saturating_sub(evicted),
            expired: sum(|books| &books.expired),
            dropped: sum(|books| &books.dropped) + evicted,
            undelivered: sum(|books| &books.undelivered),
            ..Conservation::default()
        };
        let publishers = lock(&self.publishers);
        books.accepted = sum(|books| &books.accepted)
            + self.lanes.iter().map(|lane| lane.accepted.get()).sum::<u64>()
            + publishers.iter().map(|counter| counter.get()).sum::<u64>();
        drop(publishers);
        books.redriven = self.redriven.get();
        books.recovered = self.recovered.get();
        books.in_flight = books.taken_in().saturating_sub(books.settled());
        books
    }

    /// An empty block for a batch publish.
    pub(crate) fn block(&self) -> Block<P> {
        let Some(block) = self.blocks.pop() else {
            return Block::new();
        };
        // ORDERING: Relaxed, here and below: the number only bounds itself.
        self.block_bytes.fetch_sub(bytes_of::<P>(block.capacity()), Ordering::Relaxed);
        block
    }

    /// Gives an empty block back.
    pub(crate) fn put_block(&self, block: Block<P>) {
        let bytes = bytes_of::<P>(block.capacity());
        let before = self.block_bytes.fetch_add(bytes, Ordering::Relaxed);
        // Beyond `EMPTY_BLOCKS` or `EMPTY_BYTES` they are freed.
        if before.saturating_add(bytes) > EMPTY_BYTES || self.blocks.push(block).is_err() {
            self.block_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Blocks kept, and their bytes.
    #[cfg(test)]
    pub(crate) fn blocks_kept(&self) -> (usize, usize) {
        (self.blocks.len(), self.block_bytes.load(Ordering::Relaxed))
    }

    /// Bytes of each block and batch that the next scratch has kept.
    #[cfg(test)]
    pub(crate) fn blocks_of_a_scratch(&self) -> Vec<usize> {
        let scratch = self.scratch();
        let mut all: Vec<_> = scratch.spare.iter().map(|block| block.capacity()).collect();
        all.extend([scratch.hand.capacity(), scratch.batch.capacity()]);
        self.put_scratch(scratch);
        all.into_iter().map(bytes_of::<P>).collect()
    }

    /// Marks an envelope as entering now: its id, its expiry, its meter. What failed on an earlier
    /// journey is forgotten.
    pub(crate) fn stamp(
        &self,
        envelope: &mut Envelope<P>,
        expiry: Option<std::time::Duration>,
        fresh_id: impl FnOnce() -> EnvelopeId,
    ) {
        if envelope.id().is_nil() {
            envelope.set_id(fresh_id());
        }
        let plain =
            envelope.extras().is_none() && envelope.attempts() == 0 && !envelope.is_metered();
        if !plain || expiry.is_some() || self.draws(envelope.id()) {
            envelope.forget_failures();
            self.stamp_time(envelope, expiry);
        }
    }

    /// Whether this one is among those that are metered.
    #[inline]
    fn draws(&self, id: EnvelopeId) -> bool {
        id.lot() & (u64::from(self.settings.meter_every) - 1) == 0
    }

    /// Its expiry and its meter begin now.
    pub(crate) fn stamp_time(
        &self,
        envelope: &mut Envelope<P>,
        expiry: Option<std::time::Duration>,
    ) {
        let now = self.clock.monotonic_ns();
        // One from an earlier journey does not count.
        if self.draws(envelope.id()) {
            envelope.set_stamp(now);
        } else {
            envelope.clear_stamp();
        }
        let own = envelope.extras().and_then(|extras| extras.time_to_live_ns);
        let life = own.or_else(|| expiry.map(nanoseconds));
        if life.is_some() || envelope.extras().is_some() {
            // Without a limit, one from an earlier journey ends here.
            envelope.extras_mut().expires_at = life.map(|life| now.saturating_add(life));
        }
    }

    /// Counts an end where threads that are no workers do.
    pub(super) fn count_end(&self, end: &Settled) {
        let (books, alone) = self.books.of(usize::MAX);
        books.of(end).add_as(alone, 1);
    }

    /// Drops what may run foreign destructors.
    pub(crate) fn drop_guarded<T>(&self, value: T) {
        if guarded(|| drop(value)).is_err() {
            self.panics.add(1);
        }
    }

    /// Counts and drops a dead letter for which there was no room.
    pub(crate) fn evict(&self, letter: Option<DeadLetter<P>>) {
        if let Some(letter) = letter {
            self.evicted.add(1);
            self.drop_guarded(letter);
        }
    }

    /// Tells the producer and drops what is left.
    #[cold]
    pub(super) fn tell(&self, mut envelope: Envelope<P>, end: Settled) {
        let callbacks = envelope.take_callbacks();
        // The log keeps those that were given up where they are.
        let given_up = match end {
            Settled::Dead(_) => envelope.extras_if_any().and_then(|extras| extras.cause.take()),
            _ => None,
        };
        if given_up.is_none() && matches!(end, Settled::Completed | Settled::Dead(_)) {
            // It was handled by its last stage: published again it has no business there.
            envelope.slip_mut().ratchet();
        }
        match callbacks {
            [None, None] => self.drop_guarded(envelope),
            [Some(callback), None] | [None, Some(callback)] => {
                self.call(callback, end, Some(envelope));
            }
            [Some(callback), Some(tracker)] => {
                self.call(callback, end.clone(), None);
                self.call(tracker, end, Some(envelope));
            }
        }
    }

    fn call(&self, callback: Callback<P, Settled>, end: Settled, envelope: Option<Envelope<P>>) {
        // On whatever thread it runs, waiting for the bus would be waiting for itself.
        let inside = InTurn::begin();
        let told = guarded(move || callback(end, envelope));
        drop(inside);
        if told.is_err() {
            self.panics.add(1);
        }
    }
}

impl<P: Send + 'static> Engine<P> for Core<P> {
    fn stages(&self) -> Arc<StageMap<P>> {
        self.stages.load_full()
    }

    #[inline]
    fn refresh(&self, view: &mut Arc<StageMap<P>>) {
        // ORDERING: Acquire, pairs with `set_stages`. A view keeps its address from being used
        // anew, so equal addresses are the same map.
        if self.newest.load(Ordering::Acquire) != Arc::as_ptr(view).addr() {
            *view = self.stages.load_full();
        }
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn scheduler(&self) -> &Arc<dyn Scheduler> {
        &self.scheduler
    }

    fn hop_limit(&self) -> u32 {
        self.settings.hop_limit
    }

    #[inline]
    fn settle(&self, desk: &Desk<'_>, envelope: Envelope<P>, end: Settled) {
        if envelope.is_durable() {
            return self.settle_durable(desk, envelope, end);
        }
        let (books, alone) = self.books.of(desk.worker);
        let count = books.of(&end);
        if envelope.extras().is_some() || std::mem::needs_drop::<P>() {
            // Told first, counted then: who sees the books at rest knows that all were told.
            self.tell(envelope, end);
        }
        count.add_as(alone, 1);
    }

    #[inline]
    fn settle_plain(&self, desk: &Desk<'_>) {
        let (books, alone) = self.books.of(desk.worker);
        books.completed.add_as(alone, 1);
    }

    fn bury(&self, desk: &Desk<'_>, mut envelope: Envelope<P>, cause: Cause, stage: &str) {
        // A stopped bus has no stages any more: what still arrives was not delivered.
        let no_stage = matches!(cause, Cause::StageClosed | Cause::NoRoute);
        if no_stage && self.lifecycle() == Lifecycle::Stopped {
            lock(&self.late).push((stage.to_owned(), envelope.id()));
            return self.settle(desk, envelope, Settled::Undelivered);
        }
        if envelope.is_durable() {
            return self.bury_durable(desk, envelope, cause);
        }
        let callbacks = envelope.take_callbacks();
        let trail = envelope.slip().trail().collect::<Vec<_>>();
        let letter = DeadLetter {
            cause: cause.clone(),
            stage: stage.to_owned(),
            attempts: envelope.attempts(),
            trail: trail.into_iter().map(|route| self.name(route)).collect(),
            at_ms: self.clock.wall_ms(),
            envelope,
        };
        let evicted = lock(&self.dead).keep(letter);
        let (books, alone) = self.books.of(desk.worker);
        for callback in callbacks.into_iter().flatten() {
            self.call(callback, Settled::Dead(cause.clone()), None);
        }
        books.dead.add_as(alone, 1);
        self.evict(evicted);
    }

    fn accept_emit(
        &self,
        desk: &Desk<'_>,
        parent: &Envelope<P>,
        ordinal: u32,
        emit: &mut Envelope<P>,
    ) {
        // The hop limit holds over all generations: a circle of emits ends, too.
        emit.set_hops(parent.hops() + 1);
        self.count_accepted(desk.worker, 1);
        self.stamp(emit, None, || EnvelopeId::derived(parent.id(), parent.hops(), ordinal));
    }

    fn random(&self) -> u64 {
        // Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
        // ORDERING: Relaxed: any number will do.
        let mut z = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn scratch(&self) -> Box<Scratch<P>> {
        self.scratches.pop().unwrap_or_else(|| Box::new(Scratch::new(self.stages())))
    }

    fn put_scratch(&self, mut scratch: Box<Scratch<P>>) {
        while scratch.spare.len() > SPARE_BLOCKS {
            self.put_block(scratch.spare.pop().expect("it is longer than SPARE_BLOCKS"));
        }
        scratch.shrink(SPARE_BYTES / bytes_of::<P>(1));
        // Beyond `SPARE` they are freed.
        let _ = self.scratches.push(scratch);
        if self.lifecycle() == Lifecycle::Stopped {
            self.forget_scratches();
        }
    }

    fn empty_block(&self) -> Block<P> {
        self.block()
    }

    fn count_panic(&self) {
        self.panics.add(1);
    }

    fn record(
        &self,
        envelope: &mut Envelope<P>,
        step: Fate,
        emits: &mut Vec<Envelope<P>>,
        left: &Left<'_>,
    ) -> Result<Vec<Envelope<P>>, Unwritten> {
        self.record_step(envelope, step, emits, left)
    }

    fn record_emit(&self, emit: &mut Envelope<P>, level: Level) -> Result<(), Unwritten> {
        self.record_one(emit, level)
    }

    fn recall(&self, id: EnvelopeId) -> Option<Envelope<P>> {
        self.recall_durable(id)
    }
}

impl<P> fmt::Debug for Core<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("number", &self.number).finish_non_exhaustive()
    }
}
