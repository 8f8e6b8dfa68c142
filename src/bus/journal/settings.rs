//! Settings of a durable bus.

use std::path::PathBuf;

use crate::log::{LogSettings, SinkSettings};

/// Where a bus keeps its log, and within which bounds.
///
/// ```
/// use waystage::DurableSettings;
/// let settings = DurableSettings::in_directory("var/orders");
/// assert_eq!(settings.remembered_ids, 100_000);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DurableSettings {
    /// The directory of the log; made if it is not there.
    pub directory: PathBuf,
    /// How the log writes, and when something counts as safe.
    pub log: LogSettings,
    /// Output files in which every line stands exactly once
    /// ([`Context::write`](crate::Context::write)). Default: none.
    pub sinks: Vec<SinkSettings>,
    /// Ids of completed envelopes that are remembered, the latest ones, so that an exactly-once
    /// envelope is not accepted again. Default 100,000; 16 bytes each.
    pub remembered_ids: u32,
    /// Dead letters the log keeps. At the bound durable stages take no new work until some were
    /// re-driven or purged ([`purge_dead_letters`](crate::Handle::purge_dead_letters)); none is
    /// ever dropped. Default 100,000.
    pub dead_letters: usize,
    /// Segments begun between two checkpoints. Default 4.
    pub checkpoint_segments: u64,
}

impl DurableSettings {
    /// The defaults, with the log in this directory.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            log: LogSettings::default(),
            sinks: Vec::new(),
            remembered_ids: 100_000,
            dead_letters: 100_000,
            checkpoint_segments: 4,
        }
    }
}
