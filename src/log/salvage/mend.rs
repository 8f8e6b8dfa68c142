//! Entries behind a hole that do not fit what was before it: what they say all the same.

use super::replay::Replay;
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;
use crate::log::entry::{CauseCode, DurableLevel, Entry, EntryNumber, Original};
use crate::log::fold::fold;
use crate::log::state::{Held, Letter, Open, Place};

impl Replay {
    /// Takes from an entry what it says, whatever was before.
    pub(super) fn mend(&mut self, place: Place, entry: &Entry<'_>) {
        let id = entry.id();
        match *entry {
            Entry::Accept { .. } => {
                // Its earlier life ended in the hole, or is remembered no more.
                self.state.open.remove(&id);
                self.state.settled.remove(id);
                // What is wrong in itself stays out.
                let _ = fold(&mut self.state, place, entry);
            }
            Entry::Hop { envelope } => self.mend_hop(place, &envelope),
            Entry::Attempt { attempts, due_ms, .. } => match self.state.open.get_mut(&id) {
                Some(open) => (open.held.attempts, open.due_ms) = (attempts, due_ms),
                None => self.lose(id, place.number),
            },
            Entry::Completed { .. } => {
                self.forget_letters_of(id);
                if self.state.settled.window() > 0 && !self.state.settled.contains(id) {
                    let forgotten = self.state.settled.push(id);
                    self.state.counts.forgotten += forgotten.len() as u64;
                }
                self.state.counts.completed += 1;
            }
            Entry::Expired { .. } => {
                self.forget_letters_of(id);
                self.state.counts.expired += 1;
            }
            Entry::Handled { .. } => {
                self.forget_letters_of(id);
                self.state.counts.completed += 1;
            }
            Entry::Dead { at_ms, attempts, cause, reason, .. } => match self.state.open.remove(&id)
            {
                Some(open) => {
                    let held = Held { attempts, ..open.held };
                    let letter = Letter { id, at_ms, cause, reason: reason.into(), held };
                    self.state.letters.insert(place.number, letter);
                    self.uncertain_letters.insert(place.number);
                }
                None => self.lose(id, place.number),
            },
            Entry::Redriven { envelope, .. } => self.mend_redriven(place, &envelope),
            Entry::Purged { letter, .. } => {
                self.end_letter(letter, id);
                self.state.counts.purged += 1;
            }
            Entry::Duplicate { letter, .. } => {
                self.end_letter(letter, id);
                self.state.counts.duplicates += 1;
            }
            Entry::Copy { of, envelope } => self.mend_copy(place, of, &envelope),
            // These fit always.
            Entry::State { .. }
            | Entry::Source { .. }
            | Entry::Sink { .. }
            | Entry::Window { .. } => {}
        }
    }

    fn mend_hop(&mut self, place: Place, envelope: &Parts<'_>) {
        let id = envelope.id;
        let Some(stage) = envelope.current else { return self.lose(id, place.number) };
        let before = self.state.open.remove(&id).or_else(|| {
            let number = self.letter_of(id)?;
            let letter = self.state.letters.remove(&number)?;
            // It was re-driven in the hole.
            Some(Open { number: place.number, due_ms: 0, held: letter.held })
        });
        let body = match (&before, envelope.payload) {
            (_, Some(_)) => place,
            (Some(open), None) if open.held.body_version == envelope.body_version => open.held.body,
            _ => return self.lose(id, place.number),
        };
        if before.is_none() {
            // It came in within the hole, by what promise is not known.
            self.doubt(id);
        }
        let level = before.as_ref().map_or(DurableLevel::AtLeastOnce, |open| open.held.level);
        let redrives = before.as_ref().map_or(0, |open| open.held.redrives);
        let number = before.map_or(place.number, |open| open.number);
        let held = Held {
            level,
            stage: stage.into(),
            hops: envelope.hops,
            attempts: 0,
            redrives,
            body_version: envelope.body_version,
            body,
            form: place,
        };
        self.state.open.insert(id, Open { number, due_ms: 0, held });
    }

