//! Reads a checkpoint: part by part, without holding more of the stream than an unfinished item.

#![deny(clippy::indexing_slicing)]

use std::sync::Arc;

use super::{End, HEAD, LETTER, OPEN, SETTLED, check_on, part_head};
use crate::envelope::EnvelopeId;
use crate::envelope::codec::reader::Reader;
use crate::log::entry::{self, Entry, EntryError, EntryKind, EntryNumber, Frame};
use crate::log::segment::Location;
use crate::log::state::{Counts, Held, Letter, Open, Place, State};

/// Why a checkpoint cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// An item does not fit. Offsets count from the item, or from the part's body.
    #[error("an item of checkpoint {number} is damaged: {source}")]
    Item {
        /// The number of the checkpoint.
        number: u64,
        /// What is wrong.
        source: EntryError,
    },
    /// A part is not the next one.
    #[error("part {expected} of checkpoint {number} was expected, not part {found}")]
    Part {
        /// The number of the checkpoint.
        number: u64,
        /// The index of the part.
        expected: u32,
        /// The index of what came.
        found: u32,
    },
    /// What the parts hold is not what was written, or does not add up.
    #[error("checkpoint {number} does not add up: {what}")]
    Sum {
        /// The number of the checkpoint.
        number: u64,
        /// What does not.
        what: &'static str,
    },
}

/// A checkpoint that is being read.
#[derive(Debug)]
pub struct Reading {
    end: End,
    state: State,
    /// Bytes of an item whose rest is in the next part.
    stream: Vec<u8>,
    check: u64,
    parts: u32,
    has_head: bool,
}

impl Reading {
    /// Begins to read the checkpoint with this end.
    pub fn new(end: End) -> Self {
        let state = State::default();
        Self { end, state, stream: Vec::new(), check: 0, parts: 0, has_head: false }
    }

    /// Reads the next part, given the body of its record. One of another checkpoint is passed over.
    ///
    /// # Errors
    /// When it is not the next one, or an item in it is damaged.
    pub fn part(&mut self, body: &[u8]) -> Result<(), CheckpointError> {
        let number = self.end.number;
        let item = |source| CheckpointError::Item { number, source };
        let (found, index, piece) = part_head(body).map_err(item)?;
        if found != number {
            return Ok(());
        }
        if index != self.parts {
            return Err(CheckpointError::Part { number, expected: self.parts, found: index });
        }
        self.parts += 1;
        self.check = check_on(self.check, piece);
        self.stream.extend_from_slice(piece);
        let stream = std::mem::take(&mut self.stream);
        let mut rest = &*stream;
        while let Some((whole, behind)) = split_item(rest) {
            let mut reader = Reader::new(whole);
            entry::frame(&mut reader).and_then(|frame| self.item(frame)).map_err(item)?;
            rest = behind;
        }
        self.stream = rest.to_vec();
        Ok(())
    }

    /// The state, when all parts were read.
    ///
    /// # Errors
    /// When parts are missing, or the state is not the one that was written.
    pub fn finish(self) -> Result<State, CheckpointError> {
        let wrong = match () {
            () if self.parts != self.end.parts => "parts are missing",
            () if self.check != self.end.check => "its check differs",
            () if !self.stream.is_empty() => "its last item is cut short",
            () if !self.has_head => "it has no head",
            () if self.state.sequence() != self.end.at => "it is of another record",
            () if !self.state.holds() => "its counts",
            () => return Ok(self.state),
        };
        Err(CheckpointError::Sum { number: self.end.number, what: wrong })
    }

    fn item(&mut self, mut frame: Frame<'_>) -> Result<(), EntryError> {
        let offset = frame.kind_offset;
        let unknown = |found| EntryError::Unknown { offset, what: "the kind of item", found };
        if self.has_head == (frame.kind == HEAD) {
            return Err(unknown(frame.kind));
        }
        let reader = &mut frame.content;
        match frame.kind {
            HEAD => {
                self.has_head = true;
                head(reader, &mut self.state)?;
            }
            OPEN => {
                let (id, open) = open(reader)?;
                self.state.open.insert(id, open);
            }
            LETTER => {
                let (number, letter) = letter(reader)?;
                self.state.letters.insert(number, letter);
            }
            SETTLED => {
                self.state.settled.push(entry::id(reader)?);
                entry::finish(reader)?;
            }
            kind => match frame.entry()? {
                Entry::State { name, value } => {
                    self.state.states.insert(name.into(), value.into());
                }
                Entry::Source { name, value } => {
                    self.state.sources.insert(name.into(), value.into());
                }
                Entry::Sink { name, sink } => {
                    self.state.sinks.insert(name.into(), sink);
                }
                _ => return Err(unknown(kind)),
            },
        }
        Ok(())
    }
}

