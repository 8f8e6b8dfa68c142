//! Shutdown at any point, closing under load, completions: every accepted envelope ends once, and
//! whoever asked is told.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use waystage::{
    Bus, BusError, Cause, Envelope, Failure, Handler, Leftover, Lifecycle, OnFull, Refused, Retry,
    Settled, StageSettings,
};

use crate::support::{
    Gate, LONG, Log, Random, drained, eventually, gated, meters, room_for, run, threaded, to,
    virtual_time,
};

/// What can go on when the shutdown comes: blocked publishers, retries in their pause, a batch
/// handler, hops that wait, a dead-letter stage.
fn busy_bus(seed: u64) -> Bus<u64> {
    let bus = threaded::<u64>(1 + (seed % 2) as usize);
    let ms = Duration::from_millis;
    let blocks = StageSettings { on_full: OnFull::Block(LONG), ..room_for(2) };
    bus.add_stage("first", blocks, |_| Ok(())).expect("fine");
    let retries = StageSettings {
        attempts: 3,
        retry: Retry::Delayed { first: ms(1), max: ms(2), jitter: 0.5 },
        dead_letter: Some("buries".into()),
        hop_timeout: ms(20),
        ..room_for(2)
    };
    bus.add_stage("fails", retries, |context| match context.payload() % 3 {
        0 => Err(Failure::new("third")),
        1 => panic!("other third"),
        _ => Ok(()),
    })
    .expect("fine");
    let small = StageSettings { hop_timeout: ms(20), ..room_for(1) };
    bus.add_batch_stage("batch", small.clone(), |_| Ok(())).expect("fine");
    bus.add_stage("buries", small, |_| Ok(())).expect("fine");
    bus
}

fn shut_down_at_a_random_point(seed: u64) {
    let bus = busy_bus(seed);
    let ends: Log<(u64, Settled)> = Log::new();
    let accepted = AtomicU64::new(0);
    let mut random = Random(seed);
    let (yields, limit) = (random.below(300), Duration::from_micros(random.below(4) * 300));
    let report = std::thread::scope(|scope| {
        for producer in 0..3 {
            let (bus, ends, accepted) = (&bus, &ends, &accepted);
            scope.spawn(move || {
                for number in 0.. {
                    let number = number * 3 + producer;
                    let hops = ["first", "fails", "batch"];
                    let envelope = ends.follow(number, to(bus, number, &hops));
                    match bus.publish(envelope) {
                        Ok(()) => accepted.fetch_add(1, Ordering::Relaxed),
                        Err(refused) => {
                            assert_eq!(refused.reason, Refused::Closed, "blocked ones too");
                            break;
                        }
                    };
                }
            });
        }
        for _ in 0..yields {
            std::thread::yield_now();
        }
        bus.shutdown(limit)
    });
    let books = report.conservation;
    assert!(books.holds(), "seed {seed}: {report:?}");
    assert_eq!(bus.lifecycle(), Lifecycle::Stopped);
    eventually("calls that ran at the end are settled", || bus.conservation().in_flight == 0);
    let accepted = accepted.into_inner();
    assert_eq!(bus.conservation().accepted, accepted, "seed {seed}");
    drop(bus);
    let mut told: Vec<u64> = ends.take().into_iter().map(|(number, _)| number).collect();
    assert_eq!(told.len() as u64, accepted, "seed {seed}: one word for each accepted one");
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len() as u64, accepted, "seed {seed}: nobody is told twice");
}

#[test]
fn a12_shutdown_at_random_points_accounts_for_everything() {
    for seed in 1..=200 {
        shut_down_at_a_random_point(seed);
    }
}

#[test]
fn a12_shutdown_before_any_worker_ran() {
    for _ in 0..50 {
        let bus = threaded::<u64>(2);
        bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
        let ends = Log::new();
        bus.publish(ends.follow(1, to(&bus, 1, &["a"]))).unwrap();
        let report = bus.shutdown(Duration::ZERO);
        assert!(report.conservation.holds());
        drop(bus);
        assert_eq!(ends.len(), 1);
    }
}

