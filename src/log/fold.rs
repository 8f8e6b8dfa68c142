//! The one function that says what entries mean: recovery, checkpoints and `verify` use it.
//!
//! Pure: a state and an entry in, another state or a [`Violation`] out; no time, no storage. The
//! table of transitions is in `ARCHITECTURE.md` under *The life of a durable envelope*. A record is
//! folded whole or not at all: every change notes what was there before, and a violation puts all
//! of it back.

mod change;
mod checks;
mod violation;

use change::{Change, Fold};
use checks::{begins_anew, goes_on, is_the_same, rises, stage};
pub use violation::{Breach, FoldError, Standing, Violation};

use super::entry::{DurableLevel, Entry, EntryNumber, Original, entries};
use super::segment::Location;
use super::state::{Held, Letter, Open, Place, State};
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;

/// Folds one entry.
///
/// A checkpoint names its position by a record, so between records take none: see [`fold_record`].
///
/// # Errors
/// When the state does not allow it; then nothing was changed.
pub fn fold(state: &mut State, place: Place, entry: &Entry<'_>) -> Result<(), Violation> {
    let mut fold = Fold::new(state);
    fold.entry(place, entry).inspect_err(|_| fold.undo())
}

/// Folds all entries of a record, or none.
///
/// ```
/// use waystage::envelope::{EnvelopeId, codec::Parts};
/// use waystage::log::entry::{DurableLevel, Entry};
/// use waystage::log::fold::fold_record;
/// use waystage::log::segment::Location;
/// use waystage::log::state::State;
/// let id = EnvelopeId::from_key(b"order-17");
/// let envelope = Parts { current: Some("price"), payload: Some(b"2 pears"), ..Parts::new(id) };
/// let mut body = Vec::new();
/// Entry::Accept { level: DurableLevel::AtLeastOnce, envelope }.encode(&mut body)?;
/// let mut state = State::default();
/// fold_record(&mut state, 1, Location { segment: 1, offset: 64 }, &body)?;
/// assert_eq!(&*state.open(id).unwrap().held.stage, "price");
/// // The same id once more is not allowed, and changes nothing.
/// assert!(fold_record(&mut state, 2, Location { segment: 1, offset: 256 }, &body).is_err());
/// assert_eq!(state.sequence(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the body is no entries, or the state does not allow one; then nothing was changed.
pub fn fold_record(
    state: &mut State,
    sequence: u64,
    location: Location,
    body: &[u8],
) -> Result<(), FoldError> {
    let mut fold = Fold::new(state);
    for (index, entry) in (0..).zip(entries(body)) {
        let place = Place { number: EntryNumber { sequence, index }, location };
        let folded = match entry {
            Ok(entry) => fold.entry(place, &entry).map_err(FoldError::Violation),
            Err(error) => Err(FoldError::Entry(error)),
        };
        if let Err(error) = folded {
            fold.undo();
            return Err(error);
        }
    }
    Ok(())
}

