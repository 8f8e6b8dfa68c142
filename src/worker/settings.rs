//! What can be set on a pool.

use crate::coord::sleep::WORKERS_MAX;
use crate::sync::cores;

/// What a worker does when it finds nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Idle {
    /// Spin shortly, yield for about the price of a wake-up (50 microseconds), then park. Costs
    /// nothing while nothing happens; the first message after a pause pays the wake-up.
    #[default]
    Park,
    /// Yield to other threads for ever: low latency without starving them, at a full core.
    Yield,
    /// Spin for ever: the lowest latency. Only with a core to itself per worker.
    Spin,
}

/// Which cores the workers run on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pin {
    /// Wherever the operating system puts them.
    #[default]
    Off,
    /// Worker i on the i-th core of those the process may use, around again when there are more
    /// workers.
    InOrder,
    /// Worker i on the i-th core of this list, around again when there are more workers.
    Cores(Vec<usize>),
}

/// Settings of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// Threads: 1 to 64, or 0 for none: then the embedder calls `turn` from its own loop.
    /// Default: the number of cores the process may use, at most 64.
    pub workers: usize,
    /// What a worker does without work. Default: `Park`.
    pub idle: Idle,
    /// Where workers run. Default: `Off`.
    pub pin: Pin,
    /// The most permits of all stages together: run queues are sized to it. 1 to 1,048,576;
    /// default 4,096.
    pub tickets: usize,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self { workers: cores().min(WORKERS_MAX), idle: Idle::Park, pin: Pin::Off, tickets: 4096 }
    }
}

/// Why a pool could not be started, or took no more stages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A setting is out of range.
    #[error("`workers` is {0}; it must be 0 to {WORKERS_MAX}")]
    Workers(usize),
    /// A setting is out of range.
    #[error("`tickets` is {0}; it must be 1 to 1048576")]
    Tickets(usize),
    /// A core that does not exist, or that this process may not use.
    #[error("core {core} is not among those this process may use: {allowed:?}")]
    NoSuchCore {
        /// The core asked for.
        core: usize,
        /// The cores there are.
        allowed: Vec<usize>,
    },
    /// Pinning was asked for, and there is no core to pin to.
    #[error("no cores to pin to: the list is empty, or the system does not tell which there are")]
    NoCores,
    /// All stages together have more permits than the pool has tickets.
    #[error("{asked} more permits do not fit: {left} of {limit} tickets are left; raise `tickets`")]
    TooManyPermits {
        /// Permits asked for.
        asked: usize,
        /// Tickets left.
        left: usize,
        /// The pool's limit.
        limit: usize,
    },
    /// The operating system refused a thread.
    #[error("a worker thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

impl PoolSettings {
    /// Checks each setting against its range.
    ///
    /// # Errors
    /// [`PoolError`] with the first one that is out of range.
    pub fn validate(&self) -> Result<(), PoolError> {
        if self.workers > WORKERS_MAX {
            return Err(PoolError::Workers(self.workers));
        }
        if !(1..=1 << 20).contains(&self.tickets) {
            return Err(PoolError::Tickets(self.tickets));
        }
        Ok(())
    }
}
