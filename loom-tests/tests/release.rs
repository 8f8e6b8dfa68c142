//! The release function (R1 to R4) against publishing: no envelope is left without a ticket.

use std::sync::Arc;

use loom::thread;
use waystage::StageSettings;
use waystage::model::attendance::PAUSED;
use waystage::model::{self, Attendance, Desk, Released, Ring, Task, Turned};
use waystage_loom_tests::{Gate, Seen, StillClock, Tray, World, explore, run_all, small};

/// The holder of the only permit releases while others push.
fn one_permit(name: &str, bound: usize, publishers: u32) {
    let (again, posted) = (Seen::new(), Seen::new());
    let (again_seen, posted_seen) = (again.clone(), posted.clone());
    explore(name, bound, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([StageSettings { capacity: 4, ..small(1) }]);
        world.publish(&stage, 0, &[0]);
        let ticket = tray.take().expect("the first publish posts a ticket");
        let threads: Vec<_> = (1..publishers)
            .map(|number| {
                let (world, stage) = (world.clone(), stage.clone());
                thread::spawn(move || world.publish(&stage, number, &[0]))
            })
            .collect();
        let holder = {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        };
        world.publish(&stage, publishers, &[0]);
        holder.join().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(tray.len() <= 1, "two tickets for one permit");
        posted.note(!tray.is_empty());
        again.note(tray.is_empty());
        tray.run();
        world.books.assert_ended_once(0..=publishers);
        assert_eq!(world.books.handled()[0], (0, 0), "first in, first out");
        world.assert_at_rest([&stage]);
        world.end();
    });
    // Both ways were taken: the holder found the push, and the publisher found nobody.
    assert!(again_seen.runs() > 0 && posted_seen.runs() > 0);
}

#[test]
fn one_permit_one_publisher() {
    one_permit("release/one_permit", 3, 1);
}

#[test]
fn one_permit_two_publishers() {
    one_permit("release/one_permit_two_publishers", 2, 2);
}

/// Both holders of two permits release while main pushes.
#[test]
fn two_permits() {
    let both = Seen::new();
    let seen = both.clone();
    explore("release/two_permits", 1, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([StageSettings { capacity: 4, ..small(2) }]);
        world.publish(&stage, 0, &[0]);
        world.publish(&stage, 1, &[0]);
        let tickets = [tray.take(), tray.take()].map(|ticket| ticket.expect("slow: two tickets"));
        let holders = tickets.map(|ticket| {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        });
        world.publish(&stage, 2, &[0]);
        for holder in holders {
            holder.join().unwrap();
        }
        both.note(world.books.ends() == 3);
        tray.run();
        world.books.assert_ended_once(0..3);
        world.assert_at_rest([&stage]);
        world.end();
    });
    assert!(seen.runs() > 0);
}

/// One of two holders is stuck. The other one found nothing, then somebody pushes and sees the
/// stage attended, then it releases: it is not the last one out, and looks all the same.
#[test]
fn not_the_last_one_out() {
    explore("release/not_last", 3, || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([StageSettings { capacity: 4, ..small(2) }]);
        world.publish(&stage, 0, &[0]);
        world.publish(&stage, 1, &[0]);
        let next = || tray.take().expect("slow: two tickets");
        let (stuck, ticket) = (next(), next());
        let desk = Desk { worker: 0, scheduler: &*tray };
        let Turned::Keep { ticket, taken: 2 } = stage.clone().turn(ticket, &desk) else {
            panic!("it takes both");
        };
        let Turned::Release { ticket, taken: 0 } = stage.clone().turn(ticket, &desk) else {
            panic!("nothing is there");
        };
        let publisher = {
            let (world, stage) = (world.clone(), stage.clone());
            thread::spawn(move || world.publish(&stage, 2, &[0]))
        };
        publisher.join().unwrap();
        assert!(tray.is_empty(), "the stage is attended and fast");
        let again = Task::release(stage.clone(), ticket).expect("it waits behind a stuck handler");
        run_all(again, &*tray);
        assert_eq!(world.books.ends(), 3);
        run_all(stuck, &*tray);
        world.books.assert_ended_once(0..3);
        world.assert_at_rest([&stage]);
        world.end();
    });
}

