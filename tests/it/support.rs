//! What the tests share: buses, gates in place of sleeps, waiting for a condition.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use waystage::clock::{Clock, ManualClock, SystemClock};
use waystage::{
    Bus, BusSettings, Conservation, Envelope, Settled, ShutdownReport, StageSettings, StageSnapshot,
};

/// Beyond every honest wait of these tests: reaching it is a failure.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A bus with `workers` threads that times every envelope.
pub(crate) fn threaded<P: Send + 'static>(workers: usize) -> Bus<P> {
    Bus::start(BusSettings { workers, seed: Some(7), ..BusSettings::default() })
        .expect("the settings are fine")
}

/// A bus without threads in virtual time: `run` moves it.
pub(crate) fn virtual_time<P: Send + 'static>() -> (Bus<P>, ManualClock) {
    let settings = BusSettings { workers: 0, seed: Some(7), ..BusSettings::default() };
    let clock = ManualClock::new();
    let bus = Bus::start_with_clock(settings, Arc::new(clock.clone())).expect("settings are fine");
    (bus, clock)
}

/// Turns until nothing waits; returns the envelopes taken up.
pub(crate) fn run<P: Send + 'static>(bus: &Bus<P>) -> usize {
    let mut taken = 0;
    for _ in 0..10_000_000 {
        match bus.turn() {
            0 => return taken,
            more => taken += more,
        }
    }
    panic!("the bus turns for ever");
}

/// A stage with room for `capacity`, else defaults.
pub(crate) fn room_for(capacity: usize) -> StageSettings {
    StageSettings { capacity, ..StageSettings::default() }
}

/// An envelope that visits the stages of these names.
pub(crate) fn to<P: Send + 'static>(bus: &Bus<P>, payload: P, names: &[&str]) -> Envelope<P> {
    Envelope::new(payload, bus.slip(names.iter().copied()).expect("the names are fine"))
}

/// The meters of one stage.
pub(crate) fn meters<P: Send + 'static>(bus: &Bus<P>, name: &str) -> StageSnapshot {
    let stages = bus.snapshot().stages;
    stages.into_iter().find(|stage| stage.name == name).expect("the stage is open")
}

/// Shuts down and checks that everything ended by itself and that the books hold.
pub(crate) fn drained<P: Send + 'static>(bus: &Bus<P>) -> Conservation {
    let report = bus.shutdown(LONG);
    assert!(report.drained, "{report:?}");
    settled(&report)
}

/// Checks that the books hold and nothing is in flight.
pub(crate) fn settled(report: &ShutdownReport) -> Conservation {
    assert!(report.conservation.holds(), "{report:?}");
    assert_eq!(report.conservation.in_flight, 0, "{report:?}");
    report.conservation
}

/// Yields until `condition` holds; fails with `what` when it never does.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while !condition() {
        let waited = Duration::from_nanos(clock.monotonic_ns());
        assert!(waited < LONG, "waited {waited:?} in vain: {what}");
        std::thread::yield_now();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A list that handlers write and the test reads.
#[derive(Debug)]
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    pub(crate) fn add(&self, entry: T) {
        locked(&self.0).push(entry);
    }

    pub(crate) fn len(&self) -> usize {
        locked(&self.0).len()
    }

    /// Takes out what was written so far.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *locked(&self.0))
    }
}

impl Log<(u64, Settled)> {
    /// `envelope`, telling this log what becomes of it.
    pub(crate) fn follow<P: Send + 'static>(
        &self,
        number: u64,
        envelope: Envelope<P>,
    ) -> Envelope<P> {
        let log = self.clone();
        envelope.on_settled(move |outcome, _| log.add((number, outcome)))
    }
}

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    /// Passages allowed although the gate is shut.
    tickets: usize,
    waiting: usize,
}

/// A gate that handlers wait at. Declare it after the bus: a failing test drops it first, which
/// opens it, so that the workers can be joined.
#[derive(Debug)]
pub(crate) struct Gate(Door);

/// The handlers' side of a [`Gate`].
#[derive(Debug, Clone)]
pub(crate) struct Door(Arc<(Mutex<GateState>, Condvar)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Door(Arc::default()))
    }

    pub(crate) fn door(&self) -> Door {
        self.0.clone()
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        locked(&self.0.0.0).open = true;
        self.0.0.1.notify_all();
    }

    /// Lets one through.
    pub(crate) fn admit_one(&self) {
        locked(&self.0.0.0).tickets += 1;
        self.0.0.1.notify_all();
    }

    /// Waits until `count` stand at the gate.
    pub(crate) fn await_waiting(&self, count: usize) {
        eventually("handlers at the gate", || locked(&self.0.0.0).waiting == count);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Door {
    /// Waits until the gate is open, or lets one through.
    pub(crate) fn pass(&self) {
        let mut state = locked(&self.0.0);
        state.waiting += 1;
        while !state.open && state.tickets == 0 {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.tickets = state.tickets.saturating_sub(1);
    }
}

/// Adds a stage whose handler waits at the gate that is returned.
pub(crate) fn gated<P: Send + 'static>(bus: &Bus<P>, name: &str, settings: StageSettings) -> Gate {
    let gate = Gate::new();
    let door = gate.door();
    bus.add_stage(name, settings, move |_| {
        door.pass();
        Ok(())
    })
    .expect("the stage is fine");
    gate
}

/// A small generator of random numbers: a test prints its seed when it fails.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// The same for small numbers, which convert into all others.
    pub(crate) fn small(&mut self, bound: u16) -> u16 {
        u16::try_from(self.below(u64::from(bound))).expect("it is below a u16")
    }
}

/// Counts the values of its kind that are alive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census(Arc<Mutex<CensusState>>);

#[derive(Debug, Default)]
struct CensusState {
    made: u64,
    dropped: VecDeque<u64>,
}

/// A payload that reports its drop.
#[derive(Debug)]
pub(crate) struct Citizen {
    pub(crate) number: u64,
    census: Census,
}

impl Citizen {
    /// A second value of the same kind.
    pub(crate) fn another(&self) -> Self {
        self.census.citizen()
    }
}

impl Census {
    pub(crate) fn citizen(&self) -> Citizen {
        let mut state = locked(&self.0);
        state.made += 1;
        Citizen { number: state.made - 1, census: self.clone() }
    }

    /// How many were dropped.
    pub(crate) fn dropped(&self) -> usize {
        locked(&self.0).dropped.len()
    }

    /// Checks that every value made was dropped exactly once.
    pub(crate) fn assert_all_dropped_once(&self) {
        let state = locked(&self.0);
        let mut dropped: Vec<u64> = state.dropped.iter().copied().collect();
        dropped.sort_unstable();
        let want: Vec<u64> = (0..state.made).collect();
        assert_eq!(dropped.len(), want.len(), "drops and values made");
        assert!(dropped == want, "some value was dropped twice, another never");
    }
}

impl Drop for Citizen {
    fn drop(&mut self) {
        locked(&self.census.0).dropped.push_back(self.number);
    }
}
