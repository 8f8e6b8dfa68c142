//! Why an envelope could not be written, or bytes are none.
//!
//! A decode error names the offset of the byte it is about, counted from the message's first, and
//! what was expected there.

use super::{MAGIC, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, VERSION};
use crate::envelope::slip::MAX_HOPS;

/// Why an envelope could not be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A name is empty or too long.
    #[error("{what} number {position} has {length} bytes, a name has 1 to {NAME_BYTES_MAX}")]
    Name {
        /// What is named.
        what: &'static str,
        /// Its place among its like, from zero.
        position: usize,
        /// Bytes of the name.
        length: usize,
    },
    /// There are too many names.
    #[error("there are {count} entries of {what}, the most is {MAX_HOPS}")]
    TooManyHops {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// The payload is too long.
    #[error("the payload has {length} bytes, the most is {PAYLOAD_BYTES_MAX}")]
    PayloadTooLong {
        /// Bytes of the payload.
        length: usize,
    },
}

/// Why bytes are not an envelope. Offsets count from the message's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too early.
    #[error("byte {offset}: expected {what} of {needed} bytes, only {found} are left")]
    Truncated {
        /// Where it starts.
        offset: usize,
        /// What was expected.
        what: &'static str,
        /// Bytes it takes.
        needed: usize,
        /// Bytes left.
        found: usize,
    },
    /// The bytes do not start as an envelope does.
    #[error("byte 0: expected the magic {MAGIC:02x?}, found {found:02x?}; this is no envelope")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// Another version of the wire form.
    #[error("byte 4: expected version {VERSION}, found {found}; read it with the release it is of")]
    Version {
        /// The version.
        found: u16,
    },
    /// Flags that this version does not know.
    #[error("byte 6: expected no flags but bits 0 and 1, found {found:#06x}")]
    Flags {
        /// All flags found.
        found: u16,
    },
    /// Bytes that must be zero are not.
    #[error("byte {offset}: expected zero ({what}), found something else")]
    NotZero {
        /// Where they start.
        offset: usize,
        /// What they are.
        what: &'static str,
    },
    /// A length or count is outside its range.
    #[error("byte {offset}: expected {what} between {low} and {high}, found {found}")]
    OutOfRange {
        /// Where it stands.
        offset: usize,
        /// What it counts.
        what: &'static str,
        /// The least allowed.
        low: usize,
        /// The most allowed.
        high: usize,
        /// What was found.
        found: usize,
    },
    /// A text is not UTF-8.
    #[error("byte {offset}: expected UTF-8 ({what})")]
    NotText {
        /// The first byte that does not fit.
        offset: usize,
        /// What the text is.
        what: &'static str,
    },
    /// A header's name holds a byte it may not.
    #[error(
        "byte {offset}: expected a header's name of `a`-`z`, `0`-`9`, `-`, `_` and `.`, found byte \
         {found:#04x}"
    )]
    HeaderName {
        /// Where the byte stands.
        offset: usize,
        /// The byte.
        found: u8,
    },
    /// A header's name does not come after the one before it.
    #[error("byte {offset}: expected a header's name after the one before it in byte order")]
    HeaderOrder {
        /// Where the name starts.
        offset: usize,
    },
    /// A header of neither kind.
    #[error("byte {offset}: expected header kind 0 (text) or 1 (bytes), found {found}")]
    HeaderKind {
        /// Where the kind stands.
        offset: usize,
        /// The kind.
        found: u8,
    },
    /// Bytes behind the end.
    #[error("byte {offset}: expected the end of the envelope, found {found} more bytes")]
    Trailing {
        /// Where the envelope ends.
        offset: usize,
        /// Bytes behind it.
        found: usize,
    },
}

impl DecodeError {
    /// The offset of the byte the error is about.
    #[must_use]
    pub fn offset(&self) -> usize {
        match *self {
            Self::Magic { .. } => 0,
            Self::Version { .. } => 4,
            Self::Flags { .. } => 6,
            Self::Truncated { offset, .. }
            | Self::NotZero { offset, .. }
            | Self::OutOfRange { offset, .. }
            | Self::NotText { offset, .. }
            | Self::HeaderName { offset, .. }
            | Self::HeaderOrder { offset }
            | Self::HeaderKind { offset, .. }
            | Self::Trailing { offset, .. } => offset,
        }
    }
}
