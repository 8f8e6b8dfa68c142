//! Makes segments ahead of need (W1): zeros, header, name, and the name made durable.

use std::sync::Arc;

use super::disk::Disk;
use super::error::LogError;
use super::segment::{self, SegmentHeader};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// Makes the segments of one log. Whoever needs one and whoever works ahead take turns.
#[derive(Debug)]
pub(crate) struct Preparer {
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    log: [u8; 16],
    seed: u64,
    is_os: bool,
    /// The number of the last segment that is there.
    last: Mutex<u64>,
    /// The highest number that was made or tried ahead of need.
    tried: AtomicU64,
}

impl Preparer {
    /// A preparer of the log `log`, whose last segment is `last`. The seed has to differ from start
    /// to start, as identities come from it; `is_os` goes into the headers.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        segment_bytes: u64,
        log: [u8; 16],
        seed: u64,
        is_os: bool,
        last: u64,
    ) -> Self {
        let (last, tried) = (Mutex::new(last), AtomicU64::new(last));
        Self { disk, segment_bytes, log, seed, is_os, last, tried }
    }

    /// Bytes of a new segment.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Whether this segment is still to be made ahead of need; true once for each. Where it finds
    /// no room, it is not tried again before it is needed.
    pub(crate) fn wants(&self, number: u64) -> bool {
        // ORDERING: Relaxed on both: it only saves work; `ensure` has its lock.
        self.tried.load(Ordering::Relaxed) < number
            && self.tried.fetch_max(number, Ordering::Relaxed) < number
    }

    /// Returns when the segment with this number is there.
    ///
    /// # Errors
    /// `NoRoom` when it cannot be made, after which it may be tried again; otherwise what the
    /// storage said of its name.
    pub(crate) fn ensure(&self, number: u64) -> Result<(), LogError> {
        let mut last = lock(&self.last);
        while *last < number {
            self.make(*last + 1)?;
            *last += 1;
        }
        Ok(())
    }

    fn make(&self, number: u64) -> Result<(), LogError> {
        let identity = mix(self.seed, number).max(1);
        let (size, log, is_os) = (self.segment_bytes, self.log, self.is_os);
        let header = SegmentHeader { size, log, number, identity, is_os };
        let name = segment::name(number);
        let unfinished = format!("{name}{}", segment::UNFINISHED);
        if let Err(source) = self.disk.create(&unfinished, header.size, &header.to_bytes()) {
            // Half of it may be there, on a disk that is full.
            let _ = self.disk.remove(&unfinished);
            return Err(LogError::NoRoom { name, source });
        }
        self.disk.rename(&unfinished, &name).map_err(LogError::storage("name", &name))?;
        self.disk.sync_names().map_err(LogError::storage("flush the directory of", &name))
    }
}

/// A random-looking number from a seed and a counter.
pub(crate) fn mix(seed: u64, counter: u64) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, &counter.to_le_bytes())
}
