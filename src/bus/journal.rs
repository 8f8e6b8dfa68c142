//! The journal: what happens to durable envelopes, written into the log as it happens.
//!
//! The protocol is in `ARCHITECTURE.md`, *The life of a durable envelope*; in short:
//!
//! - **J1** One lock is the order of everything: under it an id is looked up, and the record is
//!   appended and folded into the state, which is what a recovery would make of the log.
//! - **J2** An accept or a re-drive is appended before its envelope enters a stage, and a
//!   settlement before its envelope moves and before the permit of its stage is given up.
//! - **J3** Nobody is told of an accept or an end before its record is safe by the log's policy.
//! - **J4** What cannot be written has not happened: the envelope is left as the log has it.
//!
//! Payloads are encoded and decoded, and callbacks called, under no lock.

mod end;
mod keeper;
mod letters;
mod recall;
mod settings;
mod stragglers;
mod wire;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::registry::Registry;
use crate::clock::Clock;
use crate::envelope::envelope::Durable;
use crate::envelope::{Cause, Envelope, EnvelopeId, Payload};
use crate::log::entry::{CauseCode, DurableLevel, Entry, EntryEncodeError};
use crate::log::state::State;
use crate::log::{Log, LogError, Receipt, Recovered, SinkFile};
use crate::stage::engine::Fate;
use crate::stage::lasting::{BETWEEN, Left};
use crate::stage::settings::Level;
use crate::sync::{AtomicBool, JoinHandle, Mutex, MutexGuard, Ordering, lock};

use self::end::Ends;
use self::wire::Wire;

pub(crate) use self::recall::Unread;
pub use self::recall::{Missing, Recovery};
pub use self::settings::DurableSettings;

/// Why the journal takes an envelope not in.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// An envelope with this id is on its way.
    InFlight,
    /// One with this id has reached its end, and is remembered.
    Duplicate,
    /// Its payload has no encoding, or it is larger than a record may be.
    NoWireForm,
    /// The log took nothing.
    Log(LogError),
}

impl From<EntryEncodeError> for NotTaken {
    fn from(_: EntryEncodeError) -> Self {
        Self::NoWireForm
    }
}

/// The journal of one bus.
pub(crate) struct Journal<P> {
    pub(crate) log: Log,
    wire: Wire<P>,
    state: Mutex<State>,
    ends: Ends<P>,
    keeper: Mutex<Option<JoinHandle>>,
    /// Whether what the log held is in the stages.
    is_replayed: AtomicBool,
    /// The last record that was there when the log was opened.
    opened_at: u64,
    /// The segment in which the last checkpoint stands, or the first one, and its number.
    checkpoint: Mutex<(u64, u64)>,
    sinks: Vec<Arc<SinkFile>>,
    /// Who reads a wire form, or removes segments.
    files: Mutex<()>,
    settings: DurableSettings,
}

