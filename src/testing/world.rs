//! One simulated world: a bus without threads, a clock moved by hand, what the seed decided.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::cargo::Cargo;
use super::ledger::Ledger;
use super::publishing::{Polled, Tracked};
use super::random::Random;
use super::workers::Virtual;
use crate::bus::{Bus, BusSettings, Publisher};
use crate::clock::ManualClock;
use crate::coord::on_worker::InTurn;
use crate::envelope::{Envelope, EnvelopeId};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::worker::shared::Shared;
use crate::worker::{Pool, PoolSettings};

/// Names of stages; the last ones are mostly not open.
pub(super) const NAMES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "nowhere"];
/// Calls inside calls.
const DEPTH_MAX: usize = 3;

/// What the seed decided for the whole run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) stages: usize,
    pub(super) workers: usize,
    /// Actions before the run comes to its end.
    pub(super) actions: usize,
    pub(super) hop_limit: u32,
    pub(super) dead_letters: usize,
    pub(super) meter_every: u32,
    /// Chances, as one in so many; zero is never.
    pub(super) control: usize,
    pub(super) interlude: usize,
    pub(super) failure: usize,
    pub(super) bomb: usize,
    pub(super) untold: usize,
}

impl Plan {
    fn new(random: &Random) -> Self {
        Self {
            stages: random.between(1, 8),
            workers: random.between(1, 4),
            actions: random.pick(&[40, 100, 300]),
            hop_limit: u32::try_from(random.pick(&[1, 4, 20, 60])).expect("it is small"),
            dead_letters: random.pick(&[1, 5, 10_000]),
            meter_every: random.pick(&[1, 4, 64]),
            control: random.pick(&[0, 0, 60, 15]),
            interlude: random.pick(&[0, 20, 4]),
            failure: random.pick(&[0, 20, 5, 2]),
            bomb: random.pick(&[0, 40]),
            untold: random.pick(&[0, 0, 3]),
        }
    }
}

/// One simulated world.
pub(super) struct World<P: Cargo> {
    pub(super) random: Random,
    pub(super) plan: Plan,
    pub(super) clock: ManualClock,
    pub(super) shared: Arc<Shared>,
    pub(super) ledger: Arc<Ledger>,
    /// Empty before the start and after the end.
    bus: Mutex<Option<Arc<Bus<P>>>>,
    /// Empty places belong to workers inside a turn.
    pub(super) workers: Mutex<Vec<Option<Virtual>>>,
    depth: AtomicUsize,
    pub(super) polled: Mutex<Vec<Polled<P>>>,
    pub(super) tracked: Mutex<Vec<Tracked<P>>>,
    pub(super) returned: Mutex<Vec<Envelope<P>>>,
    pub(super) publisher: Mutex<Option<Publisher<P>>>,
    /// Publishes so far, those that are going on, and those during which others came in.
    pub(super) entries: AtomicU64,
    pub(super) entering: Mutex<Vec<u64>>,
    pub(super) overlapped: Mutex<BTreeSet<u64>>,
    pub(super) ids: Mutex<BTreeMap<EnvelopeId, usize>>,
    pub(super) instances: AtomicUsize,
    pub(super) redriven: AtomicU64,
    /// Dead letters taken out for good.
    pub(super) taken_out: AtomicU64,
    /// Set once nothing new may be published.
    pub(super) is_ending: crate::sync::AtomicBool,
}

impl<P: Cargo> World<P> {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let random = Random::new(seed);
        let plan = Plan::new(&random);
        let clock = ManualClock::new();
        let settings = PoolSettings {
            workers: plan.workers,
            tickets: 3 * plan.stages,
            ..PoolSettings::default()
        };
        let (pool, workers) = Pool::without_threads(&settings, Arc::new(clock.clone()));
        let bus: Bus<P> = Bus::on_pool(
            &Arc::new(pool),
            BusSettings {
                hop_limit: plan.hop_limit,
                dead_letters: plan.dead_letters,
                meter_every: plan.meter_every,
                seed: Some(seed),
                ..BusSettings::default()
            },
        )
        .expect("the settings are in range");
        let world = Arc::new(Self {
            shared: Arc::clone(&bus.core.shared),
            random,
            plan,
            clock,
            ledger: Arc::default(),
            bus: Mutex::new(Some(Arc::new(bus))),
            workers: Mutex::new(workers.into_iter().map(Virtual::new).map(Some).collect()),
            depth: AtomicUsize::new(0),
            polled: Mutex::new(Vec::new()),
            tracked: Mutex::new(Vec::new()),
            returned: Mutex::new(Vec::new()),
            publisher: Mutex::new(None),
            entries: AtomicU64::new(1),
            entering: Mutex::new(Vec::new()),
            overlapped: Mutex::new(BTreeSet::new()),
            ids: Mutex::new(BTreeMap::new()),
            instances: AtomicUsize::new(0),
            redriven: AtomicU64::new(0),
            taken_out: AtomicU64::new(0),
            is_ending: crate::sync::AtomicBool::new(false),
        });
        for index in 0..world.plan.stages {
            world.open(NAMES[index]);
        }
        world
    }

    pub(super) fn bus(&self) -> Option<Arc<Bus<P>>> {
        lock(&self.bus).clone()
    }

    pub(super) fn take_bus(&self) -> Option<Arc<Bus<P>>> {
        lock(&self.bus).take()
    }

    pub(super) fn is_ending(&self) -> bool {
        // ORDERING: Relaxed: one thread.
        self.is_ending.load(Ordering::Relaxed)
    }

    /// One thing happens.
    pub(super) fn act(self: &Arc<Self>) {
        if self.random.one_in(self.plan.control) && !self.is_ending() {
            return self.control();
        }
        match self.random.below(20) {
            0..=9 => {
                self.run_a_worker();
            }
            10..=15 if !self.is_ending() => self.publish(),
            16..=17 => self.poll_some(),
            _ => self.pass_time(),
        }
    }

    /// In the midst of a call of the bus into foreign code, other threads go on, and the code
    /// itself may call the bus.
    pub(super) fn interlude(self: &Arc<Self>) {
        // ORDERING: Relaxed: one thread.
        let depth = self.depth.load(Ordering::Relaxed);
        if depth >= DEPTH_MAX || !self.random.one_in(self.plan.interlude) {
            return;
        }
        self.depth.store(depth + 1, Ordering::Relaxed);
        for _ in 0..self.random.between(1, 6) {
            let is_other_thread = !self.random.one_in(3);
            let outside = is_other_thread.then(InTurn::end);
            self.guard(|| if outside.is_some() { self.act() } else { self.act_inside() });
            drop(outside);
        }
        self.depth.store(depth, Ordering::Relaxed);
    }

    /// What foreign code may do while the bus called it.
    fn act_inside(self: &Arc<Self>) {
        if self.is_ending() {
            return;
        }
        if self.random.one_in(self.plan.control) { self.control() } else { self.publish() }
    }

    /// Runs what may not panic.
    pub(super) fn guard(&self, body: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            let words = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
            self.ledger.fail(format!("a panic escaped: {words:?}"));
        }
    }
}
