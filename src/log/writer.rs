//! Many threads append, one writes: whoever finds the writer's permit free writes its own record;
//! whoever does not queues it, and the one that has the permit takes it along.
//!
//! A log that has no room for another segment refuses the record and goes on; one that cannot write
//! is poisoned. The steps Q1-Q3 and R1-R3 stand in `README.md` under *Writing together*.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::background::Background;
use super::error::LogError;
use super::flush::Flush;
use super::flusher::Flusher;
use super::frame::Kind;
use super::poison::Poison;
use super::read::Followers;
use super::segment::Location;
use super::settings::Sync;
use super::tail::Tail;
use crate::clock::Clock;
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, Ring, fence, lock, try_lock,
    yield_now,
};

/// Records that can wait for the one that writes.
const QUEUE: usize = if crate::sync::SMALL { 2 } else { 1_024 };
/// Bytes of bodies that can wait, unless a single one is larger.
const QUEUE_BYTES: usize = 16 << 20;
/// So many bytes are written out before a flush asks for it.
const LAZY_BYTES: usize = 256 << 10;
/// Stands for the sequence of a record that found no room.
const REFUSED: u64 = u64::MAX;

/// A record that waits to be written.
#[derive(Debug)]
struct Pending {
    kind: Kind,
    body: Vec<u8>,
    place: Arc<Place>,
}

/// Where the sequence of a queued record will stand; zero until it is written.
#[derive(Debug, Default)]
pub(crate) struct Place(AtomicU64);

impl Place {
    /// The sequence; `None` until it is written, and an error when it found no room.
    ///
    /// # Errors
    /// [`LogError::NoRoom`].
    pub(crate) fn sequence(&self) -> Result<Option<u64>, LogError> {
        // ORDERING: Acquire, pairs with the store in `Writer::write`.
        match self.0.load(Ordering::Acquire) {
            0 => Ok(None),
            REFUSED => Err(LogError::NoRoom {
                name: "the next segment".to_owned(),
                source: std::io::ErrorKind::StorageFull.into(),
            }),
            sequence => Ok(Some(sequence)),
        }
    }
}

/// What became of an append.
#[derive(Debug)]
pub(crate) enum Appended {
    /// It has this sequence, and is written.
    Written(u64),
    /// Somebody else writes it.
    Queued(Arc<Place>),
}

/// What a flush has to flush.
#[derive(Debug)]
pub(crate) struct Active {
    /// The number of the segment that is written to.
    pub(crate) segment: u64,
    /// Segments left behind without a flush, then this one.
    pub(crate) flushers: Vec<Arc<Flusher>>,
}

/// How far a log is written, and how far it is durable.
#[derive(Debug)]
pub(crate) struct Progress {
    appended: AtomicU64,
    durable: AtomicU64,
}

impl Progress {
    /// Everything up to here has its sequence, and is in its file, or in the buffer that the next
    /// flush writes out first.
    pub(crate) fn appended(&self) -> u64 {
        // ORDERING: Acquire, pairs with the store in `Writer::write`.
        self.appended.load(Ordering::Acquire)
    }

    /// Everything up to here is safe.
    pub(crate) fn durable(&self) -> u64 {
        // ORDERING: Acquire, pairs with `reach`.
        self.durable.load(Ordering::Acquire)
    }

    /// Says that everything up to `sequence` is safe; true when that is new.
    pub(crate) fn reach(&self, sequence: u64) -> bool {
        // ORDERING: AcqRel, pairs with `durable`: whoever sees it, sees the flush behind it.
        self.durable.fetch_max(sequence, Ordering::AcqRel) < sequence
    }
}

/// The writing side of a log.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Only ever tried, never waited for.
    pub(super) tail: Mutex<Tail>,
    queue: Ring<Pending>,
    active: ArcSwap<Active>,
    pub(crate) progress: Progress,
    pub(crate) poison: Poison,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) flush: Flush,
    pub(crate) background: Background,
    pub(super) followers: Followers,
    /// Whether what is written may be shown, as nobody flushes it.
    shows_written: bool,
    /// Whether records may wait in the buffer until a flush: nobody is told of them before it.
    is_lazy: bool,
    /// Nanoseconds within which a flush has to begin after a write, if it has to.
    within: Option<u64>,
    /// Whether somebody is still to be woken for a record that was added under a lock.
    owes_wake: AtomicBool,
    /// Bytes of the bodies in the queue.
    queued_bytes: AtomicUsize,
    body_bytes_max: usize,
}