/// The first item and what is behind it; `None` when it is not all there.
fn split_item(stream: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = stream.first_chunk().map(|&length| u32::from_le_bytes(length))?;
    let length = usize::try_from(length).ok()?.checked_next_multiple_of(entry::ALIGNMENT)?;
    stream.split_at_checked(length.checked_add(entry::HEAD_BYTES)?)
}

fn head(reader: &mut Reader<'_>, state: &mut State) -> Result<(), EntryError> {
    let last = place(reader)?;
    state.last = (last != Place::default()).then_some(last);
    state.settled.set_window(reader.u32("the window")?);
    reader.zeros(4, "reserved bytes")?;
    let mut count = || reader.u64("a count");
    state.counts = Counts {
        accepted: count()?,
        completed: count()?,
        expired: count()?,
        dead: count()?,
        redriven: count()?,
        purged: count()?,
        duplicates: count()?,
        forgotten: count()?,
    };
    entry::finish(reader)
}

fn open(reader: &mut Reader<'_>) -> Result<(EnvelopeId, Open), EntryError> {
    let (id, number) = name(reader)?;
    let due_ms = reader.u64("a due time")?;
    let (held, length) = held(reader)?;
    let held = Held { stage: stage(reader, length)?, ..held };
    entry::finish(reader)?;
    Ok((id, Open { number, due_ms, held }))
}

fn letter(reader: &mut Reader<'_>) -> Result<(EntryNumber, Letter), EntryError> {
    let (id, number) = name(reader)?;
    let at_ms = reader.u64("when it died")?;
    let (held, length) = held(reader)?;
    let cause = entry::cause(reader)?;
    reader.zeros(7, "reserved bytes")?;
    let held = Held { stage: stage(reader, length)?, ..held };
    let reason = reader.text(reader.rest().len(), "a reason")?.into();
    Ok((number, Letter { id, at_ms, cause, reason, held }))
}

fn name(reader: &mut Reader<'_>) -> Result<(EnvelopeId, EntryNumber), EntryError> {
    let id = entry::id(reader)?;
    let number = entry::number(reader)?;
    reader.zeros(4, "reserved bytes")?;
    Ok((id, number))
}

/// All but the name of the stage, and the length of that.
fn held(reader: &mut Reader<'_>) -> Result<(Held, usize), EntryError> {
    let hops = reader.u32("hops")?;
    let body_version = reader.u32("a body version")?;
    let attempts = reader.u16("attempts")?;
    let redrives = reader.u16("redrives")?;
    let level = entry::level(reader)?;
    let length = usize::from(reader.u8("the length of a stage's name")?);
    reader.zeros(2, "reserved bytes")?;
    let (form, body) = (place(reader)?, place(reader)?);
    let stage = Arc::from("");
    Ok((Held { level, stage, hops, attempts, redrives, body_version, body, form }, length))
}

fn stage(reader: &mut Reader<'_>, length: usize) -> Result<Arc<str>, EntryError> {
    Ok(Arc::from(reader.text(length, "the name of a stage")?))
}

fn place(reader: &mut Reader<'_>) -> Result<Place, EntryError> {
    let sequence = reader.u64("the sequence of a place")?;
    let segment = reader.u64("the segment of a place")?;
    let offset = reader.u64("the offset of a place")?;
    let index = reader.u32("the index of a place")?;
    reader.zeros(4, "reserved bytes")?;
    let number = EntryNumber { sequence, index };
    Ok(Place { number, location: Location { segment, offset } })
}

/// Kinds of entries and of items are numbered apart.
const _: () = assert!((EntryKind::Window as u8) < HEAD, "kinds of entries run into items");
