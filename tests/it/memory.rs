//! What the ring promises: nothing lost or doubled, `Full` only when true, order over many laps,
//! each value dropped once and at its pop.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use waystage::{Bus, Envelope, Failure, OnFull, Refused, Retry, Settled, StageSettings};

use crate::support::{
    Census, Citizen, LONG, Log, Random, drained, eventually, gated, room_for, run, settled,
    threaded, to, virtual_time,
};

/// A random bus of up to 16 stages; each of `count` envelopes is followed to its end.
fn random_work(seed: u64, count: u64) {
    let mut random = Random(seed);
    let bus = threaded::<(u64, u32)>(1 + usize::from(random.small(3)));
    let stages = 1 + random.small(16);
    let names: Vec<String> = (0..stages).map(|stage| format!("s{stage}")).collect();
    let calls: Arc<Vec<AtomicU64>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
    for name in &names {
        let settings = StageSettings {
            permits: 1 + u32::from(random.small(3)),
            capacity: 1 + usize::from(random.small(64)),
            batch: 1 + usize::from(random.small(32)),
            attempts: 1 + random.small(3),
            hop_timeout: Duration::from_millis(20),
            on_full: OnFull::Block(LONG),
            ..StageSettings::default()
        };
        let (fails, calls) = (random.below(50) + 5, Arc::clone(&calls));
        bus.add_stage(name, settings, move |context| {
            let (number, sum) = *context.payload();
            *context.payload_mut() = (number, sum.wrapping_add(1));
            calls[usize::try_from(number)?].fetch_add(1, Ordering::Relaxed);
            match (number + u64::from(sum)) % fails {
                0 => Err(Failure::new("unlucky")),
                1 => panic!("very unlucky"),
                2 => {
                    std::thread::yield_now();
                    Ok(())
                }
                _ => Ok(()),
            }
        })
        .expect("the stage is fine");
    }
    let ends: Log<(u64, Settled)> = Log::new();
    std::thread::scope(|scope| {
        for producer in 0..2 {
            let (bus, names, ends) = (&bus, &names, &ends);
            let mut random = Random(seed ^ (producer + 1));
            scope.spawn(move || {
                for number in (producer * count / 2)..((producer + 1) * count / 2) {
                    // Forward only: cycles of full stages have their own tests.
                    let mut hops: Vec<&str> = (0..1 + random.below(6))
                        .map(|_| &*names[usize::from(random.small(stages))])
                        .collect();
                    hops.sort_unstable();
                    hops.dedup();
                    let envelope = ends.follow(number, to(bus, (number, 0), &hops));
                    bus.publish(envelope).expect("it waits for room");
                }
            });
        }
    });
    let report = bus.shutdown(LONG);
    assert!(report.drained, "seed {seed}: {report:?}");
    let books = settled(&report);
    // Dead letters beyond those that are kept are counted as dropped.
    let ended = books.completed + books.dead + books.dropped;
    assert_eq!((books.accepted, ended), (count, count), "seed {seed}");
    let mut told: Vec<u64> = ends.take().into_iter().map(|(number, _)| number).collect();
    told.sort_unstable();
    assert!(told.into_iter().eq(0..count), "seed {seed}: each was told once");
    assert!(calls.iter().all(|calls| calls.load(Ordering::Relaxed) > 0), "seed {seed}");
}

/// `WAYSTAGE_A1` is how many envelopes there are in all. The panics of handlers are part of it, so
/// for many: `WAYSTAGE_A1=100000000 RUST_BACKTRACE=0 cargo test --test it -- --nocapture
/// a1_nothing 2>&1 | grep -v panick`.
#[test]
fn a1_nothing_is_lost_or_doubled() {
    let asked = std::env::var("WAYSTAGE_A1").ok();
    let total: u64 = asked.map_or(80_000, |asked| asked.parse().expect("WAYSTAGE_A1 is a number"));
    let each = (total / 20).clamp(4_000, 100_000);
    for seed in 1..=total.div_ceil(each) {
        random_work(seed, each);
    }
}

#[test]
fn a1_each_hop_is_handled_exactly_once_without_failures() {
    const COUNT: u64 = 50_000;
    let bus = threaded::<u64>(2);
    let counts: Arc<Vec<AtomicU64>> = Arc::new((0..COUNT).map(|_| AtomicU64::new(0)).collect());
    for name in ["a", "b", "c"] {
        let counts = Arc::clone(&counts);
        bus.add_stage(name, StageSettings { permits: 2, ..room_for(64) }, move |context| {
            counts[usize::try_from(*context.payload())?].fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    }
    let slip = bus.slip(["a", "b", "c"]).unwrap();
    let mut publisher = bus.publisher();
    for number in 0..COUNT / 2 {
        publisher.publish(Envelope::new(number, slip.clone())).unwrap();
    }
    let mut batch = (COUNT / 2..COUNT).map(|number| Envelope::new(number, slip.clone()));
    assert_eq!(publisher.publish_batch(&mut batch).unwrap() as u64, COUNT / 2);
    assert_eq!(drained(&bus).completed, COUNT);
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 3));
}