impl Writer {
    /// Goes on at the end of `tail`, everything before which is durable.
    pub(crate) fn new(tail: Tail, clock: Arc<dyn Clock>, sync: Sync) -> Self {
        let within = match sync {
            Sync::Within(time) => Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            Sync::Each | Sync::Os => None,
        };
        let last = tail.sequence();
        Self {
            queue: Ring::new(QUEUE),
            active: ArcSwap::from_pointee(active(&tail)),
            progress: Progress { appended: AtomicU64::new(last), durable: AtomicU64::new(last) },
            poison: Poison::default(),
            clock,
            flush: Flush::new(),
            background: Background::new(Arc::clone(tail.preparer())),
            followers: Followers::new(),
            shows_written: sync == Sync::Os,
            is_lazy: sync == Sync::Each,
            within,
            owes_wake: AtomicBool::new(false),
            queued_bytes: AtomicUsize::new(0),
            body_bytes_max: tail.body_bytes_max(),
            tail: Mutex::new(tail),
        }
    }

    /// The longest body of a record.
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    /// What the next flush has to flush. To be read after the written position that it shall cover.
    pub(crate) fn active(&self) -> Arc<Active> {
        self.active.load_full()
    }

    /// Everything up to here may be shown to those who follow the log. Where nothing is flushed,
    /// what has a sequence is in its file too.
    pub(crate) fn visible(&self) -> u64 {
        if self.shows_written { self.progress.appended() } else { self.progress.durable() }
    }

    /// Adds a record. Records of one thread keep their order.
    ///
    /// # Errors
    /// When it is too long, when the log is poisoned, or becomes so by this write.
    pub(crate) fn append(&self, kind: Kind, body: &[u8]) -> Result<Appended, LogError> {
        let (size, limit) = (body.len(), self.body_bytes_max);
        if size > limit {
            return Err(LogError::TooLarge { size, limit });
        }
        self.poison.check()?;
        if let Some(tail) = try_lock(&self.tail) {
            let own = Own { kind, body, admit: &mut |_, _| Ok(()), wakes: true };
            let written = self.write(tail, Some(own), !self.is_lazy);
            self.take_along();
            return written.map(Appended::Written);
        }
        let place = Arc::new(Place::default());
        let mut pending = Pending { kind, body: body.to_vec(), place: Arc::clone(&place) };
        // Q1
        while let Err(refused) = self.enqueue(pending) {
            pending = refused;
            self.poison.check()?;
            self.take_along();
            yield_now();
        }
        self.take_along();
        Ok(Appended::Queued(place))
    }

    /// Adds a record once the permit is free, if `admit` says so: it is told the record's sequence
    /// and where it will stand, while nobody else can add one. Nobody is woken: the caller may hold
    /// a lock, and calls [`wake`](Self::wake) without it.
    ///
    /// # Errors
    /// As [`append`](Self::append), or what `admit` says; then nothing was added.
    pub(crate) fn append_if(
        &self,
        kind: Kind,
        body: &[u8],
        admit: &mut dyn FnMut(u64, Location) -> Result<(), LogError>,
    ) -> Result<u64, LogError> {
        let own = Own { kind, body, admit, wakes: false };
        self.write(lock(&self.tail), Some(own), !self.is_lazy)
    }

    /// Wakes whom [`append_if`](Self::append_if) left, and takes in what was queued meanwhile.
    pub(crate) fn wake(&self) {
        self.take_along();
        // ORDERING: Relaxed: set and taken by the same thread, or by one more wake-up than needed.
        if self.owes_wake.swap(false, Ordering::Relaxed) {
            self.flush.wake(self, false);
        }
    }