#[test]
fn a12_shutdown_during_a_retry_pause_hands_back_at_its_deadline() {
    let (bus, _clock) = virtual_time::<u64>();
    let hour = Duration::from_secs(3_600);
    let retry = Retry::Delayed { first: hour, max: hour, jitter: 0.0 };
    bus.add_stage("a", StageSettings { attempts: 2, retry, ..room_for(2) }, |_| {
        Err(Failure::new("no"))
    })
    .unwrap();
    let ends = Log::new();
    bus.publish(ends.follow(1, to(&bus, 1, &["a"]))).unwrap();
    run(&bus);
    let report = bus.shutdown(Duration::from_millis(2));
    assert!(matches!(&report.leftovers[..], [Leftover::Waiting { stage, .. }] if stage == "a"));
    assert_eq!(ends.take(), [(1, Settled::Undelivered)]);
}

#[test]
fn a12_a_handler_that_never_returns_is_named_at_the_deadline() {
    let bus = threaded::<u64>(2);
    let gate = gated(&bus, "stuck", room_for(8));
    bus.publish(to(&bus, 1, &["stuck"])).unwrap();
    gate.await_waiting(1);
    let report = bus.shutdown(Duration::from_millis(5));
    assert!(!report.drained);
    assert_eq!(report.leftovers, [Leftover::Running { stage: "stuck".into(), envelopes: 1 }]);
    assert_eq!((report.conservation.in_flight, report.conservation.holds()), (1, true));
    gate.open();
    eventually("the call returns after all", || bus.conservation().completed == 1);
    assert!(bus.shutdown(LONG).drained, "asked again, nothing is left");
}

#[test]
fn a12_what_a_stuck_worker_has_in_hand_is_named_and_handed_back() {
    let bus = threaded::<u64>(1);
    let gate = Gate::new();
    let door = gate.door();
    let ends = Log::new();
    bus.add_stage("a", room_for(64), move |context| {
        if *context.payload() == 1_000 {
            door.pass();
        }
        Ok(())
    })
    .unwrap();
    // Known to be fast, so that the rest of a block stays with the worker.
    for number in 0..1_000 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    eventually("all are handled", || bus.conservation().in_flight == 0);
    let numbers = 1_000..1_020;
    bus.publish_batch(&mut numbers.map(|n| ends.follow(n, to(&bus, n, &["a"])))).unwrap();
    gate.await_waiting(1);
    let report = bus.shutdown(Duration::ZERO);
    let named: u64 = report
        .leftovers
        .iter()
        .map(|leftover| match leftover {
            Leftover::Running { envelopes, .. } => *envelopes,
            Leftover::InHand { envelopes } => *envelopes,
            _ => 1,
        })
        .sum();
    assert_eq!((named, report.drained), (20, false), "{report:?}");
    gate.open();
    eventually("the books close", || bus.conservation().in_flight == 0);
    drop(bus);
    assert_eq!(ends.len(), 20);
}

#[test]
fn a12_what_arrives_after_the_end_is_named_by_the_next_report() {
    let bus = threaded::<u64>(1);
    let gate = gated(&bus, "a", room_for(8));
    bus.add_stage("b", room_for(8), |_| Ok(())).unwrap();
    bus.publish(to(&bus, 1, &["a", "b"])).unwrap();
    gate.await_waiting(1);
    let first = bus.shutdown(Duration::ZERO);
    assert_eq!(first.leftovers, [Leftover::Running { stage: "a".to_owned(), envelopes: 1 }]);
    gate.open();
    eventually("the books close", || bus.conservation().in_flight == 0);
    let second = bus.shutdown(Duration::ZERO);
    let [Leftover::Waiting { stage, .. }] = &*second.leftovers else {
        panic!("{second:?}");
    };
    assert_eq!((&**stage, second.drained), ("b", false));
    assert_eq!(bus.shutdown(Duration::ZERO).leftovers, [], "named once");
}

