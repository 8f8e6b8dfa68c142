//! Writes a checkpoint: parts one by one, then its end.

use super::{End, HEAD, LETTER, OPEN, PART_BYTES_MAX, PART_HEAD_BYTES, SETTLED, check_on};
use crate::envelope::EnvelopeId;
use crate::log::entry::{Entry, EntryEncodeError, EntryNumber, put_frame};
use crate::log::state::{Counts, Held, Letter, Open, Place, State};

/// A checkpoint in the making: an iterator over the bodies of its parts.
///
/// ```
/// use waystage::log::checkpoint::{Reading, Writing};
/// use waystage::log::state::State;
/// let state = State::default();
/// let mut writing = Writing::new(&state, 1, 4_000);
/// let parts: Vec<Vec<u8>> = writing.by_ref().collect::<Result<_, _>>()?;
/// let end = writing.end(17, 3); // the first part became record 17, in segment 3
/// let mut reading = Reading::new(end);
/// for part in &parts {
///     reading.part(part)?;
/// }
/// assert_eq!(reading.finish()?, state);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writing<'a> {
    state: &'a State,
    number: u64,
    part_bytes: usize,
    items: Items<'a>,
    /// Items that are not in a part yet.
    stream: Vec<u8>,
    check: u64,
    parts: u32,
}

impl<'a> Writing<'a> {
    /// Begins checkpoint `number` of `state`, in records with bodies of up to `body_bytes`, and
    /// never more than [`PART_BYTES_MAX`].
    ///
    /// # Panics
    /// When `body_bytes` is not more than the 16 bytes that a part's head takes.
    pub fn new(state: &'a State, number: u64, body_bytes: usize) -> Self {
        let part_bytes = body_bytes.min(PART_BYTES_MAX).saturating_sub(PART_HEAD_BYTES);
        assert!(part_bytes > 0, "a part of {body_bytes} bytes holds nothing");
        let items = Items::new(state);
        Self { state, number, part_bytes, items, stream: Vec::new(), check: 0, parts: 0 }
    }

    /// The end, for when all parts are written: the first became record `first_part` in `segment`.
    pub fn end(&self, first_part: u64, segment: u64) -> End {
        End {
            number: self.number,
            at: self.state.sequence(),
            first_part,
            lowest: self.state.lowest_segment().min(segment),
            check: self.check,
            parts: self.parts,
        }
    }
}

impl Iterator for Writing<'_> {
    type Item = Result<Vec<u8>, EntryEncodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.stream.len() < self.part_bytes {
            match self.items.put_next(self.state, &mut self.stream) {
                Some(Ok(())) => {}
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        if self.stream.is_empty() {
            return None;
        }
        let length = self.stream.len().min(self.part_bytes);
        let mut body = Vec::with_capacity(PART_HEAD_BYTES + length);
        body.extend_from_slice(&self.number.to_le_bytes());
        body.extend_from_slice(&u64::from(self.parts).to_le_bytes());
        body.extend(self.stream.drain(..length));
        self.check = check_on(self.check, &body[PART_HEAD_BYTES..]);
        self.parts += 1;
        Some(Ok(body))
    }
}

/// The items of a state that are still to be written, in their order.
#[derive(Debug)]
struct Items<'a> {
    /// Whether the head is still to come.
    is_new: bool,
    open: std::vec::IntoIter<(EnvelopeId, &'a Open)>,
    letters: std::collections::btree_map::Iter<'a, EntryNumber, Letter>,
    settled: std::collections::vec_deque::Iter<'a, EnvelopeId>,
    states: std::collections::btree_map::Iter<'a, Box<str>, Box<[u8]>>,
    sources: std::collections::btree_map::Iter<'a, Box<str>, Box<[u8]>>,
    sinks: std::collections::btree_map::Iter<'a, Box<[u8]>, crate::log::entry::Sink>,
}

