//! The dead letters that the log has.

use super::recall::Unread;
use super::{Journal, NotTaken, note, put};
use crate::bus::dead_letter::DeadLetterInfo;
use crate::bus::registry::Registry;
use crate::clock::Clock;
use crate::envelope::Envelope;
use crate::log::LogError;
use crate::log::entry::{Entry, EntryNumber};
use crate::log::letters::{Claim, LetterFilter, claim};
use crate::log::state::{Letter, State};
use crate::sync::{Mutex, lock};

impl<P: Send + 'static> Journal<P> {
    /// What a list shows of the dead letters, the oldest first. Where the log cannot be read, the
    /// trail is missing.
    pub(crate) fn letter_infos(&self) -> Vec<DeadLetterInfo> {
        let letters = self.with_state(|state| {
            let letters = state.letters().map(|(number, letter)| (number, letter.clone()));
            letters.collect::<Vec<_>>()
        });
        let info = |(number, letter): (EntryNumber, Letter)| DeadLetterInfo {
            id: letter.id,
            cause: letter.cause.cause(&letter.reason),
            stage: letter.held.stage.to_string(),
            attempts: letter.held.attempts,
            trail: self.trail(number),
            at_ms: letter.at_ms,
            redrives: letter.held.redrives,
            is_in_log: true,
        };
        letters.into_iter().map(info).collect()
    }

    fn trail(&self, letter: EntryNumber) -> Vec<String> {
        let held = |state: &State| state.letter(letter).map(|letter| letter.held.clone());
        let Ok(Some((_, form))) = self.form_of(held) else { return Vec::new() };
        let Ok(view) = form.view() else { return Vec::new() };
        view.trail().iter().chain(view.current()).map(str::to_owned).collect()
    }

    /// The envelope of a dead letter; `None` when that is there no more.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn recall_letter(
        &self,
        registry: &Mutex<Registry>,
        bus: u16,
        clock: &dyn Clock,
        letter: EntryNumber,
    ) -> Result<Option<Envelope<P>>, Unread> {
        self.envelope_of(registry, bus, clock, |state| {
            state.letter(letter).map(|letter| letter.held.clone())
        })
    }

    /// Writes down that a dead letter comes in again as `envelope`, if its id is free; that it is a
    /// duplicate, if its id is remembered. `None`: it is there no more.
    ///
    /// # Errors
    /// When it could not be written; then the letter is as it was.
    pub(crate) fn redrive(
        &self,
        registry: &Mutex<Registry>,
        clock: &dyn Clock,
        (letter, redrives_max): (EntryNumber, u16),
        envelope: &mut Envelope<P>,
    ) -> Result<Option<Claim>, NotTaken> {
        let mut body = Vec::new();
        self.wire.redriven(registry, clock, letter, envelope, &mut body)?;
        let state = lock(&self.state);
        let found = claim(&state, letter, redrives_max);
        match found {
            Some(Claim::Free) => {
                let sequence = self.append(state, &body).map_err(NotTaken::Log)?;
                note(envelope, sequence, None);
            }
            Some(Claim::Duplicate) => {
                body.clear();
                put(&Entry::Duplicate { letter, id: envelope.id() }, &mut body);
                self.append(state, &body).map_err(NotTaken::Log)?;
            }
            Some(Claim::Guarded | Claim::InFlight) | None => {}
        }
        Ok(found)
    }

    /// Removes the dead letters that fit; how many they were.
    ///
    /// # Errors
    /// When that could not be written; those before that are gone.
    pub(crate) fn purge(&self, filter: &LetterFilter) -> Result<usize, LogError> {
        let mut purged = 0;
        for letter in self.with_state(|state| filter.picked(state)) {
            let state = lock(&self.state);
            let Some(id) = state.letter(letter).map(|letter| letter.id) else { continue };
            let mut body = Vec::new();
            put(&Entry::Purged { letter, id }, &mut body);
            self.append(state, &body)?;
            purged += 1;
        }
        Ok(purged)
    }
}
