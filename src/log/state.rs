//! What is true after some entries of a log: the value that [`fold`](super::fold) goes over.
//!
//! Invariants: an id is open at most once, and never open and settled at the same time; a dead
//! letter has the number of the entry that made it, and its id is free meanwhile; [`Counts::holds`]
//! at every moment. Nothing here has a bound of its own: who writes the entries sees to that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::entry::{CauseCode, DurableLevel, EntryNumber, Sink};
use super::segment::Location;
use super::settled::Settled;
use crate::envelope::EnvelopeId;

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Place {
    /// Its number.
    pub number: EntryNumber,
    /// Where its record begins.
    pub location: Location,
}

/// What is remembered of an envelope, whether open or dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What was promised of it.
    pub level: DurableLevel,
    /// The stage it stands at.
    pub stage: Arc<str>,
    /// Hops taken.
    pub hops: u32,
    /// Attempts made at its stage.
    pub attempts: u16,
    /// How often it came back from the dead letters.
    pub redrives: u16,
    /// Which body it has.
    pub body_version: u32,
    /// The entry with that body.
    pub body: Place,
    /// The entry with its latest wire form.
    pub form: Place,
}

/// An envelope that is to be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The entry by which it came in, an accept or a re-drive: its place in the order of replay.
    pub number: EntryNumber,
    /// When its next attempt is due, in unix milliseconds; 0: at once.
    pub due_ms: u64,
    /// The rest.
    pub held: Held,
}

/// An envelope that was given up on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its id.
    pub id: EnvelopeId,
    /// When it was given up, in unix milliseconds.
    pub at_ms: u64,
    /// Why it was given up.
    pub cause: CauseCode,
    /// Why, in words.
    pub reason: Box<str>,
    /// The rest.
    pub held: Held,
}

/// How often what happened, since the log began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Envelopes that came in.
    pub accepted: u64,
    /// Those that reached their end, be it in a dead-letter stage.
    pub completed: u64,
    /// Those whose deadline passed.
    pub expired: u64,
    /// Those that became dead letters.
    pub dead: u64,
    /// Dead letters that came in again.
    pub redriven: u64,
    /// Dead letters removed by hand.
    pub purged: u64,
    /// Dead letters removed because their id was settled.
    pub duplicates: u64,
    /// Settled ids that are remembered no more.
    pub forgotten: u64,
}

impl Counts {
    /// Whether the books add up with so many open envelopes and dead letters: nothing was lost,
    /// nothing doubled.
    ///
    /// ```
    /// use waystage::log::state::Counts;
    /// let counts = Counts { accepted: 3, completed: 1, dead: 1, ..Counts::default() };
    /// assert!(counts.holds(1, 1));
    /// assert!(!counts.holds(2, 1));
    /// ```
    pub fn holds(&self, open: usize, letters: usize) -> bool {
        let ended = u128::from(self.completed) + u128::from(self.expired) + u128::from(self.dead);
        let left = u128::from(self.purged) + u128::from(self.duplicates);
        u128::from(self.accepted) + u128::from(self.redriven) == ended + open as u128
            && u128::from(self.dead) == u128::from(self.redriven) + left + letters as u128
    }
}

/// What is true after some entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) open: HashMap<EnvelopeId, Open>,
    pub(super) letters: BTreeMap<EntryNumber, Letter>,
    pub(super) settled: Settled,
    pub(super) states: BTreeMap<Box<str>, Box<[u8]>>,
    pub(super) sources: BTreeMap<Box<str>, Box<[u8]>>,
    pub(super) sinks: BTreeMap<Box<[u8]>, Sink>,
    pub(super) counts: Counts,
    pub(super) last: Option<Place>,
}

impl State {
    /// The last entry folded; `None` before the first.
    pub fn last(&self) -> Option<Place> {
        self.last
    }

    /// The sequence of the last record folded; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.last.map_or(0, |place| place.number.sequence)
    }

    /// The open envelope with this id.
    pub fn open(&self, id: EnvelopeId) -> Option<&Open> {
        self.open.get(&id)
    }

    /// Whether an envelope with this id is open, or its end is remembered.
    pub fn knows(&self, id: EnvelopeId) -> bool {
        self.open.contains_key(&id) || self.settled.contains(id)
    }

    /// How many envelopes are open.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// All open envelopes in the order in which they came in. Sorts, so it is for opening a log.
    pub fn open_in_order(&self) -> Vec<(EnvelopeId, &Open)> {
        let mut all: Vec<_> = self.open.iter().map(|(&id, open)| (id, open)).collect();
        all.sort_unstable_by_key(|(_, open)| open.number);
        all
    }

    /// The dead letter that this entry made.
    pub fn letter(&self, number: EntryNumber) -> Option<&Letter> {
        self.letters.get(&number)
    }

    /// All dead letters, the oldest first.
    pub fn letters(&self) -> impl ExactSizeIterator<Item = (EntryNumber, &Letter)> {
        self.letters.iter().map(|(&number, letter)| (number, letter))
    }

    /// The ids that were completed exactly once.
    pub fn settled(&self) -> &Settled {
        &self.settled
    }

    /// What a stage saved last.
    pub fn state(&self, name: &str) -> Option<&[u8]> {
        self.states.get(name).map(|value| &**value)
    }

    /// What stages saved, by name.
    pub fn states(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.states.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How far an input was read.
    pub fn source(&self, name: &str) -> Option<&[u8]> {
        self.sources.get(name).map(|value| &**value)
    }

    /// How far inputs were read, by name.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.sources.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How far the output of this name was written.
    pub fn sink(&self, name: &[u8]) -> Option<Sink> {
        self.sinks.get(name).copied()
    }

    /// How far outputs were written, by name.
    pub fn sinks(&self) -> impl ExactSizeIterator<Item = (&[u8], Sink)> {
        self.sinks.iter().map(|(name, &sink)| (&**name, sink))
    }

    /// How often what happened.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether the books add up.
    pub fn holds(&self) -> bool {
        self.counts.holds(self.open.len(), self.letters.len())
    }

    /// The lowest segment that holds something still needed: the last record folded, a body, or a
    /// wire form. Looks at every envelope.
    pub fn lowest_segment(&self) -> u64 {
        let held = self.open.values().map(|open| &open.held);
        let held = held.chain(self.letters.values().map(|letter| &letter.held));
        let segments = held.flat_map(|held| [held.body, held.form]).chain(self.last);
        segments.map(|place| place.location.segment).min().unwrap_or(1)
    }
}
