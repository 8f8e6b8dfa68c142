//! Retries and dead letters: order as documented, exactly as many attempts as allowed, nothing
//! loops for ever and nothing vanishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waystage::{Bus, BusSettings, Cause, Failure, LetterFilter, Redrive, Retry, StageSettings};

use crate::support::{LONG, Log, drained, meters, room_for, run, threaded, to, virtual_time};

#[test]
fn a14_one_permit_with_retry_in_place_stays_first_in_first_out() {
    for workers in [1, 3] {
        for batch in [1, 7, 64] {
            let bus = threaded::<u64>(workers);
            let log = Log::new();
            let seen = log.clone();
            let settings = StageSettings { attempts: 3, batch, ..room_for(64) };
            bus.add_stage("a", settings, move |context| {
                if context.payload() % 10 == 0 && context.attempts() < 2 {
                    return Err(Failure::new("one in ten"));
                }
                seen.add(*context.payload());
                Ok(())
            })
            .unwrap();
            for number in 0..1_000 {
                bus.publish(to(&bus, number, &["a"])).unwrap();
            }
            let mut more = (1_000..2_000).map(|number| to(&bus, number, &["a"]));
            assert_eq!(bus.publish_batch(&mut more).unwrap(), 1_000);
            assert_eq!(drained(&bus).completed, 2_000);
            assert!(log.take().into_iter().eq(0..2_000), "{workers} workers, batch {batch}");
        }
    }
}

