//! A second account of what entries mean: lives listed by how they began.

use std::collections::BTreeMap;

use crate::envelope::EnvelopeId;
use crate::log::entry::{DurableLevel, Entry, EntryKind, EntryNumber, Original, entries};
use crate::log::segment::Location;
use crate::log::state::State;

/// How an envelope stands, as text and numbers that compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) stage: String,
    is_exact: bool,
    pub(super) hops: u32,
    pub(super) attempts: u16,
    redrives: u16,
    due: u64,
    pub(super) version: u32,
    /// Record and index of body and wire form, and where their records begin.
    body: (EntryNumber, Location),
    form: (EntryNumber, Location),
    /// Of a dead letter: when and why.
    cause: Option<(u64, u8, String)>,
}

/// How an envelope lives on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Life {
    Running(Look),
    /// Its number is that of its death.
    Dead(EntryNumber, Look),
}

/// What a list-minded reader takes from the entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// By how they began.
    pub(super) lives: BTreeMap<EntryNumber, (EnvelopeId, Life)>,
    window: usize,
    pub(super) remembered: Vec<EnvelopeId>,
    values: BTreeMap<(EntryKind, Vec<u8>), Vec<u8>>,
    /// How many of each kind were seen.
    pub(super) tally: BTreeMap<EntryKind, u64>,
    forgotten: u64,
}

impl Account {
    pub(super) fn running(&self, id: EnvelopeId) -> Option<(EntryNumber, Look)> {
        self.lives.iter().find_map(|(&number, life)| match life {
            (found, Life::Running(look)) if *found == id => Some((number, look.clone())),
            _ => None,
        })
    }

    fn dead(&self, letter: EntryNumber, id: EnvelopeId) -> Option<(EntryNumber, Look)> {
        self.lives.iter().find_map(|(&number, life)| match life {
            (found, Life::Dead(by, look)) if *by == letter && *found == id => {
                Some((number, look.clone()))
            }
            _ => None,
        })
    }

    fn is_free(&self, id: EnvelopeId) -> bool {
        self.running(id).is_none() && !self.remembered.contains(&id)
    }

    fn forget(&mut self) {
        while self.remembered.len() > self.window {
            self.remembered.remove(0);
            self.forgotten += 1;
        }
    }

    /// The account after one more record; `None` when it tells what cannot be.
    pub(super) fn after(&self, sequence: u64, at: Location, body: &[u8]) -> Option<Self> {
        let mut account = self.clone();
        for (index, entry) in (0..).zip(entries(body)) {
            let entry = entry.ok()?;
            account.tell(EntryNumber { sequence, index }, at, &entry)?;
            *account.tally.entry(entry.kind()).or_default() += 1;
        }
        Some(account)
    }

    fn tell(&mut self, number: EntryNumber, at: Location, entry: &Entry<'_>) -> Option<()> {
        let here = (number, at);
        let id = entry.id();
        match *entry {
            Entry::Accept { level, envelope } => {
                (!id.is_nil() && self.is_free(id) && envelope.attempts == 0).then_some(())?;
                envelope.payload?;
                let look = Look {
                    stage: envelope.current?.to_owned(),
                    is_exact: level == DurableLevel::ExactlyOnce,
                    hops: envelope.hops,
                    attempts: 0,
                    redrives: 0,
                    due: 0,
                    version: envelope.body_version,
                    body: here,
                    form: here,
                    cause: None,
                };
                self.lives.insert(number, (id, Life::Running(look)));
            }
            Entry::Hop { envelope } => {
                let (born, mut look) = self.running(id)?;
                (envelope.attempts == 0 && envelope.hops == look.hops + 1).then_some(())?;
                match envelope.payload {
                    Some(_) => {
                        (envelope.body_version > look.version).then_some(())?;
                        look.body = here;
                    }
                    None => (envelope.body_version == look.version).then_some(())?,
                }
                (look.version, look.hops) = (envelope.body_version, envelope.hops);
                look.stage = envelope.current?.to_owned();
                (look.attempts, look.due, look.form) = (0, 0, here);
                self.lives.insert(born, (id, Life::Running(look)));
            }
            Entry::Attempt { attempts, due_ms, .. } => {
                let (born, mut look) = self.running(id)?;
                (attempts > look.attempts).then_some(())?;
                (look.attempts, look.due) = (attempts, due_ms);
                self.lives.insert(born, (id, Life::Running(look)));
            }
            Entry::Completed { .. } => {
                let (born, look) = self.running(id)?;
                self.lives.remove(&born);
                if look.is_exact {
                    self.remembered.push(id);
                    self.forget();
                }
            }
            Entry::Expired { .. } => {
                let (born, _) = self.running(id)?;
                self.lives.remove(&born);
            }
            Entry::Handled { .. } => {
                let (born, _) = self.running(id)?;
                self.lives.remove(&born);
            }
            Entry::Dead { at_ms, attempts, cause, reason, .. } => {
                let (born, mut look) = self.running(id)?;
                (attempts >= look.attempts).then_some(())?;
                (look.attempts, look.due) = (attempts, 0);
                look.cause = Some((at_ms, cause.number(), reason.to_owned()));
                self.lives.insert(born, (id, Life::Dead(number, look)));
            }
            _ => self.tell_of_letters(number, at, entry)?,
        }
        Some(())
    }

