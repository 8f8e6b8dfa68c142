//! Time, passed in: the machine's clock, and one that a test or a simulator moves by hand.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::sync::{AtomicU64, Ordering};

/// A source of time.
///
/// Monotonic readings measure; wall readings only go into envelope ids and dead letters, so a step
/// of the wall clock changes no decision of the bus.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    /// Nanoseconds since an arbitrary start; never goes down.
    fn monotonic_ns(&self) -> u64;
    /// Milliseconds since 1970-01-01T00:00:00Z; may step.
    fn wall_ms(&self) -> u64;
}

/// The machine's clock.
///
/// ```
/// use waystage::clock::{Clock, SystemClock};
/// let clock = SystemClock::new();
/// assert!(clock.monotonic_ns() <= clock.monotonic_ns());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn monotonic_ns(&self) -> u64 {
        // Starts at 1, so that zero can stand for "no reading". 2^64 ns are 584 years.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX - 1) + 1
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn wall_ms(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that moves only when told to: virtual time for tests and simulations.
///
/// ```
/// use std::time::Duration;
/// use waystage::clock::{Clock, ManualClock};
/// let clock = ManualClock::new();
/// let before = clock.monotonic_ns();
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.monotonic_ns() - before, 5_000_000_000);
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Nanoseconds; written by `advance`, read by everyone.
    monotonic: AtomicU64,
    /// Milliseconds; written by `set_wall_ms` and `advance`, read by everyone.
    wall: AtomicU64,
}

impl ManualClock {
    /// A clock at one nanosecond, on 2024-01-01.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                monotonic: AtomicU64::new(1),
                wall: AtomicU64::new(1_704_067_200_000),
            }),
        }
    }

    /// Moves both readings forward.
    pub fn advance(&self, by: Duration) {
        let nanoseconds = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // ORDERING: Relaxed on all four: a reading publishes no other data.
        self.shared.monotonic.fetch_add(nanoseconds, Ordering::Relaxed);
        self.shared.wall.fetch_add(nanoseconds / 1_000_000, Ordering::Relaxed);
    }

    /// Steps the wall clock to any time, backwards too; the monotonic reading stays.
    pub fn set_wall_ms(&self, milliseconds: u64) {
        self.shared.wall.store(milliseconds, Ordering::Relaxed);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn monotonic_ns(&self) -> u64 {
        self.shared.monotonic.load(Ordering::Relaxed)
    }

    fn wall_ms(&self) -> u64 {
        self.shared.wall.load(Ordering::Relaxed)
    }
}
