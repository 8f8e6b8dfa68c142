//! Why bytes are no entry, and why an entry cannot be written.

use super::{PATH_BYTES_MAX, REASON_BYTES_MAX};
use crate::envelope::codec::{DecodeError, EncodeError};

/// Why bytes are no entry. Offsets count from the first byte of the record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// A field does not fit; the error inside has the offset.
    #[error(transparent)]
    Field(#[from] DecodeError),
    /// The wire form of an envelope does not fit.
    #[error("the envelope at byte {offset}: {source}")]
    Envelope {
        /// Where the wire form starts; the error inside counts from there.
        offset: usize,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// A number that this version does not know.
    #[error("byte {offset}: {what} {found} is unknown; read it with a newer waystage")]
    Unknown {
        /// Where it stands.
        offset: usize,
        /// What it numbers.
        what: &'static str,
        /// The number.
        found: u8,
    },
}

impl EntryError {
    /// The offset of the byte the error is about.
    pub fn offset(&self) -> usize {
        match *self {
            Self::Field(error) => error.offset(),
            Self::Envelope { offset, source } => offset + source.offset(),
            Self::Unknown { offset, .. } => offset,
        }
    }
}

/// Why an entry could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryEncodeError {
    /// The envelope has no wire form.
    #[error(transparent)]
    Envelope(#[from] EncodeError),
    /// The name is too long, or empty.
    #[error("the name has {length} bytes, a name has 1 to 255")]
    Name {
        /// Its bytes.
        length: usize,
    },
    /// The reason is too long.
    #[error("the reason has {length} bytes, the most is {REASON_BYTES_MAX}")]
    Reason {
        /// Its bytes.
        length: usize,
    },
    /// The path is too long, or empty.
    #[error("the path has {length} bytes, a path has 1 to {PATH_BYTES_MAX}")]
    Path {
        /// Its bytes.
        length: usize,
    },
    /// The entry is longer than any record.
    #[error("the entry has {length} bytes, the most is {}", crate::log::frame::BODY_BYTES_MAX)]
    TooLong {
        /// Its bytes.
        length: usize,
    },
}
