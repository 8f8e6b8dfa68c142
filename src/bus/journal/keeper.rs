//! What the journal does aside: flushes for ends that wait, checkpoints, segments that go.

use std::sync::Arc;
use std::time::Duration;

use super::end::End;
use super::{Journal, NotTaken, View};
use crate::bus::core::Core;
use crate::envelope::{Envelope, Settled};
use crate::log::checkpoint::Writing;
use crate::log::frame::Kind;
use crate::log::{LogError, Sync};
use crate::sync::{lock, spawn_thread};

/// How long the keeper sleeps when nothing is to be done.
const LOOK: Duration = Duration::from_millis(100);
/// The most bytes of one part of a checkpoint.
const PART_BYTES: usize = 64 << 10;

impl<P: Send + 'static> Journal<P> {
    /// Starts the thread that keeps it, which lives until [`end`](Self::end).
    ///
    /// # Errors
    /// When the operating system refuses it.
    pub(crate) fn start_keeper(journal: &Arc<Self>, core: View<Core<P>>) -> std::io::Result<()> {
        let own = Arc::clone(journal);
        let keep = move || {
            while own.ends.wait(LOOK) {
                own.keep(&core);
            }
        };
        *lock(&journal.keeper) = Some(spawn_thread("waystage-journal".to_owned(), keep)?);
        Ok(())
    }

    /// Notes an end; true when it is safe already, and may be told at once.
    pub(crate) fn is_safe(&self, sequence: u64) -> bool {
        self.settings.log.sync != Sync::Each || self.log.durable() >= sequence
    }

    /// Has an end told when it is safe.
    ///
    /// # Errors
    /// With the end and what it is now, when the log was closed.
    pub(crate) fn tell_when_safe(
        &self,
        sequence: u64,
        envelope: Envelope<P>,
        end: Settled,
    ) -> Result<(), (Envelope<P>, Settled)> {
        self.ends.push(End { sequence, envelope, end }).map_err(|end| self.judge(end))
    }

    /// What an end is when nothing more becomes safe.
    fn judge(&self, end: End<P>) -> (Envelope<P>, Settled) {
        let is_safe = self.is_safe(end.sequence);
        (end.envelope, if is_safe { end.end } else { Settled::Undelivered })
    }

    /// Flushes for ends that wait and tells them; writes a checkpoint when it is time.
    pub(crate) fn keep(&self, core: &View<Core<P>>) {
        if !self.ends.is_empty() {
            // A failure poisons the log; then nobody knows what is safe.
            let flushed = self.log.flush();
            let safe = self.ends.take(flushed.ok());
            if let Some(core) = core.upgrade() {
                for end in safe {
                    let (envelope, end) = self.judge(end);
                    core.tell_end(envelope, &end);
                }
            }
        }
        let (begun, _) = *lock(&self.checkpoint);
        let segment = self.log.segment();
        // Once where the next segment found no room: half of this one is left for it.
        let is_short = self.log.is_short_of_room() && segment > begun;
        if is_short || segment >= begun + self.settings.checkpoint_segments {
            // Without room for them the log is as good as before, only longer.
            if !is_short {
                drop(self.copy_stragglers());
            }
            drop(self.write_checkpoint());
        }
    }

    /// Writes what is true now, and removes the segments that nothing needs any more.
    ///
    /// # Errors
    /// [`NotTaken::Log`] with what the log says.
    pub(crate) fn write_checkpoint(&self) -> Result<usize, NotTaken> {
        let mut last = lock(&self.checkpoint);
        let number = last.1 + 1;
        let state = lock(&self.state);
        let mut writing = Writing::new(&state, number, PART_BYTES.min(self.log.body_bytes_max()));
        let mut first = None;
        for part in writing.by_ref() {
            let part = part?;
            let mut stands_in = 0;
            let sequence = self.log.append_if(Kind::CheckpointPart, &part, &mut |_, place| {
                stands_in = place.segment;
                Ok(())
            });
            let sequence = sequence.map_err(NotTaken::Log)?;
            first.get_or_insert((sequence, stands_in));
        }
        let (sequence, segment) = first.expect("a checkpoint has a head");
        let end = writing.end(sequence, segment);
        drop(writing);
        self.log
            .append_if(Kind::CheckpointEnd, &end.to_body(), &mut |_, _| Ok(()))
            .map_err(NotTaken::Log)?;
        drop(state);
        self.log.wake();
        self.log.flush().map_err(NotTaken::Log)?;
        *last = (self.log.segment(), number);
        drop(last);
        self.remove_before(end.lowest).map_err(NotTaken::Log)
    }

    /// What the log failed of, if it did.
    pub(crate) fn failure(&self) -> Option<LogError> {
        self.log.failure()
    }

    /// Flushes and tells what waits, and closes the log: it can be opened elsewhere then.
    pub(crate) fn end(&self, core: &Core<P>) {
        self.ends.stop();
        let keeper = lock(&self.keeper).take();
        if let Some(keeper) = keeper.filter(|_| !crate::coord::on_worker::is_in_turn()) {
            // It panics only when something here is broken, which its own message says.
            let _ = keeper.join();
        }
        // An attempt that ends later must not write where somebody else does then.
        self.sinks.iter().for_each(|sink| sink.close());
        // Who is still in a handler finds the log closed. What counts is what was flushed; whoever
        // asks for the log's failure hears of a flush that failed.
        drop(self.log.end());
        for end in self.ends.take(None) {
            let (envelope, end) = self.judge(end);
            core.tell_end(envelope, &end);
        }
    }
}
