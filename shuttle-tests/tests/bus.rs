//! The whole bus: workers, publishers, hops that wait, failures, closing and shutdown at once.

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;
use waystage::clock::ManualClock;
use waystage::{Bus, BusSettings, Envelope, Failure, Idle, OnFull, StageSettings};
use waystage_shuttle_tests::explore;

/// Longer than any schedule: nothing may end by it.
const LONG: Duration = Duration::from_secs(3600);

fn bus(workers: usize) -> Bus<u32> {
    let settings =
        BusSettings { workers, idle: Idle::Park, seed: Some(7), ..BusSettings::default() };
    Bus::start_with_clock(settings, Arc::new(ManualClock::new())).expect("the settings are right")
}

fn settings(capacity: usize, permits: u32) -> StageSettings {
    StageSettings {
        capacity,
        permits,
        batch: 2,
        on_full: OnFull::Block(LONG),
        attempts: 2,
        ..StageSettings::default()
    }
}

/// Two publishers through two stages, the second one too small.
fn pipeline() {
    let bus = bus(2);
    bus.add_stage("a", settings(2, 2), |_| Ok(())).expect("a fresh name");
    bus.add_stage("b", settings(1, 1), |context| match context.payload() % 3 {
        0 if context.attempts() == 0 => Err(Failure::new("once more")),
        _ => Ok(()),
    })
    .expect("a fresh name");
    let slip = bus.slip(["a", "b"]).expect("a short slip");
    let publishers: Vec<_> = (0..2)
        .map(|_| {
            let (handle, slip) = (bus.handle(), slip.clone());
            thread::spawn(move || {
                for number in 0..3 {
                    handle.publish(Envelope::new(number, slip.clone())).expect("room, in time");
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.join().expect("no publish fails");
    }
    let report = bus.shutdown(LONG);
    assert!(report.drained, "{report:?}");
    assert_eq!((report.conservation.accepted, report.conservation.completed), (6, 6));
}

/// A stage is closed while two threads publish to it: each publish has an outcome.
fn close_under_load() {
    let bus = bus(1);
    bus.add_stage("a", settings(2, 1), |_| Ok(())).expect("a fresh name");
    let slip = bus.slip(["a"]).expect("a short slip");
    let publishers: Vec<_> = (0..2)
        .map(|_| {
            let (handle, slip) = (bus.handle(), slip.clone());
            thread::spawn(move || {
                (0..2).filter(|&n| handle.publish(Envelope::new(n, slip.clone())).is_ok()).count()
            })
        })
        .collect();
    bus.close_stage("a").expect("it is open");
    let accepted: usize = publishers.into_iter().map(|p| p.join().expect("no panic")).sum();
    let books = bus.shutdown(LONG).conservation;
    assert!(books.holds(), "{books:?}");
    assert_eq!((books.accepted, books.in_flight), (accepted as u64, 0), "{books:?}");
}

/// A pause in the middle loses nothing and wakes everybody afterwards.
fn pause_and_resume() {
    let bus = bus(2);
    bus.add_stage("a", settings(4, 1), |_| Ok(())).expect("a fresh name");
    let slip = bus.slip(["a", "a"]).expect("a short slip");
    let (handle, other) = (bus.handle(), slip.clone());
    let publisher = thread::spawn(move || {
        (0..3).filter(|&n| handle.publish(Envelope::new(n, other.clone())).is_ok()).count()
    });
    bus.pause();
    bus.resume();
    let accepted = publisher.join().expect("no panic");
    let report = bus.shutdown(LONG);
    assert!(report.drained, "{report:?}");
    assert_eq!(report.conservation.completed, accepted as u64);
}

#[test]
fn pipelines_drain() {
    explore("pipelines_drain", pipeline);
}

#[test]
fn closing_under_load_settles_everything() {
    explore("closing_under_load_settles_everything", close_under_load);
}

#[test]
fn pauses_strand_nothing() {
    explore("pauses_strand_nothing", pause_and_resume);
}
