//! An engine that keeps books, a clock that stands still, and a scheduler that keeps tickets.
//!
//! Their own state is behind std's locks, never held across a modelled access: it is no part of
//! what is explored.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use waystage::clock::Clock;
use waystage::model::attendance::{HOPS_WAIT, PUBLISHERS_WAIT};
use waystage::model::{
    self, Cause, Desk, Engine, Scheduler, Scratch, Settled, Stage, StageMap, Task, Ticket, TimerId,
};
use waystage::{Context, Envelope, Handler, Slip, StageSettings};

/// What envelopes carry. In a box, so that settling hands the envelope to the engine.
pub type Number = Box<u32>;

/// A clock that a model moves by hand, without modelled accesses.
#[derive(Debug)]
pub struct StillClock(AtomicU64);

impl StillClock {
    /// A clock at one nanosecond.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1)))
    }

    /// Moves it.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Relaxed);
    }
}

impl Clock for StillClock {
    fn monotonic_ns(&self) -> u64 {
        self.0.load(Relaxed)
    }
    fn wall_ms(&self) -> u64 {
        1
    }
}

/// How an envelope ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Its itinerary ended.
    Completed,
    /// Given up, by the name of the cause.
    Dead(&'static str),
    /// Any other end.
    Other,
}

/// What happened to envelopes, which are numbers here.
#[derive(Debug, Default)]
pub struct Books {
    handled: Mutex<Vec<(u16, u32)>>,
    ended: Mutex<Vec<(u32, End)>>,
}

impl Books {
    /// What handlers saw, in order: the stage and the envelope.
    pub fn handled(&self) -> Vec<(u16, u32)> {
        self.handled.lock().unwrap().clone()
    }

    /// What the handler of one stage saw, in order.
    pub fn handled_at(&self, stage: u16) -> Vec<u32> {
        let handled = self.handled.lock().unwrap();
        handled.iter().filter(|(at, _)| *at == stage).map(|(_, number)| *number).collect()
    }

    /// How many envelopes ended.
    pub fn ends(&self) -> usize {
        self.ended.lock().unwrap().len()
    }

    /// All ends, by envelope.
    pub fn ended(&self) -> Vec<(u32, End)> {
        let mut ended = self.ended.lock().unwrap().clone();
        ended.sort_by_key(|(number, _)| *number);
        ended
    }

    /// Demands that exactly `numbers` ended, each once.
    pub fn assert_ended_once(&self, numbers: impl IntoIterator<Item = u32>) {
        let ended = self.ended();
        let seen: Vec<u32> = ended.iter().map(|(number, _)| *number).collect();
        assert_eq!(seen, numbers.into_iter().collect::<Vec<_>>(), "{ended:?}");
    }
}

/// A scheduler that only keeps what it is given, for models of stages without workers.
#[derive(Default)]
pub struct Tray {
    tickets: Mutex<Vec<Ticket>>,
    actions: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    requeued: AtomicUsize,
    unreserved: AtomicUsize,
}

impl Tray {
    /// An empty one.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Takes the oldest ticket.
    pub fn take(&self) -> Option<Ticket> {
        let mut tickets = self.tickets.lock().unwrap();
        if tickets.is_empty() { None } else { Some(tickets.remove(0)) }
    }

    /// Tickets kept.
    pub fn len(&self) -> usize {
        self.tickets.lock().unwrap().len()
    }

    /// Whether it keeps none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tickets were left behind by a run-on.
    pub fn requeued(&self) -> usize {
        self.requeued.load(Relaxed)
    }

    /// How many places in run queues were given back: one for each permit of a closed stage.
    pub fn unreserved(&self) -> usize {
        self.unreserved.load(Relaxed)
    }

    /// Takes the timers that were set; whether they are due is the model's to say.
    pub fn timers(&self) -> Vec<Box<dyn FnOnce() + Send>> {
        std::mem::take(&mut *self.actions.lock().unwrap())
    }
}

impl Scheduler for Tray {
    fn unreserve(&self, permits: usize) {
        self.unreserved.fetch_add(permits, Relaxed);
    }
    fn post(&self, ticket: Ticket) {
        self.tickets.lock().unwrap().push(ticket);
    }
    fn requeue(&self, _worker: usize, ticket: Ticket) {
        self.requeued.fetch_add(1, Relaxed);
        self.post(ticket);
    }
    fn wake_other(&self, _worker: usize) {}
    fn working_on(&self, _worker: usize, _task: Weak<dyn Task>) {}
    fn at(&self, _deadline: u64, action: Box<dyn FnOnce() + Send>) -> TimerId {
        self.actions.lock().unwrap().push(action);
        TimerId::default()
    }
    fn cancel(&self, _timer: TimerId) {}
}

/// Settings of a small stage.
#[must_use]
pub fn small(permits: u32) -> StageSettings {
    StageSettings { capacity: 2, batch: 2, permits, ..StageSettings::default() }
}

