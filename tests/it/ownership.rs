//! Who lets go of what, and when: handlers, pools, and what runs while they are dropped.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use waystage::{
    Bus, BusSettings, Envelope, Failure, Lifecycle, OnFull, Pool, PoolSettings, Refused,
    StageSettings, WaitError,
};

use crate::support::{
    Census, Citizen, Gate, LONG, Log, eventually, room_for, run, threaded, to, virtual_time,
};

#[test]
fn a_closed_stage_lets_go_of_its_handler_while_a_publisher_lives() {
    let (bus, _clock) = virtual_time::<u64>();
    let (owned, kept) = (Arc::new(()), Arc::new(()));
    for (name, mark) in [("a", &owned), ("b", &kept)] {
        let mark = Arc::clone(mark);
        bus.add_stage(name, room_for(8), move |_| {
            let _held = &mark;
            Ok(())
        })
        .unwrap();
    }
    let mut publisher = bus.publisher();
    publisher.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    bus.close_stage("a").unwrap();
    assert_eq!((Arc::strong_count(&owned), Arc::strong_count(&kept)), (1, 2));
    bus.shutdown(LONG);
    assert_eq!(Arc::strong_count(&kept), 1, "the end of the bus is the end of all handlers");
    drop(publisher);
}

#[test]
fn a_handler_that_owns_a_publisher_does_not_outlive_its_bus() {
    let (bus, _clock) = virtual_time::<u64>();
    let owned = Arc::new(());
    let (mark, publisher) = (Arc::clone(&owned), Mutex::new(bus.publisher()));
    let slip = bus.slip(["b"]).unwrap();
    bus.add_stage("b", room_for(8), |_| Ok(())).unwrap();
    bus.add_stage("a", room_for(8), move |context| {
        let _held = &mark;
        let envelope = Envelope::new(*context.payload(), slip.clone());
        publisher.lock().expect("nobody panics").publish(envelope)?;
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    drop(bus);
    assert_eq!(Arc::strong_count(&owned), 1);
}

#[test]
fn a_running_call_keeps_its_handler_until_it_returns() {
    let bus = threaded::<u64>(1);
    let gate = Gate::new();
    let (door, owned, log) = (gate.door(), Arc::new(7), Log::new());
    let (mark, seen) = (Arc::clone(&owned), log.clone());
    bus.add_stage("a", room_for(8), move |_| {
        door.pass();
        seen.add(*mark);
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    gate.await_waiting(1);
    bus.close_stage("a").unwrap();
    assert_eq!(Arc::strong_count(&owned), 2);
    gate.open();
    eventually("the handler is dropped", || Arc::strong_count(&owned) == 1);
    assert_eq!(log.take(), [7]);
}

/// Pauses its bus when dropped: what a destructor may do.
struct Pauses(Weak<Bus<u64>>, Log<&'static str>);

impl Drop for Pauses {
    fn drop(&mut self) {
        if let Some(bus) = self.0.upgrade() {
            bus.pause();
            self.1.add("paused");
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a thread that hangs must not hang the test")]
fn a20_the_destructor_of_a_handler_may_ask_the_bus() {
    let (bus, _clock) = virtual_time::<u64>();
    let (bus, log) = (Arc::new(bus), Log::new());
    let pauses = Pauses(Arc::downgrade(&bus), log.clone());
    bus.add_stage("a", room_for(8), move |_| {
        let _held = &pauses;
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    let closing = std::thread::spawn(move || {
        bus.close_stage("a").expect("it is open");
        bus.shutdown(LONG);
    });
    eventually("the stage closes", || closing.is_finished());
    assert_eq!(log.take(), ["paused"]);
}

/// A payload that owns its pool: letting go of it is the end of the pool.
struct Owner {
    _pool: Arc<Pool>,
    _after: Citizen,
    fails: bool,
}

#[test]
fn a_worker_may_drop_its_own_pool_between_turns() {
    let pool = Arc::new(Pool::start(PoolSettings { workers: 1, ..Default::default() }).unwrap());
    let bus: Bus<Owner> = Bus::on_pool(&pool, BusSettings::default()).unwrap();
    let (gate, census) = (Gate::new(), Census::default());
    let door = gate.door();
    bus.add_stage("a", StageSettings { permits: 2, ..room_for(8) }, move |context| {
        if context.payload().fails {
            return Err(Failure::new("a dead letter"));
        }
        door.pass();
        Ok(())
    })
    .unwrap();
    for fails in [true, false] {
        let owner = Owner { _pool: Arc::clone(&pool), _after: census.citizen(), fails };
        bus.publish(to(&bus, owner, &["a"])).unwrap();
    }
    gate.await_waiting(1);
    assert_eq!(bus.dead_letters().len(), 1);
    bus.shutdown(Duration::ZERO);
    drop((bus, pool));
    // The call returns, and the worker is the last who knows stage, bus, dead letter and pool.
    gate.open();
    eventually("all is dropped", || census.dropped() == 2);
    census.assert_all_dropped_once();
}

#[test]
fn a_callback_does_not_wait_for_the_bus_that_calls_it() {
    let (bus, _clock) = virtual_time::<u64>();
    let bus = Arc::new(bus);
    let settings = StageSettings { on_full: OnFull::DropOldest, ..room_for(1) };
    bus.add_stage("a", settings, |_| Ok(())).unwrap();
    let (asked, log) = (Arc::downgrade(&bus), Log::new());
    let told = log.clone();
    let envelope = to(&bus, 0, &["a"]).on_settled(move |_, _| {
        let bus = asked.upgrade().expect("it publishes");
        let waiting = bus.publish_tracked(to(&bus, 2, &["a"]));
        let waited = waiting.map(|mut waiting| waiting.wait(Duration::from_millis(1)).err());
        let report = bus.shutdown(Duration::from_millis(1));
        told.add((waited.ok().flatten(), report.drained));
    });
    bus.publish(envelope).unwrap();
    // On this thread, which is no worker: the first one is dropped and told.
    let published = bus.publish(to(&bus, 1, &["a"]));
    assert_eq!(published.unwrap_err().reason, Refused::Closed);
    assert_eq!(log.take(), [(Some(WaitError::OnWorker), false)]);
    assert_eq!(bus.lifecycle(), Lifecycle::Draining, "it only began to end");
}
