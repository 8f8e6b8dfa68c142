//! The way in for publishers: look at the word, push, look at the word again.
//!
//! `Full` is only said when the ring was full at some instant of the call, or hops were waiting.

use std::sync::Arc;

use super::Stage;
use super::engine::Engine;
use super::handler::guarded;
use super::queue::Block;
use super::room::{Delayed, WaitingHop, Wake};
use crate::coord::attendance::{
    Attendance, CLOSED, DRAINING, HOPS_WAIT, NO_CONSUMER, PAUSED, PUBLISHERS_WAIT, REFUSES_PUBLISH,
};
use crate::coord::ticket::Desk;
use crate::envelope::Envelope;
use crate::envelope::envelope::{Cause, Settled};
use crate::metrics::counter::Tally;
use crate::sync::lock;

/// Why a stage did not take a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Paused,
    Draining,
    Closed,
    NoConsumer,
    NotRecovered,
    InFlight,
    Duplicate,
    NoWireForm,
    LogFull,
    LogFailed,
    TooManyDeadLetters,
}

impl Refusal {
    /// The reason in a word seen before the push.
    #[cold]
    fn of(word: u32) -> Self {
        if word & CLOSED != 0 {
            Self::Closed
        } else if word & DRAINING != 0 {
            Self::Draining
        } else if word & NO_CONSUMER != 0 {
            Self::NoConsumer
        } else if word & PAUSED != 0 {
            Self::Paused
        } else {
            Self::Full
        }
    }
}

