//! What can be set on a stage, with units, ranges and defaults; wrong settings are refused by name.

use std::time::Duration;

/// What a publish does when the stage stays full for as long as the call waits.
///
/// It governs publishes only: a hop never obeys it, it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFull {
    /// Refuse at once with `Full`.
    Reject,
    /// `publish` waits up to this long for room, then refuses with `Full`. `try_publish` does
    /// not wait; nor does a publish from a handler or callback, or on a pool without threads, where
    /// only its caller could make room.
    Block(Duration),
    /// The new envelope is the one given up: refused like `Reject`, counted as refused.
    DropNewest,
    /// The oldest waiting envelope makes room and is counted as dropped.
    DropOldest,
}

/// What is promised about envelopes that enter at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Level {
    /// In memory: lost with the process.
    #[default]
    AtMostOnce,
    /// Logged before it is acknowledged, replayed after a crash.
    AtLeastOnce,
    /// Logged and deduplicated.
    ExactlyOnce,
}

/// Where a failed envelope waits for its next attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Retry {
    /// At once, in its place: nothing overtakes it, so a stage with one permit stays first in,
    /// first out. In a batch handler the others of its batch that succeeded go on before it.
    InPlace,
    /// After a pause, off the ring: `first` doubles with each failure up to `max`, and is then
    /// spread by up to `jitter` (0 to 1) of itself in both directions. Others overtake it.
    Delayed {
        /// The pause after the first failure. More than zero.
        first: Duration,
        /// The longest pause. At least `first`, at most 1 day.
        max: Duration,
        /// The spread, 0 to 1.
        jitter: f64,
    },
}

/// Settings of one stage.
///
/// ```
/// use waystage::StageSettings;
/// let settings = StageSettings { permits: 4, capacity: 64, ..StageSettings::default() };
/// assert!(settings.validate().is_ok());
/// let wrong = StageSettings { permits: 0, ..settings };
/// assert_eq!(wrong.validate().unwrap_err().to_string(),
///     "`permits` is 0; it must be 1 to 4096");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StageSettings {
    /// Slots of the ring: envelopes that may wait. 1 to 16,777,216; default 1,024. Envelopes that
    /// came in batches are bounded apart, by the same number.
    pub capacity: usize,
    /// Concurrency: workers that may be in its handler at once. 1 to 4,096; default 1, which keeps
    /// the stage first in, first out.
    pub permits: u32,
    /// Envelopes a worker takes before it looks at another stage, and the size of a block.
    /// 1 to 65,536; default 64.
    pub batch: usize,
    /// What a publish does when it is full. Default: `Block` for 5 seconds.
    pub on_full: OnFull,
    /// What is promised to envelopes that enter here. Default: `AtMostOnce`.
    pub level: Level,
    /// Attempts before an envelope is given up, the first included. 1 to 255; default 1.
    pub attempts: u16,
    /// Where it waits between attempts. Default: `InPlace`.
    pub retry: Retry,
    /// The stage to which envelopes go that its handler failed, or whose next hop names no stage,
    /// instead of the bus's dead letters. Those at the hop limit, and those that this stage did
    /// not take in or handle (`NextStageFull`, `NoConsumer`, `StageClosed`), are dead letters
    /// anyway, and so are emits whose first hop names no stage. It must not be the stage itself.
    /// Default: none.
    pub dead_letter: Option<String>,
    /// How long a hop into this stage waits for room while no attempt is begun here: longer than
    /// the longest call of its handler, and than any pause of a stage that it leads to, since its
    /// permits wait where the next stage is paused and full. By it a circle of full stages ends.
    /// Where attempts go on it is counted anew. 1 ms to 1 day; default 30 seconds.
    pub hop_timeout: Duration,
    /// How long an envelope published here without a time to live of its own may live, its later
    /// stages included: where it is not handled in time it expires. Default: no limit.
    pub expiry: Option<Duration>,
    /// Bytes of the state that its handler may save ([`Context::save`](crate::Context::save)), keys
    /// included. A stage that saves has one permit, so that what it saved is what the next attempt
    /// finds, and needs a bus with a log. 0 to 16 MiB; default 0: it saves nothing.
    pub saves: usize,
    /// Envelopes one attempt may emit. 0 to 65,536; default 1,024.
    pub emits: usize,
}

impl Default for StageSettings {
    fn default() -> Self {
        Self {
            capacity: 1024,
            permits: 1,
            batch: 64,
            on_full: OnFull::Block(Duration::from_secs(5)),
            level: Level::AtMostOnce,
            attempts: 1,
            retry: Retry::InPlace,
            dead_letter: None,
            hop_timeout: Duration::from_secs(30),
            expiry: None,
            saves: 0,
            emits: 1024,
        }
    }
}

/// The longest wait that can be set.
const DAY: Duration = Duration::from_secs(86_400);

/// A setting that is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}; it must be {must}")]
pub struct SettingError {
    /// The field's name.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What it must be.
    pub must: &'static str,
}

/// Refuses `value` with a typed error unless `fine`.
pub(crate) fn demand(
    fine: bool,
    field: &'static str,
    value: impl std::fmt::Debug,
    must: &'static str,
) -> Result<(), SettingError> {
    if fine {
        return Ok(());
    }
    Err(SettingError { field, value: format!("{value:?}"), must })
}

impl StageSettings {
    /// Checks each setting against its range.
    ///
    /// # Errors
    /// [`SettingError`] with the first field that is out of range.
    pub fn validate(&self) -> Result<(), SettingError> {
        demand((1..=1 << 24).contains(&self.capacity), "capacity", self.capacity, "1 to 16777216")?;
        demand((1..=4096).contains(&self.permits), "permits", self.permits, "1 to 4096")?;
        demand((1..=1 << 16).contains(&self.batch), "batch", self.batch, "1 to 65536")?;
        demand((1..=255).contains(&self.attempts), "attempts", self.attempts, "1 to 255")?;
        demand(self.emits <= 1 << 16, "emits", self.emits, "0 to 65536")?;
        demand(self.saves <= 16 << 20, "saves", self.saves, "0 to 16777216")?;
        let is_alone = self.saves == 0 || self.permits == 1;
        demand(is_alone, "permits", self.permits, "1 where a stage saves state")?;
        demand(
            (Duration::from_millis(1)..=DAY).contains(&self.hop_timeout),
            "hop_timeout",
            self.hop_timeout,
            "1 ms to 1 day",
        )?;
        if let OnFull::Block(wait) = self.on_full {
            demand(wait <= DAY, "on_full", wait, "a wait of at most 1 day")?;
        }
        if let Some(expiry) = self.expiry {
            demand(!expiry.is_zero(), "expiry", expiry, "more than zero")?;
        }
        self.validate_retry()
    }

    fn validate_retry(&self) -> Result<(), SettingError> {
        let Retry::Delayed { first, max, jitter } = self.retry else {
            return Ok(());
        };
        demand(!first.is_zero(), "retry", first, "a first pause of more than zero")?;
        demand(max >= first, "retry", max, "a longest pause of at least the first one")?;
        demand(max <= DAY, "retry", max, "a longest pause of at most 1 day")?;
        demand((0.0..=1.0).contains(&jitter), "retry", jitter, "a jitter of 0 to 1")
    }
}
