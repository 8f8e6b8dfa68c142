//! What a bus with a log does with durable envelopes: taking them in, ending them, taking them up
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::Bus;
use super::core::{Core, machine_seed};
use super::error::{BusError, PublishError};
use super::handle::Handle;
use super::journal::{DurableSettings, Journal, Missing, NotTaken, Recovery, Unread};
use super::lifecycle::Leftover;
use super::publish::Wait;
use super::settings::BusSettings;
use crate::coord::ticket::Desk;
use crate::envelope::{Cause, Envelope, EnvelopeId, Payload, Settled};
use crate::log::{LogError, Receipt, SinkFile};
use crate::metrics::counter::Tally;
use crate::stage::Stage;
use crate::stage::engine::{Engine as _, Fate, Unwritten};
use crate::stage::enter::Refusal;
use crate::stage::lasting::Left;
use crate::stage::settings::Level;
use crate::sync::{lock, next_bus_number};
use crate::worker::Pool;

impl<P: Payload + Send + 'static> Bus<P> {
    /// Starts a bus with a pool and a log of its own. When all stages are open, call
    /// [`recover`](Self::recover): it takes up what the log holds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use waystage::{Bus, BusSettings, DurableSettings, Envelope, Level, Missing, StageSettings};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let durable = DurableSettings::in_directory(directory.path());
    /// let bus: Bus<String> = Bus::start_durable(BusSettings::default(), &durable)?;
    /// let settings = StageSettings { level: Level::ExactlyOnce, ..StageSettings::default() };
    /// bus.add_stage("pay", settings.clone(), |_| Ok(()))?;
    /// bus.recover(Missing::Refuse)?;
    /// let order = || Envelope::new("three apples".to_owned(), bus.slip(["pay"]).unwrap());
    /// let receipt = bus.publish_durable(order().with_key("order-17"))?;
    /// receipt.wait()?; // it survives a power cut now
    /// assert!(bus.shutdown(Duration::from_secs(5)).drained);
    ///
    /// let bus: Bus<String> = Bus::start_durable(BusSettings::default(), &durable)?;
    /// bus.add_stage("pay", settings, |_| Ok(()))?;
    /// bus.recover(Missing::Refuse)?;
    /// let again = Envelope::new("three apples".to_owned(),
    /// bus.slip(["pay"])?).with_key("order-17"); assert_eq!(bus.publish(again).unwrap_err().reason,
    /// waystage::Refused::Duplicate);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BusError`] when a setting is out of range, and [`BusError::Log`] when the log cannot be
    /// opened; then it was not changed.
    pub fn start_durable(
        settings: BusSettings,
        durable: &DurableSettings,
    ) -> Result<Self, BusError> {
        settings.validate()?;
        let pool = Arc::new(Pool::start(settings.pool())?);
        let journal = Journal::open(&durable.directory, durable)?;
        let number = next_bus_number().ok_or(BusError::TooManyBuses)?;
        let bus = Self::with_journal(&pool, number, settings, journal);
        if pool.workers() > 0 {
            bus.start_keeper(&durable.directory)?;
        }
        Ok(bus)
    }

    pub(crate) fn with_journal(
        pool: &Arc<Pool>,
        number: u16,
        settings: BusSettings,
        journal: Journal<P>,
    ) -> Self {
        let shared = Arc::clone(pool.shared());
        let seed = settings.seed.unwrap_or_else(machine_seed);
        for sink in journal.sinks() {
            sink.belong_to(number);
        }
        let journal = Some(Arc::new(journal));
        let core = Arc::new(Core::new(number, settings, shared, seed, journal));
        Self { handle: Handle { core }, pool: Arc::clone(pool) }
    }

    fn start_keeper(&self, directory: &Path) -> Result<(), BusError> {
        let Some(journal) = &self.core.journal else { return Ok(()) };
        let shown = directory.display().to_string();
        let started = Journal::start_keeper(journal, Arc::downgrade(&self.core));
        Ok(started.map_err(LogError::storage("start a thread for", &shown))?)
    }
}

