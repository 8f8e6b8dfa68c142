//! A thread that stops between any two steps of a protocol stops no other stage.
//!
//! The places are those of `sync::pause_point`: around each change of the state word and of the
//! permits, after a pop, before and after a ticket is queued, and under the locks of a stage's side
//! list and line. Inside the ring there are none, and none under the locks that all stages share
//! for some instructions: timers, ids, dead letters, names.

use std::sync::Arc;

use crate::bus::{Bus, BusSettings};
use crate::clock::ManualClock;
use crate::envelope::Envelope;
use crate::stage::context::Context;
use crate::stage::settings::StageSettings;
use crate::sync::{AtomicU64, Ordering, Pause, pause_at, spawn_thread};
use crate::worker::step::Worker;
use crate::worker::{Pool, PoolSettings};

/// More than what is published takes.
const STEPS: usize = 64;
/// Fewer places than this, and something is no longer stopped at.
const PLACES_MIN: usize = 40;

/// Stages `a` and `b` are at home with the first of two workers, `x` and `y` with the second; `b`
/// has room for one. Returns the count of calls of `y` as well.
fn scene() -> (Arc<Bus<u64>>, [Worker; 2], Arc<AtomicU64>) {
    let two = PoolSettings { workers: 2, ..PoolSettings::default() };
    let (pool, workers) = Pool::without_threads(&two, Arc::new(ManualClock::new()));
    let bus = Bus::on_pool(&Arc::new(pool), BusSettings::default()).expect("it starts");
    let calls = Arc::new(AtomicU64::new(0));
    for (name, capacity) in [("a", 4), ("x", 4), ("b", 1), ("y", 4)] {
        let settings = StageSettings { capacity, ..StageSettings::default() };
        let (calls, counts) = (Arc::clone(&calls), u64::from(name == "y"));
        let handle = move |_: &mut Context<'_, u64>| {
            // ORDERING: Relaxed: read by the thread that runs it.
            calls.fetch_add(counts, Ordering::Relaxed);
            Ok(())
        };
        bus.add_stage(name, settings, handle).expect("the settings are in range");
    }
    (Arc::new(bus), workers.try_into().expect("two were asked for"), calls)
}

fn envelope(bus: &Bus<u64>, hops: [&str; 2]) -> Envelope<u64> {
    Envelope::new(1, bus.slip(hops).expect("short names"))
}

/// Publishes singles and a block from `a` to `b`, more than `b` has room for, and runs them.
fn work(bus: &Bus<u64>, mut worker: Worker) {
    bus.try_publish(envelope(bus, ["b", "a"])).expect("there is room");
    bus.try_publish(envelope(bus, ["a", "b"])).expect("there is room");
    let block = [0; 3].map(|_| envelope(bus, ["a", "b"]));
    bus.publish_batch(&mut block.into_iter()).expect("there is room");
    for _ in 0..STEPS {
        worker.step();
    }
    worker.settle_down();
}

/// Stops `work` at one place, and lets `x` and `y` work meanwhile. Whether there is such a place.
fn others_go_on(place: usize) -> bool {
    let (bus, [first, mut second], calls) = scene();
    let pause = Pause::default();
    let victim = {
        let (bus, pause) = (Arc::clone(&bus), pause.clone());
        spawn_thread("victim".to_owned(), move || {
            pause_at(place, pause.clone());
            work(&bus, first);
            pause.release();
        })
    };
    let stands = pause.wait();
    if stands {
        bus.try_publish(envelope(&bus, ["x", "y"])).expect("there is room");
        for _ in 0..STEPS {
            second.step();
        }
    }
    // ORDERING: Relaxed: counted by this thread.
    let went_on = calls.load(Ordering::Relaxed) == 1;
    pause.release();
    victim.expect("a thread more").join().expect("no panic");
    assert!(!stands || went_on, "place {place}: another stage stands still");
    let books = bus.conservation();
    assert_eq!(books.completed, 5 + u64::from(stands), "place {place}: {books:?}");
    assert_eq!(books.in_flight, 0, "place {place}: {books:?}");
    stands
}

#[test]
fn a20_a_thread_that_stops_anywhere_stops_no_other_stage() {
    let places = (0..).take_while(|place| others_go_on(*place)).count();
    assert!(places >= PLACES_MIN, "only {places} places");
}