/// The steps alone, on a ring that was never pushed to: loom orders a `SeqCst` load behind `SeqCst`
/// stores by itself, but not behind the first value of an atomic, so here the fences count.
#[test]
fn steps_on_a_fresh_ring() {
    explore("release/steps", 3, || {
        let attendance = Arc::new(Attendance::new(1, 0));
        let ring = Arc::new(Ring::new(2));
        assert!(attendance.try_attend());
        let publisher = {
            let (attendance, ring) = (attendance.clone(), ring.clone());
            thread::spawn(move || {
                ring.push(7).expect("it is empty");
                let word = attendance.after_push();
                !Attendance::is_looked_after(word) && attendance.try_attend()
            })
        };
        let holder = {
            let (attendance, ring) = (attendance.clone(), ring.clone());
            thread::spawn(move || attendance.release(|| !ring.is_empty()) == Released::Again)
        };
        let attended = publisher.join().unwrap();
        let again = holder.join().unwrap();
        assert!(attended != again, "one of them comes by: {attended}, {again}");
    });
}

/// A stage with two permits of which one is stuck in a handler and does not look again: of a push
/// and a rescue, one finds the other, and one ticket is queued for the spare permit.
#[test]
fn rescue_against_a_publish() {
    let (by_publisher, by_rescue) = (Seen::new(), Seen::new());
    let seen = [by_publisher.clone(), by_rescue.clone()];
    explore("release/rescue", 3, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([small(2)]);
        // A first round measures the handler as fast, so that the stage is not slow any more; the
        // permit that stays out is attended, as that of a worker inside a handler.
        world.publish(&stage, 0, &[0]);
        let stuck = tray.take().expect("the first publish posts a ticket");
        let desk = Desk { worker: 0, scheduler: &*tray };
        let turned = stuck.task().clone().turn(stuck, &desk);
        assert!(tray.is_empty(), "nothing else to do");
        let rescuer = {
            let (tray, stage) = (tray.clone(), stage.clone());
            thread::spawn(move || Task::rescue(stage, &*tray))
        };
        world.publish(&stage, 1, &[0]);
        let after_publish = tray.len();
        rescuer.join().unwrap();
        assert_eq!(tray.len(), 1, "one ticket for the spare permit");
        by_publisher.note(after_publish == 1);
        by_rescue.note(after_publish == 0);
        tray.run();
        let Turned::Keep { ticket, .. } = turned else {
            panic!("the permit was kept: {turned:?}");
        };
        run_all(ticket, &*tray);
        world.books.assert_ended_once(0..2);
        world.assert_at_rest([&stage]);
        world.end();
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// A publisher that runs an idle stage's turn itself against one that pushes.
#[test]
fn caller_runs_against_a_publish() {
    let (ran, refused) = (Seen::new(), Seen::new());
    let seen = [ran.clone(), refused.clone()];
    explore("release/caller_runs", 3, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([small(1)]);
        let caller = {
            let (tray, world, stage) = (tray.clone(), world.clone(), stage.clone());
            thread::spawn(move || {
                let desk = Desk { worker: usize::MAX, scheduler: &*tray };
                let envelope = world.envelope(0, &[0]);
                match model::caller_runs(&stage, &*world, &desk, envelope) {
                    Ok(()) => true,
                    Err(_) => {
                        world.publish(&stage, 0, &[0]);
                        false
                    }
                }
            })
        };
        world.publish(&stage, 1, &[0]);
        let did_run = caller.join().unwrap();
        ran.note(did_run);
        refused.note(!did_run);
        tray.run();
        world.books.assert_ended_once(0..2);
        world.assert_at_rest([&stage]);
        world.end();
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// A publisher that runs a turn of a stage with two permits itself hangs there; the other permit's
/// holder found nothing before. A push finds that permit, whichever way it came.
#[test]
fn a_caller_that_hangs() {
    let (ran, refused) = (Seen::new(), Seen::new());
    let seen = [ran.clone(), refused.clone()];
    explore("release/caller_hangs", 3, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let (entered, gate) = (Gate::default(), Gate::default());
        let (enter, leave) = (entered.clone(), gate.clone());
        let [stage] = world.stages_with([small(2)], move |context| {
            if **context.payload() == 0 {
                enter.open();
                leave.pass();
            }
            Ok(())
        });
        // Measured as fast; the permit stays with its holder.
        world.publish(&stage, 2, &[0]);
        let ticket = tray.take().expect("the first publish posts a ticket");
        let desk = Desk { worker: 0, scheduler: &*tray };
        let Turned::Keep { ticket, taken: 1 } = stage.clone().turn(ticket, &desk) else {
            panic!("it takes one");
        };
        let caller = {
            let (tray, world, stage) = (tray.clone(), world.clone(), stage.clone());
            let (entered, gate) = (entered.clone(), gate.clone());
            thread::spawn(move || {
                let desk = Desk { worker: usize::MAX, scheduler: &*tray };
                let envelope = world.envelope(0, &[0]);
                let ran = model::caller_runs(&stage, &*world, &desk, envelope).is_ok();
                if !ran {
                    gate.open();
                    world.publish(&stage, 0, &[0]);
                    entered.open();
                }
                ran
            })
        };
        // Not `run_all`, which yields to the caller: the publish shall also come between the steps
        // by which that takes its permit and says so.
        let ticket = match stage.clone().turn(ticket, &desk) {
            Turned::Keep { ticket, .. } | Turned::Release { ticket, .. } => ticket,
            Turned::Gone { .. } => panic!("it hops nowhere"),
        };
        if let Some(again) = Task::release(stage.clone(), ticket) {
            run_all(again, &*tray);
        }
        world.publish(&stage, 1, &[0]);
        entered.pass();
        tray.run();
        assert!(world.books.handled_at(0).contains(&1), "a permit is free");
        gate.open();
        let did_run = caller.join().unwrap();
        ran.note(did_run);
        refused.note(!did_run);
        tray.run();
        world.books.assert_ended_once(0..3);
        world.assert_at_rest([&stage]);
        world.end();
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// Pause and resume against a publish and the permit's holder: held work is taken up again.
#[test]
fn pause_and_resume() {
    explore("release/pause", 2, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([small(1)]);
        world.publish(&stage, 0, &[0]);
        let ticket = tray.take().expect("the first publish posts a ticket");
        let holder = {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        };
        let publisher = {
            let (world, stage) = (world.clone(), stage.clone());
            let envelope = world.envelope(1, &[0]);
            thread::spawn(move || model::enter(&stage, &*world, envelope).is_ok())
        };
        model::refuse(&stage, &*world, PAUSED);
        model::readmit(&stage, &*world, PAUSED);
        let entered = publisher.join().unwrap();
        holder.join().unwrap();
        tray.run();
        world.books.assert_ended_once(0..1 + u32::from(entered));
        world.assert_at_rest([&stage]);
        world.end();
    });
}

/// Dropping the oldest of a block leaves the rest on the side list, against the permit's holder,
/// who may have looked while it was in neither place.
#[test]
fn the_rest_of_a_block_that_lost_its_first() {
    let (dropped, late) = (Seen::new(), Seen::new());
    let seen = [dropped.clone(), late.clone()];
    explore("release/block_drop", 3, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([StageSettings { capacity: 4, ..small(1) }]);
        let block = [0, 1].map(|number| world.envelope(number, &[0]));
        model::enter_block(&stage, &*world, block).expect("there is room");
        let ticket = tray.take().expect("the first publish posts a ticket");
        let dropper = {
            let (world, stage) = (world.clone(), stage.clone());
            thread::spawn(move || model::drop_oldest(&stage, &*world))
        };
        let holder = {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        };
        let did_drop = dropper.join().unwrap();
        holder.join().unwrap();
        dropped.note(did_drop);
        late.note(did_drop && !tray.is_empty());
        tray.run();
        world.books.assert_ended_once(0..2);
        world.assert_at_rest([&stage]);
        world.end();
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}