impl<'a> Items<'a> {
    fn new(state: &'a State) -> Self {
        Self {
            is_new: true,
            open: state.open_in_order().into_iter(),
            letters: state.letters.iter(),
            settled: state.settled.iter(),
            states: state.states.iter(),
            sources: state.sources.iter(),
            sinks: state.sinks.iter(),
        }
    }

    /// Appends one item; `None` when there is none left.
    fn put_next(
        &mut self,
        state: &State,
        out: &mut Vec<u8>,
    ) -> Option<Result<(), EntryEncodeError>> {
        if std::mem::take(&mut self.is_new) {
            return Some(put_frame(out, HEAD, |out| {
                put_head(out, state);
                Ok(())
            }));
        }
        if let Some((id, open)) = self.open.next() {
            return Some(put_frame(out, OPEN, |out| put_open(out, id, open)));
        }
        if let Some((&number, letter)) = self.letters.next() {
            return Some(put_frame(out, LETTER, |out| put_letter(out, number, letter)));
        }
        if let Some(id) = self.settled.next() {
            return Some(put_frame(out, SETTLED, |out| {
                out.extend_from_slice(&id.to_bytes());
                Ok(())
            }));
        }
        if let Some((name, value)) = self.states.next() {
            return Some(Entry::State { name, value }.encode(out));
        }
        if let Some((name, value)) = self.sources.next() {
            return Some(Entry::Source { name, value }.encode(out));
        }
        let (name, &sink) = self.sinks.next()?;
        Some(Entry::Sink { name, sink }.encode(out))
    }
}

fn put_head(out: &mut Vec<u8>, state: &State) {
    put_place(out, state.last.unwrap_or_default());
    out.extend_from_slice(&u64::from(state.settled.window()).to_le_bytes());
    let Counts { accepted, completed, expired, dead, redriven, purged, duplicates, forgotten } =
        state.counts;
    for count in [accepted, completed, expired, dead, redriven, purged, duplicates, forgotten] {
        out.extend_from_slice(&count.to_le_bytes());
    }
}

fn put_open(out: &mut Vec<u8>, id: EnvelopeId, open: &Open) -> Result<(), EntryEncodeError> {
    put_name(out, id, open.number);
    out.extend_from_slice(&open.due_ms.to_le_bytes());
    put_held(out, &open.held)?;
    out.extend_from_slice(open.held.stage.as_bytes());
    Ok(())
}

fn put_letter(
    out: &mut Vec<u8>,
    number: EntryNumber,
    letter: &Letter,
) -> Result<(), EntryEncodeError> {
    put_name(out, letter.id, number);
    out.extend_from_slice(&letter.at_ms.to_le_bytes());
    put_held(out, &letter.held)?;
    out.extend_from_slice(&u64::from(letter.cause.number()).to_le_bytes());
    out.extend_from_slice(letter.held.stage.as_bytes());
    out.extend_from_slice(letter.reason.as_bytes());
    Ok(())
}

fn put_name(out: &mut Vec<u8>, id: EnvelopeId, number: EntryNumber) {
    out.extend_from_slice(&id.to_bytes());
    out.extend_from_slice(&number.sequence.to_le_bytes());
    out.extend_from_slice(&u64::from(number.index).to_le_bytes());
}

fn put_held(out: &mut Vec<u8>, held: &Held) -> Result<(), EntryEncodeError> {
    let length = held.stage.len();
    let stage = u8::try_from(length).map_err(|_error| EntryEncodeError::Name { length })?;
    out.extend_from_slice(&held.hops.to_le_bytes());
    out.extend_from_slice(&held.body_version.to_le_bytes());
    out.extend_from_slice(&held.attempts.to_le_bytes());
    out.extend_from_slice(&held.redrives.to_le_bytes());
    out.extend_from_slice(&[held.level.number(), stage, 0, 0]);
    put_place(out, held.form);
    put_place(out, held.body);
    Ok(())
}

fn put_place(out: &mut Vec<u8>, place: Place) {
    let Place { number, location } = place;
    for word in [number.sequence, location.segment, location.offset, u64::from(number.index)] {
        out.extend_from_slice(&word.to_le_bytes());
    }
}
