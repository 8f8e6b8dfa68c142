//! The seven cases that every port of the bus must pass (C1 to C7). Where our contract differs:
//! wrong settings are refused and never clamped; a stage without a handler refuses publishes.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use waystage::{
    Bus, BusError, BusSettings, Cause, EnvelopeId, Failure, OnFull, Refused, Settled, StageSettings,
};

use crate::support::{
    LONG, Log, drained, eventually, gated, meters, room_for, run, settled, threaded, to,
    virtual_time,
};

#[test]
fn c1_block_waits_and_never_refuses() {
    let bus = threaded::<u64>(2);
    let settings = StageSettings { on_full: OnFull::Block(LONG), ..room_for(2) };
    let log = Log::new();
    let seen = log.clone();
    bus.add_stage("a", settings, move |context| {
        std::thread::yield_now();
        seen.add(*context.payload());
        Ok(())
    })
    .unwrap();
    for number in 0..3_000 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    assert_eq!(drained(&bus).completed, 3_000);
    assert_eq!(log.take(), (0..3_000).collect::<Vec<_>>());
}

/// Ten publishes into two places that nobody empties.
fn refuses_when_full(on_full: OnFull) {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    bus.add_stage("a", StageSettings { on_full, ..room_for(2) }, move |context| {
        seen.add(*context.payload());
        Ok(())
    })
    .expect("the stage is fine");
    for number in 0..10 {
        match bus.publish(to(&bus, number, &["a"])) {
            Ok(()) => assert!(number < 2, "{on_full:?}"),
            Err(refused) => {
                assert_eq!(refused.reason, Refused::Full);
                assert_eq!(refused.stage.as_deref(), Some("a"));
                assert_eq!(refused.envelope.into_payload(), number, "given back as it was");
            }
        }
    }
    assert_eq!((meters(&bus, "a").refused, meters(&bus, "a").depth), (8, 2));
    run(&bus);
    let books = drained(&bus);
    assert_eq!((books.accepted, books.completed, books.dropped), (2, 2, 0));
    assert_eq!(log.take(), [0, 1]);
}

#[test]
fn c1_reject_refuses_at_once_and_counts() {
    refuses_when_full(OnFull::Reject);
}

#[test]
fn c1_drop_newest_refuses_like_reject() {
    refuses_when_full(OnFull::DropNewest);
}

#[test]
fn c1_drop_oldest_never_refuses_and_never_delivers_the_victim() {
    let (bus, _clock) = virtual_time::<u64>();
    let (log, ends) = (Log::new(), Log::new());
    let seen = log.clone();
    let settings = StageSettings { on_full: OnFull::DropOldest, ..room_for(2) };
    bus.add_stage("a", settings, move |context| {
        seen.add(*context.payload());
        Ok(())
    })
    .unwrap();
    for number in 0..10 {
        bus.publish(ends.follow(number, to(&bus, number, &["a"]))).unwrap();
        assert!(meters(&bus, "a").depth <= 2);
    }
    let told = ends.take();
    assert_eq!(told, (0..8).map(|number| (number, Settled::Dropped)).collect::<Vec<_>>());
    run(&bus);
    let books = drained(&bus);
    assert_eq!((books.accepted, books.completed, books.dropped), (10, 2, 8));
    assert_eq!(log.take(), [8, 9]);
    assert_eq!(ends.take(), [(8, Settled::Completed), (9, Settled::Completed)]);
}

#[test]
fn c1_drop_oldest_takes_single_envelopes_out_of_batches() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    let settings = StageSettings { on_full: OnFull::DropOldest, batch: 4, ..room_for(4) };
    bus.add_stage("a", settings, move |context| {
        seen.add(*context.payload());
        Ok(())
    })
    .unwrap();
    assert_eq!(bus.publish_batch(&mut (0..4).map(|number| to(&bus, number, &["a"]))).unwrap(), 4);
    for number in 4..9 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    let books = drained(&bus);
    assert_eq!(books.accepted, 9);
    assert_eq!(books.completed + books.dropped, 9);
    let delivered = log.take();
    let first = 9 - delivered.len() as u64;
    assert_eq!(delivered, (first..9).collect::<Vec<_>>(), "the oldest were the victims, in order");
}