impl<P: Send + 'static> Journal<P> {
    /// Opens the log and restores what is true after it.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub(crate) fn open(directory: &Path, settings: &DurableSettings) -> Result<Self, LogError>
    where
        P: Payload,
    {
        let mut sinks = Vec::new();
        let (log, recovered) = Log::open_with(directory, settings.log, &mut || {
            sinks = SinkFile::open_all(&settings.sinks)?;
            Ok(Some(sinks.clone()))
        })?;
        Self::on(log, recovered, sinks, settings)
    }

    /// The same on a log that is open.
    pub(crate) fn on(
        log: Log,
        recovered: Option<Recovered>,
        sinks: Vec<Arc<SinkFile>>,
        settings: &DurableSettings,
    ) -> Result<Self, LogError>
    where
        P: Payload,
    {
        let last = recovered.as_ref().and_then(|recovered| recovered.checkpoint);
        let last = last.map(|last| last.end);
        let state = recovered.map_or_else(|| Ok(State::default()), Recovered::into_state)?;
        let checkpoint = last.map_or((1, 0), |end| (end.lowest, end.number));
        let journal = Self {
            wire: Wire::new(),
            ends: Ends::new(),
            keeper: Mutex::new(None),
            is_replayed: AtomicBool::new(state.open_len() == 0 && sinks.is_empty()),
            opened_at: state.sequence(),
            checkpoint: Mutex::new(checkpoint),
            settings: settings.clone(),
            sinks,
            files: Mutex::new(()),
            state: Mutex::new(state),
            log,
        };
        journal.set_window()?;
        Ok(journal)
    }

    /// Says how many ids are remembered from here on, if that is new.
    fn set_window(&self) -> Result<(), LogError> {
        let count = self.settings.remembered_ids;
        let state = lock(&self.state);
        if state.settled().window() == count {
            return Ok(());
        }
        let mut body = Vec::new();
        Entry::Window { count }.encode(&mut body).expect("it is a number");
        self.append(state, &body).map(drop)
    }

    /// Brings the sinks to what the log says of them, and writes down those that are new.
    pub(crate) fn begin_sinks(&self) -> Result<(), LogError> {
        let state = lock(&self.state);
        let new = crate::log::sink::settle(&state, &self.sinks)?;
        let mut body = Vec::new();
        for (sink, end) in &new {
            put(&sink.entry(*end), &mut body);
        }
        if !new.is_empty() {
            self.append(state, &body)?;
            // Else what is added later might be there after a power cut, and its beginning not.
            self.log.flush()?;
        }
        Ok(())
    }

    /// The output files.
    pub(crate) fn sinks(&self) -> &[Arc<SinkFile>] {
        &self.sinks
    }

    /// The values that a stage has saved, by key.
    pub(crate) fn saved(&self, stage: &str) -> BTreeMap<String, Vec<u8>> {
        self.with_state(|state| {
            let of_stage = state.states().filter_map(|(name, value)| {
                let (found, key) = name.split_once(BETWEEN)?;
                (found == stage).then(|| (key.to_owned(), value.to_vec()))
            });
            of_stage.collect()
        })
    }

    /// Appends a record and folds it (J1), gives the lock back, and returns the record's sequence.
    fn append(&self, mut guard: MutexGuard<'_, State>, body: &[u8]) -> Result<u64, LogError> {
        let appended = self.log.append_entries(&mut guard, body);
        drop(guard);
        // Wakers are foreign code.
        self.log.wake();
        appended
    }

    /// Takes an envelope in: after this the log has it, and its id is in flight.
    ///
    /// # Errors
    /// [`NotTaken`]; then nothing was written.
    pub(crate) fn accept(
        &self,
        registry: &Mutex<Registry>,
        clock: &dyn Clock,
        envelope: &mut Envelope<P>,
        level: Level,
    ) -> Result<Receipt, NotTaken> {
        let level = durable_level(level);
        let mut body = Vec::new();
        self.wire.accept(registry, clock, envelope, level, &mut body)?;
        if let Some(position) = envelope.extras().and_then(|extras| extras.position.as_deref()) {
            let (name, value) = (&*position.name, &*position.value);
            Entry::Source { name, value }.encode(&mut body)?;
        }
        if body.len() > self.log.body_bytes_max() {
            return Err(NotTaken::NoWireForm);
        }
        let id = envelope.id();
        let state = lock(&self.state);
        if state.open(id).is_some() {
            return Err(NotTaken::InFlight);
        }
        if state.settled().contains(id) {
            drop(state);
            // Only what is safe is a reason to refuse: until then it may still be undone.
            let sequence = self.log.appended();
            return match self.log.receipt(sequence).wait() {
                Ok(_) => Err(NotTaken::Duplicate),
                Err(error) => Err(NotTaken::Log(error)),
            };
        }
        let sequence = self.append(state, &body).map_err(NotTaken::Log)?;
        envelope.extras_mut().durable = Some(Durable {
            exactly_once: level == DurableLevel::ExactlyOnce,
            body_version: 0,
            is_changed: false,
            sequence,
        });
        Ok(self.log.receipt(sequence))
    }

    /// Writes down a step of an envelope, what it leaves behind, and the emits that came of it, of
    /// which those whose id is known are handed back.
    ///
    /// # Errors
    /// When it could not be written; then nothing was, and the emits are as they were.
    pub(crate) fn record(
        &self,
        (registry, clock): (&Mutex<Registry>, &dyn Clock),
        envelope: &mut Envelope<P>,
        step: Fate,
        (emits, levels): (&mut Vec<Envelope<P>>, &[Level]),
        left: &Left<'_>,
    ) -> Result<Vec<Envelope<P>>, NotTaken> {
        let Some(durable) = envelope.durable() else { return Ok(Vec::new()) };
        let version = durable.body_version + u32::from(durable.is_changed);
        let mut body = Vec::new();
        match step {
            Fate::Hop => self.wire.hop(registry, clock, envelope, version, &mut body)?,
            Fate::Completed => {
                let id = envelope.id();
                // It has a cause while a dead-letter stage has it.
                let is_dead = envelope.cause().is_some();
                let end = if is_dead { Entry::Handled { id } } else { Entry::Completed { id } };
                put(&end, &mut body);
            }
            Fate::Attempt { pause } => {
                let due_ms = if pause == 0 { 0 } else { clock.wall_ms() + pause / 1_000_000 };
                let (id, attempts) = (envelope.id(), envelope.attempts());
                put(&Entry::Attempt { id, attempts, due_ms }, &mut body);
            }
        }
        put_left(left, &mut body);
        let levels: Vec<_> = levels.iter().map(|&level| durable_level(level)).collect();
        let accepts = self.wire.accepts(registry, clock, emits, &levels)?;
        let state = lock(&self.state);
        let mut seen = HashSet::new();
        let is_known: Vec<bool> =
            emits.iter().map(|emit| state.knows(emit.id()) || !seen.insert(emit.id())).collect();
        for (accept, is_known) in accepts.iter().zip(&is_known) {
            if !is_known {
                body.extend_from_slice(accept);
            }
        }
        let sequence = self.append(state, &body).map_err(NotTaken::Log)?;
        let is_hop = step == Fate::Hop;
        note(envelope, sequence, is_hop.then_some(version));
        for (emit, level) in emits.iter_mut().zip(levels) {
            let exactly_once = level == DurableLevel::ExactlyOnce;
            let durable = Durable { exactly_once, body_version: 0, is_changed: false, sequence };
            emit.extras_mut().durable = Some(durable);
        }
        let mut known = Vec::new();
        for (place, is_known) in is_known.iter().enumerate().rev() {
            if *is_known {
                let mut emit = emits.remove(place);
                emit.extras_mut().durable = None;
                known.push(emit);
            }
        }
        Ok(known)
    }

    /// Writes down that an envelope is given up.
    ///
    /// # Errors
    /// When it could not be written.
    pub(crate) fn record_dead(
        &self,
        envelope: &mut Envelope<P>,
        cause: &Cause,
        at_ms: u64,
    ) -> Result<(), LogError> {
        let (cause, reason) = CauseCode::of(cause);
        let id = envelope.id();
        let state = lock(&self.state);
        // Those of the stage before, where it was given up on its way.
        let before = state.open(id).map_or(0, |open| open.held.attempts);
        let attempts = envelope.attempts().max(before);
        let mut body = Vec::new();
        put(&Entry::Dead { id, at_ms, attempts, cause, reason }, &mut body);
        let sequence = self.append(state, &body)?;
        note(envelope, sequence, None);
        Ok(())
    }

    /// Writes down that what is open under this id is given up, without its envelope.
    ///
    /// # Errors
    /// When it could not be written.
    pub(crate) fn bury(&self, id: EnvelopeId, cause: &Cause, at_ms: u64) -> Result<(), LogError> {
        let (cause, reason) = CauseCode::of(cause);
        let state = lock(&self.state);
        let Some(open) = state.open(id) else { return Ok(()) };
        let mut body = Vec::new();
        let attempts = open.held.attempts;
        put(&Entry::Dead { id, at_ms, attempts, cause, reason }, &mut body);
        self.append(state, &body).map(drop)
    }

    /// Writes down that the deadline of an envelope passed.
    ///
    /// # Errors
    /// When it could not be written.
    pub(crate) fn record_expired(&self, envelope: &mut Envelope<P>) -> Result<(), LogError> {
        let mut body = Vec::new();
        put(&Entry::Expired { id: envelope.id() }, &mut body);
        let sequence = self.append(lock(&self.state), &body)?;
        note(envelope, sequence, None);
        Ok(())
    }

    /// How many dead letters the log keeps.
    pub(crate) fn letters(&self) -> usize {
        lock(&self.state).letters().len()
    }

    /// Whether the dead letters are as many as may be: no new work is taken then.
    pub(crate) fn is_full_of_letters(&self) -> bool {
        self.letters() >= self.settings.dead_letters
    }

    /// Whether what the log held is in the stages.
    pub(crate) fn is_replayed(&self) -> bool {
        // ORDERING: Acquire, pairs with `set_replayed`.
        self.is_replayed.load(Ordering::Acquire)
    }

    pub(crate) fn set_replayed(&self) {
        // ORDERING: Release: who sees it sees the backlogs of the stages.
        self.is_replayed.store(true, Ordering::Release);
    }

    /// A view of what is true now.
    pub(crate) fn with_state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&lock(&self.state))
    }
}

