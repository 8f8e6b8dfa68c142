//! From a recovered log to its state: the newest checkpoint, and the records behind it.

use super::checkpoint::{Complete, Reading};
use super::error::LogError;
use super::fold::fold_record;
use super::frame::Kind;
use super::recover::Recovered;
use super::segment::{self, Location};
use super::state::State;

impl Recovered {
    /// The state after all records.
    ///
    /// # Errors
    /// When a record says what cannot be, or the checkpoint does not add up.
    pub fn state(&self) -> Result<State, LogError> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let mut state = self.state_before()?;
        self.visit_from(state.sequence() + 1, |location, record| {
            if record.stamp.kind != Kind::Entries {
                return Ok(());
            }
            fold_at(&mut state, record.stamp.sequence, location, &record.body())
        })?;
        Ok(state)
    }

    /// The same for whoever needs nothing else of it any more.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub(crate) fn into_state(mut self) -> Result<State, LogError> {
        self.state.take().map_or_else(|| self.state(), Ok)
    }

    /// The state before the first record that is folded: the checkpoint's, or none.
    ///
    /// # Errors
    /// When the checkpoint does not add up.
    pub(crate) fn state_before(&self) -> Result<State, LogError> {
        self.checkpoint.map_or_else(|| Ok(State::default()), |checkpoint| self.state_at(checkpoint))
    }

    /// The state that a checkpoint holds.
    fn state_at(&self, checkpoint: Complete) -> Result<State, LogError> {
        let Complete { sequence, end } = checkpoint;
        let mut reading = Reading::new(end);
        self.visit_from(end.first_part, |_, record| {
            let is_part = record.stamp.kind == Kind::CheckpointPart;
            let is_before = record.stamp.sequence < sequence;
            if is_part && is_before { reading.part(&record.body()) } else { Ok(()) }
        })?;
        Ok(reading.finish()?)
    }
}

/// Folds the entries of a record that stands there.
///
/// # Errors
/// When the state does not allow one; then nothing was changed.
pub(crate) fn fold_at(
    state: &mut State,
    sequence: u64,
    location: Location,
    body: &[u8],
) -> Result<(), LogError> {
    fold_record(state, sequence, location, body).map_err(|source| {
        let (name, offset) = (segment::name(location.segment), location.offset);
        LogError::Record { name, offset, source }
    })
}
