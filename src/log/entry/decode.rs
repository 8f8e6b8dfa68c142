//! Reads entries in place. The table of bytes is in the module above.

#![deny(clippy::indexing_slicing)]

use super::{
    ALIGNMENT, CauseCode, DurableLevel, Entry, EntryError, EntryKind, EntryNumber, Original,
    PATH_BYTES_MAX, REASON_BYTES_MAX, Sink,
};
use crate::envelope::EnvelopeId;
use crate::envelope::codec::reader::{Reader, in_range};
use crate::envelope::codec::{EnvelopeView, NAME_BYTES_MAX, Parts};

/// The entries of a record's body, in order.
#[must_use]
pub fn entries(body: &[u8]) -> Entries<'_> {
    Entries(Some(Reader::new(body)))
}

/// Iterates over entries; ends behind the first error.
#[derive(Debug, Clone)]
pub struct Entries<'a>(Option<Reader<'a>>);

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, EntryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = self.0.take()?;
        if reader.rest().is_empty() {
            return None;
        }
        let entry = frame(&mut reader).and_then(Frame::entry);
        if entry.is_ok() {
            self.0 = Some(reader);
        }
        Some(entry)
    }
}

/// An entry whose content is not read yet.
#[derive(Debug, Clone, Copy)]
pub(in crate::log) struct Frame<'a> {
    /// The number of its kind.
    pub(in crate::log) kind: u8,
    /// Where that stands.
    pub(in crate::log) kind_offset: usize,
    /// Its content alone.
    pub(in crate::log) content: Reader<'a>,
}

/// Reads the head, content and padding of one entry.
pub(in crate::log) fn frame<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, EntryError> {
    let length = reader.u32("the length of an entry")?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let kind_offset = reader.offset();
    let kind = reader.u8("the kind of an entry")?;
    reader.zeros(3, "reserved bytes")?;
    let content = reader.part(length, "the content of an entry")?;
    reader.zeros(length.wrapping_neg() % ALIGNMENT, "padding behind an entry")?;
    Ok(Frame { kind, kind_offset, content })
}

impl<'a> Frame<'a> {
    /// The id where entries of its kind have it.
    fn id(&self) -> Option<EnvelopeId> {
        /// Where the wire form of an envelope has it.
        const IN_ENVELOPE: usize = 8;
        let before = match EntryKind::from_number(self.kind)? {
            EntryKind::Attempt
            | EntryKind::Completed
            | EntryKind::Handled
            | EntryKind::Expired
            | EntryKind::Dead => 0,
            EntryKind::Purged | EntryKind::Duplicate => 16,
            EntryKind::Accept => 8 + IN_ENVELOPE,
            EntryKind::Hop => IN_ENVELOPE,
            EntryKind::Redriven | EntryKind::Copy => 16 + IN_ENVELOPE,
            EntryKind::State | EntryKind::Source | EntryKind::Sink | EntryKind::Window => {
                return None;
            }
        };
        let bytes = self.content.rest().get(before..)?.first_chunk()?;
        Some(EnvelopeId::from_bytes(*bytes))
    }

    /// The entry it is.
    pub(in crate::log) fn entry(mut self) -> Result<Entry<'a>, EntryError> {
        let Some(kind) = EntryKind::from_number(self.kind) else {
            return Err(unknown(self.kind_offset, "the kind of entry", self.kind));
        };
        let reader = &mut self.content;
        let entry = match kind {
            EntryKind::Accept => {
                let level = level(reader)?;
                reader.zeros(7, "reserved bytes")?;
                Entry::Accept { level, envelope: envelope(reader)? }
            }
            EntryKind::Hop => Entry::Hop { envelope: envelope(reader)? },
            EntryKind::Attempt => attempt(reader)?,
            EntryKind::Completed => Entry::Completed { id: id(reader)? },
            EntryKind::Expired => Entry::Expired { id: id(reader)? },
            EntryKind::Dead => dead(reader)?,
            EntryKind::Redriven => {
                Entry::Redriven { letter: letter(reader)?, envelope: envelope(reader)? }
            }
            EntryKind::Purged => Entry::Purged { letter: letter(reader)?, id: id(reader)? },
            EntryKind::Duplicate => Entry::Duplicate { letter: letter(reader)?, id: id(reader)? },
            EntryKind::State => {
                let (name, value) = named(reader)?;
                Entry::State { name, value }
            }
            EntryKind::Source => {
                let (name, value) = named(reader)?;
                Entry::Source { name, value }
            }
            EntryKind::Sink => sink(reader)?,
            EntryKind::Copy => copy(reader)?,
            EntryKind::Window => Entry::Window { count: reader.u32("the length of the window")? },
            EntryKind::Handled => Entry::Handled { id: id(reader)? },
        };
        finish(reader)?;
        Ok(entry)
    }
}

