//! A worker that always finds work still looks after one that stands still.

use std::sync::Arc;
use std::time::Duration;

use crate::bus::{Bus, BusSettings};
use crate::clock::ManualClock;
use crate::coord::parker::Parker;
use crate::envelope::Envelope;
use crate::stage::context::Context;
use crate::stage::handler::Failure;
use crate::stage::settings::StageSettings;
use crate::sync::{AtomicBool, Ordering, spawn_thread};
use crate::worker::step::{SENTINEL_NS, Step, Worker};
use crate::worker::{Pool, PoolSettings};

/// Steps between two movements of the clock: more than between two looks at it.
const STEPS: usize = 40;
/// Movements: the first look sees a turn, the second sees it stand still.
const LOOKS: usize = 4;

/// A door that threads wait at until it is opened.
#[derive(Clone)]
struct Door(Arc<(AtomicBool, Parker)>);

impl Door {
    fn new() -> Self {
        Self(Arc::new((AtomicBool::new(false), Parker::new())))
    }

    fn open(&self) {
        // ORDERING: SeqCst, pairs with `is_open`.
        self.0.0.store(true, Ordering::SeqCst);
        self.0.1.unpark();
    }

    fn is_open(&self) -> bool {
        // ORDERING: SeqCst, pairs with `open`.
        self.0.0.load(Ordering::SeqCst)
    }

    fn pass(&self) {
        while !self.is_open() {
            self.0.1.park(None);
        }
    }
}

fn add(
    bus: &Bus<u64>,
    name: &str,
    handle: impl Fn(&mut Context<'_, u64>) -> Result<(), Failure> + Send + Sync + 'static,
) {
    bus.add_stage(name, StageSettings::default(), handle).expect("the settings are in range");
}

fn publish(bus: &Bus<u64>, name: &str) {
    let slip = bus.slip([name]).expect("a short name");
    bus.try_publish(Envelope::new(1, slip)).expect("there is room");
}

/// `stuck` and `cold` are at home with the first of two workers, `busy`, which feeds itself, with
/// the second. Returns the door at which the handler of `stuck` waits, and those that it and the
/// handler of `cold` open.
fn scene(bus: &Bus<u64>) -> (Door, Door, Door) {
    // The home of a stage goes by the order in which names come up.
    let [_, again, _] = ["stuck", "busy", "cold"].map(|name| bus.route(name).expect("short"));
    let (leave, entered, served) = (Door::new(), Door::new(), Door::new());
    let (wait, enter, serve) = (leave.clone(), entered.clone(), served.clone());
    add(bus, "stuck", move |_| {
        enter.open();
        wait.pass();
        Ok(())
    });
    add(bus, "busy", move |context| Ok(context.push(again)?));
    add(bus, "cold", move |_| {
        serve.open();
        Ok(())
    });
    (leave, entered, served)
}

/// The first worker is inside a handler that does not return, with a ticket behind it. The second
/// finds work at each step, so it neither steals nor parks, and there is no other.
#[test]
fn a_busy_worker_serves_what_waits_behind_a_stuck_one() {
    let clock = ManualClock::new();
    let two = PoolSettings { workers: 2, ..PoolSettings::default() };
    let (pool, workers) = Pool::without_threads(&two, Arc::new(clock.clone()));
    // Enough hops for the envelope that feeds itself.
    let settings = BusSettings { hop_limit: 65_534, ..BusSettings::default() };
    let bus = Bus::on_pool(&Arc::new(pool), settings).expect("it starts");
    let [mut first, mut second]: [Worker; 2] = workers.try_into().expect("two were asked for");
    let (leave, entered, served) = scene(&bus);
    publish(&bus, "stuck");
    publish(&bus, "cold");
    publish(&bus, "busy");
    let body = move || {
        first.step();
    };
    let thread = spawn_thread("first".to_owned(), body).expect("a thread more");
    entered.pass();
    let mut idle = 0;
    for step in 0..LOOKS * STEPS {
        if served.is_open() {
            break;
        }
        if step % STEPS == 0 {
            clock.advance(Duration::from_nanos(SENTINEL_NS));
        }
        idle += usize::from(!matches!(second.step(), Step::Worked(_)));
    }
    let was_served = served.is_open();
    // Before any assertion: the thread waits for it.
    leave.open();
    thread.join().expect("no panic");
    assert!(was_served, "what waits behind a stuck worker is left to itself");
    assert_eq!(idle, 0, "the second worker had work at each step");
}
