//! What a reading of the meters returns: plain data, consistent at rest.

use std::fmt;

use super::histogram::Quantiles;

/// The books of a bus: everything accepted is somewhere.
///
/// ```
/// use waystage::Conservation;
/// let books =
///     Conservation { accepted: 3, completed: 2, in_flight: 1, ..Conservation::default() };
/// assert!(books.holds());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conservation {
    /// Publishes, emits and copies taken in.
    pub accepted: u64,
    /// Taken in again from a log after a restart.
    pub recovered: u64,
    /// Taken in again from the dead letters.
    pub redriven: u64,
    /// Ended their itinerary.
    pub completed: u64,
    /// Given up on.
    pub dead: u64,
    /// Not handled before their deadline.
    pub expired: u64,
    /// Dropped by `DropOldest`, or evicted from the full dead-letter store.
    pub dropped: u64,
    /// Handed back by the shutdown.
    pub undelivered: u64,
    /// Waiting or being handled.
    pub in_flight: u64,
}

impl Conservation {
    /// `accepted + recovered + redriven = completed + dead + expired + dropped + undelivered +
    /// in_flight`.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.taken_in() == self.settled() + self.in_flight
    }

    /// The left side.
    #[must_use]
    pub fn taken_in(&self) -> u64 {
        self.accepted + self.recovered + self.redriven
    }

    /// The right side without what is in flight.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.completed + self.dead + self.expired + self.dropped + self.undelivered
    }
}

/// Something about a stage that is allowed and probably not meant.
///
/// ```
/// use waystage::{Bus, BusSettings, Lint, StageSettings};
/// let bus: Bus<u64> = Bus::start(BusSettings { workers: 2, ..BusSettings::default() })?;
/// let eight = StageSettings { permits: 8, ..StageSettings::default() };
/// bus.add_stage("resize", eight, |_| Ok(()))?;
/// let stage = &bus.snapshot().stages[0];
/// assert_eq!(stage.lints, [Lint::PermitsAboveWorkers { permits: 8, workers: 2 }]);
/// assert_eq!(stage.lints[0].to_string(),
///     "W2 8 permits for 2 workers: at most 2 of its calls run at once; the other permits \
///      help only while calls of it wait for room elsewhere");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lint {
    /// More permits than the pool has workers. The others are of use only while permits wait with
    /// hops for room in another stage, and to `publish_inline`, which runs a handler on the thread
    /// of its caller.
    PermitsAboveWorkers {
        /// The stage's permits.
        permits: u32,
        /// Workers of the pool; one on a pool without threads.
        workers: usize,
    },
}

impl Lint {
    /// Its short name, which stays the same in all versions.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::PermitsAboveWorkers { .. } => "W2",
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::PermitsAboveWorkers { permits, workers } = self;
        write!(
            f,
            "{} {permits} permits for {workers} workers: at most {workers} of its calls run at \
             once; the other permits help only while calls of it wait for room elsewhere",
            self.id()
        )
    }
}

/// A reading of one stage.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StageSnapshot {
    /// Its name.
    pub name: String,
    /// Slots of its ring.
    pub capacity: usize,
    /// Its concurrency.
    pub permits: u32,
    /// Permits given out now.
    pub permits_used: u32,
    /// Envelopes waiting in its ring.
    pub depth: u64,
    /// Envelopes of other stages waiting for room in this one.
    pub hops_waiting: u64,
    /// Failed envelopes waiting for their retry.
    pub delayed: u64,
    /// Envelopes taken up by a worker and not finished.
    pub in_flight: u64,
    /// Envelopes that came in: handled, being handled, waiting (dropped ones no more). Each counts
    /// once per visit, however many attempts that takes. A retry that waits in line again, or whose
    /// stage was closed meanwhile, is left out.
    pub entered: u64,
    /// Envelopes handled with success.
    pub done: u64,
    /// Attempts that failed, panics included.
    pub failed: u64,
    /// Attempts that panicked.
    pub panicked: u64,
    /// Failed attempts that were followed by another.
    pub retried: u64,
    /// Envelopes given up on here.
    pub dead: u64,
    /// Envelopes that expired here.
    pub expired: u64,
    /// Envelopes dropped here by `DropOldest`.
    pub dropped: u64,
    /// Publishes refused here, whatever the reason.
    pub refused: u64,
    /// Handed back by the shutdown from here.
    pub undelivered: u64,
    /// At most this old, in nanoseconds, is the oldest waiting envelope; 0 when none waits.
    pub oldest_age_ns: u64,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether it is closed.
    pub closed: bool,
    /// What is probably not meant about it; in a snapshot of a bus only.
    pub lints: Vec<Lint>,
    /// Time from entering to being taken up, of the metered envelopes.
    pub wait: Quantiles,
    /// Time in the handler, of the metered envelopes.
    pub service: Quantiles,
}

/// A reading of one worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerSnapshot {
    /// Turns it began, those that found nothing included.
    pub turns: u64,
    /// Times it parked.
    pub parks: u64,
    /// Times it was woken from a park.
    pub wakes: u64,
    /// Tickets it took from the queue of another.
    pub steals: u64,
}

/// A reading of the whole bus.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// The books.
    pub conservation: Conservation,
    /// Its open stages, in the order their names first came up.
    pub stages: Vec<StageSnapshot>,
    /// The workers of its pool.
    pub workers: Vec<WorkerSnapshot>,
    /// Dead letters kept now.
    pub dead_letters: usize,
    /// Completion callbacks and destructors that panicked.
    pub panics_outside_handlers: u64,
}
