//! Threads on a clock that stands still: what waits must not spin for ever.

use std::sync::Arc;
use std::time::Duration;

use waystage::clock::ManualClock;
use waystage::{Bus, BusSettings, Refused};

use crate::support::{Gate, Log, eventually, room_for, to};

fn standing_still(workers: usize) -> Arc<Bus<u64>> {
    let settings = BusSettings { workers, ..BusSettings::default() };
    let clock = Arc::new(ManualClock::new());
    Arc::new(Bus::start_with_clock(settings, clock).expect("the settings are fine"))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a thread that hangs must not hang the test")]
fn a_publisher_that_waits_for_room_gives_up_by_what_it_slept() {
    let bus = standing_still(1);
    let gate = Gate::new();
    let door = gate.door();
    bus.add_stage("a", room_for(1), move |_| {
        door.pass();
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    gate.await_waiting(1);
    bus.try_publish(to(&bus, 1, &["a"])).unwrap();
    let log = Log::new();
    let (told, publishing) = (log.clone(), Arc::clone(&bus));
    std::thread::spawn(move || {
        let envelope = to(&publishing, 2, &["a"]);
        let published = publishing.publish_within(envelope, Duration::from_millis(2));
        told.add(published.map_err(|refused| refused.reason));
    });
    eventually("the publisher gives up", || log.len() > 0);
    assert_eq!(log.take(), [Err(Refused::Full)]);
}

#[test]
fn workers_without_work_park() {
    let bus = standing_still(2);
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    eventually("one is woken from its park", || {
        let _ = bus.try_publish(to(&bus, 0, &["a"]));
        bus.snapshot().workers.iter().any(|worker| worker.wakes > 0)
    });
}