/// The engine.
pub struct World {
    /// What happened.
    pub books: Arc<Books>,
    /// The time.
    pub clock: Arc<StillClock>,
    scheduler: Arc<dyn Scheduler>,
    map: Mutex<Option<Arc<StageMap<Number>>>>,
}

impl World {
    /// A world without stages.
    #[must_use]
    pub fn new(scheduler: Arc<dyn Scheduler>, clock: Arc<StillClock>) -> Arc<Self> {
        let (books, map) = (Arc::new(Books::default()), Mutex::new(None));
        Arc::new(Self { books, clock, scheduler, map })
    }

    /// Adds one stage per entry of `settings`; their handlers only write to the books.
    pub fn stages<const N: usize>(
        self: &Arc<Self>,
        settings: [StageSettings; N],
    ) -> [Arc<Stage<Number>>; N] {
        self.stages_with(settings, |_| Ok(()))
    }

    /// The same with a handler that runs after the entry in the books.
    pub fn stages_with<const N: usize>(
        self: &Arc<Self>,
        settings: [StageSettings; N],
        handle: impl Fn(&mut Context<'_, Number>) -> Result<(), waystage::Failure>
        + Send
        + Sync
        + Clone
        + 'static,
    ) -> [Arc<Stage<Number>>; N] {
        let mut index = 0;
        let stages = settings.map(|settings| {
            let (books, number, handle) = (Arc::clone(&self.books), index, handle.clone());
            let handler = Handler::each(move |context: &mut Context<'_, Number>| {
                books.handled.lock().unwrap().push((number, **context.payload()));
                handle(context)
            });
            let engine = Arc::clone(self) as Arc<dyn Engine<Number>>;
            let stage = model::stage(index, settings, handler, engine);
            index += 1;
            stage
        });
        *self.map.lock().unwrap() = Some(model::map(&stages));
        stages
    }

    /// An envelope at the first of these stages.
    #[must_use]
    pub fn envelope(&self, number: u32, hops: &[u16]) -> Envelope<Number> {
        let slip = Slip::via(hops.iter().map(|hop| model::route(*hop))).expect("few hops");
        model::at_first_hop(Envelope::new(Box::new(number), slip))
    }

    /// Publishes it.
    pub fn publish(&self, stage: &Arc<Stage<Number>>, number: u32, hops: &[u16]) {
        let entered = model::enter(stage, self, self.envelope(number, hops));
        assert!(entered.is_ok(), "{number} was refused");
    }

    /// Demands that nothing waits in these stages and no permit of theirs is out, but for closed
    /// ones, whose permits are out of use.
    pub fn assert_at_rest<'a>(&self, stages: impl IntoIterator<Item = &'a Arc<Stage<Number>>>) {
        for stage in stages {
            let permits = model::retired(stage);
            let rest = model::at_rest(stage);
            assert_eq!(rest, (permits, 0), "{stage:?} keeps permits or envelopes");
            let waits = model::word(stage) & (HOPS_WAIT | PUBLISHERS_WAIT) != 0;
            assert!(permits > 0 || !waits, "{stage:?} says that somebody waits");
        }
    }

    /// Lets go of the stages, which breaks their circle with the engine.
    pub fn end(&self) {
        drop(self.map.lock().unwrap().take());
    }

    fn note(&self, number: u32, end: End) {
        self.books.ended.lock().unwrap().push((number, end));
    }
}

impl Engine<Number> for World {
    fn stages(&self) -> Arc<StageMap<Number>> {
        self.map.lock().unwrap().clone().expect("the run has not ended")
    }
    fn refresh(&self, _view: &mut Arc<StageMap<Number>>) {}
    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }
    fn scheduler(&self) -> &Arc<dyn Scheduler> {
        &self.scheduler
    }
    fn hop_limit(&self) -> u32 {
        1_000
    }
    fn settle(&self, _desk: &Desk<'_>, envelope: Envelope<Number>, end: Settled) {
        let end = if end == Settled::Completed { End::Completed } else { End::Other };
        self.note(**envelope.payload(), end);
    }
    fn settle_plain(&self, _desk: &Desk<'_>) {
        unreachable!("a box needs its drop, so each envelope is handed over");
    }
    fn bury(&self, _desk: &Desk<'_>, envelope: Envelope<Number>, cause: Cause, _stage: &str) {
        self.note(**envelope.payload(), End::Dead(cause.name()));
    }
    fn accept_emit(
        &self,
        _desk: &Desk<'_>,
        _parent: &Envelope<Number>,
        _ordinal: u32,
        _emit: &mut Envelope<Number>,
    ) {
    }
    fn random(&self) -> u64 {
        1
    }
    fn scratch(&self) -> Box<Scratch<Number>> {
        model::scratch(self.stages())
    }
    fn put_scratch(&self, _scratch: Box<Scratch<Number>>) {}
    fn count_panic(&self) {}
}
