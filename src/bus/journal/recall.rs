//! From the log back into the stages: what is open when a bus starts is handled before new work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ByStage, Journal};
use crate::bus::registry::Registry;
use crate::clock::Clock;
use crate::envelope::codec::DecodeError;
use crate::envelope::envelope::Durable;
use crate::envelope::{Envelope, EnvelopeId};
use crate::log::LogError;
use crate::log::entry::DurableLevel;
use crate::log::state::{Held, Open, State};
use crate::sync::{Mutex, lock};

/// What becomes of envelopes whose stage is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missing {
    /// Nothing is taken up, and the stages are named: those where envelopes stand, and those that
    /// their slips still lead to.
    #[default]
    Refuse,
    /// They stay in the log, for another time.
    Keep,
    /// They become dead letters, as if their stage had been closed.
    DeadLetter,
}

/// What was taken up from a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Envelopes that are handled again, or for the first time.
    pub taken_up: usize,
    /// Envelopes that stay in the log, as their stage is not open.
    pub kept: usize,
    /// Envelopes that became dead letters, as their stage is not open.
    pub dead: usize,
    /// Dead letters in the log.
    pub dead_letters: usize,
}

/// Why an envelope cannot be read back.
#[derive(Debug)]
pub(crate) enum Unread {
    /// What the log has is no envelope of this bus any more: no later try would help.
    Payload(String),
    /// The log could not be read.
    Log,
}

impl From<LogError> for Unread {
    fn from(_: LogError) -> Self {
        Self::Log
    }
}

impl<P: Send + 'static> Journal<P> {
    /// What was open when the log was opened and still is, by stage, each in the order in which it
    /// came in.
    pub(crate) fn open_by_stage(&self) -> ByStage {
        let state = lock(&self.state);
        let mut stages = ByStage::new();
        // What came in since the opening is in a stage already.
        let is_old = |open: &&(EnvelopeId, &Open)| open.1.number.sequence <= self.opened_at;
        for (id, open) in state.open_in_order().iter().filter(is_old).copied() {
            stages.entry(Arc::clone(&open.held.stage)).or_default().push(id);
        }
        stages
    }

    /// The stages that what was open when the log was opened still has before it. What cannot be
    /// read has none: it is told when it is taken up.
    pub(crate) fn stages_ahead(&self) -> BTreeSet<String> {
        let is_old = |open: &&(EnvelopeId, &Open)| open.1.number.sequence <= self.opened_at;
        let ids: Vec<EnvelopeId> = self.with_state(|state| {
            let open = state.open_in_order();
            open.iter().filter(is_old).map(|(id, _)| *id).collect()
        });
        let mut stages = BTreeSet::new();
        for id in ids {
            // Only where it leads is asked for, not its body.
            let form = |held: &Held| Held { body: held.form, ..held.clone() };
            let held = |state: &State| state.open(id).map(|open| form(&open.held));
            let Ok(Some((_, form))) = self.form_of(held) else { continue };
            let Ok(view) = form.view() else { continue };
            for name in view.remaining().iter() {
                if !stages.contains(name) {
                    stages.insert(name.to_owned());
                }
            }
        }
        stages
    }

    /// How many are open, by stage.
    pub(crate) fn count_open(&self) -> BTreeMap<Arc<str>, u64> {
        self.with_state(|state| {
            let mut stages = BTreeMap::new();
            for (_, open) in state.open_in_order() {
                *stages.entry(Arc::clone(&open.held.stage)).or_default() += 1;
            }
            stages
        })
    }

    /// The envelope with this id as the log has it.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn recall(
        &self,
        registry: &Mutex<Registry>,
        bus: u16,
        clock: &dyn Clock,
        id: EnvelopeId,
    ) -> Result<Option<Envelope<P>>, Unread> {
        self.envelope_of(registry, bus, clock, |state| state.open(id).map(|open| open.held.clone()))
    }

    /// An envelope, or a dead letter, as the log has it.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn envelope_of(
        &self,
        registry: &Mutex<Registry>,
        bus: u16,
        clock: &dyn Clock,
        find: impl FnOnce(&State) -> Option<Held>,
    ) -> Result<Option<Envelope<P>>, Unread> {
        let Some((held, form)) = self.form_of(find)? else { return Ok(None) };
        let unreadable = |error: DecodeError| Unread::Payload(error.to_string());
        let (view, body) = (form.view().map_err(unreadable)?, form.body().map_err(unreadable)?);
        let payload = body.payload().unwrap_or_default();
        let durable = self.durable(&held);
        let envelope = self.wire.envelope(registry, bus, clock, &view, payload, durable);
        let mut envelope = envelope.map_err(Unread::Payload)?;
        envelope.set_attempts(held.attempts);
        envelope.extras_mut().redrives = held.redrives;
        Ok(Some(envelope))
    }

    fn durable(&self, held: &Held) -> Durable {
        Durable {
            exactly_once: held.level == DurableLevel::ExactlyOnce,
            body_version: held.body_version,
            is_changed: false,
            sequence: self.log.appended(),
        }
    }
}
