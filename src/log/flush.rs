//! Flushing together: one waiter flushes for all, the others wait for it.
//!
//! The steps L1-L4 and F1-F3 stand in `README.md` under *Flushing together*.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use super::error::LogError;
use super::writer::{Place, Writer};
use crate::coord::parker::Parker;
use crate::sync::{Mutex, MutexGuard, SMALL, lock, try_lock, yield_now};

/// How long the one that flushes waits for as many records as last time.
const GATHER_NS: u64 = 100_000;
/// Looks at the clock are so many at most, should it stand still.
const GATHER_ROUNDS: u32 = if SMALL { 1 } else { 1_000 };

/// What is remembered from flush to flush by whoever has the permit.
#[derive(Debug)]
struct Leader {
    /// Records that the last flush covered.
    cohort: u64,
}

/// Who waits for a flush.
#[derive(Debug)]
enum Waiter {
    Thread(Arc<Parker>),
    Task(Waker),
}

impl Waiter {
    fn wake(self) {
        match self {
            Self::Thread(parker) => parker.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// The flushing side of a log.
#[derive(Debug)]
pub(crate) struct Flush {
    leader: Mutex<Leader>,
    waiters: Mutex<Vec<(u64, Waiter)>>,
}

impl Flush {
    pub(crate) fn new() -> Self {
        Self { leader: Mutex::new(Leader { cohort: 0 }), waiters: Mutex::new(Vec::new()) }
    }

    /// Returns when everything up to `sequence` is durable; flushes itself if nobody does.
    ///
    /// # Errors
    /// When the log is poisoned before that.
    pub(crate) fn wait(&self, writer: &Writer, sequence: u64) -> Result<(), LogError> {
        let mut parker: Option<Arc<Parker>> = None;
        loop {
            if writer.progress.durable() >= sequence {
                return Ok(());
            }
            writer.poison.check()?;
            // F1
            if let Some(leader) = try_lock(&self.leader) {
                self.lead(writer, leader, Some(sequence))?;
                continue;
            }
            let parker = parker.get_or_insert_with(Arc::default);
            // F2
            lock(&self.waiters).push((sequence, Waiter::Thread(Arc::clone(parker))));
            // F3
            if let Some(leader) = try_lock(&self.leader) {
                self.lead(writer, leader, Some(sequence))?;
                continue;
            }
            parker.park(None);
        }
    }

    /// Returns when the queued record has its sequence.
    ///
    /// # Errors
    /// When it found no room, or the log is poisoned before that.
    pub(crate) fn wait_for_place(&self, writer: &Writer, place: &Place) -> Result<u64, LogError> {
        let mut parker: Option<Arc<Parker>> = None;
        loop {
            writer.take_along();
            if let Some(sequence) = place.sequence()? {
                return Ok(sequence);
            }
            writer.poison.check()?;
            let parker = parker.get_or_insert_with(Arc::default);
            lock(&self.waiters).push((0, Waiter::Thread(Arc::clone(parker))));
            // Whoever writes it now stores its sequence first, then takes the lock and wakes.
            if place.sequence()?.is_none() && writer.poison.check().is_ok() {
                parker.park(None);
            }
        }
    }

    /// Flushes everything written so far.
    ///
    /// # Errors
    /// When the log is or becomes poisoned.
    pub(crate) fn now(&self, writer: &Writer) -> Result<u64, LogError> {
        let appended = writer.progress.appended();
        self.wait(writer, appended)?;
        Ok(appended)
    }

    /// Has `waker` woken when `sequence` is durable or the log poisoned; false when it is already.
    pub(crate) fn register(&self, writer: &Writer, sequence: u64, waker: &Waker) -> bool {
        let mut waiters = lock(&self.waiters);
        // Under the lock that every flush takes before it wakes.
        if writer.progress.durable() >= sequence || writer.poison.check().is_err() {
            return false;
        }
        let is_there = |(_, waiter): &(u64, Waiter)| match waiter {
            Waiter::Task(known) => known.will_wake(waker),
            Waiter::Thread(_) => false,
        };
        match waiters.iter_mut().find(|waiter| is_there(waiter)) {
            // The same task may wait for several records; the first wakes it, and it asks again.
            Some(waiter) => waiter.0 = waiter.0.min(sequence),
            None => waiters.push((sequence, Waiter::Task(waker.clone()))),
        }
        true
    }

    /// Has `waker` woken when the queued record has its sequence or the log has ended; false when
    /// that is so already.
    pub(crate) fn register_place(&self, writer: &Writer, place: &Place, waker: &Waker) -> bool {
        lock(&self.waiters).push((0, Waiter::Task(waker.clone())));
        writer.take_along();
        // Whoever writes it now stores its sequence first, then takes the lock and wakes.
        matches!(place.sequence(), Ok(None)) && writer.poison.check().is_ok()
    }

    /// Flushes for all (L1), gives the permit back (L2), and wakes (L3, L4).
    fn lead(
        &self,
        writer: &Writer,
        mut leader: MutexGuard<'_, Leader>,
        wanted: Option<u64>,
    ) -> Result<(), LogError> {
        let result = match wanted {
            // Somebody flushed between the look and the permit.
            Some(sequence) if writer.progress.durable() >= sequence => Ok(()),
            _ => Self::flush(writer, &mut leader),
        };
        drop(leader);
        self.wake(writer, true);
        result
    }

    fn flush(writer: &Writer, leader: &mut Leader) -> Result<(), LogError> {
        writer.poison.check()?;
        Self::gather(writer, leader);
        let before = writer.progress.durable();
        // The order matters: what is written up to here is in this segment, or was flushed with
        // the one before.
        let target = writer.write_out()?;
        let active = writer.active();
        for flusher in &active.flushers {
            if let Err(source) = flusher.flush() {
                let error = LogError::storage("flush", flusher.name())(source);
                return Err(writer.poison.set("flush", error));
            }
        }
        // Where a write failed meanwhile, what it left is not known.
        writer.poison.check()?;
        writer.progress.reach(target);
        leader.cohort = target.saturating_sub(before);
        Ok(())
    }

    /// Waits a little for those whom the last flush released, so that they can share this one.
    fn gather(writer: &Writer, leader: &Leader) {
        if leader.cohort <= 1 {
            return;
        }
        let begin = writer.clock.monotonic_ns();
        for _ in 0..GATHER_ROUNDS {
            let progress = &writer.progress;
            let pending = progress.appended().saturating_sub(progress.durable());
            let waited = writer.clock.monotonic_ns().saturating_sub(begin);
            if pending >= leader.cohort || waited >= GATHER_NS {
                return;
            }
            yield_now();
        }
    }

    /// Wakes those whose records are durable; and one more to flush for the others, if `appoints`.
    pub(crate) fn wake(&self, writer: &Writer, appoints: bool) {
        let durable = writer.progress.durable();
        let is_poisoned = writer.poison.check().is_err();
        let mut waiters = lock(&self.waiters);
        let mut woken: Vec<Waiter> = Vec::new();
        let mut index = 0;
        while index < waiters.len() {
            if is_poisoned || waiters[index].0 <= durable {
                woken.push(waiters.swap_remove(index).1);
            } else {
                index += 1;
            }
        }
        let is_thread = |(_, waiter): &(u64, Waiter)| matches!(waiter, Waiter::Thread(_));
        if let Some(next) = waiters.iter().position(is_thread).filter(|_| appoints) {
            woken.push(waiters.swap_remove(next).1);
        }
        drop(waiters);
        for waiter in woken {
            // A task's waker is foreign code: its panic is not ours.
            drop(catch_unwind(AssertUnwindSafe(|| waiter.wake())));
        }
        writer.followers.wake(writer);
    }
}