impl Fold<'_> {
    /// Checks everything, then changes what there is to change.
    fn entry(&mut self, place: Place, entry: &Entry<'_>) -> Result<(), Violation> {
        let id = entry.id();
        self.entry_of(place, entry, id).map_err(|breach| Violation {
            number: place.number,
            entry: entry.kind(),
            id,
            breach,
        })
    }

    fn entry_of(&mut self, place: Place, entry: &Entry<'_>, id: EnvelopeId) -> Result<(), Breach> {
        if let Some(last) = self.state.last.filter(|last| last.number >= place.number) {
            return Err(Breach::Passed { last: last.number });
        }
        match *entry {
            Entry::Accept { level, envelope } => self.accept(place, level, &envelope)?,
            Entry::Hop { envelope } => self.hop(place, &envelope)?,
            Entry::Attempt { attempts, due_ms, .. } => self.attempt(id, attempts, due_ms)?,
            Entry::Completed { .. } => self.completed(id)?,
            Entry::Expired { .. } => {
                self.open_of(id)?;
                self.put_open(id, None);
                self.state.counts.expired += 1;
            }
            Entry::Dead { at_ms, attempts, cause, reason, .. } => {
                let held = self.open_of(id)?.held.clone();
                rises(held.attempts, attempts, true)?;
                let held = Held { attempts, ..held };
                self.put_open(id, None);
                let letter = Letter { id, at_ms, cause, reason: reason.into(), held };
                self.put_letter(place.number, Some(letter));
                self.state.counts.dead += 1;
            }
            Entry::Redriven { letter, envelope } => self.redriven(place, letter, &envelope)?,
            Entry::Purged { letter, .. } => {
                self.letter_of(letter, id)?;
                self.put_letter(letter, None);
                self.state.counts.purged += 1;
            }
            Entry::Duplicate { letter, .. } => {
                self.letter_of(letter, id)?;
                self.stands(id, Standing::Settled)?;
                self.put_letter(letter, None);
                self.state.counts.duplicates += 1;
            }
            Entry::State { name, value } => {
                let states = &mut self.state.states;
                let before = match value {
                    [] => states.remove(name),
                    value => states.insert(name.into(), value.into()),
                };
                self.changes.push(Change::State(name.into(), before));
            }
            Entry::Source { name, value } => {
                let sources = &mut self.state.sources;
                let before = match value {
                    [] => sources.remove(name),
                    value => sources.insert(name.into(), value.into()),
                };
                self.changes.push(Change::Source(name.into(), before));
            }
            Entry::Sink { name, sink } => {
                let before = self.state.sinks.insert(name.into(), sink);
                self.changes.push(Change::Sink(name.into(), before));
            }
            Entry::Copy { of: Original::Open(number), envelope } => {
                self.copy_open(place, number, &envelope)?;
            }
            Entry::Copy { of: Original::Dead(number), envelope } => {
                self.copy_letter(place, number, &envelope)?;
            }
            Entry::Window { count } => self.window(count),
            Entry::Handled { .. } => {
                self.open_of(id)?;
                self.put_open(id, None);
                self.state.counts.completed += 1;
            }
        }
        self.state.last = Some(place);
        Ok(())
    }

    fn accept(
        &mut self,
        place: Place,
        level: DurableLevel,
        envelope: &Parts<'_>,
    ) -> Result<(), Breach> {
        if envelope.id.is_nil() {
            return Err(Breach::Nil);
        }
        self.stands(envelope.id, Standing::Unknown)?;
        let stage = stage(envelope)?;
        begins_anew(envelope)?;
        if envelope.payload.is_none() {
            return Err(Breach::NoBody);
        }
        let held = Held {
            level,
            stage,
            hops: envelope.hops,
            attempts: 0,
            redrives: 0,
            body_version: envelope.body_version,
            body: place,
            form: place,
        };
        self.put_open(envelope.id, Some(Open { number: place.number, due_ms: 0, held }));
        self.state.counts.accepted += 1;
        Ok(())
    }

    fn hop(&mut self, place: Place, envelope: &Parts<'_>) -> Result<(), Breach> {
        let open = self.open_of(envelope.id)?;
        let stage = stage(envelope)?;
        begins_anew(envelope)?;
        let (held, number) = (&open.held, open.number);
        if Some(envelope.hops) != held.hops.checked_add(1) {
            return Err(Breach::Hops { held: held.hops, found: envelope.hops });
        }
        let held = Held {
            stage,
            hops: envelope.hops,
            attempts: 0,
            body_version: envelope.body_version,
            body: if goes_on(held, envelope)? { place } else { held.body },
            form: place,
            ..held.clone()
        };
        self.put_open(envelope.id, Some(Open { number, due_ms: 0, held }));
        Ok(())
    }

    fn attempt(&mut self, id: EnvelopeId, attempts: u16, due_ms: u64) -> Result<(), Breach> {
        let open = self.open_of(id)?;
        rises(open.held.attempts, attempts, false)?;
        let held = Held { attempts, ..open.held.clone() };
        let open = Open { due_ms, held, number: open.number };
        self.put_open(id, Some(open));
        Ok(())
    }

    fn completed(&mut self, id: EnvelopeId) -> Result<(), Breach> {
        let level = self.open_of(id)?.held.level;
        self.put_open(id, None);
        self.state.counts.completed += 1;
        if level == DurableLevel::ExactlyOnce {
            let forgotten = self.state.settled.push(id);
            self.state.counts.forgotten += forgotten.len() as u64;
            self.changes.push(Change::Settled { forgotten });
        }
        Ok(())
    }

    fn redriven(
        &mut self,
        place: Place,
        number: EntryNumber,
        envelope: &Parts<'_>,
    ) -> Result<(), Breach> {
        let id = envelope.id;
        let held = self.letter_of(number, id)?.held.clone();
        self.stands(id, Standing::Unknown)?;
        let stage = stage(envelope)?;
        begins_anew(envelope)?;
        if envelope.hops < held.hops {
            return Err(Breach::Hops { held: held.hops, found: envelope.hops });
        }
        let held = Held {
            stage,
            hops: envelope.hops,
            attempts: 0,
            redrives: held.redrives.saturating_add(1),
            body_version: envelope.body_version,
            body: if goes_on(&held, envelope)? { place } else { held.body },
            form: place,
            ..held
        };
        self.put_letter(number, None);
        self.put_open(id, Some(Open { number: place.number, due_ms: 0, held }));
        self.state.counts.redriven += 1;
        Ok(())
    }

    fn copy_open(
        &mut self,
        place: Place,
        number: EntryNumber,
        envelope: &Parts<'_>,
    ) -> Result<(), Breach> {
        let open = self.open_of(envelope.id)?;
        if open.number != number {
            return Err(Breach::Number { held: open.number, found: number });
        }
        is_the_same(&open.held, envelope)?;
        let held = Held { body: place, form: place, ..open.held.clone() };
        let open = Open { held, ..*open };
        self.put_open(envelope.id, Some(open));
        Ok(())
    }

    fn copy_letter(
        &mut self,
        place: Place,
        number: EntryNumber,
        envelope: &Parts<'_>,
    ) -> Result<(), Breach> {
        let mut letter = self.letter_of(number, envelope.id)?.clone();
        is_the_same(&letter.held, envelope)?;
        (letter.held.body, letter.held.form) = (place, place);
        self.put_letter(number, Some(letter));
        Ok(())
    }

    fn window(&mut self, count: u32) {
        let before = self.state.settled.window();
        let forgotten = self.state.settled.set_window(count);
        self.state.counts.forgotten += forgotten.len() as u64;
        self.changes.push(Change::Window { before, forgotten });
    }
}