impl<P: Send + 'static> Bus<P> {
    /// Takes up what the log holds: each stage gets its envelopes in the order in which they came
    /// in, with the attempts they had, and before new work. Sinks begin here: one that empties its
    /// file does so now. Durable stages refuse publishes until this was called, if there is
    /// anything, or if there are sinks. On a bus without a log it does nothing.
    ///
    /// # Errors
    /// [`BusError::MissingStages`] when the log has envelopes for stages that are not open and
    /// `missing` says so; [`BusError::Log`] when the log cannot be written.
    pub fn recover(&self, missing: Missing) -> Result<Recovery, BusError> {
        let core = &self.core;
        let mut recovery = Recovery::default();
        let Some(journal) = &core.journal else { return Ok(recovery) };
        let changing = lock(&core.changing);
        recovery.dead_letters = journal.letters();
        if journal.is_replayed() {
            return Ok(recovery);
        }
        let map = core.stages();
        let mut found = Vec::new();
        let mut absent = Vec::new();
        for (name, ids) in journal.open_by_stage() {
            let route = lock(&core.registry).find(core.number, &name);
            match route.and_then(|route| map.get(route).cloned()) {
                Some(stage) => found.push((stage, ids)),
                None => absent.push((name, ids)),
            }
        }
        if missing == Missing::Refuse {
            let mut names: BTreeSet<String> =
                absent.iter().map(|(name, _)| name.to_string()).collect();
            names.extend(journal.stages_ahead().into_iter().filter(|name| {
                let route = lock(&core.registry).find(core.number, name);
                route.is_none_or(|route| map.get(route).is_none())
            }));
            if !names.is_empty() {
                return Err(BusError::MissingStages(names.into_iter().collect()));
            }
        }
        journal.begin_sinks()?;
        for id in absent.into_iter().flat_map(|(_, ids)| ids) {
            if missing == Missing::Keep {
                recovery.kept += 1;
            } else {
                journal.bury(id, &Cause::StageClosed, core.clock().wall_ms())?;
                recovery.dead += 1;
            }
        }
        recovery.dead_letters += recovery.dead;
        // All of them first: what one hands on queues behind the backlog of the next.
        for (stage, ids) in &found {
            recovery.taken_up += ids.len();
            core.recovered.add(ids.len() as u64);
            stage.set_backlog(ids.iter().copied());
        }
        journal.set_replayed();
        drop(changing);
        // Payloads are decoded by foreign code, which runs under no lock.
        for (stage, _) in found {
            stage.begin_backlog(&**core);
        }
        Ok(recovery)
    }
}

impl<P: Send + 'static> Handle<P> {
    /// The values that a stage has saved ([`Context::save`](crate::Context::save)), by key; none on
    /// a bus without a log.
    #[must_use]
    pub fn saved(&self, stage: &str) -> BTreeMap<String, Vec<u8>> {
        self.core.journal.as_ref().map(|journal| journal.saved(stage)).unwrap_or_default()
    }

    /// The sink of this name, to add to in handlers ([`Context::write`](crate::Context::write)).
    #[must_use]
    pub fn sink(&self, name: &str) -> Option<Arc<SinkFile>> {
        let mut sinks = self.core.journal.iter().flat_map(|journal| journal.sinks());
        sinks.find(|sink| sink.name() == name).cloned()
    }

    /// Why the log takes nothing any more: a write or a flush of it failed, and what was not safe
    /// by then shows when it is opened again. `None` while it works, after it was closed in order,
    /// and on a bus without one. Worth a look after [`shutdown`](crate::Bus::shutdown), whose last
    /// flush may be what failed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waystage::{Bus, BusSettings, DurableSettings};
    /// # let directory = tempfile::tempdir()?;
    /// let durable = DurableSettings::in_directory(directory.path());
    /// let bus: Bus<String> = Bus::start_durable(BusSettings::default(), &durable)?;
    /// bus.shutdown(Duration::ZERO);
    /// assert!(bus.log_failure().is_none(), "all that ended is on the disk");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn log_failure(&self) -> Option<LogError> {
        self.core.journal.as_ref()?.failure()
    }

    /// How far a named input was taken in: the position of the last accepted envelope that had one
    /// of this name ([`Envelope::with_position`]). After a crash, whoever reads the input goes on
    /// behind it.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<Vec<u8>> {
        self.core.journal.as_ref()?.with_state(|state| state.source(name).map(<[u8]>::to_vec))
    }
}

