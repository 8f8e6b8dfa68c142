//! How a log writes, and when it says that something is safe.

use std::time::Duration;

use super::error::LogError;
use super::folder::WritePath;
use super::segment::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};

/// When an append counts as acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Sync {
    /// When a flush has covered it: it survives a power cut.
    #[default]
    Each,
    /// When it is written; a flush begins within this time. A power cut loses at most what was
    /// appended during this time and one flush, and always the last of it.
    Within(Duration),
    /// When it is written. It survives the end of the process, not that of the machine.
    Os,
}

/// Settings of a log.
///
/// ```
/// use waystage::log::{LogSettings, Sync};
/// let settings = LogSettings { sync: Sync::Os, ..LogSettings::default() };
/// assert_eq!(settings.segment_bytes, 64 << 20);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LogSettings {
    /// Bytes of a new segment, 4 KiB to 2 GiB and a multiple of 4 KiB; 64 MiB by default. No record
    /// is longer.
    pub segment_bytes: u64,
    /// When an append is acknowledged.
    pub sync: Sync,
    /// How records reach the file; `None` chooses by `sync`: through the map for [`Sync::Os`],
    /// else by system calls.
    pub write_path: Option<WritePath>,
    /// Where identities of segments come from; `None`: the machine. For tests, and different at
    /// every start there too.
    pub seed: Option<u64>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, sync: Sync::Each, write_path: None, seed: None }
    }
}

impl LogSettings {
    /// Refuses what is out of its range.
    pub(super) fn check(&self) -> Result<(), LogError> {
        let in_range = (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes);
        if !in_range || !self.segment_bytes.is_multiple_of(SEGMENT_BYTES_MIN) {
            return Err(LogError::Setting {
                field: "segment_bytes",
                value: self.segment_bytes,
                expected: "4096 to 2147483648 and a multiple of 4096",
            });
        }
        Ok(())
    }

    /// How records reach the file.
    pub(super) fn path(&self) -> WritePath {
        let default = if self.sync == Sync::Os { WritePath::Map } else { WritePath::Call };
        self.write_path.unwrap_or(default)
    }
}