    /// Pushes a record into the queue, if there is a place, and room for its bytes.
    fn enqueue(&self, pending: Pending) -> Result<(), Pending> {
        let bytes = pending.body.len();
        // ORDERING: Relaxed on all: a bound, not a signal.
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= QUEUE_BYTES;
        let pushed = if fits { self.queue.push(pending) } else { Err(pending) };
        if pushed.is_err() {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        pushed
    }

    /// Writes what is queued, unless somebody else does (Q2, Q3; R2, R3).
    pub(crate) fn take_along(&self) {
        loop {
            // ORDERING: SeqCst: between our push, or our release of the permit, and the look at the
            // other of the two; pairs with itself in another thread.
            fence(Ordering::SeqCst);
            if self.queue.is_empty() {
                return;
            }
            let Some(tail) = try_lock(&self.tail) else { return };
            if self.write(tail, None, !self.is_lazy).is_err() {
                // Poisoned: everybody is told by that.
                return;
            }
        }
    }

    /// Hands everything that has a sequence to the operating system, and returns the last one.
    /// Waits for the permit.
    ///
    /// # Errors
    /// When the log is or becomes poisoned.
    pub(crate) fn write_out(&self) -> Result<u64, LogError> {
        let written = self.write(lock(&self.tail), None, true);
        self.take_along();
        written
    }

    /// Takes in the queue and then the own record, writes them out if `now`, and gives the permit
    /// back (R1).
    fn write(
        &self,
        mut tail: MutexGuard<'_, Tail>,
        own: Option<Own<'_>>,
        now: bool,
    ) -> Result<u64, LogError> {
        self.poison.check()?;
        let wakes = own.as_ref().is_none_or(|own| own.wakes);
        let mut places = Vec::new();
        let result = self.fill(&mut tail, own, &mut places, now);
        if tail.segment() != self.active.load().segment {
            self.active.store(Arc::new(active(&tail)));
        }
        let is_written = !matches!(result, Err(Stop::Poison(_)));
        if is_written {
            // ORDERING: Release, pairs with `Progress::appended`: a flush that covers it sees the
            // segment it is in.
            self.progress.appended.store(tail.sequence(), Ordering::Release);
        }
        // Before the permit is free: nobody may write behind what is not certain.
        let result = result.map_err(|stop| match stop {
            Stop::Refused(error) => error,
            Stop::Poison(error) => self.poison.set("write", error),
        });
        let has_flushed = is_written && self.progress.reach(tail.watermark());
        let next = tail.segment() + 1;
        let wants_segment = tail.is_half_full() && tail.preparer().wants(next);
        drop(tail);
        let has_places = !places.is_empty();
        for (place, sequence) in places {
            if is_written || sequence == REFUSED {
                // ORDERING: Release, pairs with `Place::sequence`.
                place.0.store(sequence, Ordering::Release);
            }
        }
        if !wakes {
            // ORDERING: Relaxed, as in `wake`.
            self.owes_wake.store(true, Ordering::Relaxed);
        } else if has_places || has_flushed || !is_written {
            self.flush.wake(self, false);
        } else if self.shows_written {
            self.followers.wake(self);
        }
        if wants_segment {
            self.background.prepare(next);
        }
        if let Some(within) = self.within {
            self.background.flush_by(self.clock.monotonic_ns().saturating_add(within));
        }
        result
    }

    fn fill(
        &self,
        tail: &mut Tail,
        own: Option<Own<'_>>,
        places: &mut Vec<(Arc<Place>, u64)>,
        write_now: bool,
    ) -> Result<u64, Stop> {
        tail.set_watermark(self.progress.durable());
        let now = self.clock.wall_ms().saturating_mul(1_000_000);
        for _ in 0..QUEUE {
            let Some(Pending { kind, body, place }) = self.queue.pop() else { break };
            self.queued_bytes.fetch_sub(body.len(), Ordering::Relaxed);
            match Stop::sort(tail.push(kind, &body, now)) {
                Ok(sequence) => places.push((place, sequence)),
                Err(Stop::Refused(_)) => places.push((place, REFUSED)),
                Err(poison) => return Err(poison),
            }
        }
        let add = |Own { kind, body, admit, .. }: Own<'_>| {
            let (sequence, location) = Stop::sort(tail.prepare(body.len()))?;
            admit(sequence, location).map_err(Stop::Refused)?;
            Stop::sort(tail.push(kind, body, now))
        };
        let own = own.map(add).transpose();
        if matches!(own, Err(Stop::Poison(_))) {
            return own.map(|_| 0);
        }
        if write_now || tail.buffered() >= LAZY_BYTES {
            tail.write().map_err(Stop::Poison)?;
        }
        Ok(own?.unwrap_or_else(|| tail.sequence()))
    }
}

/// The record of who has the permit.
struct Own<'a> {
    kind: Kind,
    body: &'a [u8],
    admit: &'a mut dyn FnMut(u64, Location) -> Result<(), LogError>,
    /// Whether those who wait may be woken at once: their wakers are foreign code.
    wakes: bool,
}

/// Why a record was not written.
enum Stop {
    /// It alone was not.
    Refused(LogError),
    /// Nothing is certain any more.
    Poison(LogError),
}

impl Stop {
    fn sort<T>(result: Result<T, LogError>) -> Result<T, Self> {
        result.map_err(|error| match error {
            LogError::NoRoom { .. } | LogError::TooLarge { .. } => Self::Refused(error),
            _ => Self::Poison(error),
        })
    }
}

fn active(tail: &Tail) -> Active {
    Active { segment: tail.segment(), flushers: tail.flushers() }
}
