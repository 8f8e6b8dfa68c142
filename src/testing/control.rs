//! Random changes of stages, of the bus's life and of its dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::cargo::Cargo;
use super::world::{NAMES, World};
use crate::bus::{Bus, DeadLetter};
use crate::clock::Clock as _;
use crate::coord::on_worker::InTurn;
use crate::envelope::EnvelopeId;
use crate::log::letters::{LetterFilter, Redrive};
use crate::sync::{Ordering, lock};

impl<P: Cargo> World<P> {
    /// Somebody changes something. Refusals are fine.
    pub(super) fn control(self: &Arc<Self>) {
        let Some(bus) = self.bus() else {
            return;
        };
        let name = NAMES[self.random.below(self.plan.stages)];
        match self.random.below(24) {
            0 => bus.pause(),
            1..=3 => bus.resume(),
            4..=5 => drop(bus.pause_stage(name)),
            6..=9 => drop(bus.resume_stage(name)),
            10..=11 => drop(bus.close_stage(name)),
            12..=15 => self.open(name),
            16..=18 => self.redrive(),
            19 => self.take_out_a_letter(),
            20 => self.step_wall_clock(),
            21 => self.give_handler(name),
            22 => drop(bus.snapshot()),
            _ if self.random.one_in(12) => drop(bus.shutdown(Duration::ZERO)),
            _ => {}
        }
    }

    fn redrive(&self) {
        let Some(bus) = self.bus() else {
            return;
        };
        let some_name = || {
            let is_given = self.random.one_in(3);
            is_given.then(|| NAMES[self.random.below(self.plan.stages)].to_owned())
        };
        let plan = Redrive {
            filter: LetterFilter { stage: some_name(), ..LetterFilter::default() },
            to: some_name(),
            limit: self.random.between(1, 5),
            ..Redrive::default()
        };
        let before = Self::letters(&bus);
        if let Ok(done) = bus.redrive(&plan) {
            // ORDERING: Relaxed: one thread.
            self.redriven.fetch_add(done.redriven as u64, Ordering::Relaxed);
        }
        for (key, now) in Self::letters(&bus) {
            if before.get(&key).is_some_and(|then| *then != now) {
                self.ledger.fail(format!("dead letter {key:?} was left, but is now {now}"));
            }
        }
    }

    /// What a refused re-drive must leave alone, by id and re-drives.
    fn letters(bus: &Bus<P>) -> BTreeMap<(EnvelopeId, u16), String> {
        let dead = lock(&bus.core.dead);
        let describe = |letter: &DeadLetter<P>| {
            let envelope = &letter.envelope;
            let words = format!("{:?} {:?} {:?}", envelope.slip(), letter.info(), envelope.cause());
            ((envelope.id(), envelope.redrives()), words)
        };
        dead.iter().map(|(_, letter)| describe(letter)).collect()
    }

    fn take_out_a_letter(&self) {
        let Some(bus) = self.bus() else {
            return;
        };
        let first = bus.dead_letters().first().map(|letter| letter.id);
        if let Some(mut letter) = first.and_then(|id| bus.take_dead_letter(id)) {
            letter.envelope.payload_mut().disarm();
            // ORDERING: Relaxed: one thread.
            self.taken_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn step_wall_clock(&self) {
        let by = self.random.next() % 7_200_000;
        let now = self.clock.wall_ms();
        self.clock.set_wall_ms(if self.random.one_in(2) { now + by } else { now - by });
    }

    /// Stops intake and lets everything end until a random deadline, as a shutdown with a limit
    /// does while it waits.
    pub(super) fn shut_down_slowly(self: &Arc<Self>) {
        let Some(bus) = self.bus() else {
            return;
        };
        let inside = InTurn::begin();
        bus.shutdown(Duration::ZERO);
        drop(inside);
        let deadline = self.now() + self.random.next() % 500_000_000;
        for _ in 0..200 {
            if self.now() >= deadline || self.ledger.has_failed() {
                break;
            }
            self.act();
            self.check_at_rest();
        }
        let report = bus.shutdown(Duration::ZERO);
        // What a turn passed on after the end is undelivered without having waited anywhere.
        let books = report.conservation;
        let ended = books.undelivered == 0 && books.in_flight == 0;
        if !books.holds() || report.drained != (ended && report.leftovers.is_empty()) {
            self.ledger.fail(format!("{report:?}"));
        }
    }
}
