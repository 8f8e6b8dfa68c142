//! Dead letters of a bus, whether memory or its log has them: listed, purged, taken in again.

use std::sync::Arc;

use super::Bus;
use super::core::Core;
use super::dead_letter::{DeadLetter, DeadLetterInfo};
use super::error::BusError;
use super::handle::Handle;
use super::journal::Journal;
use crate::envelope::Envelope;
use crate::log::entry::EntryNumber;
use crate::log::letters::{Claim, LetterFilter, Redrive, Redriven, claim, would};
use crate::stage::Stage;
use crate::stage::engine::Engine as _;
use crate::stage::enter::Refusal;
use crate::stage::settings::Level;
use crate::sync::lock;

impl<P: Send + 'static> Bus<P> {
    /// Takes dead letters in again, those of the log and those in memory: to the stage where they
    /// failed, or another, with a new series of attempts; their ids, headers and remaining hops
    /// stay. One of the log claims its id as a publish does. What came in from the log is safe once
    /// that was flushed.
    ///
    /// ```
    /// use waystage::{Bus, BusSettings, Envelope, Failure, LetterFilter, Redrive, StageSettings};
    /// let settings = BusSettings { workers: 0, ..BusSettings::default() };
    /// let bus: Bus<u8> = Bus::start(settings)?;
    /// bus.add_stage("a", StageSettings::default(), |_| Err(Failure::new("no room")))?;
    /// bus.add_stage("b", StageSettings::default(), |_| Ok(()))?;
    /// bus.publish(Envelope::new(1, bus.slip(["a"])?))?;
    /// while bus.turn() > 0 {}
    /// let filter = LetterFilter { error: Some("room".into()), ..LetterFilter::default() };
    /// let plan = Redrive { filter, to: Some("b".into()), ..Redrive::default() };
    /// assert_eq!(bus.redrive(&plan)?.redriven, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BusError::UnknownStage`] when `plan.to` is not open.
    pub fn redrive(&self, plan: &Redrive) -> Result<Redriven, BusError> {
        let to = plan.to.as_deref().map(|name| self.find(name)).transpose()?;
        if plan.dry_run {
            return Ok(self.core.would_redrive(plan, to.as_ref()));
        }
        let mut outcome = Redriven::default();
        self.core.redrive_logged(plan, to.as_ref(), &mut outcome);
        // Those that are there now: what fails again meanwhile is not taken a second time.
        let mut numbers = lock(&self.core.dead).numbers();
        while outcome.redriven < plan.limit {
            let Some((number, letter)) =
                lock(&self.core.dead).take_next(&mut numbers, plan, &mut outcome.guarded)
            else {
                break;
            };
            match self.core.redrive_one(letter, to.as_ref()) {
                Ok(Claim::Duplicate) => outcome.duplicates += 1,
                Ok(_) => outcome.redriven += 1,
                Err(letter) => {
                    outcome.refused += 1;
                    let evicted = lock(&self.core.dead).put_back(number, *letter);
                    self.core.evict(evicted);
                }
            }
        }
        Ok(outcome)
    }
}

impl<P: Send + 'static> Handle<P> {
    /// The dead letters kept, oldest first, without their payloads. For those of the log the trail
    /// is read from there.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetterInfo> {
        let mut all = match &self.core.journal {
            Some(journal) => journal.letter_infos(),
            None => Vec::new(),
        };
        let is_mixed = !all.is_empty();
        all.extend(lock(&self.core.dead).iter().map(|(_, letter)| letter.info()));
        if is_mixed {
            all.sort_by_key(|letter| letter.at_ms);
        }
        all
    }

    /// Removes dead letters for good, of the log and in memory; how many they were. They stay
    /// counted as dead.
    ///
    /// # Errors
    /// [`BusError::Log`] when that cannot be written; then those in memory stay.
    pub fn purge_dead_letters(&self, filter: &LetterFilter) -> Result<usize, BusError> {
        let logged = self.core.journal.as_ref().map_or(Ok(0), |journal| journal.purge(filter))?;
        let taken = lock(&self.core.dead).take_all(filter);
        let purged = logged + taken.len();
        for letter in taken {
            self.core.drop_guarded(letter);
        }
        Ok(purged)
    }
}