/// The ids of a record's entries in order, whatever else they say; nil for those that have none.
pub(in crate::log) fn ids(body: &[u8]) -> impl Iterator<Item = EnvelopeId> {
    let mut reader = Reader::new(body);
    std::iter::from_fn(move || {
        let frame = frame(&mut reader).ok()?;
        Some(frame.id().unwrap_or(EnvelopeId::NIL))
    })
}

/// Refuses what is left.
pub(in crate::log) fn finish(reader: &Reader<'_>) -> Result<(), EntryError> {
    in_range(reader.offset(), "unread bytes of an entry", reader.rest().len(), 0, 0)?;
    Ok(())
}

fn unknown(offset: usize, what: &'static str, found: u8) -> EntryError {
    EntryError::Unknown { offset, what, found }
}

pub(in crate::log) fn id(reader: &mut Reader<'_>) -> Result<EnvelopeId, EntryError> {
    Ok(EnvelopeId::from_bytes(reader.array("an id")?))
}

pub(in crate::log) fn level(reader: &mut Reader<'_>) -> Result<DurableLevel, EntryError> {
    let offset = reader.offset();
    let number = reader.u8("a level")?;
    DurableLevel::from_number(number).ok_or_else(|| unknown(offset, "the level", number))
}

pub(in crate::log) fn cause(reader: &mut Reader<'_>) -> Result<CauseCode, EntryError> {
    let offset = reader.offset();
    let number = reader.u8("a cause")?;
    CauseCode::from_number(number).ok_or_else(|| unknown(offset, "the cause", number))
}

pub(in crate::log) fn number(reader: &mut Reader<'_>) -> Result<EntryNumber, EntryError> {
    Ok(EntryNumber {
        sequence: reader.u64("the sequence of an entry")?,
        index: reader.u32("the index of an entry")?,
    })
}

fn letter(reader: &mut Reader<'_>) -> Result<EntryNumber, EntryError> {
    let letter = number(reader)?;
    reader.zeros(4, "reserved bytes")?;
    Ok(letter)
}

/// The wire form that goes up to the end.
fn envelope<'a>(reader: &mut Reader<'a>) -> Result<Parts<'a>, EntryError> {
    let (offset, length) = (reader.offset(), reader.rest().len());
    let message = reader.bytes(length, "an envelope")?;
    let view = EnvelopeView::parse(message);
    let view = view.map_err(|source| EntryError::Envelope { offset, source })?;
    Ok(*view.parts())
}

fn attempt<'a>(reader: &mut Reader<'a>) -> Result<Entry<'a>, EntryError> {
    let id = id(reader)?;
    let due_ms = reader.u64("a due time")?;
    let attempts = reader.u16("attempts")?;
    reader.zeros(6, "reserved bytes")?;
    Ok(Entry::Attempt { id, attempts, due_ms })
}

fn dead<'a>(reader: &mut Reader<'a>) -> Result<Entry<'a>, EntryError> {
    let id = id(reader)?;
    let at_ms = reader.u64("when it died")?;
    let attempts = reader.u16("attempts")?;
    let cause = cause(reader)?;
    reader.zeros(1, "a reserved byte")?;
    let length = reader.rest().len();
    in_range(reader.offset(), "the bytes of a reason", length, 0, REASON_BYTES_MAX)?;
    Ok(Entry::Dead { id, at_ms, attempts, cause, reason: reader.text(length, "a reason")? })
}

fn named<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, &'a [u8]), EntryError> {
    let offset = reader.offset();
    let length = usize::from(reader.u8("the length of a name")?);
    in_range(offset, "the length of a name", length, 1, NAME_BYTES_MAX)?;
    let name = reader.text(length, "a name")?;
    reader.zeros((1 + length).wrapping_neg() % ALIGNMENT, "padding behind a name")?;
    Ok((name, reader.bytes(reader.rest().len(), "a value")?))
}

fn sink<'a>(reader: &mut Reader<'a>) -> Result<Entry<'a>, EntryError> {
    let sink = Sink {
        device: reader.u64("a device")?,
        inode: reader.u64("an inode")?,
        length: reader.u64("the length of a sink")?,
        added: reader.u64("what was added to a sink")?,
        checksum: reader.u64("the checksum of a sink")?,
    };
    if sink.added > sink.length {
        return Err(unknown(reader.offset(), "bytes added to a sink", 0));
    }
    let length = reader.rest().len();
    in_range(reader.offset(), "the bytes of a sink's name", length, 1, PATH_BYTES_MAX)?;
    Ok(Entry::Sink { name: reader.bytes(length, "the name of a sink")?, sink })
}

fn copy<'a>(reader: &mut Reader<'a>) -> Result<Entry<'a>, EntryError> {
    let number = number(reader)?;
    let offset = reader.offset();
    let of = match reader.u8("whether it is dead")? {
        0 => Original::Open(number),
        1 => Original::Dead(number),
        found => return Err(unknown(offset, "the standing", found)),
    };
    reader.zeros(3, "reserved bytes")?;
    Ok(Entry::Copy { of, envelope: envelope(reader)? })
}
