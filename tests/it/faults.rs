//! Faults of the earlier buses, one test each, named after the fault's row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waystage::{
    Cause, Envelope, EnvelopeId, Failure, OnFull, Refused, Retry, Settled, StageSettings, WaitError,
};

use crate::support::{
    Gate, LONG, Log, drained, eventually, gated, meters, room_for, run, settled, threaded, to,
    virtual_time,
};

#[test]
fn f1_hop_into_a_full_stage_is_not_lost() {
    let bus = threaded::<u64>(2);
    let ends = Log::new();
    bus.add_stage("a", room_for(64), |_| Ok(())).unwrap();
    let gate = gated(&bus, "b", room_for(1));
    for number in 0..20 {
        bus.publish(ends.follow(number, to(&bus, number, &["a", "b"]))).unwrap();
    }
    gate.await_waiting(1);
    eventually("a hop waits", || meters(&bus, "b").hops_waiting > 0);
    gate.open();
    assert_eq!(drained(&bus).completed, 20);
    let want: Vec<_> = (0..20).map(|number| (number, Settled::Completed)).collect();
    assert_eq!(ends.take(), want, "all of them, in order");
}

#[test]
fn f1_hop_into_a_paused_stage_is_not_lost() {
    let (bus, clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(64), |_| Ok(())).unwrap();
    bus.add_stage("b", room_for(2), |_| Ok(())).unwrap();
    bus.pause_stage("b").unwrap();
    for number in 0..5 {
        bus.publish(to(&bus, number, &["a", "b"])).unwrap();
    }
    run(&bus);
    // A pause may last: waiting at a paused stage is no time-out.
    for _ in 0..10 {
        clock.advance(Duration::from_secs(60));
        run(&bus);
    }
    assert_eq!((meters(&bus, "b").depth, bus.conservation().dead), (2, 0));
    bus.resume_stage("b").unwrap();
    run(&bus);
    assert_eq!(drained(&bus).completed, 5);
}

#[test]
fn f1_hop_into_an_unknown_stage_is_a_dead_letter_that_tells_its_producer() {
    let (bus, _clock) = virtual_time::<u64>();
    let ends = Log::new();
    bus.add_stage("a", room_for(4), |_| Ok(())).unwrap();
    bus.publish(ends.follow(1, to(&bus, 1, &["a", "nowhere"]))).unwrap();
    run(&bus);
    assert_eq!(ends.take(), [(1, Settled::Dead(Cause::NoRoute))]);
    let letter = &bus.dead_letters()[0];
    assert_eq!((&*letter.trail, &*letter.stage), (&["a".into(), "nowhere".into()][..], "a"));
    assert_eq!(drained(&bus).dead, 1);
}

#[test]
fn f3_shutdown_finishes_itineraries_of_many_hops() {
    let bus = threaded::<u64>(2);
    let gate = gated(&bus, "a", room_for(64));
    for name in ["b", "c", "d"] {
        bus.add_stage(name, room_for(2), |_| Ok(())).unwrap();
    }
    for number in 0..20 {
        bus.publish(to(&bus, number, &["a", "b", "c", "d"])).unwrap();
    }
    gate.await_waiting(1);
    let mut before = 0;
    let report = std::thread::scope(|scope| {
        let ending = scope.spawn(|| bus.shutdown(LONG));
        eventually("the intake is shut", || {
            let refused = bus.publish(to(&bus, 99, &["b"])).map_err(|error| error.reason);
            before += u64::from(refused.is_ok());
            refused == Err(Refused::Closed)
        });
        gate.open();
        ending.join().unwrap()
    });
    assert!(report.drained, "{report:?}");
    assert_eq!(settled(&report).completed, 20 + before);
}

#[test]
fn f3_pause_keeps_work_of_many_hops() {
    let bus = threaded::<u64>(2);
    let gate = gated(&bus, "a", room_for(64));
    bus.add_stage("b", room_for(2), |_| Ok(())).unwrap();
    for number in 0..20 {
        bus.publish(to(&bus, number, &["a", "b"])).unwrap();
    }
    gate.await_waiting(1);
    bus.pause();
    assert_eq!(bus.publish(to(&bus, 99, &["a"])).unwrap_err().reason, Refused::Paused);
    gate.open();
    eventually("the running call ends and its hop is held", || meters(&bus, "b").depth == 1);
    assert_eq!(bus.conservation().in_flight, 20);
    bus.resume();
    assert_eq!(drained(&bus).completed, 20);
}

