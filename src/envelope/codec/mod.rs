//! The wire form of an envelope, version 1: little-endian, with one encoding for each value.
//!
//! | byte | size | what                                                                |
//! |------|------|---------------------------------------------------------------------|
//! | 0    | 4    | magic, `WAYE`                                                       |
//! | 4    | 2    | version, 1                                                          |
//! | 6    | 2    | flags: bit 0 a payload is present, bit 1 an expiry is; others zero  |
//! | 8    | 16   | envelope id                                                         |
//! | 24   | 8    | expiry in unix milliseconds; zero without flag                      |
//! | 32   | 4    | body version                                                        |
//! | 36   | 4    | hops taken                                                          |
//! | 40   | 4    | payload length *P*, at most 1 GiB; zero without flag                |
//! | 44   | 2    | attempts                                                            |
//! | 46   | 2    | remaining hops *R*                                                  |
//! | 48   | 2    | visited stages *V*                                                  |
//! | 50   | 1    | headers *H*, at most 64                                             |
//! | 51   | 1    | length of the content type; zero: none                              |
//! | 52   | 1    | length of the current stage's name; zero: none                      |
//! | 53   | 3    | reserved, zero                                                      |
//! | 56   | -    | content type, then current stage's name                             |
//! | -    | -    | *R* names, the next hop first: length (1 byte, not zero), UTF-8     |
//! | -    | -    | *V* names, the oldest first, the current one not among them: same   |
//! | -    | -    | *H* headers, strictly rising by name, each as below                  |
//! | -    | 0-7  | zeros up to a multiple of 8, counted from the magic                 |
//! | -    | *P*  | payload; the message ends with it                                   |
//!
//! A header: name length (1 byte), kind (1; 0 is text, 1 is bytes), value length (2), name, value.
//!
//! Invariants: what [`EnvelopeView::parse`] accepts, [`encode`] writes back byte for byte. Parsing
//! allocates nothing and never panics. The slip is written as stage names, since the numbers in a
//! route are good for one bus only. There is no checksum: the log's records carry one.

mod encode;
mod error;
mod header_fields;
mod names;
pub(crate) mod reader;
mod view;

pub use encode::{encode, encoded_len};
pub use error::{DecodeError, EncodeError};
pub use header_fields::{HeaderFields, HeaderFieldsIter};
pub use names::{Names, NamesIter};
pub use view::EnvelopeView;

use super::id::EnvelopeId;

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"WAYE";
/// The version this crate writes, and the only one it reads.
pub const VERSION: u16 = 1;
/// The most bytes of a stage's name or a content type.
pub const NAME_BYTES_MAX: usize = 255;
/// The most bytes of a payload.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// Bytes before the content type.
const HEAD_BYTES: usize = 56;
/// The payload starts at a multiple of this.
const ALIGNMENT: usize = 8;
/// Flag: a payload is present.
const FLAG_PAYLOAD: u16 = 1;
/// Flag: an expiry is present.
const FLAG_EXPIRY: u16 = 1 << 1;
/// All flags of this version.
const FLAGS: u16 = FLAG_PAYLOAD | FLAG_EXPIRY;
/// Header kind: text.
const KIND_TEXT: u8 = 0;
/// Header kind: bytes.
const KIND_BYTES: u8 = 1;

/// What an envelope consists of on the wire, borrowed from wherever it stands.
///
/// ```
/// use waystage::envelope::codec::{EnvelopeView, Parts, encode};
/// use waystage::envelope::EnvelopeId;
/// let parts = Parts {
///     remaining: (&["price", "ship"]).into(),
///     payload: Some(b"17 apples"),
///     ..Parts::new(EnvelopeId::from_key(b"order-17"))
/// };
/// let mut message = Vec::new();
/// encode(&parts, &mut message)?;
/// let view = EnvelopeView::parse(&message)?;
/// assert_eq!(view.remaining().iter().next(), Some("price"));
/// assert_eq!(view.parts(), &parts);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The envelope's id.
    pub id: EnvelopeId,
    /// Hops taken.
    pub hops: u32,
    /// Attempts at the current stage.
    pub attempts: u16,
    /// Which body this is; without a payload, which earlier body is meant.
    pub body_version: u32,
    /// When it expires, in unix milliseconds.
    pub expires_at_ms: Option<u64>,
    /// The media type of the payload.
    pub content_type: Option<&'a str>,
    /// The stage it is at.
    pub current: Option<&'a str>,
    /// The stages still to visit, the next one first.
    pub remaining: Names<'a>,
    /// The stages visited before the current one, the oldest first.
    pub trail: Names<'a>,
    /// The headers.
    pub headers: HeaderFields<'a>,
    /// The payload; an empty one is not the same as none.
    pub payload: Option<&'a [u8]>,
}

impl Parts<'_> {
    /// The parts of an envelope that has nothing but an id.
    #[must_use]
    pub const fn new(id: EnvelopeId) -> Self {
        Self {
            id,
            hops: 0,
            attempts: 0,
            body_version: 0,
            expires_at_ms: None,
            content_type: None,
            current: None,
            remaining: Names::EMPTY,
            trail: Names::EMPTY,
            headers: HeaderFields::EMPTY,
            payload: None,
        }
    }
}

/// Bytes of padding behind `length` bytes.
const fn padding(length: usize) -> usize {
    length.wrapping_neg() % ALIGNMENT
}

#[cfg(test)]
mod tests;
