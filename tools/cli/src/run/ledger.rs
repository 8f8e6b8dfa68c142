//! What a run writes down beside the bus's own books: what the input sent, skipped and refused, and
//! what became of each record. Shared by the input, the workers and whoever watches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use waystage::clock::{Clock, SystemClock};
use waystage::metrics::Histogram;
use waystage::{Cause, Envelope, EnvelopeId, Route, Settled};

use super::account::Lines;
use super::record::{Place, Record};
use super::signals::Interrupt;

/// Refused records named one by one, and dead letters that a stage took; more are counted only.
const NAMED_MAX: usize = 10_000;
/// Records handed back by a stop that are named by file and line, of each stage.
const PLACES_KEPT: usize = 100;

/// A record that the bus never got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where it stands.
    pub place: Place,
    /// Why, in one word.
    pub kind: RefusalKind,
    /// Why, in words.
    pub words: String,
}

/// Why a record was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Longer than `max-line`.
    TooLong,
    /// Not UTF-8.
    NotText,
    /// A row of CSV with other fields than the header, in a flow that does not parse.
    NotARow,
    /// The first stage had no room, and its `on-full` says what then.
    Full,
}

impl RefusalKind {
    /// The stable name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NotText => "not_utf8",
            Self::NotARow => "not_a_row",
            Self::Full => "stage_full",
        }
    }
}

/// The records that a stop handed back from one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandedBack {
    /// How many.
    pub count: u64,
    /// Where the first of them stand.
    pub places: Vec<Place>,
}

/// A dead letter that a dead-letter stage took: the bus keeps none of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its id.
    pub id: EnvelopeId,
    /// Where the record stands.
    pub place: Place,
    /// Why it was given up.
    pub cause: Cause,
    /// Attempts at the last stage; none where a dead-letter stage took it.
    pub attempts: u16,
    /// The stages it visited, oldest first: the last took it, the one before gave it up.
    pub trail: Vec<Route>,
}

/// What asks a run to stop, looked at by the input itself: it must not take for its own end what
/// happens to it after that.
#[derive(Debug)]
struct Asking {
    interrupt: Interrupt,
    /// When the time of `--duration` is over.
    deadline_ns: Option<u64>,
}

/// Counters are statistics: Relaxed everywhere, read once all is at rest.
#[derive(Debug)]
pub struct Ledger {
    /// The clock of the run.
    pub clock: SystemClock,
    /// Lines read; rows of CSV.
    pub read: AtomicU64,
    /// Lines without any text.
    pub blank: AtomicU64,
    /// Header lines of CSV.
    pub headers: AtomicU64,
    /// Records read and not sent, because a stop came between.
    pub unsent: AtomicU64,
    /// Records the bus took.
    pub sent: AtomicU64,
    /// Records skipped because their id was seen.
    pub skipped: AtomicU64,
    /// Records without the id asked for.
    pub without_id: AtomicU64,
    /// Records refused.
    pub refused: AtomicU64,
    /// Bytes of input read.
    pub bytes: AtomicU64,
    /// How far behind its intended time a record was sent at most, in nanoseconds.
    pub behind_max_ns: AtomicU64,
    /// Records that were told what became of them.
    pub told: AtomicU64,
    /// When the last of them was told.
    pub last_told_ns: AtomicU64,
    /// From a record's intended time to its end.
    pub latency: Histogram,
    refusals: Mutex<Vec<Refusal>>,
    taken: Mutex<(u64, Vec<Taken>)>,
    handed_back: Mutex<HashMap<Option<Route>, HandedBack>>,
    stopped: AtomicBool,
    asking: OnceLock<Asking>,
    gate: Mutex<()>,
    changed: Condvar,
}