#[test]
fn c1_drop_oldest_leaves_waiting_hops_alone() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let settings = StageSettings { on_full: OnFull::DropOldest, ..room_for(2) };
    bus.add_stage("b", settings, move |context| {
        seen.add(*context.payload());
        Ok(())
    })
    .unwrap();
    bus.pause_stage("b").unwrap();
    for number in 0..5 {
        bus.publish(to(&bus, number, &["a", "b"])).unwrap();
    }
    run(&bus);
    assert_eq!((meters(&bus, "b").depth, meters(&bus, "b").hops_waiting), (2, 1));
    // Resumed, and before anybody comes by: accepted work goes before new work.
    bus.resume_stage("b").unwrap();
    let refused = bus.publish(to(&bus, 99, &["b"])).unwrap_err();
    assert_eq!(refused.reason, Refused::Full);
    run(&bus);
    assert_eq!(log.take(), [0, 1, 2, 3, 4]);
    assert_eq!(drained(&bus).dropped, 0);
}

#[test]
fn c2_ack_on_the_last_allowed_try_is_one_delivery_with_fresh_attempts_after() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let (first, second) = (log.clone(), log.clone());
    let settings = StageSettings { attempts: 3, ..StageSettings::default() };
    bus.add_stage("a", settings.clone(), move |context| {
        first.add(("a", context.attempts()));
        if context.attempts() < 2 { Err(Failure::new("not yet")) } else { Ok(()) }
    })
    .unwrap();
    bus.add_stage("b", settings, move |context| {
        second.add(("b", context.attempts()));
        if context.attempts() < 2 { Err(Failure::new("not yet")) } else { Ok(()) }
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a", "b"])).unwrap();
    run(&bus);
    assert_eq!(log.take(), [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]);
    let books = drained(&bus);
    assert_eq!((books.completed, books.dead), (1, 0));
    assert!(bus.dead_letters().is_empty());
}

#[test]
fn c2_nack_then_dead_letter_after_exactly_max_attempts() {
    for attempts in [1, 2, 3, 7, 255] {
        let (bus, _clock) = virtual_time::<u64>();
        let calls = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&calls);
        bus.add_stage("a", StageSettings { attempts, ..room_for(4) }, move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(Failure::new("never"))
        })
        .unwrap();
        let id = EnvelopeId::from_key(b"poison");
        bus.publish(to(&bus, 1, &["a"]).with_id(id)).unwrap();
        run(&bus);
        assert_eq!(calls.load(Ordering::Relaxed), u32::from(attempts));
        let letters = bus.dead_letters();
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].id, letters[0].attempts), (id, attempts));
        assert_eq!(letters[0].cause, Cause::HandlerFailed("never".into()));
        assert_eq!((&*letters[0].stage, &*letters[0].trail), ("a", &["a".to_owned()][..]));
        // The same id again has a new series of attempts.
        bus.publish(to(&bus, 1, &["a"]).with_id(id)).unwrap();
        run(&bus);
        assert_eq!(calls.load(Ordering::Relaxed), 2 * u32::from(attempts));
        assert_eq!(drained(&bus).dead, 2);
    }
}

#[test]
fn c2_permanent_failure_is_one_attempt() {
    let (bus, _clock) = virtual_time::<u64>();
    let settings = StageSettings { attempts: 9, ..StageSettings::default() };
    bus.add_stage("a", settings, |_| Err(Failure::permanent("broken"))).unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    assert_eq!((meters(&bus, "a").failed, bus.dead_letters()[0].attempts), (1, 1));
}

#[test]
fn c2_without_a_handler_publishes_are_refused_and_hops_dead_lettered_at_once() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.open_stage("b", StageSettings::default(), None).unwrap();
    bus.add_stage("a", StageSettings::default(), |_| Ok(())).unwrap();
    let refused = bus.publish(to(&bus, 1, &["b"])).unwrap_err();
    assert_eq!((refused.reason, refused.reason.is_retryable()), (Refused::NoConsumer, false));
    bus.publish(to(&bus, 2, &["a", "b"])).unwrap();
    run(&bus);
    let letter = &bus.dead_letters()[0];
    assert_eq!((&letter.cause, &*letter.stage), (&Cause::NoConsumer, "b"));
    assert_eq!(letter.trail, ["a", "b"]);
    let books = drained(&bus);
    assert_eq!((books.accepted, books.dead), (1, 1));
}

