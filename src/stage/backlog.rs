//! The backlog of a durable stage: what the log holds for it from before, taken in as there is
//! room.
//!
//! While there is one, *hops wait* is set: publishes find the stage full, and hops join the line
//! behind it. One thread at a time takes from it, so its order is kept; reading the log and
//! decoding a payload is done under no lock.
//!
//! Bound: the ids of the envelopes that were open when the log was opened.

use std::sync::Arc;

use super::Stage;
use super::engine::Engine;
use super::handler::guarded;
use super::room::Room;
use crate::coord::attendance::{CLOSED, HOPS_WAIT};
use crate::envelope::{Envelope, EnvelopeId};
use crate::sync::{MutexGuard, lock};

impl<P: Send + 'static> Stage<P> {
    /// Gives the stage what the log holds for it, the oldest first; it is taken in by
    /// [`begin_backlog`](Self::begin_backlog).
    pub(crate) fn set_backlog(&self, ids: impl IntoIterator<Item = EnvelopeId>) {
        let mut room = lock(&self.room);
        room.backlog.extend(ids);
        self.attendance.set(HOPS_WAIT);
    }

    /// Takes in as much of the backlog as there is room for.
    pub(crate) fn begin_backlog(self: &Arc<Self>, engine: &dyn Engine<P>) {
        self.refill(engine, lock(&self.room));
        if self.attendance.has(CLOSED) {
            // Whoever closed it may have looked before it was there.
            self.settle_closed(engine);
        }
    }

    /// Lets go of the backlog, which stays in the log; how much it was.
    pub(crate) fn forget_backlog(&self) -> usize {
        std::mem::take(&mut lock(&self.room).backlog).len()
    }

    /// The next one of it, whether there is room or not.
    pub(crate) fn recall_next(&self) -> Option<Envelope<P>> {
        loop {
            let id = lock(&self.room).backlog.pop_front()?;
            if let Some(envelope) = self.engine.recall(id) {
                return Some(envelope);
            }
        }
    }

    /// Takes from the backlog while there is room; then, when nothing is left of it, from the line.
    pub(crate) fn refill<'a>(
        self: &'a Arc<Self>,
        engine: &dyn Engine<P>,
        mut room: MutexGuard<'a, Room<P>>,
    ) {
        if let Some(more) = &mut room.refilling {
            *more = true;
            return;
        }
        let mut came = false;
        loop {
            room.refilling = Some(false);
            drop(room);
            while !self.queue.is_full() {
                let next = lock(&self.room).backlog.pop_front();
                let Some(id) = next else { break };
                let Some(envelope) = engine.recall(id) else { continue };
                came = true;
                if let Err(envelope) = self.queue.push(envelope) {
                    // Blocks that travel took the room: it is read again when there is some.
                    lock(&self.room).backlog.push_front(id);
                    if guarded(|| drop(envelope)).is_err() {
                        engine.count_panic();
                    }
                    break;
                }
            }
            room = lock(&self.room);
            let more = room.refilling == Some(true);
            let is_over = room.backlog.is_empty() || self.queue.is_full();
            if is_over || !more {
                break;
            }
        }
        room.refilling = None;
        if room.backlog.is_empty() {
            self.place_waiting(engine, room);
        } else {
            drop(room);
        }
        if came {
            self.after_push(engine);
        }
    }
}
