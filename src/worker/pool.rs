//! The pool: starts the threads that loop [`super::step`], and stops them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::affinity::Plan;
use super::settings::{Idle, PoolError, PoolSettings};
use super::shared::{Seat, Shared};
use super::step::{Rest, Step, Worker};
use crate::clock::{Clock, SystemClock};
use crate::coord::on_worker::is_in_turn;
use crate::coord::parker::Parker;
use crate::sync::{JoinHandle, Mutex, SMALL, has_ended, lock, spawn_thread, try_lock, yield_now};

/// Polls by spinning before a worker yields.
const SPINS: u32 = 32;
/// How long a worker yields before it parks: about the price of a wake-up.
const YIELD_NS: u64 = 50_000;
/// The most polls before it parks, should the clock stand still.
const ROUNDS: u32 = 4096;
/// How often a stopping pool looks whether its workers have left.
const LOOK: Duration = Duration::from_micros(500);
/// A worker inside the same turn for this long is not waited for.
const STUCK: Duration = Duration::from_millis(100);

/// Worker threads that drain the stages of one or several buses.
///
/// ```
/// use std::sync::Arc;
/// use waystage::{Bus, BusSettings, Pool, PoolSettings};
/// let pool = Arc::new(Pool::start(PoolSettings { workers: 2, ..PoolSettings::default() })?);
/// let numbers: Bus<u64> = Bus::on_pool(&pool, BusSettings::default())?;
/// let words: Bus<String> = Bus::on_pool(&pool, BusSettings::default())?;
/// # drop((numbers, words));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle>>,
    /// The worker of a pool without threads.
    caller: Option<Mutex<Worker>>,
}

impl Pool {
    /// Starts the workers, on the machine's clock.
    ///
    /// # Errors
    /// [`PoolError`] when a setting is out of range or a thread is refused.
    pub fn start(settings: PoolSettings) -> Result<Self, PoolError> {
        Self::start_with_clock(settings, Arc::new(SystemClock::new()))
    }

    /// As [`start`](Self::start), with a clock of the caller's.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[expect(clippy::needless_pass_by_value, reason = "settings are given away, as everywhere")]
    pub fn start_with_clock(
        settings: PoolSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, PoolError> {
        settings.validate()?;
        let plan = Plan::new(&settings.pin)?;
        let shared = Arc::new(Shared::new(&settings, clock));
        let caller =
            (settings.workers == 0).then(|| Mutex::new(Worker::new(Arc::clone(&shared), 0)));
        let pool = Self { shared, threads: Mutex::new(Vec::new()), caller };
        for index in 0..settings.workers {
            let worker = Worker::new(Arc::clone(&pool.shared), index);
            let (plan, idle) = (plan.clone(), settings.idle);
            let shared = Arc::clone(&pool.shared);
            let thread = spawn_thread(format!("waystage-{index}"), move || {
                plan.pin(index);
                work(&shared, worker, idle);
            })?;
            lock(&pool.threads).push(thread);
        }
        Ok(pool)
    }

    /// Worker threads; zero when the embedder calls [`turn`](Self::turn).
    #[must_use]
    pub fn workers(&self) -> usize {
        if self.caller.is_some() { 0 } else { self.shared.seats.len() }
    }

    /// One turn on the caller's thread, for a pool without threads: runs what is due, then one
    /// batch of one stage. Returns how many envelopes it took up; zero means that nothing could be
    /// taken up now: nothing waits, or only for a time, a resume or room elsewhere. On a pool with
    /// threads, from inside a handler or callback, or while another thread is inside this call, it
    /// does nothing and returns zero.
    pub fn turn(&self) -> usize {
        let Some(caller) = &self.caller else {
            return 0;
        };
        if is_in_turn() {
            return 0;
        }
        // Held while handlers run: whoever comes meanwhile has nothing to do here.
        let Some(mut worker) = try_lock(caller) else {
            return 0;
        };
        for _ in 0..=worker.tickets() {
            if let Step::Worked(taken) = worker.step() {
                return taken;
            }
        }
        0
    }

    /// A pool whose workers are driven by the caller, each as it likes: for the simulator.
    #[cfg(test)]
    pub(crate) fn without_threads(
        settings: &PoolSettings,
        clock: Arc<dyn Clock>,
    ) -> (Self, Vec<Worker>) {
        let shared = Arc::new(Shared::new(settings, clock));
        let workers =
            (0..settings.workers).map(|index| Worker::new(Arc::clone(&shared), index)).collect();
        (Self { shared, threads: Mutex::new(Vec::new()), caller: None }, workers)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Pool {
    /// Stops the workers after their current turn and waits for them: but not for one that stands
    /// still inside a handler, nor for anybody when dropped inside a handler or a callback of any
    /// bus, or by a worker, which drops what it owns as if it were in a handler.
    fn drop(&mut self) {
        self.shared.stop();
        for (thread, seat) in lock(&self.threads).drain(..).zip(&self.shared.seats) {
            if !is_in_turn() && leaves(&thread, seat) {
                // A worker's panic was printed by the panic hook; there is nobody to pass it to.
                let _ = thread.join();
            }
        }
        self.shared.forget_tickets();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("workers", &self.workers()).finish_non_exhaustive()
    }
}

/// Waits until a worker has left, or is seen inside the same turn for `STUCK` on end.
fn leaves(thread: &JoinHandle, seat: &Seat) -> bool {
    let parker = Parker::new();
    let mut turns = seat.turns_begun();
    let mut looks = 0;
    while !has_ended(thread) {
        parker.park(Some(LOOK));
        let now = seat.turns_begun();
        looks = if now == turns && seat.is_in_turn() { looks + 1 } else { 0 };
        turns = now;
        if looks * LOOK > STUCK {
            return false;
        }
    }
    true
}

/// The loop of a worker thread.
fn work(shared: &Shared, mut worker: Worker, idle: Idle) {
    let mut polled = 0;
    let mut lull = Lull::default();
    while !shared.is_stopping() {
        match worker.step() {
            Step::Worked(_) => {
                polled = 0;
                lull.end();
                continue;
            }
            Step::Polled => {
                polled += 1;
                if polled < worker.tickets() {
                    continue;
                }
            }
            Step::Empty => {}
        }
        polled = 0;
        if lull.goes_on(shared, idle) {
            continue;
        }
        if matches!(worker.steal(), Step::Worked(_)) {
            lull.end();
        } else if idle == Idle::Park
            && let Rest::Park(timeout) = worker.settle_down()
        {
            worker.park(timeout);
            lull.end();
        }
    }
    worker.leave();
}

/// How long a worker has found nothing.
#[derive(Debug, Default)]
struct Lull {
    rounds: u32,
    /// When yielding began; zero before.
    since: u64,
}

impl Lull {
    fn end(&mut self) {
        *self = Self::default();
    }

    /// Spends a round; false when it is time to look elsewhere.
    fn goes_on(&mut self, shared: &Shared, idle: Idle) -> bool {
        if SMALL {
            return false;
        }
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds < SPINS || idle == Idle::Spin {
            std::hint::spin_loop();
            return idle != Idle::Spin || !self.rounds.is_multiple_of(64);
        }
        yield_now();
        if !self.rounds.is_multiple_of(8) {
            return true;
        }
        if idle == Idle::Yield {
            return false;
        }
        if self.rounds > ROUNDS {
            return false;
        }
        let now = shared.clock.monotonic_ns();
        if self.since == 0 {
            self.since = now;
        }
        now.saturating_sub(self.since) < YIELD_NS
    }
}
