//! Writes entries. What is refused leaves the output as it was.

use super::{
    ALIGNMENT, Entry, EntryEncodeError, EntryNumber, HEAD_BYTES, Original, PATH_BYTES_MAX,
    REASON_BYTES_MAX,
};
use crate::envelope::codec::{self, Parts};
use crate::log::frame::BODY_BYTES_MAX;

impl Entry<'_> {
    /// Appends the entry to `out`, which must end at a multiple of eight.
    ///
    /// # Errors
    /// When a part of it is too long; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EntryEncodeError> {
        put_frame(out, self.kind().number(), |out| self.put_content(out))
    }

    fn put_content(&self, out: &mut Vec<u8>) -> Result<(), EntryEncodeError> {
        match *self {
            Self::Accept { level, envelope } => {
                out.extend_from_slice(&[level.number(), 0, 0, 0, 0, 0, 0, 0]);
                put_envelope(out, &envelope)?;
            }
            Self::Hop { envelope } => put_envelope(out, &envelope)?,
            Self::Attempt { id, attempts, due_ms } => {
                out.extend_from_slice(&id.to_bytes());
                out.extend_from_slice(&due_ms.to_le_bytes());
                out.extend_from_slice(&u64::from(attempts).to_le_bytes());
            }
            Self::Completed { id } | Self::Expired { id } | Self::Handled { id } => {
                out.extend_from_slice(&id.to_bytes());
            }
            Self::Dead { id, at_ms, attempts, cause, reason } => {
                let length = reason.len();
                if length > REASON_BYTES_MAX {
                    return Err(EntryEncodeError::Reason { length });
                }
                out.extend_from_slice(&id.to_bytes());
                out.extend_from_slice(&at_ms.to_le_bytes());
                out.extend_from_slice(&attempts.to_le_bytes());
                out.extend_from_slice(&[cause.number(), 0]);
                out.extend_from_slice(reason.as_bytes());
            }
            Self::Redriven { letter, envelope } => {
                put_number(out, letter, 0);
                put_envelope(out, &envelope)?;
            }
            Self::Purged { letter, id } | Self::Duplicate { letter, id } => {
                put_number(out, letter, 0);
                out.extend_from_slice(&id.to_bytes());
            }
            Self::State { name, value } | Self::Source { name, value } => {
                put_named(out, name, value)?;
            }
            Self::Sink { name, sink } => {
                let length = name.len();
                if !(1..=PATH_BYTES_MAX).contains(&length) {
                    return Err(EntryEncodeError::Path { length });
                }
                for word in [sink.device, sink.inode, sink.length, sink.added, sink.checksum] {
                    out.extend_from_slice(&word.to_le_bytes());
                }
                out.extend_from_slice(name);
            }
            Self::Copy { of, envelope } => {
                match of {
                    Original::Open(number) => put_number(out, number, 0),
                    Original::Dead(number) => put_number(out, number, 1),
                }
                put_envelope(out, &envelope)?;
            }
            Self::Window { count } => out.extend_from_slice(&count.to_le_bytes()),
        }
        Ok(())
    }
}

/// Appends an entry of this kind whose content is what `put` appends.
pub(in crate::log) fn put_frame(
    out: &mut Vec<u8>,
    kind: u8,
    put: impl FnOnce(&mut Vec<u8>) -> Result<(), EntryEncodeError>,
) -> Result<(), EntryEncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind, 0, 0, 0]);
    let put = put(out);
    let length = out.len() - start - HEAD_BYTES;
    let put = put.and_then(|()| match u32::try_from(length) {
        Ok(fits) if length <= BODY_BYTES_MAX => Ok(fits),
        _ => Err(EntryEncodeError::TooLong { length }),
    });
    let fits = put.inspect_err(|_| out.truncate(start))?;
    out[start..start + 4].copy_from_slice(&fits.to_le_bytes());
    pad(out, start);
    Ok(())
}

/// Appends zeros up to a multiple of eight from `start`.
fn pad(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    out.resize(start + length.next_multiple_of(ALIGNMENT), 0);
}

fn put_number(out: &mut Vec<u8>, number: EntryNumber, mark: u8) {
    out.extend_from_slice(&number.sequence.to_le_bytes());
    out.extend_from_slice(&number.index.to_le_bytes());
    out.extend_from_slice(&[mark, 0, 0, 0]);
}

fn put_envelope(out: &mut Vec<u8>, envelope: &Parts<'_>) -> Result<(), EntryEncodeError> {
    codec::encode(envelope, out)?;
    Ok(())
}

fn put_named(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), EntryEncodeError> {
    let start = out.len();
    let length = u8::try_from(name.len()).ok().filter(|&length| length > 0);
    let length = length.ok_or(EntryEncodeError::Name { length: name.len() })?;
    out.push(length);
    out.extend_from_slice(name.as_bytes());
    pad(out, start);
    out.extend_from_slice(value);
    Ok(())
}