#[test]
fn c3_each_nth_failing_leaves_the_others_delivered() {
    for nth in [1, 2, 3, 7] {
        let bus = threaded::<u64>(2);
        let (log, ends) = (Log::new(), Log::new());
        let seen = log.clone();
        bus.add_stage("a", StageSettings::default(), move |context| {
            let number = *context.payload();
            assert!(number % (2 * nth) != 0, "odd multiples fail, even ones panic");
            if number % nth == 0 {
                return Err(Failure::new("each nth"));
            }
            seen.add(number);
            Ok(())
        })
        .unwrap();
        for number in 0..500 {
            bus.publish(ends.follow(number, to(&bus, number, &["a"]))).unwrap();
        }
        let books = drained(&bus);
        let want: Vec<u64> = (0..500).filter(|number| number % nth != 0).collect();
        assert_eq!(log.take(), want);
        assert_eq!((books.completed, books.dead), (want.len() as u64, 500 - want.len() as u64));
        assert_eq!(ends.len(), 500);
    }
}

#[test]
fn c4_the_books_hold_after_a_shutdown_that_drained() {
    let bus = threaded::<u64>(2);
    bus.add_stage("a", StageSettings { permits: 2, ..room_for(64) }, |context| {
        if context.payload() % 5 == 0 { Err(Failure::new("fifth")) } else { Ok(()) }
    })
    .unwrap();
    bus.publish_batch(&mut (0..50).map(|number| to(&bus, number, &["a"]))).unwrap();
    let books = drained(&bus);
    assert_eq!((books.accepted, books.completed, books.dead), (50, 40, 10));
}

#[test]
fn c4_the_books_hold_after_a_shutdown_that_timed_out() {
    let bus = threaded::<u64>(1);
    let ends = Log::new();
    let gate = gated(&bus, "a", room_for(64));
    for number in 0..20 {
        bus.publish(ends.follow(number, to(&bus, number, &["a"]))).unwrap();
    }
    gate.await_waiting(1);
    let report = bus.shutdown(Duration::from_millis(15));
    assert!(!report.drained);
    assert_eq!(report.leftovers.len(), 20, "19 that wait, one call that runs: {report:?}");
    assert!(report.conservation.holds());
    assert_eq!((report.conservation.undelivered, report.conservation.in_flight), (19, 1));
    gate.open();
    eventually("the last call ends", || bus.conservation().in_flight == 0);
    assert_eq!(ends.len(), 20);
    assert_eq!(settled(&bus.shutdown(LONG)).completed, 1);
}

#[test]
fn c5_wrong_settings_are_refused_by_name() {
    let (bus, _clock) = virtual_time::<u64>();
    let fine = StageSettings::default;
    for (want, settings) in [
        ("`capacity` is 0", StageSettings { capacity: 0, ..fine() }),
        ("`capacity` is", StageSettings { capacity: usize::MAX, ..fine() }),
        ("`permits` is 0", StageSettings { permits: 0, ..fine() }),
        ("`permits` is 4294967295", StageSettings { permits: u32::MAX, ..fine() }),
        ("`batch` is 0", StageSettings { batch: 0, ..fine() }),
        ("`attempts` is 0", StageSettings { attempts: 0, ..fine() }),
        ("`attempts` is 256", StageSettings { attempts: 256, ..fine() }),
        ("`hop_timeout` is 0ns", StageSettings { hop_timeout: Duration::ZERO, ..fine() }),
        ("`hop_timeout` is", StageSettings { hop_timeout: Duration::MAX, ..fine() }),
        ("`on_full` is", StageSettings { on_full: OnFull::Block(Duration::MAX), ..fine() }),
        ("`expiry` is 0ns", StageSettings { expiry: Some(Duration::ZERO), ..fine() }),
        ("`emits` is", StageSettings { emits: usize::MAX, ..fine() }),
        ("`dead_letter` is \"a\"", StageSettings { dead_letter: Some("a".into()), ..fine() }),
    ] {
        let error = bus.add_stage("a", settings, |_| Ok(())).unwrap_err();
        assert!(matches!(&error, BusError::StageSetting { stage, .. } if stage == "a"));
        assert!(error.to_string().starts_with(&format!("stage `a`: {want}")), "{error}");
    }
    // Nothing was left behind: the name is free and a stage at the lower bounds works.
    let least =
        StageSettings { capacity: 1, permits: 1, batch: 1, attempts: 1, emits: 0, ..fine() };
    bus.add_stage("a", least, |_| Ok(())).unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    assert_eq!(drained(&bus).completed, 1);
}