#[test]
fn a12_shutdown_from_a_handler_starts_and_returns() {
    let bus = Arc::new(threaded::<u64>(1));
    let log = Log::new();
    let (inner, seen) = (Arc::downgrade(&bus), log.clone());
    bus.add_stage("a", room_for(8), move |context| {
        if *context.payload() == 0
            && let Some(bus) = inner.upgrade()
        {
            let report = bus.shutdown(LONG);
            seen.add((report.drained, report.conservation.in_flight > 0, bus.lifecycle()));
            let refused = bus.publish(Envelope::new(9, bus.slip(["a"])?));
            assert_eq!(refused.map_err(|error| error.reason), Err(Refused::Closed));
        }
        Ok(())
    })
    .unwrap();
    bus.pause();
    bus.resume();
    bus.publish_batch(&mut (0..5).map(|number| to(&bus, number, &["a"]))).unwrap();
    eventually("it drains", || bus.conservation().completed == 5);
    assert_eq!(log.take(), [(false, true, Lifecycle::Draining)]);
    assert!(drained(&bus).holds());
    assert_eq!(bus.lifecycle(), Lifecycle::Stopped);
}

#[test]
fn a12_after_shutdown_everything_is_refused_as_closed() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let (handle, mut publisher) = (bus.handle(), bus.publisher());
    let envelope = || to(&bus, 1, &["a"]);
    drained(&bus);
    assert_eq!(bus.publish(envelope()).unwrap_err().reason, Refused::Closed);
    assert_eq!(handle.publish(envelope()).unwrap_err().reason, Refused::Closed);
    assert_eq!(handle.publish_inline(envelope()).unwrap_err().reason, Refused::Closed);
    assert_eq!(publisher.publish(envelope()).unwrap_err().reason, Refused::Closed);
    assert_eq!(
        publisher.publish_batch(&mut std::iter::once(envelope())).unwrap_err().reason,
        Refused::Closed
    );
    assert!(matches!(bus.add_stage("b", room_for(8), |_| Ok(())), Err(BusError::Stopped)));
    let none = bus.redrive(&waystage::Redrive::default()).unwrap();
    assert_eq!(none.redriven, 0);
}

#[test]
fn a13_each_callback_fires_once_with_its_outcome() {
    let (bus, clock) = virtual_time::<u64>();
    let ends = Log::new();
    let minute = Duration::from_secs(60);
    bus.add_stage("works", room_for(8), |_| Ok(())).unwrap();
    bus.add_stage("fails", room_for(8), |_| Err(Failure::new("no"))).unwrap();
    bus.add_stage("panics", room_for(8), |_| panic!("no")).unwrap();
    bus.add_stage("expires", StageSettings { expiry: Some(minute), ..room_for(8) }, |_| Ok(()))
        .unwrap();
    let drops = StageSettings { on_full: OnFull::DropOldest, ..room_for(1) };
    bus.add_stage("drops", drops, |_| Ok(())).unwrap();
    bus.add_stage("closes", room_for(8), |_| Ok(())).unwrap();
    bus.add_stage("waits", room_for(8), |_| Ok(())).unwrap();
    bus.open_stage("deaf", room_for(8), None).unwrap();
    let hops: [&[&str]; 11] = [
        &["works"],
        &["fails"],
        &["panics"],
        &["expires"],
        &["drops"],
        &["drops"],
        &["closes"],
        &["works", "nowhere"],
        &["works", "deaf"],
        &["deaf"],
        &["waits"],
    ];
    let mut refused = Vec::new();
    for (number, hops) in (0..).zip(hops) {
        let published = bus.publish(ends.follow(number, to(&bus, number, hops)));
        refused.extend(published.map_err(|error| (number, error.reason)).err());
    }
    assert_eq!(refused, [(9, Refused::NoConsumer)], "a refusal tells no callback");
    bus.close_stage("closes").unwrap();
    clock.advance(minute);
    bus.pause_stage("waits").unwrap();
    run(&bus);
    bus.close_stage("waits").unwrap();
    let mut told = ends.take();
    told.sort_by_key(|(number, _)| *number);
    let dead = Settled::Dead;
    let want = [
        (0, Settled::Completed),
        (1, dead(Cause::HandlerFailed("no".into()))),
        (2, dead(Cause::HandlerPanicked("no".into()))),
        (3, Settled::Expired),
        (4, Settled::Dropped),
        (5, Settled::Completed),
        (6, dead(Cause::StageClosed)),
        (7, dead(Cause::NoRoute)),
        (8, dead(Cause::NoConsumer)),
        (10, dead(Cause::StageClosed)),
    ];
    assert_eq!(told, want);
    drained(&bus);
    drop(bus);
    assert_eq!(ends.len(), 0, "nobody is told twice");
}

