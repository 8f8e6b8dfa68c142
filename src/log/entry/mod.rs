//! Entries: what one settlement changed. A record of kind `Entries` is one or more of them.
//!
//! | byte | size | what |
//! |---|---|---|
//! | 0 | 4 | length of the content *C* |
//! | 4 | 1 | kind |
//! | 5 | 3 | zeros |
//! | 8 | *C* | content |
//! | - | 0-7 | zeros up to a multiple of 8 |
//!
//! What follows without a size goes up to the end of the content. Everything is little-endian.
//!
//! | kind | entry | content |
//! |---|---|---|
//! | 1 | accept | level (1), 7 zeros, wire form |
//! | 2 | hop | wire form |
//! | 3 | attempt | id (16), due in unix ms (8; 0: at once), attempts (2), 6 zeros |
//! | 4, 5, 15 | completed, expired, handled | id (16) |
//! | 6 | dead | id (16), when in unix ms (8), attempts (2), cause (1), zero (1), reason |
//! | 7 | redriven | letter (16), wire form |
//! | 8, 9 | purged, duplicate | letter (16), id (16) |
//! | 10, 11 | state, source | length of the name (1), name, zeros to a multiple of 8, value |
//! | 12 | sink | device (8), inode (8), length (8), added (8), checksum (8), name |
//! | 13 | copy | number (12), 0 for open or 1 for dead (1), 3 zeros, wire form |
//! | 14 | window | how many settled ids are remembered from here on (4) |
//!
//! A *number* names an entry for good: the sequence of its record (8) and its index there (4). A
//! *letter* is the number of the dead entry that made it, and 4 zeros. The wire form is that of
//! [`envelope::codec`](crate::envelope::codec) and begins at a multiple of 8.
//!
//! Invariants: decoding never panics and allocates nothing; what decodes is encoded to the same
//! bytes. Whether an entry may follow what was before is for [`fold`](super::fold) to say.

mod cause;
mod decode;
mod encode;
mod error;
mod kind;

pub use cause::CauseCode;
pub use decode::{Entries, entries};
pub use error::{EntryEncodeError, EntryError};
pub use kind::EntryKind;

pub(super) use decode::{Frame, cause, finish, frame, id, ids, level, number};
pub(super) use encode::put_frame;

use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;

/// The header that carries why an envelope goes to a dead-letter stage.
pub const CAUSE_HEADER: &str = "waystage-cause";
/// The most bytes of a dead letter's reason.
pub const REASON_BYTES_MAX: usize = 1024;
/// The most bytes of a sink's path.
pub const PATH_BYTES_MAX: usize = 4096;

/// Bytes before the content.
pub(super) const HEAD_BYTES: usize = 8;
/// Entries begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

/// Which entry of a log, for good: copies and checkpoints keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryNumber {
    /// The sequence of its record.
    pub sequence: u64,
    /// Its index in that record, from 0.
    pub index: u32,
}

impl std::fmt::Display for EntryNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.sequence, self.index)
    }
}

/// What is promised of an envelope that is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DurableLevel {
    /// It is handled until its end, and maybe again after a crash.
    AtLeastOnce,
    /// The same, and its id is not accepted again while it is remembered.
    ExactlyOnce,
}

impl DurableLevel {
    /// The number on the medium.
    pub fn number(self) -> u8 {
        match self {
            Self::AtLeastOnce => 1,
            Self::ExactlyOnce => 2,
        }
    }

    /// The level with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::AtLeastOnce, Self::ExactlyOnce].into_iter().find(|level| level.number() == number)
    }
}

/// What stands at the end of an output that is exactly-once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sink {
    /// The device of its file.
    pub device: u64,
    /// The inode of its file.
    pub inode: u64,
    /// The length of the file, in bytes.
    pub length: u64,
    /// Bytes that were added last.
    pub added: u64,
    /// The checksum of what was added last.
    pub checksum: u64,
}

/// What a copy is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Original {
    /// The open envelope that came in by this entry.
    Open(EntryNumber),
    /// The dead letter that this entry made.
    Dead(EntryNumber),
}

