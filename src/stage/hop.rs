//! The way in for hops: they never obey `OnFull`, they wait in line; and the making of room.

use std::sync::Arc;
use std::time::Duration;

use super::Stage;
use super::engine::Engine;
use super::queue::Block;
use super::room::{Hold, WaitingHop};
use crate::coord::attendance::{CLOSED, HOPS_WAIT, NO_CONSUMER, PAUSED, PUBLISHERS_WAIT};
use crate::coord::ticket::Desk;
use crate::envelope::Envelope;
use crate::envelope::envelope::Cause;
use crate::sync::{MutexGuard, lock};

use super::room::Room;

/// Slots that are freed at most before a publisher that waits is woken.
const UNOFFERED_MAX: usize = 256;

impl<P: Send + 'static> Stage<P> {
    /// Takes in hops in order. Those without room wait in line, holding what `hold` yields; returns
    /// whether any had to.
    pub(crate) fn enter_hops(
        self: &Arc<Self>,
        engine: &dyn Engine<P>,
        desk: &Desk<'_>,
        block: &mut Block<P>,
        hold: &mut dyn FnMut() -> Option<Arc<Hold>>,
    ) -> bool {
        let word = self.attendance.before_push();
        if word & (CLOSED | NO_CONSUMER) != 0 {
            self.bury_hops(engine, desk, block, word);
            return false;
        }
        let mut waited = false;
        let as_block = word & HOPS_WAIT == 0 && (2..=self.settings.batch).contains(&block.len());
        if as_block
            && self.takes_blocks()
            && let Err(whole) = self.queue.push_block(std::mem::take(block))
        {
            *block = whole;
        }
        while let Some(envelope) = block.pop_front() {
            if self.attendance.has(HOPS_WAIT) {
                block.push_front(envelope);
                waited = true;
                break;
            }
            if let Err(envelope) = self.queue.push(envelope) {
                block.push_front(envelope);
                waited = true;
                break;
            }
        }
        if waited {
            self.join_line(engine, desk, block, hold);
        }
        self.after_push(engine);
        waited
    }

    /// Steps 1 of `room`: registers, then looks again at room and *closed*.
    #[cold]
    fn join_line(
        self: &Arc<Self>,
        engine: &dyn Engine<P>,
        desk: &Desk<'_>,
        block: &mut Block<P>,
        hold: &mut dyn FnMut() -> Option<Arc<Hold>>,
    ) {
        let since = engine.clock().monotonic_ns();
        let hold = hold();
        let mut room = lock(&self.room);
        for envelope in block.drain(..) {
            room.hops.push_back(WaitingHop { envelope, hold: hold.clone(), since });
        }
        drop(hold);
        self.attendance.set(HOPS_WAIT);
        let watch = !room.watched;
        room.watched = true;
        self.place_waiting(engine, room);
        if self.attendance.has(CLOSED) {
            self.settle_closed(engine);
        }
        if watch {
            self.watch_line(desk, self.meters.progress(), since);
        }
    }

    /// Step 2 of `room`, after a pop: places whoever waits for the freed slot.
    #[inline]
    pub(crate) fn after_pop(self: &Arc<Self>, engine: &dyn Engine<P>) {
        let word = self.attendance.after_push();
        if word & (HOPS_WAIT | PUBLISHERS_WAIT) != 0 {
            self.make_room(engine, word);
        }
    }

    #[cold]
    fn make_room(self: &Arc<Self>, engine: &dyn Engine<P>, word: u32) {
        if word & HOPS_WAIT != 0 {
            self.place_waiting(engine, lock(&self.room));
        } else {
            self.offer_room(engine);
        }
    }

    /// Wakes a blocked publisher. A wake-up costs as much as hundreds of hops, so where calls are
    /// fast a publisher shall find room for many when it comes: once the ring is half empty, or,
    /// where others take each slot that is freed, after many of those.
    fn offer_room(&self, engine: &dyn Engine<P>) {
        let many = (self.settings.capacity / 2).min(UNOFFERED_MAX) as u64;
        if self.queue.is_half_empty() || !self.meters.is_fast() || self.unoffered.get() >= many {
            self.unoffered.set(0);
            self.wake_publishers(engine, 1);
        } else {
            self.unoffered.add(1);
        }
    }

    /// Places waiting hops in order while there is room, then lets go of the permits they held.
    pub(super) fn place_waiting<'a>(
        self: &'a Arc<Self>,
        engine: &dyn Engine<P>,
        mut room: MutexGuard<'a, Room<P>>,
    ) {
        if !room.backlog.is_empty() || room.refilling.is_some() {
            return self.refill(engine, room);
        }
        let mut freed = Vec::new();
        let mut placed = 0_usize;
        while let Some(WaitingHop { envelope, hold, since }) = room.hops.pop_front() {
            match self.queue.push(envelope) {
                Ok(()) => {
                    placed += 1;
                    freed.push(hold);
                }
                Err(envelope) => {
                    room.hops.push_front(WaitingHop { envelope, hold, since });
                    break;
                }
            }
        }
        let line_is_empty = room.hops.is_empty();
        if line_is_empty {
            self.attendance.clear(HOPS_WAIT);
        }
        drop(room);
        drop(freed);
        if placed > 0 {
            self.after_push(engine);
        }
        if line_is_empty {
            self.offer_room(engine);
        }
    }

    /// Looks at the line when its first has waited for `hop_timeout`: when no attempt was begun
    /// here in that time and the stage was not paused, those who waited that long are given up.
    ///
    /// Placements would not do as a measure: a stage that works through an opened block frees no
    /// slot for as long as that takes. In a cycle of full stages all permits wait, so no attempt
    /// is begun, and it ends.
    fn watch_line(self: &Arc<Self>, desk: &Desk<'_>, progress: u64, since: u64) {
        let stage = Arc::downgrade(self);
        let timeout = nanoseconds(self.settings.hop_timeout);
        let deadline = since.saturating_add(timeout);
        desk.scheduler.at(
            deadline,
            Box::new(move || {
                if let Some(stage) = stage.upgrade() {
                    stage.line_is_due(progress, timeout);
                }
            }),
        );
    }

    fn line_is_due(self: &Arc<Self>, progress_before: u64, timeout: u64) {
        let engine = &*self.engine;
        let desk = Desk::outside(&**engine.scheduler());
        let now = engine.clock().monotonic_ns();
        let mut room = lock(&self.room);
        let progress = self.meters.progress();
        let stuck = progress == progress_before && !self.attendance.has(PAUSED);
        let resumed_at = room.resumed_at;
        let is_due = |hop: &WaitingHop<P>| hop.since.max(resumed_at).saturating_add(timeout) <= now;
        let mut due = Vec::new();
        while stuck && room.hops.front().is_some_and(is_due) {
            due.extend(room.hops.pop_front());
        }
        // Where it stands still the next in line has waited as long without it.
        let next = room.hops.front().map(|hop| if stuck { hop.since.max(resumed_at) } else { now });
        room.watched = next.is_some();
        // Step 4: a waiter that leaves passes the turn on.
        self.place_waiting(engine, room);
        for WaitingHop { envelope, hold, .. } in due {
            self.meters.dead.add(1);
            engine.bury(&desk, envelope, Cause::NextStageFull, &self.name);
            drop(hold);
        }
        if let Some(since) = next {
            self.watch_line(&desk, progress, since);
        }
    }

    #[cold]
    fn bury_hops(&self, engine: &dyn Engine<P>, desk: &Desk<'_>, block: &mut Block<P>, word: u32) {
        for envelope in block.drain(..) {
            let cause = if word & CLOSED != 0 { Cause::StageClosed } else { Cause::NoConsumer };
            self.meters.dead.add(1);
            engine.bury(desk, envelope, cause, &self.name);
        }
    }

    /// Takes in one envelope as a hop without a source: a due retry.
    pub(crate) fn enter_without_source(
        self: &Arc<Self>,
        engine: &dyn Engine<P>,
        envelope: Envelope<P>,
    ) {
        let desk = Desk::outside(&**engine.scheduler());
        let mut block = Block::from([envelope]);
        self.enter_hops(engine, &desk, &mut block, &mut || None);
    }
}

/// Nanoseconds of a duration, saturating.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