/// Four threads that publish only after a place was freed: never `Full`.
fn never_full_with_room(capacity: usize) {
    const EACH: u64 = 20_000;
    let bus = threaded::<u64>(1);
    let places = Arc::new(AtomicUsize::new(capacity));
    let freed = Arc::clone(&places);
    bus.add_stage(
        "a",
        StageSettings { on_full: OnFull::Reject, ..room_for(capacity) },
        move |_| {
            // The handler runs after its envelope was popped.
            freed.fetch_add(1, Ordering::SeqCst);
            Ok(())
        },
    )
    .expect("the stage is fine");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (mut publisher, places) = (bus.publisher(), Arc::clone(&places));
            let slip = bus.slip(["a"]).expect("the name is fine");
            scope.spawn(move || {
                for number in 0..EACH {
                    eventually("a place is freed", || {
                        let take = |free: usize| free.checked_sub(1);
                        places.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
                    });
                    publisher.try_publish(Envelope::new(number, slip.clone())).expect("has room");
                }
            });
        }
    });
    assert_eq!(drained(&bus).completed, 4 * EACH);
}

#[test]
fn a2_never_full_with_room_under_stress() {
    for capacity in [1, 2, 3, 8] {
        never_full_with_room(capacity);
    }
}

#[test]
fn a2_full_when_full_and_not_before() {
    for capacity in [1, 2, 3, 4, 5, 7, 8, 64] {
        let (bus, _clock) = virtual_time::<usize>();
        bus.add_stage("a", StageSettings { batch: 1, ..room_for(capacity) }, |_| Ok(())).unwrap();
        for round in 0..3 * capacity {
            let fill = if round == 0 { capacity } else { 1 };
            for number in 0..fill {
                bus.try_publish(to(&bus, number, &["a"])).unwrap();
            }
            let full = bus.try_publish(to(&bus, 0, &["a"])).unwrap_err();
            assert_eq!(full.reason, Refused::Full, "capacity {capacity}, round {round}");
            assert_eq!(bus.turn(), 1);
        }
    }
}

#[test]
fn a3_order_holds_over_many_laps() {
    for capacity in [1, 2, 3, 4, 5, 7, 8, 64, 100] {
        let (bus, _clock) = virtual_time::<u64>();
        let log = Log::new();
        let seen = log.clone();
        bus.add_stage("a", StageSettings { batch: 3, ..room_for(capacity) }, move |context| {
            seen.add(*context.payload());
            Ok(())
        })
        .unwrap();
        let (mut next, mut random) = (0, Random(capacity as u64));
        while next < 200 * capacity as u64 {
            for _ in 0..random.below(capacity as u64 + 2) {
                // A refused number is published again, so that the order has no gaps.
                next += u64::from(bus.try_publish(to(&bus, next, &["a"])).is_ok());
            }
            for _ in 0..random.below(3) {
                bus.turn();
            }
        }
        run(&bus);
        assert!(log.take().into_iter().eq(0..next), "capacity {capacity}");
    }
}

#[test]
fn a3_order_holds_over_a_million_laps_of_small_rings() {
    for capacity in [1, 2, 3, 4] {
        let (bus, _clock) = virtual_time::<u64>();
        let next = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&next);
        bus.add_stage("a", room_for(capacity), move |context| {
            let number = seen.fetch_add(1, Ordering::Relaxed);
            if number == *context.payload() { Ok(()) } else { Err(Failure::new("out of order")) }
        })
        .unwrap();
        let slip = bus.slip(["a"]).unwrap();
        let mut publisher = bus.publisher();
        let mut number = 0;
        for fill in (1..=capacity).cycle() {
            for _ in 0..fill {
                publisher.try_publish(Envelope::new(number, slip.clone())).unwrap();
                number += 1;
            }
            bus.turn();
            if number >= capacity as u64 * (1 << 20) {
                break;
            }
        }
        let books = drained(&bus);
        assert_eq!((books.completed, books.dead), (number, 0), "capacity {capacity}");
    }
}

#[test]
fn a3_order_holds_over_singles_and_batches_mixed() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    let settings = StageSettings { batch: 5, on_full: OnFull::Reject, ..room_for(16) };
    bus.add_stage("a", settings, move |context| {
        seen.add(*context.payload());
        Ok(())
    })
    .unwrap();
    let (mut next, mut random) = (0, Random(3));
    while next < 5_000 {
        let count = 1 + random.below(9);
        let mut batch = (next..next + count).map(|number| to(&bus, number, &["a"]));
        next += match bus.publish_batch(&mut batch) {
            Ok(count) => count as u64,
            Err(refused) => {
                let first = *refused.rest[0].payload();
                assert_eq!(first, next + refused.accepted as u64, "given back in order");
                refused.accepted as u64
            }
        };
        next += u64::from(bus.try_publish(to(&bus, next, &["a"])).is_ok());
        bus.turn();
    }
    run(&bus);
    assert!(log.take().into_iter().eq(0..next));
}

