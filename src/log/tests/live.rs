//! A log on the simulated disk that is written with its state beside it.

#![expect(clippy::panic_in_result_fn, reason = "errors are the disk's, panics are failures")]

use super::story::Account;
use super::*;
use crate::envelope::codec::Parts;
use crate::log::checkpoint::{End, Writing};
use crate::log::entry::{Entry, Original, entries};
use crate::log::fold::fold_record;
use crate::log::frame::{self, Found};
use crate::log::segment::{self, Location};
use crate::log::state::{Place, State};

pub(super) const SEGMENT_BYTES: u64 = 4_096;

/// A log that is written, with its state beside it.
pub(super) struct Live {
    pub(super) disk: SimulatedDisk,
    pub(super) tail: Tail,
    pub(super) random: Random,
    pub(super) account: Account,
    pub(super) state: State,
    /// The state after each record, from that after none.
    pub(super) states: Vec<State>,
    checkpoints: u64,
}

impl Live {
    pub(super) fn new(seed: u64) -> Self {
        let disk = SimulatedDisk::default();
        let (_, tail) = open(&disk, settings(seed + 1, SEGMENT_BYTES)).unwrap();
        let (account, state) = (Account::default(), State::default());
        let states = vec![state.clone()];
        Self { disk, tail, random: Random(seed), account, state, states, checkpoints: 0 }
    }

    /// Goes on with a disk that holds the same.
    pub(super) fn on(&self, disk: SimulatedDisk, seed: u64) -> Result<Self, LogError> {
        let (_, tail) = open(&disk, settings(seed, SEGMENT_BYTES))?;
        Ok(Self {
            disk,
            tail,
            random: Random(seed),
            account: self.account.clone(),
            state: self.state.clone(),
            states: self.states.clone(),
            checkpoints: self.checkpoints,
        })
    }

    pub(super) fn record(&mut self, kind: Kind, body: &[u8]) -> Result<u64, LogError> {
        self.states.push(self.state.clone());
        let sequence = self.tail.push(kind, body, 1)?;
        self.tail.write()?;
        Ok(sequence)
    }

    pub(super) fn entries(&mut self, body: &[u8]) -> Result<(), LogError> {
        let sequence = self.tail.push(Kind::Entries, body, 1)?;
        let location = Location { segment: self.tail.segment(), offset: 0 };
        // What may reach the disk may come back, even if the call fails.
        let written = self.tail.write();
        let end = self.tail.position();
        let size = frame::size(body.len()) as u64;
        let offset = if written.is_ok() { end - size } else { end };
        let location = Location { offset, ..location };
        self.account = self.account.after(sequence, location, body).expect("only what may be");
        fold_record(&mut self.state, sequence, location, body).expect("only what may be");
        self.states.push(self.state.clone());
        written
    }

    pub(super) fn some_entries(&mut self, count: usize) -> Result<(), LogError> {
        let end = self.states.len() + count;
        while self.states.len() < end {
            let body = self.account.invent(&mut self.random);
            let next = self.states.len() as u64;
            if self.account.after(next, Location::default(), &body).is_some() {
                self.entries(&body)?;
            }
        }
        Ok(())
    }

    /// Writes parts of a checkpoint with other records between them; its end only if `is_whole`.
    pub(super) fn checkpoint(&mut self, is_whole: bool) -> Result<Option<End>, LogError> {
        let state = self.state.clone();
        let limit = [100, 700, self.tail.body_bytes_max()][self.random.below(3)];
        if is_whole {
            // Numbers of those given up are used again.
            self.checkpoints += 1;
        }
        let mut writing = Writing::new(&state, self.checkpoints, limit);
        let mut first = None;
        for part in writing.by_ref() {
            let part = part.expect("all of it is short");
            assert!(part.len() <= limit);
            let sequence = self.record(Kind::CheckpointPart, &part)?;
            first = first.or_else(|| Some((sequence, self.tail.segment())));
            let between = self.random.below(3);
            self.some_entries(between)?;
            if !is_whole && self.random.below(4) == 0 {
                return Ok(None);
            }
        }
        if !is_whole {
            return Ok(None);
        }
        let (first_part, segment) = first.expect("there is a head");
        let end = writing.end(first_part, segment);
        self.record(Kind::CheckpointEnd, &end.to_body())?;
        self.tail.flush()?;
        Ok(Some(end))
    }