#[test]
fn a14_a_delayed_retry_is_overtaken_and_comes_back_after_its_pause() {
    let (bus, clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    let second = Duration::from_secs(1);
    let retry = Retry::Delayed { first: second, max: 2 * second, jitter: 0.0 };
    bus.add_stage("a", StageSettings { attempts: 4, retry, ..room_for(8) }, move |context| {
        seen.add((*context.payload(), context.attempts()));
        if *context.payload() == 0 && context.attempts() < 3 {
            return Err(Failure::new("no"));
        }
        Ok(())
    })
    .unwrap();
    for number in 0..3 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    assert_eq!(log.take(), [(0, 0), (1, 0), (2, 0)]);
    // Pauses of one, two and again two seconds.
    for (attempt, pause) in [(1, 1), (2, 2), (3, 2)] {
        clock.advance(pause * second - Duration::from_nanos(1));
        assert_eq!((run(&bus), meters(&bus, "a").delayed), (0, 1));
        clock.advance(Duration::from_nanos(1));
        run(&bus);
        assert_eq!(log.take(), [(0, attempt)]);
    }
    assert_eq!(drained(&bus).completed, 3);
}

/// A batch with one poisoned envelope, at each place.
fn poison_at(place: u64, size: u64, retry: Retry) {
    let (bus, clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    let batch = usize::try_from(size).expect("it is small");
    let settings = StageSettings { attempts: 3, batch, retry, ..room_for(16) };
    bus.add_batch_stage("a", settings, move |batch| {
        for index in 0..batch.len() {
            let context = batch.context(index);
            let (number, attempts) = (*context.payload(), context.attempts());
            seen.add((number, attempts));
            if number == place {
                batch.fail(index, Failure::new("poison"));
            }
        }
        Ok(())
    })
    .expect("the stage is fine");
    for number in 0..size {
        bus.publish(to(&bus, number, &["a"])).expect("there is room");
    }
    for _ in 0..4 {
        run(&bus);
        clock.advance(Duration::from_secs(60));
    }
    let calls = log.take();
    for number in 0..size {
        let attempts: Vec<u16> =
            calls.iter().filter(|call| call.0 == number).map(|call| call.1).collect();
        let want: &[u16] = if number == place { &[0, 1, 2] } else { &[0] };
        assert_eq!(attempts, want, "{number} of {size} with poison at {place}");
    }
    let books = drained(&bus);
    assert_eq!((books.completed, books.dead), (size - 1, 1));
}

#[test]
fn a15_poison_in_a_batch_leaves_its_neighbours_at_their_first_attempt() {
    let second = Duration::from_secs(1);
    for retry in [Retry::InPlace, Retry::Delayed { first: second, max: second, jitter: 0.2 }] {
        for size in [1, 2, 5, 8] {
            for place in 0..size {
                poison_at(place, size, retry);
            }
        }
    }
}

#[test]
fn a15_a_batch_that_fails_as_a_whole_fails_each() {
    let (bus, _clock) = virtual_time::<u64>();
    let settings = StageSettings { attempts: 2, batch: 4, ..room_for(16) };
    bus.add_batch_stage("a", settings, |_| Err(Failure::new("all"))).unwrap();
    for number in 0..8 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    let letters = bus.dead_letters();
    assert_eq!(letters.len(), 8);
    assert!(letters.iter().all(|letter| letter.attempts == 2));
}

#[test]
fn a15_a_failed_attempt_leaves_slip_headers_and_emits_untouched() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let (seen, end) = (log.clone(), log.clone());
    let other = bus.route("b").unwrap();
    bus.add_stage("b", room_for(8), move |context| {
        end.add((*context.payload(), context.header("mark").map(<[u8]>::to_vec)));
        Ok(())
    })
    .unwrap();
    bus.add_stage("a", StageSettings { attempts: 3, ..room_for(8) }, move |context| {
        seen.add((u64::from(context.attempts()), context.header("mark").map(<[u8]>::to_vec)));
        context.set_header("mark", "changed")?;
        context.push(other)?;
        context.emit(100, waystage::Slip::via([other])?)?;
        if context.attempts() < 2 { Err(Failure::new("no")) } else { Ok(()) }
    })
    .unwrap();
    bus.publish(to(&bus, 7, &["a"]).with_header("mark", "first").unwrap()).unwrap();
    run(&bus);
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let first = text("first");
    let mut calls = log.take();
    assert_eq!(
        calls.drain(..3).collect::<Vec<_>>(),
        [(0, first.clone()), (1, first.clone()), (2, first)]
    );
    calls.sort();
    assert_eq!(calls, [(7, text("changed")), (100, None)], "one hop and one emit");
    let books = drained(&bus);
    assert_eq!((books.accepted, books.completed), (2, 2));
}

#[test]
fn a16_a_dead_letter_stage_that_fails_ends_in_the_store() {
    let (bus, _clock) = virtual_time::<u64>();
    let buries = StageSettings { attempts: 2, ..room_for(8) };
    bus.add_stage("buries", buries, |_| Err(Failure::new("it fails too"))).unwrap();
    let settings = StageSettings { dead_letter: Some("buries".into()), ..room_for(8) };
    bus.add_stage("a", settings, |_| Err(Failure::new("no"))).unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    let letter = &bus.dead_letters()[0];
    assert_eq!((&*letter.stage, letter.attempts), ("buries", 2));
    assert_eq!(letter.trail, ["a", "buries"]);
    assert_eq!(drained(&bus).dead, 1);
}

#[test]
fn a16_a_missing_closed_or_deaf_dead_letter_stage_loses_nothing() {
    for case in 0..3 {
        let (bus, _clock) = virtual_time::<u64>();
        match case {
            0 => {}
            1 => drop(bus.open_stage("buries", room_for(8), None).unwrap()),
            _ => {
                bus.add_stage("buries", room_for(8), |_| Ok(())).unwrap();
                bus.close_stage("buries").unwrap();
            }
        }
        let settings = StageSettings { dead_letter: Some("buries".into()), ..room_for(8) };
        bus.add_stage("a", settings, |_| Err(Failure::new("no"))).unwrap();
        bus.publish(to(&bus, 1, &["a"])).unwrap();
        run(&bus);
        assert_eq!(bus.dead_letters().len(), 1, "case {case}");
        assert_eq!(drained(&bus).dead, 1);
    }
}

#[test]
fn a16_dead_letter_stages_in_a_circle_end_at_the_hop_limit() {
    let settings = BusSettings { workers: 0, hop_limit: 100, ..BusSettings::default() };
    let bus: Bus<u64> = Bus::start(settings).unwrap();
    for (name, other) in [("a", "b"), ("b", "a")] {
        let settings = StageSettings { dead_letter: Some(other.into()), ..room_for(8) };
        bus.add_stage(name, settings, |_| Err(Failure::new("no"))).unwrap();
    }
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    assert_eq!(bus.dead_letters().len(), 1);
    assert_eq!(bus.dead_letters()[0].cause, Cause::HandlerFailed("no".into()));
    assert_eq!(drained(&bus).dead, 1);
}

#[test]
fn a16_the_store_is_bounded_and_counts_what_it_drops() {
    let settings = BusSettings { workers: 0, dead_letters: 3, ..BusSettings::default() };
    let bus: Bus<u64> = Bus::start(settings).unwrap();
    bus.add_stage("a", room_for(16), |_| Err(Failure::new("no"))).unwrap();
    for number in 0..10 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    assert_eq!(bus.dead_letters().len(), 3);
    let books = drained(&bus);
    assert_eq!((books.dead, books.dropped), (3, 7));
    let first = bus.take_dead_letter(bus.dead_letters()[0].id).unwrap();
    assert_eq!(first.envelope.into_payload(), 7, "the newest were kept");
    assert_eq!(bus.conservation().dead, 3, "taken out, it stays counted");
}

#[test]
fn a16_a_redrive_has_a_loop_guard_and_new_attempts() {
    let (bus, _clock) = virtual_time::<u64>();
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    bus.add_stage("a", StageSettings { attempts: 2, ..room_for(8) }, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Err(Failure::new("no"))
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a", "b"])).unwrap();
    run(&bus);
    for round in 1..=3 {
        let outcome = bus.redrive(&Redrive::default()).unwrap();
        assert_eq!((outcome.redriven, outcome.guarded, outcome.refused), (1, 0, 0));
        run(&bus);
        assert_eq!(calls.load(Ordering::Relaxed), 2 + 2 * round);
    }
    let outcome = bus.redrive(&Redrive::default()).unwrap();
    assert_eq!((outcome.redriven, outcome.guarded), (0, 1));
    assert_eq!(bus.dead_letters()[0].redrives, 3);
    // To a stage that takes it, with its remaining hop.
    for name in ["other", "b"] {
        bus.add_stage(name, room_for(8), |_| Ok(())).unwrap();
    }
    let plan = Redrive {
        to: Some("other".into()),
        redrives_max: 9,
        filter: LetterFilter { cause: Some("handler_failed".into()), ..LetterFilter::default() },
        ..Redrive::default()
    };
    assert_eq!(bus.redrive(&plan).unwrap().redriven, 1);
    run(&bus);
    assert_eq!((meters(&bus, "b").done, bus.dead_letters().len()), (1, 0));
    let books = drained(&bus);
    assert_eq!((books.accepted, books.redriven, books.dead, books.completed), (1, 4, 4, 1));
}

#[test]
fn a16_a_redrive_refused_by_a_full_stage_leaves_the_letter() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(1), |context| {
        if *context.payload() == 1 { Err(Failure::new("no")) } else { Ok(()) }
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    bus.publish(to(&bus, 2, &["a"])).unwrap();
    let outcome = bus.redrive(&Redrive::default()).unwrap();
    assert_eq!((outcome.redriven, outcome.refused), (0, 1));
    let letter = &bus.dead_letters()[0];
    assert_eq!((letter.redrives, letter.attempts, &*letter.stage), (0, 1, "a"));
    run(&bus);
    let books = drained(&bus);
    assert_eq!((books.redriven, books.dead), (0, 1));
    let unknown = Redrive { to: Some("aa".into()), ..Redrive::default() };
    assert!(bus.redrive(&unknown).is_err());
}

#[test]
fn p17_a_letter_rejected_on_every_way_round_ends_in_the_terminal_store() {
    let settings = BusSettings { workers: 1, hop_limit: 50, ..BusSettings::default() };
    let bus: Bus<u64> = Bus::start(settings).unwrap();
    let work = bus.route("work").unwrap();
    let rejected = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&rejected);
    bus.add_stage("delay", room_for(8), move |context| {
        assert_eq!(context.envelope().cause().map(Cause::name), Some("handler_failed"));
        context.push(work)?;
        Ok(())
    })
    .unwrap();
    let settings = StageSettings { attempts: 3, dead_letter: Some("delay".into()), ..room_for(8) };
    bus.add_stage("work", settings, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Err(Failure::new("rejected"))
    })
    .unwrap();
    let mut completion = bus.publish_tracked(to(&bus, 1, &["work"])).unwrap();
    let (end, _) = completion.wait(LONG).unwrap();
    assert!(matches!(end, waystage::Settled::Dead(_)), "{end:?}");
    let books = drained(&bus);
    assert_eq!((books.dead, books.dropped), (1, 0), "never dropped as a loop");
    assert_eq!(bus.dead_letters().len(), 1);
    let rejected = rejected.load(Ordering::Relaxed);
    assert!(
        rejected >= 3 * 25 && rejected.is_multiple_of(3),
        "{rejected} rejections within 50 hops"
    );
}