#[test]
fn a13_callbacks_are_freed_with_their_envelopes() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |context| {
        if context.payload() % 2 == 0 { Ok(()) } else { Err(Failure::new("odd")) }
    })
    .unwrap();
    let alive = Arc::new(());
    for number in 0..8 {
        let held = Arc::clone(&alive);
        bus.publish(to(&bus, number, &["a"]).on_settled(move |_, _| drop(held))).unwrap();
    }
    run(&bus);
    assert_eq!(Arc::strong_count(&alive), 1);
    assert_eq!(bus.dead_letters().len(), 4, "kept without their callbacks");
}

#[test]
fn a13_an_envelope_published_again_after_its_end_starts_afresh() {
    let (bus, clock) = virtual_time::<u64>();
    let minute = Duration::from_secs(60);
    let expires = StageSettings { expiry: Some(minute), ..room_for(8) };
    bus.add_stage("expires", expires, |_| Ok(())).unwrap();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let mut first = bus.publish_tracked(to(&bus, 1, &["expires"])).unwrap();
    run(&bus);
    let (_, envelope) = first.poll_now().unwrap();
    let mut envelope = envelope.unwrap();
    clock.advance(2 * minute);
    envelope.slip_mut().push(bus.route("a").unwrap()).unwrap();
    let mut second = bus.publish_tracked(envelope).unwrap();
    clock.advance(2 * minute);
    run(&bus);
    assert_eq!(second.poll_now().unwrap().0, Settled::Completed, "`a` lets nothing expire");
    assert_eq!(meters(&bus, "expires").entered, 1, "it was there once");
}

#[test]
fn a18_closing_never_eats_the_last_message() {
    for round in 0..100 {
        let bus = threaded::<u64>(1);
        let log = Log::new();
        let seen = log.clone();
        bus.add_stage("a", room_for(1), move |context| {
            seen.add(*context.payload());
            Ok(())
        })
        .unwrap();
        bus.publish(to(&bus, round, &["a"])).unwrap();
        assert!(bus.shutdown(LONG).drained);
        assert_eq!(log.take(), [round], "the value first");
        assert_eq!(bus.publish(to(&bus, 0, &["a"])).unwrap_err().reason, Refused::Closed);
    }
}

#[test]
fn p16_closing_a_stage_tells_all_who_wait_at_once() {
    let (bus, _clock) = virtual_time::<u64>();
    let ends = Log::new();
    bus.add_stage("a", room_for(16), |_| Ok(())).unwrap();
    for number in 0..10 {
        bus.publish(ends.follow(number, to(&bus, number, &["a"]))).unwrap();
    }
    bus.close_stage("a").unwrap();
    let want: Vec<_> = (0..10).map(|n| (n, Settled::Dead(Cause::StageClosed))).collect();
    assert_eq!(ends.take(), want, "without a turn");
    assert_eq!(bus.dead_letters().len(), 10);
    // Opened again, they can be taken in again.
    bus.add_stage("a", room_for(16), |_| Ok(())).unwrap();
    assert_eq!(bus.redrive(&waystage::Redrive::default()).unwrap().redriven, 10);
    run(&bus);
    let books = drained(&bus);
    assert_eq!((books.accepted, books.redriven, books.dead, books.completed), (10, 10, 10, 10));
}

