//! A stage with one permit that drops the oldest stays first in, first out, wherever its worker
//! stops between two steps while publishers make room.

use std::sync::Arc;

use crate::bus::{Bus, BusSettings};
use crate::clock::ManualClock;
use crate::envelope::Envelope;
use crate::stage::settings::{OnFull, StageSettings};
use crate::sync::{Mutex, Pause, lock, pause_at, spawn_thread};
use crate::worker::step::{Step, Worker};
use crate::worker::{Pool, PoolSettings};

/// Fewer places than this, and the worker is not stopped after its pop any more.
const PLACES_MIN: usize = 5;

/// What was handled, in order.
type Handled = Arc<Mutex<Vec<u64>>>;

/// A bus with `first`, and `oldest` which drops the oldest of four and notes what it handles.
fn scene() -> (Arc<Bus<u64>>, Worker, Handled) {
    let one = PoolSettings { workers: 1, ..PoolSettings::default() };
    let (pool, workers) = Pool::without_threads(&one, Arc::new(ManualClock::new()));
    let bus = Bus::on_pool(&Arc::new(pool), BusSettings::default()).expect("it starts");
    let log = Handled::default();
    let seen = Arc::clone(&log);
    bus.add_stage("first", StageSettings::default(), |_| Ok(())).expect("in range");
    let settings =
        StageSettings { capacity: 4, on_full: OnFull::DropOldest, ..StageSettings::default() };
    let handle = move |context: &mut crate::stage::context::Context<'_, u64>| {
        lock(&seen).push(*context.payload());
        Ok(())
    };
    bus.add_stage("oldest", settings, handle).expect("in range");
    let [worker] = workers.try_into().expect("one was asked for");
    (Arc::new(bus), worker, log)
}

fn envelope(bus: &Bus<u64>, number: u64, hops: &[&str]) -> Envelope<u64> {
    Envelope::new(number, bus.slip(hops.iter().copied()).expect("short names"))
}

/// Brings 1 to 6, of which 2, 3 and 4 come together: in a batch, or from one turn of `first`.
fn fill(bus: &Bus<u64>, worker: &mut Worker, by_hop: bool) {
    let publish = |number| {
        bus.try_publish(envelope(bus, number, &["oldest"])).expect("the oldest makes room");
    };
    if by_hop {
        for number in 2..5 {
            bus.try_publish(envelope(bus, number, &["first", "oldest"])).expect("there is room");
        }
        publish(1);
        assert_eq!(worker.step(), Step::Worked(3), "those of `first`, passed on together");
    } else {
        publish(1);
        let mut batch = (2..5).map(|number| envelope(bus, number, &["oldest"]));
        assert_eq!(bus.publish_batch(&mut batch).expect("there is room"), 3);
    }
    publish(5);
    publish(6);
}

/// Stops the worker at one place, and lets publishers make room meanwhile. Whether there is such a
/// place.
fn order_is_kept(place: usize, by_hop: bool) -> bool {
    let (bus, mut worker, log) = scene();
    fill(&bus, &mut worker, by_hop);
    let pause = Pause::default();
    let victim = {
        let pause = pause.clone();
        spawn_thread("victim".to_owned(), move || {
            pause_at(place, pause.clone());
            while matches!(worker.step(), Step::Worked(_)) {}
            pause.release();
        })
    };
    let stands = pause.wait();
    for number in 7..10 {
        bus.try_publish(envelope(&bus, number, &["oldest"])).expect("the oldest makes room");
    }
    pause.release();
    victim.expect("a thread more").join().expect("no panic");
    let handled = lock(&log).clone();
    assert!(handled.is_sorted(), "place {place}: {handled:?}");
    stands
}

#[test]
fn c1_drop_oldest_keeps_the_order_of_what_came_together() {
    for by_hop in [false, true] {
        let places = (0..).take_while(|place| order_is_kept(*place, by_hop)).count();
        assert!(places >= PLACES_MIN, "only {places} places");
    }
}
