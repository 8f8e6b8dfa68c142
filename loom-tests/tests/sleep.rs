//! Posting against parking: no wake-up is lost. Nothing times out here: a lost one is a deadlock.

use std::sync::Arc;

use loom::thread;
use waystage::model::{self, Sleep};
use waystage_loom_tests::{Seen, StillClock, World, explore, small, work_until};

/// `producers` publish one envelope each while one worker settles down and parks.
fn producers_against_worker(name: &str, bound: usize, producers: u32, each: u32) {
    let parked = Seen::new();
    let seen = parked.clone();
    explore(name, bound, move || {
        let clock = StillClock::new();
        let shared = model::shared(1, 2, clock.clone());
        let world = World::new(shared.clone(), clock);
        let [stage] = world.stages([small(1)]);
        let total = (producers * each) as usize;
        let worker = {
            let (shared, books) = (shared.clone(), world.books.clone());
            let worker = model::worker(&shared, 0);
            thread::spawn(move || work_until(&shared, worker, || books.ends() == total))
        };
        let others: Vec<_> = (1..producers)
            .map(|producer| {
                let (world, stage) = (world.clone(), stage.clone());
                thread::spawn(move || world.publish(&stage, producer, &[0]))
            })
            .collect();
        world.publish(&stage, 0, &[0]);
        for number in 1..each {
            world.publish(&stage, number, &[0]);
        }
        for other in others {
            other.join().unwrap();
        }
        worker.join().unwrap();
        parked.note(model::parks(&shared) > 0);
        world.books.assert_ended_once(0..producers * each);
        world.end();
        model::clear(&shared);
    });
    assert!(seen.runs() > 0, "the worker never parked");
}

#[test]
fn one_producer() {
    producers_against_worker("sleep/one_producer", 3, 1, 2);
}

#[test]
fn two_producers() {
    producers_against_worker("sleep/two_producers", 2, 2, 1);
}

/// Two workers that park, and a poster: whoever is woken left the mask, so that a later waker does
/// not count on one who is awake.
#[test]
fn who_returns_is_not_in_the_mask() {
    explore("sleep/mask", 3, || {
        let sleep = Arc::new(Sleep::new(1));
        let worker = {
            let sleep = sleep.clone();
            thread::spawn(move || {
                sleep.announce(0);
                // There was work after all; a waker may have been faster and left its token.
                sleep.retract(0);
                sleep.announce(0);
                sleep.park(0, None);
                assert_eq!(sleep.parked(), 0, "awake, but counted among the parked");
            })
        };
        let waker = {
            let sleep = sleep.clone();
            thread::spawn(move || sleep.wake(0))
        };
        let early = waker.join().unwrap();
        if early.is_none() {
            while sleep.wake(0).is_none() {
                thread::yield_now();
            }
        } else {
            sleep.wake(0);
        }
        worker.join().unwrap();
    });
}
