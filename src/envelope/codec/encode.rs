//! Writes an envelope's wire form. The table of bytes is in the module above.
//!
//! What is refused leaves the output as it was.

use super::header_fields::HeaderFields;
use super::names::Names;
use super::{
    EncodeError, FLAG_EXPIRY, FLAG_PAYLOAD, HEAD_BYTES, KIND_BYTES, KIND_TEXT, MAGIC,
    PAYLOAD_BYTES_MAX, Parts, VERSION, padding,
};
use crate::envelope::headers::HeaderValue;

/// Appends the wire form of `parts` to `out`.
///
/// Padding counts from the message's start, so the payload is aligned to 8 bytes if that is.
///
/// # Errors
/// [`EncodeError`] when a limit is exceeded; `out` is then unchanged.
pub fn encode(parts: &Parts<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let head = Head::of(parts)?;
    let start = out.len();
    out.reserve(encoded_len(parts));
    head.write(parts, out);
    out.extend_from_slice(parts.content_type.unwrap_or_default().as_bytes());
    out.extend_from_slice(parts.current.unwrap_or_default().as_bytes());
    let written = write_names(out, parts.remaining, "remaining hop")
        .and_then(|()| write_names(out, parts.trail, "visited stage"));
    if let Err(error) = written {
        out.truncate(start);
        return Err(error);
    }
    write_headers(out, parts.headers);
    out.resize(out.len() + padding(out.len() - start), 0);
    out.extend_from_slice(parts.payload.unwrap_or_default());
    Ok(())
}

/// Bytes that [`encode`] will append for `parts`.
#[must_use]
pub fn encoded_len(parts: &Parts<'_>) -> usize {
    let names = |names: Names<'_>| names.iter().map(|name| 1 + name.len()).sum::<usize>();
    let headers: usize =
        parts.headers.iter().map(|(name, value)| 4 + name.len() + value.as_bytes().len()).sum();
    let routing = HEAD_BYTES
        + parts.content_type.unwrap_or_default().len()
        + parts.current.unwrap_or_default().len()
        + names(parts.remaining)
        + names(parts.trail)
        + headers;
    routing + padding(routing) + parts.payload.unwrap_or_default().len()
}

/// The counts and lengths of the part of fixed size, in the widths they have there.
struct Head {
    payload_length: u32,
    remaining: u16,
    trail: u16,
    headers: u8,
    content_type_length: u8,
    current_length: u8,
}

impl Head {
    fn of(parts: &Parts<'_>) -> Result<Self, EncodeError> {
        let length = parts.payload.unwrap_or_default().len();
        let payload_length = match u32::try_from(length) {
            Ok(fits) if length <= PAYLOAD_BYTES_MAX => fits,
            _ => return Err(EncodeError::PayloadTooLong { length }),
        };
        Ok(Self {
            payload_length,
            remaining: count(parts.remaining, "remaining hops")?,
            trail: count(parts.trail, "visited stages")?,
            headers: u8::try_from(parts.headers.len()).expect("there are at most HEADERS_MAX"),
            content_type_length: match parts.content_type {
                None => 0,
                Some(name) => name_length(name, "content type", 0)?,
            },
            current_length: match parts.current {
                None => 0,
                Some(name) => name_length(name, "current stage", 0)?,
            },
        })
    }

    fn write(&self, parts: &Parts<'_>, out: &mut Vec<u8>) {
        let mut flags = 0;
        if parts.payload.is_some() {
            flags |= FLAG_PAYLOAD;
        }
        if parts.expires_at_ms.is_some() {
            flags |= FLAG_EXPIRY;
        }
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&parts.id.to_bytes());
        out.extend_from_slice(&parts.expires_at_ms.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&parts.body_version.to_le_bytes());
        out.extend_from_slice(&parts.hops.to_le_bytes());
        out.extend_from_slice(&self.payload_length.to_le_bytes());
        out.extend_from_slice(&parts.attempts.to_le_bytes());
        out.extend_from_slice(&self.remaining.to_le_bytes());
        out.extend_from_slice(&self.trail.to_le_bytes());
        out.extend_from_slice(&[self.headers, self.content_type_length, self.current_length]);
        out.extend_from_slice(&[0; 3]);
    }
}

fn write_names(out: &mut Vec<u8>, names: Names<'_>, what: &'static str) -> Result<(), EncodeError> {
    for (position, name) in names.iter().enumerate() {
        out.push(name_length(name, what, position)?);
        out.extend_from_slice(name.as_bytes());
    }
    Ok(())
}

fn write_headers(out: &mut Vec<u8>, headers: HeaderFields<'_>) {
    for (name, value) in headers {
        let kind = match value {
            HeaderValue::Text(_) => KIND_TEXT,
            HeaderValue::Bytes(_) => KIND_BYTES,
        };
        let value = value.as_bytes();
        let name_length = u8::try_from(name.len()).expect("names are at most 64 bytes");
        let value_length = u16::try_from(value.len()).expect("values are at most 4 KiB");
        out.extend_from_slice(&[name_length, kind]);
        out.extend_from_slice(&value_length.to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(value);
    }
}

fn count(names: Names<'_>, what: &'static str) -> Result<u16, EncodeError> {
    let count = names.len();
    u16::try_from(count).ok().ok_or(EncodeError::TooManyHops { what, count })
}

fn name_length(name: &str, what: &'static str, position: usize) -> Result<u8, EncodeError> {
    match u8::try_from(name.len()) {
        Ok(length) if length > 0 => Ok(length),
        _ => Err(EncodeError::Name { what, position, length: name.len() }),
    }
}
