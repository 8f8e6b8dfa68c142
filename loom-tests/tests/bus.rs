//! Whole buses: blocked publishers, and completions that fire once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use loom::thread;
use waystage::model;
use waystage::{Bus, BusSettings, Envelope, OnFull, Pool, PoolSettings, StageSettings};
use waystage_loom_tests::{Number, Seen, StillClock, explore, small};

/// A bus with this many worker threads; with none, the model runs its turns.
fn bus(workers: usize) -> Arc<Bus<Number>> {
    let pool = PoolSettings { workers, tickets: 2, ..PoolSettings::default() };
    let pool = Arc::new(Pool::start_with_clock(pool, StillClock::new()).expect("it starts"));
    let settings = BusSettings { seed: Some(1), ..BusSettings::default() };
    Arc::new(Bus::on_pool(&pool, settings).expect("the settings are in range"))
}

fn envelope(bus: &Bus<Number>, number: u32) -> Envelope<Number> {
    Envelope::new(Box::new(number), bus.slip(["a"]).expect("a short name"))
}

/// Publishers block on a full stage that a worker thread drains, each several times: each is woken.
/// Nothing times out here. The worker's own loop runs, and stops with its pool.
fn blocked(name: &str, bound: usize, publishers: u32, each: u32) {
    explore(name, bound, move || {
        let bus = bus(1);
        let handled = Arc::new(AtomicUsize::new(0));
        let count = handled.clone();
        let on_full = OnFull::Block(Duration::from_secs(1));
        bus.add_stage("a", StageSettings { on_full, ..small(1) }, move |_| {
            count.fetch_add(1, Relaxed);
            Ok(())
        })
        .expect("the settings are in range");
        let publish = move |bus: &Bus<Number>| {
            for number in 0..each {
                bus.publish(envelope(bus, number)).expect("it waits for room");
            }
        };
        let threads: Vec<_> = (1..publishers)
            .map(|_| {
                let bus = bus.clone();
                thread::spawn(move || publish(&bus))
            })
            .collect();
        publish(&bus);
        for thread in threads {
            thread.join().unwrap();
        }
        let kept = model::stages(&bus);
        drop(bus);
        drop(kept);
    });
}

#[test]
fn a_blocked_publisher_is_woken() {
    blocked("bus/blocked", 2, 1, 4);
}

#[test]
fn two_blocked_publishers_are_woken() {
    blocked("bus/two_blocked", 1, 2, 2);
}

/// A turn against closing the stage: the callback runs once, whoever settles.
#[test]
fn a_callback_runs_once() {
    let (completed, closed) = (Seen::new(), Seen::new());
    let seen = [completed.clone(), closed.clone()];
    explore("bus/callback", 3, move || {
        let bus = bus(0);
        bus.add_stage("a", small(1), |_| Ok(())).expect("the settings are in range");
        let kept = model::stages(&bus);
        let (called, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (calls, dones) = (called.clone(), done.clone());
        let tracked = envelope(&bus, 0).on_settled(move |outcome, _| {
            calls.fetch_add(1, Relaxed);
            dones.fetch_add(usize::from(outcome == waystage::Settled::Completed), Relaxed);
        });
        bus.try_publish(tracked).expect("there is room");
        let worker = {
            let bus = bus.clone();
            thread::spawn(move || while bus.turn() > 0 {})
        };
        bus.close_stage("a").expect("it is open");
        worker.join().unwrap();
        while bus.turn() > 0 {}
        assert_eq!(called.load(Relaxed), 1);
        completed.note(done.load(Relaxed) == 1);
        closed.note(done.load(Relaxed) == 0);
        let books = bus.conservation();
        assert!(books.holds() && books.in_flight == 0, "{books:?}");
        drop(bus);
        drop(kept);
    });
    let seen = seen.map(|seen| seen.runs());
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}
