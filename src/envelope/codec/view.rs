//! Reads an envelope from foreign bytes, in place.
//!
//! Everything is checked before a view exists, so its accessors cannot fail. Nothing is allocated.

#![deny(clippy::indexing_slicing)]

use super::header_fields::HeaderFields;
use super::names::Names;
use super::reader::{Reader, in_range};
use super::{
    DecodeError, FLAG_EXPIRY, FLAG_PAYLOAD, FLAGS, MAGIC, PAYLOAD_BYTES_MAX, Parts, VERSION,
    padding,
};
use crate::envelope::id::EnvelopeId;

/// An envelope in encoded bytes, checked and read in place.
///
/// ```
/// use waystage::envelope::codec::{DecodeError, EnvelopeView, Parts, encode};
/// use waystage::envelope::EnvelopeId;
/// let mut message = Vec::new();
/// encode(&Parts { hops: 3, ..Parts::new(EnvelopeId::from_key(b"a")) }, &mut message)?;
/// assert_eq!(EnvelopeView::parse(&message)?.hops(), 3);
///
/// message[4] = 2;
/// assert_eq!(EnvelopeView::parse(&message).unwrap_err(), DecodeError::Version { found: 2 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvelopeView<'a> {
    parts: Parts<'a>,
}

impl<'a> EnvelopeView<'a> {
    /// Reads the envelope that `message`, taken whole, is.
    ///
    /// The payload starts at a multiple of 8 bytes from the start of `message`.
    ///
    /// # Errors
    /// [`DecodeError`] with the offset of the first byte that does not fit.
    pub fn parse(message: &'a [u8]) -> Result<Self, DecodeError> {
        let reader = &mut Reader::new(message);
        let head = Head::read(reader)?;
        let content_type = optional_text(reader, head.content_type_length, "a content type")?;
        let current = optional_text(reader, head.current_length, "the current stage's name")?;
        let remaining = Names::read(reader, head.remaining, "a remaining hop's name")?;
        let trail = Names::read(reader, head.trail, "a visited stage's name")?;
        let headers = HeaderFields::read(reader, head.headers, Head::HEADERS_OFFSET)?;
        reader.zeros(padding(reader.offset()), "padding before the payload")?;
        let payload = match head.payload_length {
            None => None,
            Some(length) => Some(reader.bytes(length, "a payload")?),
        };
        if !reader.rest().is_empty() {
            let (offset, found) = (reader.offset(), reader.rest().len());
            return Err(DecodeError::Trailing { offset, found });
        }
        Ok(Self {
            parts: Parts {
                id: head.id,
                hops: head.hops,
                attempts: head.attempts,
                body_version: head.body_version,
                expires_at_ms: head.expires_at_ms,
                content_type,
                current,
                remaining,
                trail,
                headers,
                payload,
            },
        })
    }

    /// All parts: what [`encode`](super::encode) takes.
    #[must_use]
    pub fn parts(&self) -> &Parts<'a> {
        &self.parts
    }

    /// The envelope's id.
    #[must_use]
    pub fn id(&self) -> EnvelopeId {
        self.parts.id
    }

    /// Hops taken.
    #[must_use]
    pub fn hops(&self) -> u32 {
        self.parts.hops
    }

    /// Attempts at the current stage.
    #[must_use]
    pub fn attempts(&self) -> u16 {
        self.parts.attempts
    }

    /// Which body this is; without a payload, which earlier body is meant.
    #[must_use]
    pub fn body_version(&self) -> u32 {
        self.parts.body_version
    }

    /// When it expires, in unix milliseconds.
    #[must_use]
    pub fn expires_at_ms(&self) -> Option<u64> {
        self.parts.expires_at_ms
    }

    /// The media type of the payload.
    #[must_use]
    pub fn content_type(&self) -> Option<&'a str> {
        self.parts.content_type
    }

    /// The stage it is at.
    #[must_use]
    pub fn current(&self) -> Option<&'a str> {
        self.parts.current
    }

    /// The stages still to visit, the next one first.
    #[must_use]
    pub fn remaining(&self) -> Names<'a> {
        self.parts.remaining
    }

    /// The stages visited before the current one, the oldest first.
    #[must_use]
    pub fn trail(&self) -> Names<'a> {
        self.parts.trail
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> HeaderFields<'a> {
        self.parts.headers
    }

    /// The payload; an empty one is not the same as none.
    #[must_use]
    pub fn payload(&self) -> Option<&'a [u8]> {
        self.parts.payload
    }
}

/// The part of fixed size.
struct Head {
    id: EnvelopeId,
    expires_at_ms: Option<u64>,
    body_version: u32,
    hops: u32,
    payload_length: Option<usize>,
    attempts: u16,
    remaining: u16,
    trail: u16,
    headers: u8,
    content_type_length: u8,
    current_length: u8,
}

impl Head {
    const EXPIRY_OFFSET: usize = 24;
    const PAYLOAD_LENGTH_OFFSET: usize = 40;
    const HEADERS_OFFSET: usize = 50;

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let found = reader.array("the magic")?;
        if found != MAGIC {
            return Err(DecodeError::Magic { found });
        }
        let found = reader.u16("the version")?;
        if found != VERSION {
            return Err(DecodeError::Version { found });
        }
        let flags = reader.u16("the flags")?;
        if flags & !FLAGS != 0 {
            return Err(DecodeError::Flags { found: flags });
        }
        let id = EnvelopeId::from_bytes(reader.array("the id")?);
        let expires_at_ms = reader.u64("the expiry")?;
        let body_version = reader.u32("the body version")?;
        let hops = reader.u32("the hops taken")?;
        let payload_length = reader.u32("the payload length")?;
        let head = Self {
            id,
            expires_at_ms: present(
                flags & FLAG_EXPIRY != 0,
                expires_at_ms,
                Self::EXPIRY_OFFSET,
                "an expiry without its flag",
            )?,
            body_version,
            hops,
            payload_length: present(
                flags & FLAG_PAYLOAD != 0,
                usize::try_from(payload_length).unwrap_or(usize::MAX),
                Self::PAYLOAD_LENGTH_OFFSET,
                "a payload length without its flag",
            )?,
            attempts: reader.u16("the attempts")?,
            remaining: reader.u16("the number of remaining hops")?,
            trail: reader.u16("the number of visited stages")?,
            headers: reader.u8("the number of headers")?,
            content_type_length: reader.u8("the length of the content type")?,
            current_length: reader.u8("the length of the current stage's name")?,
        };
        reader.zeros(3, "reserved bytes")?;
        if let Some(length) = head.payload_length {
            let offset = Self::PAYLOAD_LENGTH_OFFSET;
            in_range(offset, "a payload length", length, 0, PAYLOAD_BYTES_MAX)?;
        }
        Ok(head)
    }
}

/// A field that is zero unless its flag is set.
fn present<T: Default + PartialEq>(
    flag: bool,
    value: T,
    offset: usize,
    what: &'static str,
) -> Result<Option<T>, DecodeError> {
    if flag {
        return Ok(Some(value));
    }
    if value != T::default() {
        return Err(DecodeError::NotZero { offset, what });
    }
    Ok(None)
}

/// A text that is absent when its length is zero.
fn optional_text<'a>(
    reader: &mut Reader<'a>,
    length: u8,
    what: &'static str,
) -> Result<Option<&'a str>, DecodeError> {
    if length == 0 {
        return Ok(None);
    }
    reader.text(usize::from(length), what).map(Some)
}