#[test]
fn closing_and_reopening_under_load_gives_each_publish_a_defined_result() {
    let bus = threaded::<u64>(2);
    let (ends, stop) = (Log::new(), AtomicUsize::new(0));
    let settings = StageSettings { permits: 2, on_full: OnFull::Block(LONG), ..room_for(4) };
    bus.add_stage("front", room_for(16), |_| Ok(())).unwrap();
    bus.add_stage("a", settings.clone(), |_| Ok(())).unwrap();
    let accepted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for producer in 0..2 {
            let (bus, ends, accepted, stop) = (&bus, &ends, &accepted, &stop);
            scope.spawn(move || {
                let hops: &[&str] = if producer == 0 { &["a"] } else { &["front", "a"] };
                while stop.load(Ordering::Relaxed) == 0 {
                    match bus.publish(ends.follow(producer, to(bus, producer, hops))) {
                        Ok(()) => drop(accepted.fetch_add(1, Ordering::Relaxed)),
                        Err(refused) => {
                            assert!(matches!(refused.reason, Refused::Closed | Refused::NoRoute));
                        }
                    }
                }
            });
        }
        for _ in 0..300 {
            bus.close_stage("a").unwrap();
            bus.open_stage("a", settings.clone(), Some(Handler::each(|_| Ok(())))).unwrap();
            std::thread::yield_now();
        }
        stop.store(1, Ordering::Relaxed);
    });
    let books = drained(&bus);
    assert_eq!(books.accepted, accepted.into_inner());
    assert_eq!(books.completed + books.dead + books.dropped, books.accepted);
    assert_eq!(ends.len() as u64, books.accepted);
}

#[test]
fn the_snapshot_counts_every_outcome() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", StageSettings { attempts: 2, ..room_for(4) }, |context| {
        if *context.payload() == 1 { Err(Failure::new("no")) } else { Ok(()) }
    })
    .unwrap();
    for number in 0..6 {
        let _ = bus.try_publish(to(&bus, number, &["a"]));
    }
    let stage = meters(&bus, "a");
    assert_eq!((stage.entered, stage.depth, stage.refused, stage.in_flight), (4, 4, 2, 0));
    run(&bus);
    let stage = meters(&bus, "a");
    assert_eq!((stage.done, stage.failed, stage.retried, stage.dead), (3, 2, 1, 1));
    assert_eq!((stage.entered, stage.depth, stage.in_flight), (4, 0, 0));
}