impl Ledger {
    /// Nothing happened yet.
    #[must_use]
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            clock: SystemClock::new(),
            read: zero(),
            blank: zero(),
            headers: zero(),
            unsent: zero(),
            sent: zero(),
            skipped: zero(),
            without_id: zero(),
            refused: zero(),
            bytes: zero(),
            behind_max_ns: zero(),
            told: zero(),
            last_told_ns: zero(),
            latency: Histogram::new(),
            refusals: Mutex::new(Vec::new()),
            taken: Mutex::new((0, Vec::new())),
            handed_back: Mutex::new(HashMap::new()),
            stopped: AtomicBool::new(false),
            asking: OnceLock::new(),
            gate: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Writes down what became of a record that was due at `due_ns`.
    pub fn tell(&self, due_ns: u64, end: &Settled, envelope: Option<&Envelope<Record>>) {
        let now = self.clock.monotonic_ns();
        match (end, envelope) {
            (Settled::Completed, _) => self.latency.record(now.saturating_sub(due_ns)),
            (Settled::Undelivered, Some(envelope)) => {
                let mut handed_back = held(&self.handed_back);
                let stage = handed_back.entry(envelope.current()).or_default();
                stage.count += 1;
                if stage.places.len() < PLACES_KEPT {
                    stage.places.push(envelope.payload().place.clone());
                }
            }
            (Settled::Dead(cause), Some(envelope)) => self.take(cause, envelope),
            _ => {}
        }
        self.last_told_ns.fetch_max(now, Ordering::Relaxed);
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    fn take(&self, cause: &Cause, envelope: &Envelope<Record>) {
        let mut taken = held(&self.taken);
        taken.0 += 1;
        if taken.1.len() < NAMED_MAX {
            taken.1.push(Taken {
                id: envelope.id(),
                place: envelope.payload().place.clone(),
                cause: cause.clone(),
                attempts: envelope.attempts(),
                trail: envelope.slip().trail().collect(),
            });
        }
    }

    /// The dead letters that dead-letter stages took: how many, and the first of them.
    #[must_use]
    pub fn taken(&self) -> (u64, Vec<Taken>) {
        held(&self.taken).clone()
    }

    /// What became of the lines that were read, as far as that is known now.
    #[must_use]
    pub fn lines(&self) -> Lines {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Lines {
            accepted: read(&self.sent),
            refused: read(&self.refused),
            skipped: read(&self.skipped),
            blank: read(&self.blank),
            headers: read(&self.headers),
            unsent: read(&self.unsent),
            read: read(&self.read),
        }
    }

    /// Writes a refused record down.
    pub fn refuse(&self, refusal: Refusal) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let mut refusals = held(&self.refusals);
        if refusals.len() < NAMED_MAX {
            refusals.push(refusal);
        }
    }

    /// The refused records, the first of them.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refusal> {
        held(&self.refusals).clone()
    }

    /// What a stop handed back, by the stage where it was.
    #[must_use]
    pub fn handed_back(&self) -> Vec<(Option<Route>, HandedBack)> {
        held(&self.handed_back).iter().map(|(stage, back)| (*stage, back.clone())).collect()
    }

    /// From now on these ask the input to end too.
    pub fn listen(&self, interrupt: &Interrupt, deadline_ns: Option<u64>) {
        // A ledger is of one run.
        let _ = self.asking.set(Asking { interrupt: interrupt.clone(), deadline_ns });
    }

    /// Asks the input to end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Whether the input was asked to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        let is_asked = |asking: &Asking| {
            let is_over = |deadline_ns| self.clock.monotonic_ns() >= deadline_ns;
            asking.interrupt.came() || asking.deadline_ns.is_some_and(is_over)
        };
        self.stopped.load(Ordering::Relaxed) || self.asking.get().is_some_and(is_asked)
    }

    /// Ends the waits of others: something changed.
    pub fn wake(&self) {
        drop(held(&self.gate));
        self.changed.notify_all();
    }

    /// Waits at most this long, less when something changes.
    pub fn wait(&self, limit: Duration) {
        let gate = held(&self.gate);
        // Whoever waits looks again in any case.
        let _ = self.changed.wait_timeout(gate, limit);
    }

    /// Waits until this time; false when the input was asked to end before.
    #[must_use]
    pub fn wait_until(&self, due_ns: u64) -> bool {
        let mut gate = held(&self.gate);
        loop {
            if self.is_stopped() {
                return false;
            }
            let left = due_ns.saturating_sub(self.clock.monotonic_ns());
            if left == 0 {
                return true;
            }
            let waited = self.changed.wait_timeout(gate, Duration::from_nanos(left));
            gate = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
