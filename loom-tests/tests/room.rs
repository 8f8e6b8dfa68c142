//! Waiting for room: hops and publishers against whoever frees a slot, a time-out, a close.

use std::sync::Arc;

use loom::thread;
use waystage::model::attendance::HOPS_WAIT;
use waystage::model::{self, Stage, Ticket};
use waystage_loom_tests::{End, Number, Seen, StillClock, Tray, World, explore, run_all, small};

/// How long a hop waits for room, in nanoseconds.
fn time_out() -> u64 {
    u64::try_from(waystage::StageSettings::default().hop_timeout.as_nanos()).unwrap()
}

/// Two upstream stages, each with one envelope for a third that is full.
struct Scene {
    tray: Arc<Tray>,
    world: Arc<World>,
    stages: [Arc<Stage<Number>>; 3],
    /// Tickets of the full stage and of the two upstream ones.
    full: Ticket,
    left: Ticket,
    right: Ticket,
}

impl Scene {
    fn new() -> Self {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let stages = world.stages([small(1), small(1), small(1)]);
        world.publish(&stages[2], 2, &[2]);
        world.publish(&stages[2], 3, &[2]);
        world.publish(&stages[0], 0, &[0, 2]);
        world.publish(&stages[1], 1, &[1, 2]);
        let next = || tray.take().expect("each first publish posts a ticket");
        let (full, left, right) = (next(), next(), next());
        Self { tray, world, stages, full, left, right }
    }
}

fn spawn(tray: &Arc<Tray>, ticket: Ticket) -> thread::JoinHandle<()> {
    let tray = tray.clone();
    thread::spawn(move || run_all(ticket, &*tray))
}

fn finish(world: &World, tray: &Tray, stages: &[Arc<Stage<Number>>]) {
    tray.run();
    world.books.assert_ended_once(0..4);
    world.assert_at_rest(stages);
    world.end();
    drop(tray.timers());
}