impl<P: Send + 'static> Core<P> {
    /// One publish into a durable stage: into the log first, then into the stage.
    #[cold]
    pub(crate) fn publish_durable(
        &self,
        stage: &Arc<Stage<P>>,
        tally: Tally<'_>,
        envelope: Envelope<P>,
        wait: Wait,
    ) -> Result<Receipt, PublishError<P>> {
        let enter = |envelope| self.enter_durable(stage, tally, envelope);
        let entered = enter(envelope).or_else(|(refusal, envelope)| {
            self.wait_for_room(stage, refusal, envelope, wait, enter)
        });
        entered.map_err(|(refusal, envelope)| {
            if wait != Wait::Elsewhere || refusal != Refusal::Full {
                stage.meters().refused.add(1);
            }
            self.refuse(envelope, refusal.into())
        })
    }

    fn enter_durable(
        &self,
        stage: &Arc<Stage<P>>,
        tally: Tally<'_>,
        mut envelope: Envelope<P>,
    ) -> Result<Receipt, (Refusal, Envelope<P>)> {
        let Some(journal) = &self.journal else { return Err((Refusal::Closed, envelope)) };
        if let Err(refusal) = stage.takes_publish() {
            return Err((refusal, envelope));
        }
        if !journal.is_replayed() {
            return Err((Refusal::NotRecovered, envelope));
        }
        if journal.is_full_of_letters() {
            return Err((Refusal::TooManyDeadLetters, envelope));
        }
        let level = stage.settings().level;
        match journal.accept(&self.registry, self.clock(), &mut envelope, level) {
            Ok(receipt) => {
                // The log has it: whatever is in the way now, it does not come back.
                tally.add(1);
                stage.enter_without_source(self, envelope);
                Ok(receipt)
            }
            Err(not_taken) => Err((not_taken.into(), envelope)),
        }
    }

    /// Writes down a step; emits whose id is known are handed back.
    pub(crate) fn record_step(
        &self,
        envelope: &mut Envelope<P>,
        step: Fate,
        emits: &mut Vec<Envelope<P>>,
        left: &Left<'_>,
    ) -> Result<Vec<Envelope<P>>, Unwritten> {
        let Some(journal) = &self.journal else { return Err(Unwritten::Failed) };
        let levels: Vec<Level> = emits.iter().map(|emit| self.level_of_emit(emit)).collect();
        journal
            .record((&self.registry, self.clock()), envelope, step, (emits, &levels), left)
            .map_err(Unwritten::from)
    }

    /// The level of the stage that an emit of a durable envelope enters; at least once where that
    /// is in memory, as the emit is part of the settlement.
    fn level_of_emit(&self, emit: &Envelope<P>) -> Level {
        let map = self.stages();
        let stage = emit.current().and_then(|route| map.get(route));
        match stage.map(|stage| stage.settings().level) {
            Some(Level::ExactlyOnce) => Level::ExactlyOnce,
            Some(Level::AtLeastOnce | Level::AtMostOnce) | None => Level::AtLeastOnce,
        }
    }

    /// Takes in an emit of an envelope in memory.
    pub(crate) fn record_one(&self, emit: &mut Envelope<P>, level: Level) -> Result<(), Unwritten> {
        let Some(journal) = &self.journal else { return Err(Unwritten::Failed) };
        journal.accept(&self.registry, self.clock(), emit, level).map(drop).map_err(Unwritten::from)
    }

    /// The end of a durable envelope: told and counted when it is safe.
    #[cold]
    pub(crate) fn settle_durable(&self, desk: &Desk<'_>, mut envelope: Envelope<P>, end: Settled) {
        let Some(journal) = &self.journal else { return };
        let end = match end {
            Settled::Dropped => return self.bury(desk, envelope, Cause::NextStageFull, ""),
            Settled::Expired if journal.record_expired(&mut envelope).is_err() => {
                Settled::Undelivered
            }
            end => end,
        };
        self.end_durable(journal, envelope, end);
    }

    /// A durable envelope is given up: the log keeps it.
    pub(crate) fn bury_durable(&self, _: &Desk<'_>, mut envelope: Envelope<P>, cause: Cause) {
        let Some(journal) = &self.journal else { return };
        let end = match journal.record_dead(&mut envelope, &cause, self.clock().wall_ms()) {
            Ok(()) => {
                envelope.extras_mut().cause = Some(Box::new(cause.clone()));
                Settled::Dead(cause)
            }
            Err(_) => Settled::Undelivered,
        };
        self.end_durable(journal, envelope, end);
    }

    fn end_durable(&self, journal: &Journal<P>, envelope: Envelope<P>, end: Settled) {
        let sequence = envelope.durable().map_or(0, |durable| durable.sequence);
        if end == Settled::Undelivered || journal.is_safe(sequence) {
            self.tell_end(envelope, &end);
        } else {
            let waits = journal.tell_when_safe(sequence, envelope, end);
            if let Err((envelope, end)) = waits {
                self.tell_end(envelope, &end);
            }
        }
    }

    /// Tells and counts the end of a durable envelope.
    pub(crate) fn tell_end(&self, mut envelope: Envelope<P>, end: &Settled) {
        // Published again it begins anew.
        envelope.extras_mut().durable = None;
        self.tell(envelope, end.clone());
        self.count_end(end);
    }

    /// The envelope with this id as the log has it; given up when that cannot be read.
    pub(crate) fn recall_durable(&self, id: EnvelopeId) -> Option<Envelope<P>> {
        let journal = self.journal.as_ref()?;
        match journal.recall(&self.registry, self.number, self.clock(), id) {
            Ok(Some(envelope)) => Some(envelope),
            Ok(None) => {
                self.recovered.subtract(1);
                None
            }
            Err(Unread::Log) => {
                // It stays in the log, for another time.
                self.count_end(&Settled::Undelivered);
                None
            }
            Err(Unread::Payload(words)) => {
                let cause = Cause::HandlerFailed(words);
                let end = match journal.bury(id, &cause, self.clock().wall_ms()) {
                    Ok(()) => Settled::Dead(Cause::NotLogged),
                    Err(_) => Settled::Undelivered,
                };
                self.count_end(&end);
                None
            }
        }
    }

    /// What a keeper's thread does, where there is none.
    pub(crate) fn keep_journal(self: &Arc<Self>) {
        if let Some(journal) = &self.journal {
            journal.keep(&Arc::downgrade(self));
        }
    }

    /// Closes the log, once nothing moves any more; what is left in it.
    pub(crate) fn end_journal(&self) -> Vec<Leftover> {
        let Some(journal) = &self.journal else { return Vec::new() };
        journal.end(self);
        let left = journal.count_open().into_iter();
        let name = |(stage, envelopes): (Arc<str>, u64)| Leftover::InLog {
            stage: stage.to_string(),
            envelopes,
        };
        left.map(name).collect()
    }
}

impl From<NotTaken> for Unwritten {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::InFlight | NotTaken::Duplicate => Self::Known,
            NotTaken::NoWireForm | NotTaken::Log(LogError::TooLarge { .. }) => Self::Impossible,
            NotTaken::Log(_) => Self::Failed,
        }
    }
}

impl From<NotTaken> for Refusal {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::InFlight => Self::InFlight,
            NotTaken::Duplicate => Self::Duplicate,
            NotTaken::NoWireForm | NotTaken::Log(LogError::TooLarge { .. }) => Self::NoWireForm,
            NotTaken::Log(LogError::NoRoom { .. }) => Self::LogFull,
            NotTaken::Log(_) => Self::LogFailed,
        }
    }
}