    fn tell_of_letters(
        &mut self,
        number: EntryNumber,
        at: Location,
        entry: &Entry<'_>,
    ) -> Option<()> {
        let here = (number, at);
        let id = entry.id();
        match *entry {
            Entry::Redriven { letter, envelope } => {
                let (born, mut look) = self.dead(letter, id)?;
                (self.is_free(id) && envelope.attempts == 0).then_some(())?;
                match envelope.payload {
                    Some(_) => {
                        (envelope.body_version > look.version).then_some(())?;
                        look.body = here;
                    }
                    None => (envelope.body_version == look.version).then_some(())?,
                }
                (envelope.hops >= look.hops).then_some(())?;
                look.version = envelope.body_version;
                look.stage = envelope.current?.to_owned();
                (look.hops, look.attempts, look.form) = (envelope.hops, 0, here);
                look.redrives += 1;
                look.cause = None;
                self.lives.remove(&born);
                self.lives.insert(number, (id, Life::Running(look)));
            }
            Entry::Purged { letter, .. } => {
                let (born, _) = self.dead(letter, id)?;
                self.lives.remove(&born);
            }
            Entry::Duplicate { letter, .. } => {
                let (born, _) = self.dead(letter, id)?;
                (self.remembered.contains(&id) && self.running(id).is_none()).then_some(())?;
                self.lives.remove(&born);
            }
            Entry::Copy { of, envelope } => {
                let (born, mut look) = match of {
                    Original::Open(born) => self.running(id).filter(|life| life.0 == born)?,
                    Original::Dead(letter) => self.dead(letter, id)?,
                };
                let says = (envelope.current?, envelope.hops, envelope.attempts);
                (says == (&*look.stage, look.hops, look.attempts)).then_some(())?;
                (envelope.body_version == look.version).then_some(())?;
                envelope.payload?;
                (look.body, look.form) = (here, here);
                if let Some((_, Life::Running(old) | Life::Dead(_, old))) =
                    self.lives.get_mut(&born)
                {
                    *old = look;
                }
            }
            _ => self.tell_of_values(entry),
        }
        Some(())
    }

    fn tell_of_values(&mut self, entry: &Entry<'_>) {
        match *entry {
            // A stage that saves nothing has forgotten.
            Entry::State { name, value: [] } | Entry::Source { name, value: [] } => {
                self.values.remove(&(entry.kind(), name.into()));
            }
            Entry::State { name, value } | Entry::Source { name, value } => {
                self.values.insert((entry.kind(), name.into()), value.into());
            }
            Entry::Sink { name: path, sink } => {
                let value = format!("{sink:?}").into_bytes();
                self.values.insert((entry.kind(), path.into()), value);
            }
            Entry::Window { count } => {
                self.window = usize::try_from(count).expect("small");
                self.forget();
            }
            _ => unreachable!("entries of envelopes were told of before"),
        }
    }

    /// Everything that a state can be asked has to be what the account says.
    pub(super) fn compare(&self, state: &State) {
        let told = |kind| self.tally.get(&kind).copied().unwrap_or(0);
        let counts = state.counts();
        assert_eq!(counts.accepted, told(EntryKind::Accept));
        assert_eq!(counts.completed, told(EntryKind::Completed) + told(EntryKind::Handled));
        assert_eq!(counts.expired, told(EntryKind::Expired));
        assert_eq!(counts.dead, told(EntryKind::Dead));
        assert_eq!(counts.redriven, told(EntryKind::Redriven));
        assert_eq!(counts.purged, told(EntryKind::Purged));
        assert_eq!(counts.duplicates, told(EntryKind::Duplicate));
        assert_eq!(counts.forgotten, self.forgotten);
        assert!(state.holds());
        assert!(state.settled().iter().eq(&self.remembered));
        assert_eq!(usize::try_from(state.settled().window()).unwrap(), self.window);

        let open = state.open_in_order().into_iter().map(|(id, open)| {
            (open.number, (id, Life::Running(look(&open.held, open.due_ms, None))))
        });
        let running = self.lives.iter().filter(|(_, life)| matches!(life.1, Life::Running(_)));
        assert!(open.eq(running.map(|(number, life)| (*number, life.clone()))));
        let letters = state.letters().map(|(number, letter)| {
            let cause = Some((letter.at_ms, letter.cause.number(), letter.reason.to_string()));
            (letter.id, Life::Dead(number, look(&letter.held, 0, cause)))
        });
        let letters: Vec<_> = letters.collect();
        let mut dead: Vec<_> =
            self.lives.values().filter(|life| matches!(life.1, Life::Dead(..))).cloned().collect();
        dead.sort_by_key(|life| match life.1 {
            Life::Dead(number, _) | Life::Running(Look { body: (number, _), .. }) => number,
        });
        assert_eq!(letters, dead);

        let mut values = BTreeMap::new();
        for (name, value) in state.states() {
            values.insert((EntryKind::State, name.as_bytes().to_vec()), value.to_vec());
        }
        for (name, value) in state.sources() {
            values.insert((EntryKind::Source, name.as_bytes().to_vec()), value.to_vec());
        }
        for (path, sink) in state.sinks() {
            values.insert((EntryKind::Sink, path.to_vec()), format!("{sink:?}").into_bytes());
        }
        assert_eq!(values, self.values);
    }
}

fn look(held: &crate::log::state::Held, due: u64, cause: Option<(u64, u8, String)>) -> Look {
    Look {
        stage: held.stage.to_string(),
        is_exact: held.level == DurableLevel::ExactlyOnce,
        hops: held.hops,
        attempts: held.attempts,
        redrives: held.redrives,
        due,
        version: held.body_version,
        body: (held.body.number, held.body.location),
        form: (held.form.number, held.form.location),
        cause,
    }
}
