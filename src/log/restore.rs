//! From a recovered log to its state: the newest checkpoint, and the records behind it.

use super::checkpoint::{Complete, Reading};
use super::error::LogError;
use super::fold::fold_record;
use super::frame::Kind;
use super::recover::Recovered;
use super::segment;
use super::state::State;

impl Recovered {
    /// The state after all records.
    ///
    /// # Errors
    /// When a record says what cannot be, or the checkpoint does not add up.
    pub fn state(&self) -> Result<State, LogError> {
        let mut state = match self.checkpoint {
            Some(checkpoint) => self.state_at(checkpoint)?,
            None => State::default(),
        };
        self.visit_from(state.sequence() + 1, |location, record| {
            if record.stamp.kind != Kind::Entries {
                return Ok(());
            }
            let sequence = record.stamp.sequence;
            fold_record(&mut state, sequence, location, &record.body()).map_err(|source| {
                let (name, offset) = (segment::name(location.segment), location.offset);
                LogError::Record { name, offset, source }
            })
        })?;
        Ok(state)
    }

    /// The state that a checkpoint holds.
    pub(crate) fn state_at(&self, checkpoint: Complete) -> Result<State, LogError> {
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