/// One thing that happened, borrowed from the body of its record.
///
/// ```
/// use waystage::envelope::EnvelopeId;
/// use waystage::log::entry::{Entry, entries};
/// let id = EnvelopeId::from_key(b"order-17");
/// let mut body = Vec::new();
/// Entry::Attempt { id, attempts: 2, due_ms: 1_704_067_200_000 }.encode(&mut body)?;
/// Entry::State { name: "tally", value: b"39" }.encode(&mut body)?;
/// let found: Vec<Entry<'_>> = entries(&body).collect::<Result<_, _>>()?;
/// assert_eq!(found[1], Entry::State { name: "tally", value: b"39" });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// An envelope came in; it stands at its current stage.
    Accept {
        /// What is promised of it.
        level: DurableLevel,
        /// All of it.
        envelope: Parts<'a>,
    },
    /// It went on to its current stage.
    Hop {
        /// What it is now; a payload only if that changed.
        envelope: Parts<'a>,
    },
    /// An attempt failed, and another one follows.
    Attempt {
        /// The envelope.
        id: EnvelopeId,
        /// Attempts made at its stage so far.
        attempts: u16,
        /// When the next one is due, in unix milliseconds; 0: at once.
        due_ms: u64,
    },
    /// Its itinerary ended.
    Completed {
        /// The envelope.
        id: EnvelopeId,
    },
    /// Its deadline passed before it was handled.
    Expired {
        /// The envelope.
        id: EnvelopeId,
    },
    /// It was given up on, and is a dead letter now, named by the number of this entry.
    Dead {
        /// The envelope.
        id: EnvelopeId,
        /// When, in unix milliseconds: a copy of it elsewhere keeps that.
        at_ms: u64,
        /// Attempts made at its stage.
        attempts: u16,
        /// Why.
        cause: CauseCode,
        /// Why, in words.
        reason: &'a str,
    },
    /// A dead letter came in again.
    Redriven {
        /// The letter.
        letter: EntryNumber,
        /// What it is now; a payload only if that was edited.
        envelope: Parts<'a>,
    },
    /// A dead letter was removed by hand.
    Purged {
        /// The letter.
        letter: EntryNumber,
        /// Its envelope.
        id: EnvelopeId,
    },
    /// A dead letter was to come in again, but its id is settled.
    Duplicate {
        /// The letter.
        letter: EntryNumber,
        /// Its envelope.
        id: EnvelopeId,
    },
    /// What a stage remembers.
    State {
        /// The stage.
        name: &'a str,
        /// What it saved.
        value: &'a [u8],
    },
    /// How far an input was read.
    Source {
        /// The input.
        name: &'a str,
        /// Its position, as it gave it.
        value: &'a [u8],
    },
    /// How far an output was written.
    Sink {
        /// Its name.
        name: &'a [u8],
        /// What stands there.
        sink: Sink,
    },
    /// An envelope written once more, so that the segment where it stood may go.
    Copy {
        /// What it is of.
        of: Original,
        /// All of it.
        envelope: Parts<'a>,
    },
    /// How many settled ids are remembered from here on.
    Window {
        /// So many.
        count: u32,
    },
    /// It was given up on, and a dead-letter stage has handled it: it has ended, and its id is
    /// free, whatever was promised of it.
    Handled {
        /// The envelope.
        id: EnvelopeId,
    },
}

impl Entry<'_> {
    /// The envelope it is about; nil where it is about none.
    pub fn id(&self) -> EnvelopeId {
        match self {
            Self::Accept { envelope, .. }
            | Self::Hop { envelope }
            | Self::Redriven { envelope, .. }
            | Self::Copy { envelope, .. } => envelope.id,
            Self::Attempt { id, .. }
            | Self::Completed { id }
            | Self::Expired { id }
            | Self::Dead { id, .. }
            | Self::Purged { id, .. }
            | Self::Duplicate { id, .. }
            | Self::Handled { id } => *id,
            Self::State { .. } | Self::Source { .. } | Self::Sink { .. } | Self::Window { .. } => {
                EnvelopeId::NIL
            }
        }
    }
}
