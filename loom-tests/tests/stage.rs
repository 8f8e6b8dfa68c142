//! Draining by workers that may steal: each envelope once, in order where there is one permit.

use loom::thread;
use waystage::StageSettings;
use waystage::model;
use waystage_loom_tests::{Seen, StillClock, Tray, World, explore, run_all, small, work_until};

/// Two workers and a publisher, one permit: each envelope once, first in, first out.
#[test]
fn one_permit_keeps_order() {
    explore("stage/order", 2, || {
        let clock = StillClock::new();
        let shared = model::shared(2, 2, clock.clone());
        let world = World::new(shared.clone(), clock);
        let [stage] = world.stages([small(1)]);
        let threads: Vec<_> = (0..2)
            .map(|index| {
                let (shared, books) = (shared.clone(), world.books.clone());
                let worker = model::worker(&shared, index);
                thread::spawn(move || work_until(&shared, worker, || books.ends() == 2))
            })
            .collect();
        world.publish(&stage, 0, &[0]);
        world.publish(&stage, 1, &[0]);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(world.books.handled_at(0), [0, 1]);
        world.books.assert_ended_once(0..2);
        world.end();
        model::clear(&shared);
    });
}

/// A block and a single envelope against two holders of two permits: the rest of the block is on
/// the side list for either, and nothing is taken twice.
#[test]
fn two_permits_share_a_block() {
    explore("stage/block", 1, || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([StageSettings { capacity: 4, ..small(2) }]);
        let block = [0, 1].map(|number| world.envelope(number, &[0]));
        model::enter_block(&stage, &*world, block).expect("there is room");
        world.publish(&stage, 2, &[0]);
        let tickets = [tray.take(), tray.take()].map(|ticket| ticket.expect("slow: two tickets"));
        let holders = tickets.map(|ticket| {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        });
        world.publish(&stage, 3, &[0]);
        for holder in holders {
            holder.join().unwrap();
        }
        tray.run();
        world.books.assert_ended_once(0..4);
        world.assert_at_rest([&stage]);
        world.end();
    });
}

/// Two tickets in one worker's queue, and a thief: each is run once.
#[test]
fn a_thief_takes_each_ticket_once() {
    let (stolen, kept) = (Seen::new(), Seen::new());
    let seen = [stolen.clone(), kept.clone()];
    explore("stage/steal", 2, move || {
        let clock = StillClock::new();
        let shared = model::shared(2, 4, clock.clone());
        let world = World::new(shared.clone(), clock);
        // Stages 0 and 2 are at home with worker 0.
        let [a, _, b] = world.stages([small(1), small(1), small(1)]);
        world.publish(&a, 0, &[0]);
        world.publish(&b, 1, &[2]);
        let threads: Vec<_> = (0..2)
            .map(|index| {
                let (shared, books) = (shared.clone(), world.books.clone());
                let worker = model::worker(&shared, index);
                thread::spawn(move || work_until(&shared, worker, || books.ends() == 2))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let was_stolen = model::steals(&shared) > 0;
        stolen.note(was_stolen);
        kept.note(!was_stolen);
        world.books.assert_ended_once(0..2);
        world.end();
        model::clear(&shared);
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// A run-on against a publish to the next stage: taken or declined, nothing is stranded, and what
/// ran on comes before what was published behind it.
fn run_on(name: &str, permits: u32) {
    let (taken, declined) = (Seen::new(), Seen::new());
    let seen = [taken.clone(), declined.clone()];
    explore(name, 3, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [first, next] = world.stages([small(1), small(permits)]);
        world.publish(&first, 0, &[0, 1]);
        let ticket = tray.take().expect("the first publish posts a ticket");
        let worker = {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        };
        world.publish(&next, 1, &[1]);
        worker.join().unwrap();
        taken.note(tray.requeued() == 1);
        declined.note(tray.requeued() == 0);
        tray.run();
        world.books.assert_ended_once(0..2);
        world.assert_at_rest([&first, &next]);
        world.end();
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

#[test]
fn run_on_into_one_permit() {
    run_on("stage/run_on", 1);
}

#[test]
fn run_on_into_two_permits() {
    run_on("stage/run_on_shared", 2);
}

/// Two first stages run on into one: one of them gets its permit, the other pushes.
#[test]
fn two_run_on_into_one() {
    explore("stage/run_on_twice", 3, || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [left, right, next] = world.stages([small(1), small(1), small(1)]);
        world.publish(&left, 0, &[0, 2]);
        world.publish(&right, 1, &[1, 2]);
        let tickets = [tray.take(), tray.take()].map(|ticket| ticket.expect("one for each"));
        let workers = tickets.map(|ticket| {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        });
        for worker in workers {
            worker.join().unwrap();
        }
        tray.run();
        world.books.assert_ended_once(0..2);
        world.assert_at_rest([&left, &right, &next]);
        world.end();
    });
}
