//! Keeping watch: the sentinel, timers, and what waits behind a worker that stands still. Time-outs
//! are played by the model: a sentinel that takes itself out of the mask and rises unwoken.

use std::time::Duration;

use loom::thread;
use waystage::StageSettings;
use waystage::model::{self, Rest, Scheduler as _, Shared, Step, Worker};
use waystage_loom_tests::{Gate, Seen, StillClock, World, explore, small};

/// Parks as the sentinel does whose time is up: unwoken unless a waker was faster.
fn time_out(shared: &Shared, worker: &mut Worker, index: usize) {
    match worker.settle_down() {
        Rest::Work => {}
        Rest::Park(timeout) => {
            if model::sleep(shared).retract(index) {
                worker.rise(false);
            } else {
                worker.park(timeout);
            }
        }
    }
}

/// One worker is stuck in a handler, with a ticket of another stage behind it. The sentinel looks
/// twice, takes that ticket and serves it while a publisher brings more.
#[test]
fn what_waits_behind_a_stuck_worker() {
    explore("watch/stuck", 2, || {
        let clock = StillClock::new();
        let shared = model::shared(2, 4, clock.clone());
        let world = World::new(shared.clone(), clock);
        let (entered, gate) = (Gate::default(), Gate::default());
        let (enter, leave) = (entered.clone(), gate.clone());
        let [stuck, _, behind] =
            world.stages_with([small(1), small(1), small(1)], move |context| {
                if **context.payload() == 0 {
                    enter.open();
                    leave.pass();
                }
                Ok(())
            });
        world.publish(&stuck, 0, &[0]);
        world.publish(&behind, 1, &[2]);
        let first = {
            let shared = shared.clone();
            thread::spawn(move || model::worker(&shared, 0).step())
        };
        let second = {
            let (shared, books) = (shared.clone(), world.books.clone());
            thread::spawn(move || {
                entered.pass();
                let mut worker = model::worker(&shared, 1);
                while books.ends() < 2 {
                    if !matches!(worker.step(), Step::Worked(_)) {
                        time_out(&shared, &mut worker, 1);
                        thread::yield_now();
                    }
                }
                gate.open();
            })
        };
        world.publish(&behind, 2, &[2]);
        second.join().unwrap();
        first.join().unwrap();
        assert_eq!(world.books.handled_at(2), [1, 2]);
        world.books.assert_ended_once(0..3);
        world.end();
        model::clear(&shared);
    });
}

/// A timer that is set while the only worker parks: it wakes up, or saw the timer before.
#[test]
fn a_timer_and_the_park() {
    let (woken, saw) = (Seen::new(), Seen::new());
    let seen = [woken.clone(), saw.clone()];
    explore("watch/timer", 3, move || {
        let shared = model::shared(1, 2, StillClock::new());
        let setter = {
            let shared = shared.clone();
            thread::spawn(move || shared.at(1_000, Box::new(|| {})))
        };
        let mut worker = model::worker(&shared, 0);
        let rest = worker.settle_down();
        match rest {
            // It knows the timer: in a model it would wait for ever, so it does not wait.
            Rest::Park(Some(_)) => saw.note(true),
            Rest::Park(None) => {
                worker.park(None);
                woken.note(true);
                assert!(matches!(worker.settle_down(), Rest::Park(Some(_))), "it knows now");
            }
            Rest::Work => panic!("nothing is due"),
        }
        setter.join().unwrap();
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// An earlier timer reaches the sentinel that waits for a later one.
#[test]
fn an_earlier_timer_reaches_the_sentinel() {
    explore("watch/earlier", 3, || {
        let clock = StillClock::new();
        let shared = model::shared(2, 2, clock.clone());
        shared.at(1_000_000, Box::new(|| {}));
        // Both park; the second is the sentinel, and the first would be woken before it.
        let mut sentinel = model::worker(&shared, 1);
        let rest = sentinel.settle_down();
        assert!(matches!(rest, Rest::Park(Some(_))), "{rest:?}");
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut worker = model::worker(&shared, 0);
                while !model::is_stopping(&shared) {
                    if let Rest::Park(timeout) = worker.settle_down() {
                        worker.park(timeout);
                    }
                }
            })
        };
        shared.at(1_000, Box::new(|| {}));
        // The sentinel is woken, whoever else is parked: in the model a lost one is a deadlock.
        sentinel.park(None);
        model::stop(&shared);
        other.join().unwrap();
    });
}