/// Notes the record that says what became of an envelope last.
fn note<P>(envelope: &mut Envelope<P>, sequence: u64, body_version: Option<u32>) {
    let durable = envelope.extras_mut().durable.as_mut();
    if let Some(durable) = durable {
        durable.sequence = sequence;
        if let Some(version) = body_version {
            (durable.body_version, durable.is_changed) = (version, false);
        }
    }
}

/// What an attempt leaves behind beside its envelope. Their bounds were checked when they came.
fn put_left(left: &Left<'_>, body: &mut Vec<u8>) {
    for (key, value) in &left.saves {
        let name = format!("{}{BETWEEN}{key}", left.stage);
        put(&Entry::State { name: &name, value }, body);
    }
    for entry in left.written.entries() {
        put(&entry, body);
    }
}

/// Encodes an entry that always has an encoding: its reason was cut, and it has no other text.
fn put(entry: &Entry<'_>, body: &mut Vec<u8>) {
    entry.encode(body).expect("an entry of numbers");
}

fn durable_level(level: Level) -> DurableLevel {
    match level {
        Level::ExactlyOnce => DurableLevel::ExactlyOnce,
        Level::AtLeastOnce | Level::AtMostOnce => DurableLevel::AtLeastOnce,
    }
}

impl<P> std::fmt::Debug for Journal<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("log", &self.log).finish_non_exhaustive()
    }
}

/// A weak view of the bus, for the thread that tells ends.
pub(crate) type View<T> = std::sync::Weak<T>;

/// Ids in the order in which their envelopes came in, by stage.
pub(crate) type ByStage = BTreeMap<Arc<str>, Vec<EnvelopeId>>;