#[test]
fn f7_a_stage_keeps_its_permits_over_pause_and_gets_them_anew_when_reopened() {
    let bus = threaded::<u64>(2);
    let settings = StageSettings { permits: 2, ..room_for(8) };
    for round in 0..3 {
        let gate = gated(&bus, "a", settings.clone());
        bus.pause();
        bus.resume();
        bus.publish(to(&bus, round, &["a"])).unwrap();
        bus.publish(to(&bus, round, &["a"])).unwrap();
        gate.await_waiting(2);
        gate.open();
        eventually("both end", || bus.conservation().in_flight == 0);
        bus.close_stage("a").unwrap();
        assert_eq!(bus.publish(to(&bus, 9, &["a"])).unwrap_err().reason, Refused::NoRoute);
    }
    assert_eq!(drained(&bus).completed, 6);
}

#[test]
fn f8_shutdown_waits_for_what_runs_and_takes_a_late_failure_along() {
    let bus = threaded::<u64>(1);
    let gate = Gate::new();
    let door = gate.door();
    let settings = StageSettings {
        attempts: 3,
        retry: Retry::Delayed {
            first: Duration::from_millis(1),
            max: Duration::from_millis(1),
            jitter: 0.0,
        },
        ..room_for(4)
    };
    bus.add_stage("a", settings, move |context| {
        door.pass();
        if context.attempts() < 2 { Err(Failure::new("late")) } else { Ok(()) }
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    gate.await_waiting(1);
    assert_eq!(meters(&bus, "a").depth, 0, "nothing is queued, one call runs");
    let report = std::thread::scope(|scope| {
        let ending = scope.spawn(|| bus.shutdown(LONG));
        eventually("the shutdown began", || bus.lifecycle() == waystage::Lifecycle::Draining);
        assert!(!ending.is_finished());
        gate.open();
        ending.join().unwrap()
    });
    assert!(report.drained);
    assert_eq!(settled(&report).completed, 1);
}

#[test]
fn f8_a_failure_after_the_deadline_is_handed_back_and_not_stranded() {
    for retry in [
        Retry::InPlace,
        Retry::Delayed {
            first: Duration::from_secs(3_600),
            max: Duration::from_secs(3_600),
            jitter: 0.0,
        },
    ] {
        let bus = threaded::<u64>(1);
        let gate = Gate::new();
        let door = gate.door();
        let ends = Log::new();
        let settings = StageSettings { attempts: 2, batch: 1, retry, ..room_for(4) };
        bus.add_stage("a", settings, move |_| {
            door.pass();
            Err(Failure::new("late"))
        })
        .unwrap();
        bus.publish(ends.follow(1, to(&bus, 1, &["a"]))).unwrap();
        gate.await_waiting(1);
        let report = bus.shutdown(Duration::ZERO);
        assert!(!report.drained);
        gate.open();
        eventually("it ended somehow", || bus.conservation().in_flight == 0);
        assert_eq!(ends.len(), 1, "{retry:?}: told once");
    }
}

#[test]
fn f8_a_failure_after_closing_its_stage_is_a_dead_letter() {
    let bus = threaded::<u64>(1);
    let gate = Gate::new();
    let door = gate.door();
    let ends = Log::new();
    let hour = Duration::from_secs(3_600);
    let retry = Retry::Delayed { first: hour, max: hour, jitter: 0.0 };
    bus.add_stage("a", StageSettings { attempts: 2, retry, ..room_for(4) }, move |_| {
        door.pass();
        Err(Failure::new("late"))
    })
    .unwrap();
    bus.publish(ends.follow(1, to(&bus, 1, &["a"]))).unwrap();
    gate.await_waiting(1);
    bus.close_stage("a").unwrap();
    gate.open();
    eventually("it ended", || bus.conservation().in_flight == 0);
    assert_eq!(ends.take(), [(1, Settled::Dead(Cause::StageClosed))]);
    assert_eq!(bus.dead_letters().len(), 1);
}

#[test]
fn f9_block_inside_a_handler_never_waits() {
    let bus = threaded::<u64>(1);
    let log = Log::new();
    let (seen, inside) = (log.clone(), bus.handle());
    let settings = StageSettings { on_full: OnFull::Block(LONG), ..room_for(1) };
    bus.add_stage("a", settings, move |_| {
        let slip = inside.slip(["a"])?;
        for number in 0..3 {
            let envelope = Envelope::new(number, slip.clone());
            let outcome = match number {
                0 => inside.publish(envelope),
                1 => inside.publish_within(envelope, LONG),
                _ => inside.publisher().publish(envelope),
            };
            seen.add(outcome.map_err(|error| error.reason));
        }
        Err(Failure::permanent("once is enough"))
    })
    .unwrap();
    bus.publish(to(&bus, 7, &["a"])).unwrap();
    // One found room, the next two were refused at once.
    eventually("the first call ends", || bus.conservation().dead >= 1);
    assert_eq!(log.take()[..3], [Ok(()), Err(Refused::Full), Err(Refused::Full)]);
    bus.close_stage("a").unwrap();
}

#[test]
fn f9_a_wait_for_the_bus_inside_a_handler_is_refused() {
    let bus = threaded::<u64>(1);
    let log = Log::new();
    let (seen, inside) = (log.clone(), bus.handle());
    bus.add_stage("b", room_for(4), |_| Ok(())).unwrap();
    bus.add_stage("a", room_for(4), move |_| {
        let envelope = Envelope::new(1, inside.slip(["b"])?);
        let mut completion =
            inside.publish_tracked(envelope).map_err(|error| Failure::new(error.to_string()))?;
        seen.add(completion.wait(LONG).map(|_| ()));
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    eventually("both end", || bus.conservation().completed == 2);
    assert_eq!(log.take(), [Err(WaitError::OnWorker)]);
}

#[test]
fn f9_shutdown_releases_blocked_publishers() {
    let bus = threaded::<u64>(1);
    let settings = StageSettings { on_full: OnFull::Block(LONG), ..room_for(1) };
    let gate = gated(&bus, "a", settings);
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    gate.await_waiting(1);
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    std::thread::scope(|scope| {
        let blocked: Vec<_> = (2..5)
            .map(|number| {
                scope.spawn({
                    let bus = &bus;
                    move || bus.publish(to(bus, number, &["a"]))
                })
            })
            .collect();
        let report = bus.shutdown(Duration::from_millis(1));
        assert_eq!(report.leftovers.len(), 2, "{report:?}");
        for thread in blocked {
            let refused = thread.join().unwrap().unwrap_err();
            assert_eq!(refused.reason, Refused::Closed);
        }
    });
}

#[test]
fn f12_a_dead_letter_tells_its_producer_once() {
    let (bus, _clock) = virtual_time::<u64>();
    let ends = Log::new();
    bus.add_stage("a", room_for(4), |_| Err(Failure::new("no"))).unwrap();
    // Two envelopes of one id are two envelopes.
    let id = EnvelopeId::from_key(b"same");
    for number in [1, 2] {
        bus.publish(ends.follow(number, to(&bus, number, &["a"]).with_id(id))).unwrap();
    }
    run(&bus);
    let dead = || Settled::Dead(Cause::HandlerFailed("no".into()));
    assert_eq!(ends.take(), [(1, dead()), (2, dead())]);
    assert_eq!(bus.dead_letters().len(), 2);
    drop(bus);
    assert_eq!(ends.len(), 0, "never a second time");
}

#[test]
fn f13_a_panic_loses_no_envelope_and_no_thread() {
    let bus = threaded::<u64>(1);
    let settings = StageSettings { attempts: 2, ..room_for(64) };
    bus.add_stage("a", settings, |context| {
        assert!(context.payload() % 3 != 0 || context.attempts() == 1, "boom");
        assert!(context.payload() % 5 != 0, "always boom");
        Ok(())
    })
    .unwrap();
    for number in 0..60 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    let books = drained(&bus);
    assert_eq!((books.completed, books.dead, bus.workers()), (48, 12, 1));
    assert!(bus.dead_letters().iter().all(|letter| {
        letter.attempts == 2 && letter.cause == Cause::HandlerPanicked("always boom".into())
    }));
}

#[test]
fn f13_a_throwing_callback_does_not_abort_the_batch() {
    let (bus, _clock) = virtual_time::<u64>();
    let ends = Log::new();
    bus.add_stage("a", room_for(64), |_| Ok(())).unwrap();
    for number in 0..20 {
        let envelope = to(&bus, number, &["a"]);
        bus.publish(if number % 2 == 0 {
            envelope.on_settled(|_, _| panic!("a callback"))
        } else {
            ends.follow(number, envelope)
        })
        .unwrap();
    }
    run(&bus);
    assert_eq!(ends.len(), 10);
    assert_eq!(bus.snapshot().panics_outside_handlers, 10);
    assert_eq!(drained(&bus).completed, 20);
}

#[test]
fn f15_a_refused_envelope_comes_back_whole() {
    let (bus, _clock) = virtual_time::<()>();
    bus.open_stage("a", room_for(1), None).unwrap();
    let envelope = to(&bus, (), &["a", "b"]).with_header("only", "headers").unwrap();
    let refused = bus.publish(envelope).unwrap_err();
    assert_eq!(refused.reason, Refused::NoConsumer);
    assert_eq!(refused.envelope.header("only"), Some(&b"headers"[..]));
    assert_eq!(refused.envelope.slip().remaining(), 2, "both hops are ahead of it again");
    assert_eq!(refused.envelope.current(), None);
    assert_eq!(refused.to_string(), "publish to `a` refused: the stage has no handler");
    // It can be published as it is once the reason is gone.
    bus.set_handler("a", waystage::Handler::each(|_| Ok(()))).unwrap();
    bus.add_stage("b", room_for(1), |_| Ok(())).unwrap();
    bus.publish(*refused.envelope).unwrap();
    run(&bus);
    assert_eq!(drained(&bus).completed, 1);
}

#[test]
fn f19_a_stage_opened_before_its_handler_keeps_its_settings() {
    let bus = threaded::<u64>(2);
    let gate = Gate::new();
    let door = gate.door();
    bus.open_stage("a", StageSettings { permits: 2, ..room_for(3) }, None).unwrap();
    let handler = waystage::Handler::each(move |_| {
        door.pass();
        Ok(())
    });
    assert!(bus.set_handler("a", handler).unwrap());
    assert!(!bus.set_handler("a", waystage::Handler::each(|_| Ok(()))).unwrap(), "it has one");
    for number in 0..2 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    gate.await_waiting(2);
    for number in 2..5 {
        bus.try_publish(to(&bus, number, &["a"])).unwrap();
    }
    assert_eq!(bus.try_publish(to(&bus, 5, &["a"])).unwrap_err().reason, Refused::Full);
    gate.open();
    assert_eq!(drained(&bus).completed, 5);
}

#[test]
fn f20_a_batch_of_slow_work_leaves_turns_to_others() {
    let (bus, clock) = virtual_time::<u64>();
    let log = Log::new();
    let (slow, other) = (log.clone(), log.clone());
    bus.add_stage("slow", StageSettings { batch: 4, ..room_for(64) }, move |_| {
        clock.advance(Duration::from_millis(10));
        slow.add("slow");
        Ok(())
    })
    .unwrap();
    bus.add_stage("other", room_for(64), move |_| {
        other.add("other");
        Ok(())
    })
    .unwrap();
    for number in 0..20 {
        bus.publish(to(&bus, number, &["slow"])).unwrap();
    }
    bus.publish(to(&bus, 0, &["other"])).unwrap();
    run(&bus);
    let place = log.take().iter().position(|entry| *entry == "other").unwrap();
    assert!(place <= 4, "after {place} slow calls; a batch is 4");
}

#[test]
fn f20_a_retry_in_place_is_not_overtaken() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    let settings = StageSettings { attempts: 200, batch: 3, ..room_for(64) };
    bus.add_stage("a", settings, move |context| {
        seen.add(*context.payload());
        if *context.payload() == 1 && context.attempts() < 100 {
            return Err(Failure::new("again"));
        }
        Ok(())
    })
    .unwrap();
    for number in 0..5 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    let calls = log.take();
    assert_eq!(calls.len(), 105);
    assert!(calls.is_sorted(), "none was handled before those ahead of it were done");
}

#[test]
fn r1_a_panicking_callback_leaks_no_permit() {
    let bus = threaded::<u64>(2);
    bus.add_stage("a", StageSettings { permits: 1, ..room_for(8) }, |_| Ok(())).unwrap();
    for number in 0..200 {
        let envelope = to(&bus, number, &["a"]).on_settled(|_, _| panic!("a callback"));
        bus.publish(envelope).unwrap();
    }
    assert_eq!(drained(&bus).completed, 200);
}

#[test]
fn r2_a_hop_on_the_way_during_shutdown_or_pause_arrives() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(4), |_| Ok(())).unwrap();
    bus.add_stage("b", room_for(4), |_| Ok(())).unwrap();
    bus.pause_stage("b").unwrap();
    bus.publish(to(&bus, 1, &["a", "b"])).unwrap();
    run(&bus);
    assert_eq!(meters(&bus, "b").depth, 1, "hops are accepted during a pause");
    assert_eq!(bus.publish(to(&bus, 2, &["b"])).unwrap_err().reason, Refused::Paused);
    // A shutdown ends the pause, or it would never drain.
    assert_eq!(drained(&bus).completed, 1);
}

#[test]
fn r3_retries_neither_exceed_the_bound_nor_spin() {
    let (bus, clock) = virtual_time::<u64>();
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    let hour = Duration::from_secs(3_600);
    let retry = Retry::Delayed { first: hour, max: hour, jitter: 0.0 };
    bus.add_stage("a", StageSettings { attempts: 2, retry, ..room_for(2) }, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Err(Failure::new("no"))
    })
    .unwrap();
    for round in 0..4 {
        bus.publish(to(&bus, round, &["a"])).unwrap();
        run(&bus);
        assert!(meters(&bus, "a").delayed <= 2, "a third bound: again the capacity");
    }
    // Two wait an hour; the other two were tried again in place.
    assert_eq!((calls.load(Ordering::Relaxed), bus.conservation().dead), (6, 2));
    clock.advance(hour / 2);
    assert_eq!(run(&bus), 0, "nothing is polled meanwhile");
    clock.advance(hour);
    run(&bus);
    assert_eq!((calls.load(Ordering::Relaxed), drained(&bus).dead), (8, 4));
}