#[test]
fn c5_wrong_bus_settings_are_refused_by_name() {
    let fine = || BusSettings { workers: 0, ..BusSettings::default() };
    for (want, settings) in [
        ("`workers` is 65", BusSettings { workers: 65, ..fine() }),
        ("`hop_limit` is 0", BusSettings { hop_limit: 0, ..fine() }),
        ("`hop_limit` is 65535", BusSettings { hop_limit: 65_535, ..fine() }),
        ("`dead_letters` is 0", BusSettings { dead_letters: 0, ..fine() }),
        ("`meter_every` is 3", BusSettings { meter_every: 3, ..fine() }),
        ("`tickets` is 0", BusSettings { tickets: 0, ..fine() }),
    ] {
        let error = Bus::<u64>::start(settings).unwrap_err();
        assert!(error.to_string().starts_with(&format!("bus settings: {want}")), "{error}");
    }
    let bus = Bus::<u64>::start(BusSettings { tickets: 3, ..fine() }).unwrap();
    bus.add_stage("a", StageSettings { permits: 2, ..StageSettings::default() }, |_| Ok(()))
        .unwrap();
    let two = StageSettings { permits: 2, ..StageSettings::default() };
    let error = bus.add_stage("b", two.clone(), |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("raise `tickets`"), "{error}");
    bus.close_stage("a").unwrap();
    bus.add_stage("b", two, |_| Ok(())).unwrap();
}

#[test]
fn c6_many_lives_leave_no_thread_and_no_memory_behind() {
    thread_local! {
        static HELD: RefCell<Option<Arc<()>>> = const { RefCell::new(None) };
    }
    for round in 0..25 {
        // Each thread that handled something holds `threads` until it has ended.
        let (threads, state) = (Arc::new(()), Arc::new(()));
        let (held, mark) = (Arc::clone(&state), Arc::clone(&threads));
        let bus = threaded::<u64>(2);
        bus.add_stage("a", StageSettings { permits: 2, ..room_for(16) }, move |_| {
            let _held = &held;
            HELD.with_borrow_mut(|place| *place = Some(Arc::clone(&mark)));
            Ok(())
        })
        .unwrap();
        bus.add_stage("b", room_for(2), |_| Ok(())).unwrap();
        for number in 0..50 {
            bus.publish(to(&bus, number, &["a", "b"])).unwrap();
        }
        if round % 2 == 0 {
            drained(&bus);
        }
        drop(bus);
        assert_eq!(Arc::strong_count(&state), 1, "round {round}: the handler is gone");
        assert_eq!(Arc::strong_count(&threads), 1, "round {round}: the threads are gone");
    }
}

#[test]
fn c6_a_bus_without_threads_leaves_no_memory_behind() {
    let state = Arc::new(());
    let held = Arc::clone(&state);
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(16), move |_| {
        let _held = &held;
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    drop(bus);
    assert_eq!(Arc::strong_count(&state), 1);
}

#[test]
fn c7_many_producers_each_envelope_exactly_once() {
    const EACH: usize = 2_000;
    let bus = threaded::<u64>(2);
    let seen: Arc<Vec<AtomicU32>> = Arc::new((0..6 * EACH).map(|_| AtomicU32::new(0)).collect());
    let counts = Arc::clone(&seen);
    let settings = StageSettings { permits: 8, on_full: OnFull::Block(LONG), ..room_for(32) };
    bus.add_stage("a", settings, move |context| {
        let number = usize::try_from(*context.payload()).unwrap();
        counts[number].fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    std::thread::scope(|scope| {
        for producer in 0..6 {
            let bus = &bus;
            scope.spawn(move || {
                for number in 0..EACH {
                    let number = (producer * EACH + number) as u64;
                    bus.publish(to(bus, number, &["a"])).unwrap();
                }
            });
        }
    });
    assert_eq!(drained(&bus).completed, 6 * EACH as u64);
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
}
