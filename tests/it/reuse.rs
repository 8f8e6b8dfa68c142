//! Envelopes that come a second time: published again after their end, re-driven, refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use waystage::clock::ManualClock;
use waystage::{
    Bus, BusSettings, Cause, Envelope, Failure, Redrive, Refused, Settled, StageSettings,
};

use crate::support::{Log, drained, meters, room_for, run, to, virtual_time};

const MINUTE: Duration = Duration::from_secs(60);

/// A stage that logs each payload it handles, with the attempts before.
fn logs(bus: &Bus<u64>, name: &str) -> Log<(u64, u16)> {
    let log = Log::new();
    let seen = log.clone();
    bus.add_stage(name, room_for(8), move |context| {
        seen.add((*context.payload(), context.attempts()));
        Ok(())
    })
    .expect("the stage is fine");
    log
}

/// Publishes one envelope and runs until it has ended.
fn end_of(bus: &Bus<u64>, envelope: Envelope<u64>) -> (Settled, Envelope<u64>) {
    let mut completion = bus.publish_tracked(envelope).expect("there is room");
    run(bus);
    let (end, envelope) = completion.poll_now().expect("it ended");
    (end, envelope.expect("it comes back"))
}

/// A bus whose stage `a` fails each envelope until told otherwise.
fn failing(settings: StageSettings) -> (Bus<u64>, ManualClock, Arc<AtomicBool>) {
    let clock = ManualClock::new();
    let all = BusSettings { workers: 0, meter_every: 1, seed: Some(7), ..BusSettings::default() };
    let bus = Bus::start_with_clock(all, Arc::new(clock.clone())).expect("settings are fine");
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    bus.add_stage("a", settings, move |_| {
        if failing.load(Ordering::Relaxed) { Err(Failure::new("no")) } else { Ok(()) }
    })
    .expect("the stage is fine");
    (bus, clock, fails)
}

#[test]
fn a_completed_envelope_published_again_has_nowhere_to_go() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = logs(&bus, "a");
    let (end, envelope) = end_of(&bus, to(&bus, 1, &["a"]));
    assert_eq!(end, Settled::Completed);
    assert_eq!(bus.publish(envelope).unwrap_err().reason, Refused::NoRoute);
    run(&bus);
    assert_eq!(log.take(), [(1, 0)], "once");
}

#[test]
fn a_completed_envelope_with_a_new_hop_visits_only_that() {
    let (bus, _clock) = virtual_time::<u64>();
    let (first, second) = (logs(&bus, "a"), logs(&bus, "b"));
    let (_, mut envelope) = end_of(&bus, to(&bus, 1, &["a"]));
    envelope.slip_mut().push(bus.route("b").unwrap()).unwrap();
    assert_eq!(end_of(&bus, envelope).0, Settled::Completed);
    assert_eq!((first.take().len(), second.take().len()), (1, 1));
}

#[test]
fn an_envelope_that_ended_at_a_dead_letter_stage_is_not_handled_there_again() {
    let settings = StageSettings { dead_letter: Some("bury".into()), ..room_for(8) };
    let (bus, _clock, _fails) = failing(settings);
    let buried = logs(&bus, "bury");
    let (end, envelope) = end_of(&bus, to(&bus, 1, &["a"]));
    assert_eq!(end, Settled::Dead(Cause::HandlerFailed("no".into())));
    assert_eq!(bus.publish(envelope).unwrap_err().reason, Refused::NoRoute);
    assert_eq!(buried.take(), [(1, 0)]);
}

#[test]
fn a_dead_letter_published_elsewhere_has_all_its_attempts_again() {
    let (bus, _clock, _fails) = failing(StageSettings { attempts: 2, ..room_for(8) });
    let log = logs(&bus, "b");
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    let id = bus.dead_letters()[0].id;
    let mut envelope = bus.take_dead_letter(id).unwrap().envelope;
    *envelope.slip_mut() = bus.slip(["b"]).unwrap();
    bus.publish(envelope).unwrap();
    run(&bus);
    assert_eq!(log.take(), [(1, 0)]);
}

#[test]
fn an_envelope_published_again_does_not_die_of_its_old_cause() {
    let settings = StageSettings { dead_letter: Some("bury".into()), ..room_for(8) };
    let (bus, clock, _fails) = failing(settings);
    let (_buried, log) = (logs(&bus, "bury"), logs(&bus, "b"));
    bus.pause_stage("bury").unwrap();
    let envelope = to(&bus, 1, &["a"]).with_time_to_live(MINUTE);
    let mut completion = bus.publish_tracked(envelope).unwrap();
    run(&bus);
    clock.advance(2 * MINUTE);
    bus.resume_stage("bury").unwrap();
    run(&bus);
    let (end, envelope) = completion.poll_now().unwrap();
    let mut envelope = envelope.unwrap();
    assert_eq!((end, envelope.cause().is_some()), (Settled::Expired, true));
    *envelope.slip_mut() = bus.slip(["b"]).unwrap();
    assert_eq!(end_of(&bus, envelope).0, Settled::Completed);
    assert_eq!(log.take(), [(1, 0)]);
}

/// Fails `envelope` at `a`, lets its time pass, and re-drives it.
fn redriven_late(settings: StageSettings, time: Option<Duration>) {
    let (bus, clock, fails) = failing(settings);
    let mut envelope = to(&bus, 1, &["a"]);
    if let Some(time) = time {
        envelope = envelope.with_time_to_live(time);
    }
    bus.publish(envelope).expect("there is room");
    run(&bus);
    fails.store(false, Ordering::Relaxed);
    clock.advance(2 * MINUTE);
    assert_eq!(bus.redrive(&Redrive::default()).expect("no name given").redriven, 1);
    run(&bus);
    let waited = meters(&bus, "a").wait.max();
    assert!(waited < 1_000_000_000, "{waited} ns: not the time as a dead letter");
    let books = drained(&bus);
    assert_eq!((books.completed, books.expired), (1, 0), "its life begins anew");
}

#[test]
fn a_redrive_begins_a_new_life() {
    redriven_late(StageSettings { expiry: Some(MINUTE), ..room_for(8) }, None);
    redriven_late(room_for(8), Some(MINUTE));
    redriven_late(room_for(8), None);
}

#[test]
fn a_refused_redrive_leaves_the_dead_letter_as_it_was() {
    let (bus, clock, fails) = failing(StageSettings { expiry: Some(MINUTE), ..room_for(8) });
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    let before = bus.dead_letters();
    clock.advance(2 * MINUTE);
    bus.pause_stage("a").unwrap();
    assert_eq!(bus.redrive(&Redrive::default()).unwrap().refused, 1);
    assert_eq!(bus.dead_letters(), before);
    bus.resume_stage("a").unwrap();
    fails.store(false, Ordering::Relaxed);
    assert_eq!(bus.redrive(&Redrive::default()).unwrap().redriven, 1);
    run(&bus);
    assert_eq!(drained(&bus).completed, 1);
}