#[test]
fn r4_dead_letters_wait_for_room_in_a_full_dead_letter_stage() {
    let bus = threaded::<u64>(2);
    let gate = Gate::new();
    let door = gate.door();
    let log = Log::new();
    let seen = log.clone();
    bus.add_stage("dead", room_for(1), move |context| {
        door.pass();
        seen.add((*context.payload(), context.envelope().cause().map(Cause::name)));
        Ok(())
    })
    .unwrap();
    let settings = StageSettings { dead_letter: Some("dead".into()), ..room_for(64) };
    bus.add_stage("a", settings, |_| Err(Failure::new("no"))).unwrap();
    for number in 0..10 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    gate.await_waiting(1);
    eventually("a dead letter waits", || meters(&bus, "dead").hops_waiting > 0);
    gate.open();
    assert_eq!(drained(&bus).dead, 10);
    let want: Vec<_> = (0..10).map(|number| (number, Some("handler_failed"))).collect();
    assert_eq!(log.take(), want);
}

#[test]
fn r5_leftovers_are_named_and_undelivered_not_dropped() {
    let bus = threaded::<u64>(1);
    let gate = gated(&bus, "a", room_for(64));
    for number in 0..20 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    gate.await_waiting(1);
    gate.admit_one();
    eventually("one is done", || meters(&bus, "a").done == 1);
    let report = bus.shutdown(Duration::from_millis(1));
    let books = report.conservation;
    assert_eq!((books.completed, books.undelivered, books.dropped), (1, 18, 0));
    assert_eq!((books.in_flight, report.leftovers.len()), (1, 19));
}

#[test]
fn g1_work_left_by_a_release_is_found_again() {
    // Many stages for one worker, each filled while its permit is on its way back.
    let bus = threaded::<u64>(1);
    let names: Vec<String> = (0..32).map(|number| format!("stage-{number}")).collect();
    for name in &names {
        bus.add_stage(name, StageSettings { batch: 1, ..room_for(4) }, |_| Ok(())).unwrap();
    }
    for round in 0..200 {
        for name in &names {
            bus.publish(to(&bus, round, &[name])).unwrap();
        }
        if round % 20 == 0 {
            eventually("all is done", || bus.conservation().in_flight == 0);
        }
    }
    assert_eq!(drained(&bus).completed, 200 * 32);
}
