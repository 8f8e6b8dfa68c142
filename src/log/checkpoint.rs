//! Checkpoints: the state at one record, written as further records.
//!
//! The state is a stream of items, framed like entries, cut into parts of bounded size:
//!
//! | kind | item | content |
//! |---|---|---|
//! | 64 | head, the first | last entry (place, 32), window (4), 4 zeros, eight counts (64) |
//! | 65 | open | id (16), number (12), 4 zeros, due (8), held (80), stage |
//! | 66 | letter | id (16), number (12), 4 zeros, when (8), held (80), cause (1), 7 zeros, texts |
//! | 67 | settled | id (16), the oldest completion first |
//! | 10-12 | state, source, sink | as the entry |
//!
//! *Texts*: the stage and the reason. *Place*: sequence, segment, offset (8 each), index (4), 4
//! zeros. *Held*: hops, body version (4 each), attempts, redrives (2 each), level, length of the
//! stage's name (1 each), 2 zeros, the places of wire form and body.
//!
//! A part (`CheckpointPart`): number of the checkpoint (8), index of the part (4), 4 zeros, a piece
//! of the stream. The end (`CheckpointEnd`): number (8), sequence of the state (8), sequence of the
//! first part (8), lowest segment needed (8), check of the stream (8), parts (4), 4 zeros.
//!
//! Other records may stand between the parts. A checkpoint counts once its end is there together
//! with all its parts; parts without an end, of one that was given up, are nothing. Who writes it
//! flushes the end before any segment goes, and removes segments from the oldest on.

mod read;
mod seen;
mod write;

use twox_hash::XxHash3_64;

pub use read::{CheckpointError, Reading};
pub(super) use seen::complete;
pub use seen::{Complete, Seen};
pub use write::Writing;

use super::entry::{EntryError, finish};
use crate::envelope::codec::reader::Reader;

/// The most bytes of a part's record.
pub const PART_BYTES_MAX: usize = 1 << 20;

/// Bytes of a part before its piece of the stream.
const PART_HEAD_BYTES: usize = 16;
const HEAD: u8 = 64;
const OPEN: u8 = 65;
const LETTER: u8 = 66;
const SETTLED: u8 = 67;

/// What makes the parts of a checkpoint count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The number of the checkpoint, higher than that of the one before.
    pub number: u64,
    /// The sequence of the last record whose entries the state holds.
    pub at: u64,
    /// The sequence of the first part.
    pub first_part: u64,
    /// The lowest segment that holds something needed.
    pub lowest: u64,
    /// The check of the stream.
    pub check: u64,
    /// How many parts there are.
    pub parts: u32,
}

impl End {
    /// The body of its record.
    pub fn to_body(self) -> Vec<u8> {
        let words = [self.number, self.at, self.first_part, self.lowest, self.check];
        let words = words.into_iter().chain([u64::from(self.parts)]);
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Reads the body back.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_body(body: &[u8]) -> Result<Self, EntryError> {
        let reader = &mut Reader::new(body);
        let end = Self {
            number: reader.u64("the number of a checkpoint")?,
            at: reader.u64("the sequence of a checkpoint")?,
            first_part: reader.u64("the sequence of the first part")?,
            lowest: reader.u64("the lowest segment")?,
            check: reader.u64("the check of a checkpoint")?,
            parts: reader.u32("the number of parts")?,
        };
        reader.zeros(4, "reserved bytes")?;
        finish(reader)?;
        Ok(end)
    }
}

/// The head of a part: number of its checkpoint, and its index.
fn part_head(body: &[u8]) -> Result<(u64, u32, &[u8]), EntryError> {
    let reader = &mut Reader::new(body);
    let number = reader.u64("the number of a checkpoint")?;
    let index = reader.u32("the index of a part")?;
    reader.zeros(4, "reserved bytes")?;
    Ok((number, index, reader.rest()))
}

/// The check of a stream that goes on with `bytes`.
fn check_on(check: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(check, bytes)
}