#[test]
fn a4_a_payload_is_dropped_right_after_its_handling() {
    let (bus, _clock) = virtual_time::<Arc<()>>();
    let held: Log<Weak<()>> = Log::new();
    let seen = held.clone();
    let settings = StageSettings { batch: 1, ..room_for(64) };
    bus.add_stage("a", settings.clone(), move |context| {
        seen.add(Arc::downgrade(context.payload()));
        Ok(())
    })
    .unwrap();
    let seen = held.clone();
    bus.add_batch_stage("b", settings, move |batch| {
        batch.payloads().for_each(|payload| seen.add(Arc::downgrade(payload)));
        Ok(())
    })
    .unwrap();
    for name in ["a", "b"] {
        for _ in 0..10 {
            bus.publish(to(&bus, Arc::new(()), &[name])).unwrap();
        }
        for _ in 0..10 {
            assert_eq!(bus.turn(), 1);
            assert!(held.take().iter().all(|weak| weak.strong_count() == 0), "stage {name}");
        }
    }
}

#[test]
fn a4_every_payload_is_dropped_once_whatever_becomes_of_it() {
    let census = Census::default();
    let (bus, clock) = virtual_time::<Citizen>();
    let minute = Duration::from_secs(60);
    let retry = Retry::Delayed { first: minute, max: minute, jitter: 0.0 };
    let failing = StageSettings { attempts: 2, retry, ..room_for(4) };
    bus.add_stage("fails", failing, |_| Err(Failure::new("no"))).unwrap();
    bus.add_stage("works", room_for(4), |_| Ok(())).unwrap();
    bus.add_stage("emits", room_for(4), |context| {
        let copy = context.payload().another();
        context.emit(copy, waystage::Slip::new())?;
        if context.payload().number % 2 == 0 { Err(Failure::new("even")) } else { Ok(()) }
    })
    .unwrap();
    let drops = StageSettings { on_full: OnFull::DropOldest, ..room_for(2) };
    bus.add_stage("drops", drops, |_| Ok(())).unwrap();
    bus.add_stage("expires", StageSettings { expiry: Some(minute), ..room_for(4) }, |_| Ok(()))
        .unwrap();
    for _ in 0..10 {
        for name in ["fails", "works", "emits", "drops", "expires", "nowhere"] {
            // Refused ones come back and are dropped here.
            let _ = bus.try_publish(to(&bus, census.citizen(), &[name, "works"]));
        }
    }
    clock.advance(minute);
    run(&bus);
    let id = bus.dead_letters()[0].id;
    drop(bus.take_dead_letter(id));
    bus.close_stage("works").unwrap();
    bus.publish(to(&bus, census.citizen(), &["drops", "drops"])).unwrap();
    drop(bus);
    census.assert_all_dropped_once();
}

#[test]
fn p11_closing_during_publishes_drops_each_payload_once() {
    for round in 0..30 {
        let census = Census::default();
        let bus = threaded::<Citizen>(2);
        let gate = gated(&bus, "a", StageSettings { on_full: OnFull::Reject, ..room_for(16) });
        let refused = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut publisher = bus.publisher();
                    let slip = bus.slip(["a"]).unwrap();
                    loop {
                        let envelope = Envelope::new(census.citizen(), slip.clone());
                        let Err(error) = publisher.publish(envelope) else {
                            continue;
                        };
                        if !error.reason.is_retryable() {
                            break;
                        }
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            eventually("the ring is full", || refused.load(Ordering::Relaxed) > 3 * round);
            if round % 2 == 0 {
                bus.close_stage("a").unwrap();
                gate.open();
            } else {
                bus.shutdown(Duration::ZERO);
                gate.open();
            }
        });
        eventually("the books close", || bus.conservation().in_flight == 0);
        drop(bus);
        census.assert_all_dropped_once();
    }
}

#[test]
fn p12_a_large_ring_keeps_no_handled_payload_alive() {
    let bus: Bus<Arc<Vec<u8>>> = threaded(2);
    let alive: Arc<Mutex<Vec<Weak<Vec<u8>>>>> = Arc::default();
    bus.add_stage("a", room_for(65_536), |_| Ok(())).unwrap();
    for _ in 0..100 {
        let payload = Arc::new(vec![1; 64 * 1024]);
        alive.lock().unwrap().push(Arc::downgrade(&payload));
        bus.publish(to(&bus, payload, &["a"])).unwrap();
    }
    eventually("all are handled", || bus.conservation().in_flight == 0);
    let alive = alive.lock().unwrap();
    assert!(alive.iter().all(|weak| weak.strong_count() == 0), "the bus is still open");
}