#[test]
fn a_delayed_retry_has_entered_its_stage_once() {
    let (bus, clock) = virtual_time::<u64>();
    let second = Duration::from_secs(1);
    let retry = Retry::Delayed { first: second, max: second, jitter: 0.0 };
    bus.add_stage("a", StageSettings { attempts: 3, retry, ..room_for(4) }, |_| {
        Err(Failure::new("no"))
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    for attempt in 1..=3 {
        run(&bus);
        let stage = meters(&bus, "a");
        assert_eq!((stage.entered, stage.failed, stage.in_flight), (1, attempt, 0));
        clock.advance(second);
    }
}

#[test]
fn an_asynchronous_publish_that_waits_is_not_counted_as_refused() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(1), |_| Ok(())).unwrap();
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    let mut waiting = pin!(bus.publish_async(to(&bus, 1, &["a"])));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        assert!(waiting.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!((meters(&bus, "a").refused, bus.conservation().accepted), (0, 1));
    run(&bus);
    assert!(waiting.as_mut().poll(&mut context).is_ready());
    run(&bus);
    assert_eq!(drained(&bus).completed, 2);
}

#[test]
fn a_tracked_publish_that_is_refused_comes_back_as_it_was_given() {
    let (bus, _clock) = virtual_time::<u64>();
    let settings = StageSettings { on_full: OnFull::Reject, ..room_for(1) };
    bus.add_stage("a", settings, |_| Ok(())).unwrap();
    let told = Log::new();
    let log = told.clone();
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    let mut envelope =
        to(&bus, 1, &["a"]).on_settled(move |end, back| log.add((end, back.is_some())));
    for _ in 0..100_000 {
        envelope = *bus.publish_tracked(envelope).unwrap_err().envelope;
    }
    run(&bus);
    let mut completion = bus.publish_tracked(envelope).unwrap();
    run(&bus);
    assert_eq!(told.take(), [(Settled::Completed, false)]);
    assert!(matches!(completion.poll_now(), Some((Settled::Completed, Some(_)))));
    drained(&bus);
}

#[test]
fn a_stage_paused_by_name_stays_so_when_the_bus_resumes() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    bus.pause_stage("a").unwrap();
    bus.pause();
    bus.resume_stage("a").unwrap();
    assert_eq!(bus.turn(), 0, "the bus is paused");
    bus.pause_stage("a").unwrap();
    bus.resume();
    assert_eq!(bus.turn(), 0, "the stage is paused");
    bus.resume_stage("a").unwrap();
    run(&bus);
    assert_eq!(drained(&bus).completed, 1);
}

#[test]
fn a_bus_dropped_inside_a_turn_tells_everyone() {
    let (outer, _clock) = virtual_time::<u64>();
    let told = Log::new();
    let log = told.clone();
    outer
        .add_stage("a", room_for(8), move |_| {
            let (inner, _clock) = virtual_time::<u64>();
            inner.add_stage("b", room_for(8), |_| Ok(()))?;
            let log = log.clone();
            let envelope = to(&inner, 1, &["b"]).on_settled(move |end, _| log.add(end));
            inner.publish(envelope).map_err(|refused| Failure::new(refused.to_string()))?;
            Ok(())
        })
        .unwrap();
    outer.publish(to(&outer, 0, &["a"])).unwrap();
    run(&outer);
    assert_eq!(told.take(), [Settled::Undelivered]);
    drained(&outer);
}

#[test]
fn a12_a_shutdown_does_not_wait_for_a_turn_that_hangs_on_another_thread() {
    let (bus, _clock) = virtual_time::<u64>();
    let gate = gated(&bus, "a", room_for(8));
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| bus.turn());
        gate.await_waiting(1);
        let report = bus.shutdown(Duration::from_millis(5));
        assert_eq!(report.leftovers.len(), 1, "{report:?}");
        gate.open();
    });
}

#[test]
fn a_publisher_inside_a_handler_of_its_own_bus_keeps_nothing_alive() {
    for threads in [0, 2] {
        let bus = threaded::<u64>(threads);
        let token = Arc::new(());
        let alive = Arc::downgrade(&token);
        let publisher = std::sync::Mutex::new(bus.publisher());
        let log = bus.slip(["log"]).unwrap();
        bus.add_stage("log", room_for(8), |_| Ok(())).unwrap();
        bus.add_stage("a", room_for(8), move |context| {
            let _owned = &token;
            let mut publisher =
                publisher.lock().map_err(|error| Failure::new(error.to_string()))?;
            publisher.try_publish(Envelope::new(*context.payload(), log.clone()))?;
            Ok(())
        })
        .unwrap();
        bus.publish(to(&bus, 1, &["a"])).unwrap();
        eventually("both are handled", || {
            bus.turn();
            bus.conservation().in_flight == 0
        });
        assert_eq!(drained(&bus).completed, 2);
        drop(bus);
        eventually("what the handler owns is dropped", || alive.strong_count() == 0);
    }
}
