//! What can be set on a bus.

use crate::stage::settings::{SettingError, demand};
use crate::worker::{Idle, Pin, PoolSettings};

/// Settings of a bus.
///
/// ```
/// use waystage::{BusSettings, Idle};
/// let settings = BusSettings { workers: 2, idle: Idle::Yield, ..BusSettings::default() };
/// assert!(settings.validate().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusSettings {
    /// Threads of the bus's own pool: 1 to 64, or 0 for none (then call
    /// [`Bus::turn`](crate::Bus::turn)). Without threads a publish never waits for room, and a
    /// wait for a completion needs another thread that turns. Default: the cores this process may
    /// use. Not used on a shared pool.
    pub workers: usize,
    /// What a worker does without work. Default: `Park`. Not used on a shared pool.
    pub idle: Idle,
    /// Where workers run. Default: `Off`. Not used on a shared pool.
    pub pin: Pin,
    /// The most hops an envelope may take. 1 to 65,534; default 1,000.
    pub hop_limit: u32,
    /// Dead letters kept; the oldest is dropped, and counted, when another comes.
    /// 1 to 16,777,216; default 10,000.
    pub dead_letters: usize,
    /// One envelope in this many is timed: a power of two up to 4,096, 1 for all of them.
    /// Default 64.
    pub meter_every: u32,
    /// The most permits of all stages together. Default 4,096. Not used on a shared pool.
    pub tickets: usize,
    /// The seed of ids and jitter; `None` takes one from the machine. Set it to repeat a run.
    pub seed: Option<u64>,
}

impl Default for BusSettings {
    fn default() -> Self {
        let pool = PoolSettings::default();
        Self {
            workers: pool.workers,
            idle: pool.idle,
            pin: pool.pin,
            hop_limit: 1000,
            dead_letters: 10_000,
            meter_every: 64,
            tickets: pool.tickets,
            seed: None,
        }
    }
}

impl BusSettings {
    /// Checks each setting against its range.
    ///
    /// # Errors
    /// [`SettingError`] with the first field that is out of range.
    pub fn validate(&self) -> Result<(), SettingError> {
        demand(self.workers <= 64, "workers", self.workers, "0 to 64")?;
        demand((1..=65_534).contains(&self.hop_limit), "hop_limit", self.hop_limit, "1 to 65534")?;
        demand(
            (1..=1 << 24).contains(&self.dead_letters),
            "dead_letters",
            self.dead_letters,
            "1 to 16777216",
        )?;
        demand(
            self.meter_every.is_power_of_two() && self.meter_every <= 4096,
            "meter_every",
            self.meter_every,
            "a power of two up to 4096",
        )?;
        demand((1..=1 << 20).contains(&self.tickets), "tickets", self.tickets, "1 to 1048576")
    }

    pub(crate) fn pool(&self) -> PoolSettings {
        PoolSettings {
            workers: self.workers,
            idle: self.idle,
            pin: self.pin.clone(),
            tickets: self.tickets,
        }
    }
}