    fn mend_redriven(&mut self, place: Place, envelope: &Parts<'_>) {
        let id = envelope.id;
        // It died in the hole: what was open is what died, or an earlier letter is.
        let held = match self.state.open.remove(&id) {
            Some(open) => Some(open.held),
            None => self
                .letter_of(id)
                .and_then(|number| self.state.letters.remove(&number).map(|letter| letter.held)),
        };
        let (Some(held), Some(stage)) = (held, envelope.current) else {
            return self.lose(id, place.number);
        };
        let body = match envelope.payload {
            Some(_) => place,
            None if held.body_version == envelope.body_version => held.body,
            None => return self.lose(id, place.number),
        };
        let held = Held {
            stage: stage.into(),
            hops: envelope.hops,
            attempts: 0,
            redrives: held.redrives.saturating_add(1),
            body_version: envelope.body_version,
            body,
            form: place,
            ..held
        };
        self.state.open.insert(id, Open { number: place.number, due_ms: 0, held });
        self.state.counts.redriven += 1;
    }

    fn mend_copy(&mut self, place: Place, of: Original, envelope: &Parts<'_>) {
        let id = envelope.id;
        let (Some(stage), Some(_)) = (envelope.current, envelope.payload) else {
            return self.lose(id, place.number);
        };
        let held = |before: Option<&Held>| Held {
            level: before.map_or(DurableLevel::AtLeastOnce, |held| held.level),
            stage: stage.into(),
            hops: envelope.hops,
            attempts: envelope.attempts,
            redrives: before.map_or(0, |held| held.redrives),
            body_version: envelope.body_version,
            body: place,
            form: place,
        };
        match of {
            Original::Open(number) => {
                let before = self.state.open.get(&id).map(|open| open.held.clone());
                if before.is_none() {
                    self.doubt(id);
                }
                let open = Open { number, due_ms: 0, held: held(before.as_ref()) };
                self.state.open.insert(id, open);
            }
            Original::Dead(number) => {
                let letter = self.state.letters.get(&number);
                let open = self.state.open.get(&id).filter(|open| open.number < number);
                let before =
                    letter.map(|letter| &letter.held).or_else(|| open.map(|open| &open.held));
                let held = held(before);
                let (at_ms, cause, reason) = match letter {
                    Some(letter) => (letter.at_ms, letter.cause, letter.reason.clone()),
                    None => (0, CauseCode::Uncertain, "why it died is not known".into()),
                };
                if open.is_some() {
                    self.state.open.remove(&id);
                }
                self.state.letters.insert(number, Letter { id, at_ms, cause, reason, held });
            }
        }
    }

    /// A letter was dealt with, whether or not it was known.
    fn end_letter(&mut self, letter: EntryNumber, id: EnvelopeId) {
        let was_open = self.state.open.get(&id).is_some_and(|open| open.number < letter);
        if self.state.letters.remove(&letter).is_none() && was_open {
            // It died in the hole.
            self.state.open.remove(&id);
        }
        // Not what was lost since that letter died.
        if self.lost.get(&id).is_some_and(|lost| *lost <= letter) {
            self.lost.remove(&id);
        }
    }

    /// The newest letter of this envelope that may have been dealt with in a hole.
    fn letter_of(&self, id: EnvelopeId) -> Option<EntryNumber> {
        let mut letters = self.uncertain_letters.iter().rev();
        let is_its = |number: &&EntryNumber| {
            self.state.letters.get(number).is_some_and(|letter| letter.id == id)
        };
        letters.find(is_its).copied()
    }

    fn forget_letters_of(&mut self, id: EnvelopeId) {
        if let Some(number) = self.letter_of(id) {
            self.state.letters.remove(&number);
        }
    }

    /// It is there, and too little is known of it to handle it.
    fn doubt(&mut self, id: EnvelopeId) {
        self.report.uncertain.push(id);
        self.uncertain.insert(id);
    }

    fn lose(&mut self, id: EnvelopeId, at: EntryNumber) {
        self.state.open.remove(&id);
        self.lost.insert(id, at);
    }
}
