//! Closing: each envelope is settled exactly once, by whoever finds it.

use std::time::Duration;

use loom::thread;
use waystage::model;
use waystage::{Failure, Retry, StageSettings};
use waystage_loom_tests::{End, Seen, StillClock, Tray, World, explore, run_all, small};

/// What takes part beside the close, which runs on main.
#[derive(Clone, Copy)]
struct Part {
    publishes: bool,
    drains: bool,
}

fn closes(name: &str, bound: usize, part: Part) -> [usize; 3] {
    let (dead, handled, refused) = (Seen::new(), Seen::new(), Seen::new());
    let seen = [dead.clone(), handled.clone(), refused.clone()];
    explore(name, bound, move || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([small(1)]);
        world.publish(&stage, 0, &[0]);
        let ticket = tray.take().expect("the first publish posts a ticket");
        let publisher = part.publishes.then(|| {
            let (world, stage) = (world.clone(), stage.clone());
            let envelope = world.envelope(1, &[0]);
            thread::spawn(move || model::enter(&stage, &*world, envelope).is_ok())
        });
        let (now, later) = if part.drains { (Some(ticket), None) } else { (None, Some(ticket)) };
        let holder = now.map(|ticket| {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        });
        model::close(&stage, &*world);
        let entered = publisher.is_some_and(|publisher| publisher.join().unwrap());
        if let Some(holder) = holder {
            holder.join().unwrap();
        }
        // Before the ticket that is left runs: nothing may need another turn.
        world.books.assert_ended_once(0..1 + u32::from(entered));
        let ended = world.books.ended();
        dead.note(ended.iter().any(|(_, end)| *end == End::Dead("stage_closed")));
        handled.note(ended.iter().any(|(_, end)| *end == End::Completed));
        refused.note(!entered);
        if let Some(ticket) = later {
            run_all(ticket, &*tray);
        }
        tray.run();
        world.assert_at_rest([&stage]);
        assert_eq!(tray.unreserved(), 1, "one place for its one permit");
        world.end();
    });
    seen.map(|seen| seen.runs())
}

#[test]
fn a_publish_and_the_close() {
    let seen = closes("close/publish", 3, Part { publishes: true, drains: false });
    assert!(seen[0] > 0 && seen[2] > 0, "{seen:?}");
}

#[test]
fn a_turn_and_the_close() {
    let seen = closes("close/turn", 3, Part { publishes: false, drains: true });
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn a_publish_a_turn_and_the_close() {
    let seen = closes("close/publish_and_turn", 1, Part { publishes: true, drains: true });
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}

/// A block and the close: two threads take it apart.
#[test]
fn a_block_and_the_close() {
    explore("close/block", 3, || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let [stage] = world.stages([small(1)]);
        let publisher = {
            let (world, stage) = (world.clone(), stage.clone());
            thread::spawn(move || {
                let block = [0, 1].map(|number| world.envelope(number, &[0]));
                model::enter_block(&stage, &*world, block).is_ok()
            })
        };
        model::close(&stage, &*world);
        let entered = publisher.join().unwrap();
        tray.run();
        world.books.assert_ended_once(0..2 * u32::from(entered));
        world.assert_at_rest([&stage]);
        assert_eq!(tray.unreserved(), 1, "one place for its one permit");
        world.end();
    });
}

/// A failed envelope that is put aside for its pause while its stage closes.
#[test]
fn a_delayed_retry_and_the_close() {
    explore("close/delayed", 3, || {
        let tray = Tray::new();
        let world = World::new(tray.clone(), StillClock::new());
        let pause = Duration::from_millis(1);
        let retry = Retry::Delayed { first: pause, max: pause, jitter: 0.0 };
        let settings = StageSettings { attempts: 2, retry, ..small(1) };
        let [stage] = world.stages_with([settings], |_| Err(Failure::new("try again")));
        world.publish(&stage, 0, &[0]);
        let ticket = tray.take().expect("the first publish posts a ticket");
        let holder = {
            let tray = tray.clone();
            thread::spawn(move || run_all(ticket, &*tray))
        };
        model::close(&stage, &*world);
        holder.join().unwrap();
        // The bus forgets a closed stage, and its timers do not keep it alive.
        world.books.assert_ended_once(0..1);
        drop(tray.timers());
        tray.run();
        world.assert_at_rest([&stage]);
        assert_eq!(tray.unreserved(), 1, "one place for its one permit");
        world.end();
    });
}