impl<P: Send + 'static> Stage<P> {
    /// P1 to P4 for one envelope, counted between P1 and P2.
    ///
    /// # Errors
    /// The envelope, and why it was refused.
    #[inline]
    pub(crate) fn try_enter(
        self: &Arc<Self>,
        engine: &dyn Engine<P>,
        tally: Tally<'_>,
        envelope: Envelope<P>,
    ) -> Result<(), (Refusal, Envelope<P>)> {
        let word = self.attendance.before_push(); // P1
        if word & REFUSES_PUBLISH != 0 {
            return Err((Refusal::of(word), envelope));
        }
        tally.add(1);
        if let Err(envelope) = self.queue.push(envelope) {
            // P2
            tally.subtract(1);
            return Err((Refusal::Full, envelope));
        }
        self.after_push(engine);
        Ok(())
    }

    /// P1 to P4 for a block: all of it, or nothing.
    ///
    /// # Errors
    /// The block, and why it was refused.
    pub(crate) fn try_enter_block(
        self: &Arc<Self>,
        engine: &dyn Engine<P>,
        tally: Tally<'_>,
        block: Block<P>,
    ) -> Result<(), (Refusal, Block<P>)> {
        let word = self.attendance.before_push();
        if word & REFUSES_PUBLISH != 0 {
            return Err((Refusal::of(word), block));
        }
        let count = block.len();
        tally.add(count);
        if let Err(block) = self.queue.push_block(block) {
            tally.subtract(count);
            return Err((Refusal::Full, block));
        }
        self.after_push(engine);
        Ok(())
    }

    /// P3, P4: makes sure that somebody comes by for what was pushed.
    #[inline]
    pub(crate) fn after_push(self: &Arc<Self>, engine: &dyn Engine<P>) {
        let word = self.attendance.after_push(); // P3
        if !Attendance::is_looked_after(word) {
            self.attend_or_settle(engine, word);
        }
    }

    #[cold]
    fn attend_or_settle(self: &Arc<Self>, engine: &dyn Engine<P>, word: u32) {
        if word & CLOSED != 0 {
            self.settle_closed(engine);
        } else {
            self.look_after_push(&**engine.scheduler()); // P4
        }
    }

    /// Settles everything inside a closed stage. Safe to run from several threads at once: each
    /// envelope is taken out by one of them.
    pub(crate) fn settle_closed(&self, engine: &dyn Engine<P>) {
        let desk = Desk::outside(&**engine.scheduler());
        while let Some(envelope) = self.take_inside() {
            self.meters.dead.add(1);
            engine.bury(&desk, envelope, Cause::StageClosed, &self.name);
        }
        self.wake_publishers(engine, usize::MAX);
    }

    /// Takes out one envelope that waits inside, wherever it waits: oldest place first.
    pub(crate) fn take_inside(&self) -> Option<Envelope<P>> {
        if let Some(envelope) = self.queue.pop_one() {
            return Some(envelope);
        }
        let mut room = lock(&self.room);
        if let Some((_, Delayed { envelope, timer })) = room.delayed.pop_first() {
            drop(room);
            if let Some(timer) = timer {
                self.engine.scheduler().cancel(timer);
            }
            return Some(envelope);
        }
        let Some(waiting) = room.hops.pop_front() else {
            drop(room);
            return self.recall_next();
        };
        drop(room);
        // Letting go of the permit of the stage it left posts a ticket: not under the lock.
        let WaitingHop { envelope, hold, .. } = waiting;
        drop(hold);
        Some(envelope)
    }

    /// Drops the oldest waiting envelope to make room; false when none was there, or hops wait:
    /// those come before new work, which is then refused.
    pub(crate) fn drop_oldest(self: &Arc<Self>, engine: &dyn Engine<P>) -> bool {
        if self.attendance.has(HOPS_WAIT) {
            return false;
        }
        let victims = self.queue.displace();
        // We freed a slot, so a hop that came to wait is placed by us; and what we put on the side
        // list may have been in no place when the last permit holder looked.
        self.after_pop(engine);
        self.after_push(engine);
        let desk = Desk::outside(&**engine.scheduler());
        let any = !victims.is_empty();
        for victim in victims {
            self.meters.dropped.add(1);
            engine.settle(&desk, victim, Settled::Dropped);
        }
        any
    }

    /// Registers a publisher that waits for room; the caller tries once more after this.
    pub(crate) fn join_publishers(&self, wake: Wake) -> u64 {
        let mut room = lock(&self.room);
        let number = room.join(wake);
        self.attendance.set(PUBLISHERS_WAIT);
        number
    }

    /// Keeps the place of a publisher that tried in vain, whether it was woken or not.
    pub(crate) fn rejoin_publishers(&self, engine: &dyn Engine<P>, number: u64, wake: Wake) {
        let mut room = lock(&self.room);
        let before = room.rejoin(number, wake);
        self.attendance.set(PUBLISHERS_WAIT);
        drop(room);
        // Foreign code, as below.
        if guarded(|| drop(before)).is_err() {
            engine.count_panic();
        }
    }

    /// Takes a publisher out of line. When it was woken already and does not use its turn, the
    /// turn goes to the next.
    pub(crate) fn leave_publishers(&self, engine: &dyn Engine<P>, number: u64, used: bool) {
        let mut room = lock(&self.room);
        let waiting = room.leave(number);
        if room.publishers.is_empty() {
            self.attendance.clear(PUBLISHERS_WAIT);
        }
        drop(room);
        if waiting.is_none() && !used {
            self.wake_publishers(engine, 1);
        }
        // Its waker is foreign code: dropped here, under no lock.
        if guarded(|| drop(waiting)).is_err() {
            engine.count_panic();
        }
    }

    /// Wakes up to `count` publishers, oldest first.
    pub(crate) fn wake_publishers(&self, engine: &dyn Engine<P>, count: usize) {
        if !self.attendance.has(PUBLISHERS_WAIT) {
            return;
        }
        // Those that are in line now: who is woken and finds no room joins it again.
        let count = count.min(lock(&self.room).publishers.len());
        for _ in 0..count {
            let mut room = lock(&self.room);
            let next = room.publishers.pop_front();
            if room.publishers.is_empty() {
                self.attendance.clear(PUBLISHERS_WAIT);
            }
            drop(room);
            let Some(publisher) = next else {
                return;
            };
            if guarded(|| publisher.wake.wake()).is_err() {
                engine.count_panic();
            }
        }
    }

    /// Whether hops wait in line.
    pub(crate) fn has_waiting_hops(&self) -> bool {
        self.attendance.has(HOPS_WAIT)
    }

    /// Whether a publish would find room now, and why not.
    ///
    /// # Errors
    /// Why it would be refused.
    pub(crate) fn takes_publish(&self) -> Result<(), Refusal> {
        let word = self.attendance.before_push();
        if word & REFUSES_PUBLISH != 0 {
            return Err(Refusal::of(word));
        }
        if self.queue.is_full() { Err(Refusal::Full) } else { Ok(()) }
    }

    /// Whether a publish would be refused before its push.
    pub(crate) fn refuses_publishes(&self) -> bool {
        self.attendance.before_push() & REFUSES_PUBLISH != 0
    }
}
