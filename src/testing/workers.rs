//! Virtual workers: the loop of `worker::pool` cut into steps, with parking as a state.

use std::time::Duration;

use super::cargo::Cargo;
use super::world::World;
use crate::clock::Clock as _;
use crate::coord::timers::NEVER;
use crate::sync::lock;
use crate::worker::step::{Rest, Step, Worker};

#[derive(Debug)]
enum State {
    Awake {
        polled: usize,
    },
    /// Until woken, or until this time.
    Parked(Option<u64>),
}

/// A worker and where it is in its loop.
#[derive(Debug)]
pub(super) struct Virtual {
    worker: Worker,
    state: State,
}

impl Virtual {
    pub(super) fn new(worker: Worker) -> Self {
        Self { worker, state: State::Awake { polled: 0 } }
    }
}

impl<P: Cargo> World<P> {
    /// Lets one worker that can do something do one thing. False when none can.
    pub(super) fn run_a_worker(&self) -> bool {
        let able = self.able_workers();
        if able.is_empty() {
            return false;
        }
        let index = self.random.pick(&able);
        let Some(mut seat) = lock(&self.workers)[index].take() else {
            return false;
        };
        self.advance_worker(index, &mut seat);
        lock(&self.workers)[index] = Some(seat);
        true
    }

    /// Those not inside a turn that are awake, woken, or due.
    fn able_workers(&self) -> Vec<usize> {
        let now = self.clock.monotonic_ns();
        let workers = lock(&self.workers);
        let is_able = |index: &usize| match &workers[*index] {
            None => false,
            Some(Virtual { state: State::Awake { .. }, .. }) => true,
            Some(Virtual { state: State::Parked(until), .. }) => {
                self.shared.sleep.has_token(*index) || until.is_some_and(|until| until <= now)
            }
        };
        (0..workers.len()).filter(is_able).collect()
    }

    fn advance_worker(&self, index: usize, seat: &mut Virtual) {
        let State::Awake { polled } = &mut seat.state else {
            return self.rise(index, seat);
        };
        match seat.worker.step() {
            Step::Worked(_) => {
                *polled = 0;
                return;
            }
            Step::Polled => {
                *polled += 1;
                if *polled < seat.worker.tickets() {
                    return;
                }
            }
            Step::Empty => {}
        }
        *polled = 0;
        if self.random.one_in(3) {
            return; // It spins on.
        }
        if matches!(seat.worker.steal(), Step::Worked(_)) {
            return;
        }
        if let Rest::Park(timeout) = seat.worker.settle_down() {
            let until = timeout.map(|timeout| {
                let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
                self.clock.monotonic_ns().saturating_add(nanoseconds)
            });
            seat.state = State::Parked(until);
        }
    }

    fn rise(&self, index: usize, seat: &mut Virtual) {
        if self.shared.sleep.has_token(index) {
            seat.worker.park(None); // Returns at once.
        } else if self.shared.sleep.retract(index) {
            seat.worker.rise(false);
        } else {
            self.ledger.fail(format!("worker {index} was taken from the mask without a token"));
        }
        seat.state = State::Awake { polled: 0 };
    }

    /// The earliest time at which a parked worker wakes by itself.
    pub(super) fn next_alarm(&self) -> Option<u64> {
        let workers = lock(&self.workers);
        let alarm = |seat: &Option<Virtual>| match seat {
            Some(Virtual { state: State::Parked(until), .. }) => *until,
            _ => None,
        };
        workers.iter().filter_map(alarm).min()
    }

    /// With all workers parked and none woken: no ticket may be queued, and somebody must wait for
    /// the next timer.
    pub(super) fn check_parked(&self) {
        if !self.able_workers().is_empty() || lock(&self.workers).iter().any(Option::is_none) {
            return;
        }
        for (index, seat) in self.shared.seats.iter().enumerate() {
            if !seat.queue.is_empty() {
                self.ledger.fail(format!("a ticket of worker {index} is slept through"));
            }
        }
        let next = self.shared.timers.next();
        if next != NEVER && self.next_alarm().is_none_or(|alarm| alarm > next.max(self.now())) {
            self.ledger.fail(format!("nobody waits for the timer at {next}"));
        }
        self.check_idle_stages();
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    /// Moves time: a little, or to the next alarm, or far.
    pub(super) fn pass_time(&self) {
        let by = match self.random.below(8) {
            0..=3 => self.random.next() % 100_000,
            4 => self.random.next() % 20_000_000,
            5 => self.random.next() % 1_000_000_000,
            _ => self.next_alarm().map_or(0, |alarm| alarm.saturating_sub(self.now())),
        };
        self.clock.advance(Duration::from_nanos(by));
    }
}
