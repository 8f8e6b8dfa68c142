//! A fold in progress: the state, and what to put back if it fails.

use super::violation::{Breach, Standing};
use crate::envelope::EnvelopeId;
use crate::log::entry::{EntryNumber, Sink};
use crate::log::state::{Counts, Letter, Open, Place, State};

/// What was there before one change.
pub(super) enum Change {
    Open(EnvelopeId, Option<Open>),
    Letter(EntryNumber, Option<Letter>),
    Settled { forgotten: Vec<EnvelopeId> },
    Window { before: u32, forgotten: Vec<EnvelopeId> },
    State(Box<str>, Option<Box<[u8]>>),
    Source(Box<str>, Option<Box<[u8]>>),
    Sink(Box<[u8]>, Option<Sink>),
}

/// A state, and the way back to what it was.
pub(super) struct Fold<'a> {
    pub(super) state: &'a mut State,
    pub(super) changes: Vec<Change>,
    counts: Counts,
    last: Option<Place>,
}

impl<'a> Fold<'a> {
    pub(super) fn new(state: &'a mut State) -> Self {
        let (counts, last) = (state.counts, state.last);
        Self { state, changes: Vec::new(), counts, last }
    }

    /// Puts everything back, the newest change first.
    pub(super) fn undo(&mut self) {
        let Self { state, changes, counts, last } = self;
        for change in changes.drain(..).rev() {
            match change {
                Change::Open(id, Some(open)) => {
                    state.open.insert(id, open);
                }
                Change::Open(id, None) => {
                    state.open.remove(&id);
                }
                Change::Letter(number, Some(letter)) => {
                    state.letters.insert(number, letter);
                }
                Change::Letter(number, None) => {
                    state.letters.remove(&number);
                }
                Change::Settled { forgotten } => state.settled.undo_push(&forgotten),
                Change::Window { before, forgotten } => {
                    state.settled.undo_window(before, &forgotten);
                }
                Change::State(name, before) => put_back(&mut state.states, name, before),
                Change::Source(name, before) => put_back(&mut state.sources, name, before),
                Change::Sink(path, before) => put_back(&mut state.sinks, path, before),
            }
        }
        (state.counts, state.last) = (*counts, *last);
    }

    /// Refuses an id that stands elsewhere.
    pub(super) fn stands(&self, id: EnvelopeId, expected: Standing) -> Result<(), Breach> {
        let standing = match () {
            () if self.state.open.contains_key(&id) => Standing::Open,
            () if self.state.settled.contains(id) => Standing::Settled,
            () => Standing::Unknown,
        };
        if standing == expected { Ok(()) } else { Err(Breach::Standing(standing)) }
    }

    pub(super) fn open_of(&self, id: EnvelopeId) -> Result<&Open, Breach> {
        self.stands(id, Standing::Open)?;
        self.state.open.get(&id).ok_or(Breach::Standing(Standing::Unknown))
    }

    pub(super) fn letter_of(&self, number: EntryNumber, id: EnvelopeId) -> Result<&Letter, Breach> {
        let letter = self.state.letters.get(&number).ok_or(Breach::NoLetter { number })?;
        if letter.id == id { Ok(letter) } else { Err(Breach::LetterOf { number, id: letter.id }) }
    }

    pub(super) fn put_open(&mut self, id: EnvelopeId, open: Option<Open>) {
        let before = match open {
            Some(open) => self.state.open.insert(id, open),
            None => self.state.open.remove(&id),
        };
        self.changes.push(Change::Open(id, before));
    }

    pub(super) fn put_letter(&mut self, number: EntryNumber, letter: Option<Letter>) {
        let before = match letter {
            Some(letter) => self.state.letters.insert(number, letter),
            None => self.state.letters.remove(&number),
        };
        self.changes.push(Change::Letter(number, before));
    }
}

fn put_back<K: Ord, V>(values: &mut std::collections::BTreeMap<K, V>, key: K, before: Option<V>) {
    match before {
        Some(value) => values.insert(key, value),
        None => values.remove(&key),
    };
}