/// Parks until it waits for a timer at `deadline`: true. False when it waits without an alarm,
/// since another worker has the post.
fn knows(shared: &Shared, worker: &mut Worker, deadline: Duration) -> bool {
    while !model::is_stopping(shared) {
        match worker.settle_down() {
            Rest::Work => {}
            Rest::Park(None) => return false,
            Rest::Park(Some(timeout)) if timeout <= deadline => return true,
            // It waits for the later one: only a wake-up can tell it.
            Rest::Park(Some(_)) => worker.park(None),
        }
    }
    false
}

/// A worker takes the sentinel's post while an earlier timer is set, and another is parked
/// already without an alarm: whoever has the post at the end waits for the earlier one.
#[test]
fn an_earlier_timer_and_the_post() {
    let (by_post, by_other) = (Seen::new(), Seen::new());
    let seen = [by_post.clone(), by_other.clone()];
    explore("watch/post", 3, move || {
        const EARLY: u64 = 1_000;
        let early = Duration::from_nanos(EARLY);
        let shared = model::shared(2, 2, StillClock::new());
        shared.at(1_000_000, Box::new(|| {}));
        let (mut other, mut sentinel) = (model::worker(&shared, 0), model::worker(&shared, 1));
        // The other one parks while the post is taken, and then it is vacant.
        assert!(matches!(sentinel.settle_down(), Rest::Park(Some(_))));
        assert_eq!(other.settle_down(), Rest::Park(None));
        assert!(model::sleep(&shared).retract(1));
        sentinel.rise(false);
        let setter = {
            let shared = shared.clone();
            thread::spawn(move || shared.at(EARLY, Box::new(|| {})))
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                while !model::is_stopping(&shared) {
                    other.park(None);
                    if knows(&shared, &mut other, early) {
                        return true;
                    }
                }
                false
            })
        };
        let knew = knows(&shared, &mut sentinel, early);
        setter.join().unwrap();
        if knew {
            model::stop(&shared);
        }
        let other_knew = other.join().unwrap();
        assert!(knew || other_knew);
        by_post.note(knew);
        by_other.note(other_knew);
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// Stopping against a worker that parks.
#[test]
fn a_stop_is_not_slept_through() {
    explore("watch/stop", 3, || {
        let shared = model::shared(2, 2, StillClock::new());
        let workers: Vec<_> = (0..2)
            .map(|index| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let mut worker = model::worker(&shared, index);
                    while !model::is_stopping(&shared) {
                        if let Rest::Park(timeout) = worker.settle_down() {
                            worker.park(timeout);
                        }
                    }
                })
            })
            .collect();
        model::stop(&shared);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A first stage hands over to a second one whose handler gets stuck; the first one's ticket, left
/// in the queue behind it, is served by a worker that slept without a sentinel.
#[test]
fn what_a_run_on_leaves_behind() {
    explore("watch/run_on", 2, || {
        let clock = StillClock::new();
        let shared = model::shared(2, 4, clock.clone());
        let world = World::new(shared.clone(), clock);
        let gate = Gate::default();
        let leave = gate.clone();
        let one = StageSettings { batch: 1, ..small(1) };
        let [first, _second] = world.stages_with([one.clone(), one], move |context| {
            if context.envelope().current() == Some(model::route(1)) {
                leave.pass();
            }
            Ok(())
        });
        let (mut busy, mut idle) = (model::worker(&shared, 0), model::worker(&shared, 1));
        // Both sleep, and neither watches: there is nobody to watch over.
        assert!(matches!(busy.settle_down(), Rest::Park(Some(_))));
        assert_eq!(idle.settle_down(), Rest::Park(None));
        assert!(model::sleep(&shared).retract(0));
        busy.rise(false);
        assert_eq!(busy.settle_down(), Rest::Park(None));
        world.publish(&first, 0, &[0, 1]);
        world.publish(&first, 1, &[0]);
        let busy = thread::spawn(move || {
            busy.park(None);
            busy.step()
        });
        while world.books.ends() < 1 {
            idle.park(None);
            idle.step();
            idle.steal();
        }
        gate.open();
        let done = busy.join().unwrap();
        assert_eq!(done, Step::Worked(2));
        world.books.assert_ended_once(0..2);
        world.end();
        model::clear(&shared);
    });
}

/// The last worker that parks takes the post, sees all others parked and leaves it again; one of
/// those is woken meanwhile, and ends a turn of a stage that others could serve.
#[test]
fn a_post_that_is_left_is_filled() {
    let (by_post, by_call) = (Seen::new(), Seen::new());
    let seen = [by_post.clone(), by_call.clone()];
    explore("watch/left", 2, move || {
        let clock = StillClock::new();
        let shared = model::shared(2, 4, clock.clone());
        let world = World::new(shared.clone(), clock);
        let [_, stage] = world.stages([small(1), small(2)]);
        let (mut parks, mut works) = (model::worker(&shared, 0), model::worker(&shared, 1));
        assert!(matches!(parks.settle_down(), Rest::Park(Some(_))));
        assert_eq!(works.settle_down(), Rest::Park(None));
        assert!(model::sleep(&shared).retract(0));
        parks.rise(false);
        let watcher = thread::spawn(move || {
            loop {
                match parks.settle_down() {
                    Rest::Work => thread::yield_now(),
                    Rest::Park(Some(_)) => return true,
                    // Nobody works as far as it knows: who does so later wakes it.
                    Rest::Park(None) => {
                        parks.park(None);
                        return false;
                    }
                }
            }
        });
        world.publish(&stage, 0, &[1]);
        works.park(None);
        assert_eq!(works.step(), Step::Worked(1));
        let watches = watcher.join().unwrap();
        by_post.note(watches);
        by_call.note(!watches);
        world.books.assert_ended_once(0..1);
        world.end();
        model::clear(&shared);
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// The last worker that parks dozes until a timer that is far away, as all others are parked; one
/// of those is woken meanwhile, and ends a turn of a stage that others could serve. The sentinel
/// saw that, and looks soon, or it is woken.
#[test]
fn a_sentinel_that_dozes_is_woken() {
    const SOON: Duration = Duration::from_millis(10);
    let (by_look, by_call) = (Seen::new(), Seen::new());
    let seen = [by_look.clone(), by_call.clone()];
    explore("watch/doze", 2, move || {
        let clock = StillClock::new();
        let shared = model::shared(2, 4, clock.clone());
        let world = World::new(shared.clone(), clock);
        let [_, stage] = world.stages([small(1), small(2)]);
        shared.at(1_000_000_000, Box::new(|| {}));
        let (mut parks, mut works) = (model::worker(&shared, 0), model::worker(&shared, 1));
        assert!(matches!(parks.settle_down(), Rest::Park(Some(_))));
        assert_eq!(works.settle_down(), Rest::Park(None));
        assert!(model::sleep(&shared).retract(0));
        parks.rise(false);
        let watcher = thread::spawn(move || {
            loop {
                match parks.settle_down() {
                    Rest::Work => thread::yield_now(),
                    Rest::Park(Some(wait)) if wait <= SOON => return true,
                    Rest::Park(_) => {
                        parks.park(None);
                        return false;
                    }
                }
            }
        });
        world.publish(&stage, 0, &[1]);
        works.park(None);
        assert_eq!(works.step(), Step::Worked(1));
        let looks = watcher.join().unwrap();
        by_look.note(looks);
        by_call.note(!looks);
        world.books.assert_ended_once(0..1);
        world.end();
        model::clear(&shared);
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}