    /// Writes a whole checkpoint of the state with nothing between its parts.
    pub(super) fn checkpoint_alone(&mut self) {
        self.checkpoints += 1;
        let state = self.state.clone();
        let mut writing = Writing::new(&state, self.checkpoints, 700);
        let mut first = None;
        for part in writing.by_ref() {
            let sequence = self.record(Kind::CheckpointPart, &part.unwrap()).unwrap();
            first = first.or_else(|| Some((sequence, self.tail.segment())));
        }
        let (first_part, segment) = first.expect("there is a head");
        self.record(Kind::CheckpointEnd, &writing.end(first_part, segment).to_body()).unwrap();
        self.tail.flush().unwrap();
    }

    /// Copies all that stands in segments below `segment`.
    pub(super) fn copy_below(&mut self, segment: u64) -> Result<(), LogError> {
        let is_old = |place: Place| place.location.segment < segment;
        let open = self
            .state
            .open_in_order()
            .into_iter()
            .map(|(id, open)| (Original::Open(open.number), id, open.held.clone()));
        let dead = self
            .state
            .letters()
            .map(|(number, letter)| (Original::Dead(number), letter.id, letter.held.clone()));
        let all: Vec<_> = open.chain(dead).collect();
        for (of, id, held) in all {
            if is_old(held.body) || is_old(held.form) {
                let (form, payload) = (self.entry_at(held.form), self.entry_at(held.body));
                let form = entries(&form).next().unwrap().unwrap();
                let payload = entries(&payload).next().unwrap().unwrap();
                let (form, payload) = (parts_of(&form), parts_of(&payload));
                assert_eq!((form.id, payload.id), (id, id));
                assert_eq!(payload.body_version, form.body_version);
                let payload = payload.payload;
                let envelope = Parts { attempts: held.attempts, payload, ..form };
                let mut body = Vec::new();
                Entry::Copy { of, envelope }.encode(&mut body).unwrap();
                self.entries(&body)?;
            }
        }
        Ok(())
    }

    /// The entry at a place, alone in a body.
    fn entry_at(&self, place: Place) -> Vec<u8> {
        let name = segment::name(place.location.segment);
        let bytes = self.disk.contents(&name);
        let header = bytes.first_chunk().unwrap();
        let identity = segment::SegmentHeader::from_bytes(header).unwrap().identity;
        let offset = usize::try_from(place.location.offset).unwrap();
        let Found::Record(record) = frame::read(&bytes, offset, identity) else {
            panic!("no record at {place:?}");
        };
        assert_eq!(record.stamp.sequence, place.number.sequence);
        let body = record.body();
        let index = usize::try_from(place.number.index).unwrap();
        let entry = entries(&body).nth(index).unwrap().unwrap();
        let mut out = Vec::new();
        entry.encode(&mut out).unwrap();
        out
    }

    /// Removes what a checkpoint does not need, the oldest segment first.
    pub(super) fn remove_below(&self, lowest: u64) -> Result<(), LogError> {
        for name in names(&self.disk) {
            if segment::number(&name).is_some_and(|number| number < lowest) {
                self.disk.remove(&name).map_err(LogError::storage("remove", &name))?;
                self.disk.sync_names().map_err(LogError::storage("flush", "names"))?;
            }
        }
        Ok(())
    }
}

fn parts_of<'a>(entry: &Entry<'a>) -> Parts<'a> {
    match *entry {
        Entry::Accept { envelope, .. }
        | Entry::Hop { envelope }
        | Entry::Redriven { envelope, .. }
        | Entry::Copy { envelope, .. } => envelope,
        _ => panic!("{} has no wire form", entry.kind().name()),
    }
}