/// One hop into a full stage that is drained meanwhile: the hop is placed by itself or by whoever
/// frees a slot, and the permit it held comes back.
#[test]
fn a_hop_and_the_drain() {
    let (waited, direct) = (Seen::new(), Seen::new());
    let seen = [waited.clone(), direct.clone()];
    explore("room/hop", 3, move || {
        let Scene { tray, world, stages, full, left, right } = Scene::new();
        let hop = spawn(&tray, left);
        let drain = spawn(&tray, full);
        hop.join().unwrap();
        drain.join().unwrap();
        let timers = tray.timers().len();
        waited.note(timers > 0);
        direct.note(timers == 0);
        // Nobody else comes by for whoever waits.
        tray.run();
        assert_eq!(world.books.ends(), 3, "a hop waits beside an empty ring");
        run_all(right, &*tray);
        finish(&world, &tray, &stages);
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// Two hops into a full stage while it is drained.
#[test]
fn two_hops_and_the_drain() {
    explore("room/two_hops", 1, || {
        let Scene { tray, world, stages, full, left, right } = Scene::new();
        // The drain is the last thread, so that orders with both hops in line need no preemption.
        let all = [left, right, full].map(|ticket| spawn(&tray, ticket));
        for thread in all {
            thread.join().unwrap();
        }
        finish(&world, &tray, &stages);
    });
}

/// A hop whose time is up against the drain that would make room for it: it leaves or is placed,
/// its permit comes back once, and the one behind it is placed.
#[test]
fn a_time_out_and_the_drain() {
    let (dead, placed) = (Seen::new(), Seen::new());
    let seen = [dead.clone(), placed.clone()];
    explore("room/time_out", 3, move || {
        let Scene { tray, world, stages, full, left, right } = Scene::new();
        run_all(left, &*tray);
        world.clock.advance(time_out());
        run_all(right, &*tray);
        let due = tray.timers();
        assert_eq!(due.len(), 1, "one timer per line");
        let timer = thread::spawn(move || due.into_iter().for_each(|action| action()));
        let drain = spawn(&tray, full);
        timer.join().unwrap();
        drain.join().unwrap();
        tray.run();
        let ended = world.books.ended();
        let end = &ended.iter().find(|(number, _)| *number == 0).expect("it ended").1;
        dead.note(*end == End::Dead("next_stage_full"));
        placed.note(*end == End::Completed);
        finish(&world, &tray, &stages);
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// The same with nobody behind it: the line is closed by whoever leaves it last.
#[test]
fn a_time_out_of_the_last_in_line() {
    let (dead, placed) = (Seen::new(), Seen::new());
    let seen = [dead.clone(), placed.clone()];
    explore("room/time_out_alone", 3, move || {
        let Scene { tray, world, stages, full, left, right } = Scene::new();
        run_all(left, &*tray);
        world.clock.advance(time_out());
        let due = tray.timers();
        let timer = thread::spawn(move || due.into_iter().for_each(|action| action()));
        let drain = spawn(&tray, full);
        timer.join().unwrap();
        drain.join().unwrap();
        tray.run();
        let is_dead = world.books.ended().contains(&(0, End::Dead("next_stage_full")));
        dead.note(is_dead);
        placed.note(!is_dead);
        world.assert_at_rest(&stages[2..]);
        run_all(right, &*tray);
        finish(&world, &tray, &stages);
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}

/// Nobody frees a slot: who leaves last says that nobody waits any more.
#[test]
fn a_time_out_passes_the_turn_on() {
    explore("room/time_out_turn", 3, || {
        let Scene { tray, world, stages, full, left, right } = Scene::new();
        run_all(left, &*tray);
        world.clock.advance(time_out());
        for action in tray.timers() {
            action();
        }
        assert_eq!(world.books.ended(), [(0, End::Dead("next_stage_full"))]);
        assert_eq!(model::word(&stages[2]) & HOPS_WAIT, 0, "it says that hops wait");
        run_all(full, &*tray);
        run_all(right, &*tray);
        finish(&world, &tray, &stages);
    });
}

/// A hop into a full stage against its close: whichever is second settles it.
#[test]
fn a_hop_and_the_close() {
    explore("room/close", 3, move || {
        let Scene { tray, world, stages, full, left, right } = Scene::new();
        let hop = spawn(&tray, left);
        let closer = {
            let (world, stage) = (world.clone(), stages[2].clone());
            thread::spawn(move || model::close(&stage, &*world))
        };
        hop.join().unwrap();
        closer.join().unwrap();
        // Before another turn looks: the two of them settle everything.
        assert_eq!(world.books.ends(), 3, "an envelope stays in a closed stage");
        run_all(full, &*tray);
        run_all(right, &*tray);
        finish(&world, &tray, &stages);
    });
}

/// A hop that waits, and a publisher that drops the oldest: waiting hops come before new work, and
/// none of them is forgotten.
#[test]
fn a_hop_and_a_publisher_that_drops() {
    explore("room/drop_oldest", 3, move || {
        let Scene { tray, world, stages, full, left, right } = Scene::new();
        let hop = spawn(&tray, left);
        let dropper = {
            let (world, stage) = (world.clone(), stages[2].clone());
            thread::spawn(move || {
                model::drop_oldest(&stage, &*world);
                model::drop_oldest(&stage, &*world);
            })
        };
        hop.join().unwrap();
        dropper.join().unwrap();
        let (_, waiting) = model::at_rest(&stages[2]);
        let ends = world.books.ends() as u64;
        assert_eq!(ends + waiting, 3, "an envelope is nowhere");
        // Who waits for room waits for a full ring.
        let hops = model::hops_waiting(&stages[2]);
        assert!(hops == 0 || waiting - hops == 2, "{hops} hops wait beside a free slot");
        run_all(full, &*tray);
        run_all(right, &*tray);
        finish(&world, &tray, &stages);
    });
}

/// A stage with two permits, one of them with a hop that waits for room: the other one serves what
/// is published meanwhile, before there is room.
#[test]
fn a_hold_leaves_the_spare_permit() {
    let (found, posted) = (Seen::new(), Seen::new());
    let seen = [found.clone(), posted.clone()];
    explore("room/spare", 3, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let stages = world.stages([small(2), small(1)]);
        let [first, next] = &stages;
        world.publish(next, 2, &[1]);
        world.publish(next, 3, &[1]);
        let full = tray.take().expect("the first publish posts a ticket");
        world.publish(first, 0, &[0, 1]);
        let ticket = tray.take().expect("the first publish posts a ticket");
        let hop = spawn(&tray, ticket);
        world.publish(first, 1, &[0]);
        let was_posted = !tray.is_empty();
        hop.join().unwrap();
        posted.note(was_posted);
        found.note(!was_posted);
        tray.run();
        assert_eq!(world.books.ended(), [(1, End::Completed)], "it waits for another's room");
        // And so while both are idle but for the hold.
        world.publish(first, 4, &[0]);
        tray.run();
        assert_eq!(world.books.ends(), 2, "it waits for another's room");
        run_all(full, &*tray);
        tray.run();
        world.books.assert_ended_once(0..5);
        world.assert_at_rest(&stages);
        world.end();
        drop(tray.timers());
    });
    assert!(seen.iter().all(|seen| seen.runs() > 0));
}