impl<P: Send + 'static> Core<P> {
    /// What a re-drive would do, as far as ids and stages say.
    fn would_redrive(&self, plan: &Redrive, to: Option<&Arc<Stage<P>>>) -> Redriven {
        let mut outcome = match &self.journal {
            Some(journal) => {
                // Names are looked up before the journal is locked.
                let map = self.stages();
                let open: Vec<_> = map.0.iter().flatten().map(|stage| stage.name()).collect();
                let is_open = |name: &str| to.is_some() || open.contains(&name);
                journal.with_state(|state| would(state, plan, |it| is_open(&it.held.stage)))
            }
            None => Redriven::default(),
        };
        let map = self.stages();
        for (_, letter) in lock(&self.dead).iter().filter(|(_, it)| it.fits(&plan.filter)) {
            let is_open = || letter.envelope.current().is_some_and(|at| map.get(at).is_some());
            if letter.envelope.redrives() >= plan.redrives_max {
                outcome.guarded += 1;
            } else if outcome.redriven >= plan.limit {
                break;
            } else if to.is_some() || is_open() {
                outcome.redriven += 1;
            } else {
                outcome.refused += 1;
            }
        }
        outcome
    }

    /// Takes dead letters of the log in again.
    fn redrive_logged(&self, plan: &Redrive, to: Option<&Arc<Stage<P>>>, outcome: &mut Redriven) {
        let Some(journal) = &self.journal else { return };
        for number in journal.with_state(|state| plan.filter.picked(state)) {
            if outcome.redriven >= plan.limit {
                return;
            }
            match self.redrive_logged_one(journal, (number, plan.redrives_max), to) {
                Ok(None) => {}
                Ok(Some(Claim::Free)) => outcome.redriven += 1,
                Ok(Some(Claim::Guarded)) => outcome.guarded += 1,
                Ok(Some(Claim::Duplicate)) => outcome.duplicates += 1,
                Ok(Some(Claim::InFlight)) | Err(Left) => outcome.refused += 1,
            }
        }
    }

    fn redrive_logged_one(
        &self,
        journal: &Journal<P>,
        (number, redrives_max): (EntryNumber, u16),
        to: Option<&Arc<Stage<P>>>,
    ) -> Result<Option<Claim>, Left> {
        let (found, letter) = journal.with_state(|state| {
            (claim(state, number, redrives_max), state.letter(number).cloned())
        });
        let (Some(found), Some(letter)) = (found, letter) else { return Ok(None) };
        if matches!(found, Claim::Guarded | Claim::InFlight) {
            return Ok(Some(found));
        }
        let stage = match to {
            Some(stage) => Arc::clone(stage),
            None => {
                let route = lock(&self.registry).find(self.number, &letter.held.stage);
                route.and_then(|route| self.stages().get(route).cloned()).ok_or(Left)?
            }
        };
        if !journal.is_replayed() || stage.takes_publish().is_err() {
            return Err(Left);
        }
        let envelope = journal.recall_letter(&self.registry, self.number, self.clock(), number);
        let Some(mut envelope) = envelope.map_err(|_unread| Left)? else { return Ok(None) };
        self.begin_anew(&mut envelope, &stage);
        if to.is_some() {
            envelope.extras_mut().cause = None;
        }
        let place = (number, redrives_max);
        let claimed = journal.redrive(&self.registry, self.clock(), place, &mut envelope);
        match claimed {
            Ok(Some(Claim::Free)) => {
                // The log has it: whatever is in the way now, it goes on.
                self.redriven().add(1);
                stage.enter_without_source(self, envelope);
                Ok(Some(Claim::Free))
            }
            other => {
                self.drop_guarded(envelope);
                other.map_err(|_not_taken| Left)
            }
        }
    }

    /// A new life of a dead letter, at this stage.
    fn begin_anew(&self, envelope: &mut Envelope<P>, stage: &Stage<P>) {
        envelope.set_attempts(0);
        envelope.extras_mut().redrives += 1;
        envelope.redirect(stage.route());
        self.stamp_time(envelope, stage.settings().expiry);
    }

    /// Takes one dead letter out of memory in again.
    fn redrive_one(
        &self,
        mut letter: DeadLetter<P>,
        to: Option<&Arc<Stage<P>>>,
    ) -> Result<Claim, Box<DeadLetter<P>>> {
        let map = self.stages();
        let target = match to {
            Some(stage) => Some(Arc::clone(stage)),
            None => letter.envelope.current().and_then(|route| map.get(route).cloned()),
        };
        let Some(stage) = target else {
            return Err(Box::new(letter));
        };
        // A refused one stays as it was, with its slip, and the cause with which it had come to a
        // dead-letter stage. Sent to another stage than that, it lives again.
        let attempts = letter.envelope.attempts();
        let slip = letter.envelope.slip().clone();
        let expires_at = letter.envelope.extras().and_then(|extras| extras.expires_at);
        let earlier = match to {
            Some(_) => letter.envelope.extras_mut().cause.take(),
            None => None,
        };
        self.begin_anew(&mut letter.envelope, &stage);
        let DeadLetter { envelope, cause, stage: place, trail, at_ms, .. } = letter;
        let entered = if stage.settings().level == Level::AtMostOnce {
            stage.try_enter(self, self.redriven(), envelope)
        } else {
            self.redrive_durable(&stage, envelope)
        };
        let mut envelope = match entered {
            Ok(()) => return Ok(Claim::Free),
            Err((Refusal::Duplicate, envelope)) => {
                self.drop_guarded(envelope);
                return Ok(Claim::Duplicate);
            }
            Err((_, envelope)) => envelope,
        };
        envelope.set_attempts(attempts);
        *envelope.slip_mut() = slip;
        let extras = envelope.extras_mut();
        extras.redrives -= 1;
        extras.expires_at = expires_at;
        extras.cause = earlier.or_else(|| extras.cause.take());
        Err(Box::new(DeadLetter { envelope, cause, stage: place, attempts, trail, at_ms }))
    }

    /// Takes in a dead letter of memory that goes to a durable stage; hands it back if the log does
    /// not take it.
    fn redrive_durable(
        &self,
        stage: &Arc<Stage<P>>,
        mut envelope: Envelope<P>,
    ) -> Result<(), (Refusal, Envelope<P>)> {
        let taken = match &self.journal {
            None => Err(Refusal::Closed),
            Some(journal) if !journal.is_replayed() => Err(Refusal::NotRecovered),
            Some(journal) => stage.takes_publish().and_then(|()| {
                let level = stage.settings().level;
                let taken = journal.accept(&self.registry, self.clock(), &mut envelope, level);
                taken.map(drop).map_err(Refusal::from)
            }),
        };
        if let Err(refusal) = taken {
            return Err((refusal, envelope));
        }
        self.redriven().add(1);
        stage.enter_without_source(self, envelope);
        Ok(())
    }
}

/// A letter stays where it is.
struct Left;
