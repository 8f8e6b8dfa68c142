//! Full stages that route into each other: a hop never obeys `OnFull`, it waits with the permit of
//! the stage it left, and a cycle of waits ends by the hop time-out. In virtual time.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use waystage::clock::ManualClock;
use waystage::{Bus, Cause, Envelope, OnFull, Refused, Settled, StageSettings};

use crate::support::{
    LONG, Log, drained, meters, room_for, run, settled, threaded, to, virtual_time,
};

const TIMEOUT: Duration = Duration::from_millis(100);

/// Runs in virtual time until nothing is in flight: a bus that waits for ever fails.
fn run_out(bus: &Bus<u64>, clock: &ManualClock) {
    for _ in 0..100_000 {
        run(bus);
        if bus.conservation().in_flight == 0 {
            return;
        }
        clock.advance(TIMEOUT);
    }
    panic!("waits for ever: {:?}", bus.conservation());
}

/// Stages in a ring, all full, each envelope going on to the next stage of the ring.
fn full_ring(names: &[&str], capacity: usize, permits: u32) {
    let (bus, clock) = virtual_time::<u64>();
    let ends = Log::new();
    for name in names {
        let settings = StageSettings {
            hop_timeout: TIMEOUT,
            permits,
            on_full: OnFull::Reject,
            ..room_for(capacity)
        };
        bus.add_stage(name, settings, |_| Ok(())).expect("the stage is fine");
    }
    let mut accepted = 0;
    for start in 0..names.len() {
        let mut hops: Vec<&str> = names.iter().copied().cycle().skip(start).take(8).collect();
        loop {
            let published = bus.publish(ends.follow(accepted, to(&bus, accepted, &hops)));
            if let Err(refused) = published {
                assert_eq!(refused.reason, Refused::Full);
                break;
            }
            accepted += 1;
        }
        hops.clear();
    }
    run_out(&bus, &clock);
    let books = drained(&bus);
    assert_eq!((books.accepted, books.completed + books.dead), (accepted, accepted));
    let timed_out = Settled::Dead(Cause::NextStageFull);
    let told = ends.take();
    assert!(told.iter().all(|(_, end)| *end == Settled::Completed || *end == timed_out));
    assert_eq!(told.len() as u64, accepted);
    assert!(books.completed > 0, "each time-out makes room for others: {books:?}");
}

#[test]
fn a8_a_stage_whose_envelopes_go_to_itself_ends() {
    for (capacity, permits) in [(1, 1), (2, 1), (3, 2), (16, 3)] {
        full_ring(&["a"], capacity, permits);
    }
}

#[test]
fn a8_two_full_stages_that_route_into_each_other_end() {
    for (capacity, permits) in [(1, 1), (2, 1), (3, 2), (16, 3)] {
        full_ring(&["a", "b"], capacity, permits);
    }
}

#[test]
fn a8_three_full_stages_that_route_into_each_other_end() {
    for (capacity, permits) in [(1, 1), (2, 1), (3, 2), (16, 3)] {
        full_ring(&["a", "b", "c"], capacity, permits);
    }
}

#[test]
fn p03_two_full_stages_still_let_others_work() {
    let (bus, clock) = virtual_time::<u64>();
    for name in ["a", "b"] {
        let settings =
            StageSettings { hop_timeout: TIMEOUT, on_full: OnFull::Reject, ..room_for(1) };
        bus.add_stage(name, settings, |_| Ok(())).unwrap();
    }
    bus.add_stage("other", room_for(4), |_| Ok(())).unwrap();
    // Both stages hold one each and are full again when these want to change places.
    bus.pause();
    bus.resume();
    bus.publish(to(&bus, 1, &["a", "b", "a"])).unwrap();
    bus.publish(to(&bus, 2, &["b", "a", "b"])).unwrap();
    run(&bus);
    bus.publish(to(&bus, 3, &["other"])).unwrap();
    run(&bus);
    assert!(meters(&bus, "other").done == 1, "whatever became of the cycle");
    run_out(&bus, &clock);
    drained(&bus);
}

#[test]
fn a_circle_with_a_short_time_out_ends_before_publishers_that_wait_there_give_up() {
    let brief = Duration::from_secs(1);
    let (bus, clock) = virtual_time::<u64>();
    let OnFull::Block(limit) = StageSettings::default().on_full else {
        panic!("a publisher waits by default");
    };
    let settings = StageSettings { hop_timeout: brief, ..room_for(2) };
    bus.add_batch_stage("a", settings.clone(), |_| Ok(())).unwrap();
    bus.add_stage("b", StageSettings { batch: 1, ..settings }, |_| Ok(())).unwrap();
    let publish = |hops: &[&str]| bus.publish(to(&bus, 0, hops)).unwrap();
    for hops in [["a", "b"], ["a", "b"], ["b", "a"], ["b", "a"]] {
        publish(&hops);
    }
    // Two of `a` wait for `b`; then one of `b` for `a`, and one of the two is still in line.
    assert_eq!(bus.turn(), 2);
    publish(&["a"]);
    publish(&["a"]);
    run(&bus);
    assert_eq!([meters(&bus, "a"), meters(&bus, "b")].map(|stage| stage.hops_waiting), [1, 1]);
    let mut publisher = pin!(bus.publish_async(to(&bus, 0, &["a"])));
    let mut context = Context::from_waker(Waker::noop());
    let mut waited = Duration::ZERO;
    while publisher.as_mut().poll(&mut context).is_pending() {
        waited += TIMEOUT;
        clock.advance(TIMEOUT);
        run(&bus);
    }
    assert!(waited > TIMEOUT, "the circle stood");
    assert!(waited * 2 <= limit, "it took {waited:?}, a publisher waits for {limit:?}");
    drained(&bus);
}

#[test]
fn a_cycle_under_load_on_real_threads_ends_with_all_accounted_for() {
    let bus = threaded::<u64>(2);
    let settings = StageSettings {
        permits: 3,
        hop_timeout: Duration::from_millis(5),
        on_full: OnFull::Block(LONG),
        ..room_for(16)
    };
    bus.add_stage("a", settings.clone(), |_| Ok(())).unwrap();
    bus.add_stage("b", StageSettings { capacity: 2, ..settings }, |_| Ok(())).unwrap();
    let slip = bus.slip(["a", "b", "a"]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let (mut publisher, slip) = (bus.publisher(), slip.clone());
            scope.spawn(move || {
                for number in 0..200 {
                    publisher.publish(Envelope::new(number, slip.clone())).unwrap();
                }
            });
        }
    });
    let report = bus.shutdown(LONG);
    assert!(report.drained, "{report:?}");
    let books = settled(&report);
    assert_eq!((books.accepted, books.completed + books.dead), (1_200, 1_200));
    assert!(bus.dead_letters().iter().all(|letter| letter.cause == Cause::NextStageFull));
}

/// `a` leads to `b`, which is stuck: its only permit waits with a hop into `c`, which is paused.
/// One more waits in `b`, and a third one, of which `ends` is told, stands in line before it.
fn stuck(ends: &Log<(u64, Settled)>) -> (Bus<u64>, ManualClock) {
    let (bus, clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |_| Ok(())).expect("fine");
    let narrow = StageSettings { batch: 1, hop_timeout: TIMEOUT, ..room_for(1) };
    bus.add_stage("b", narrow, |_| Ok(())).expect("fine");
    bus.add_stage("c", room_for(1), |_| Ok(())).expect("fine");
    bus.pause_stage("c").expect("it is open");
    for number in 0..3 {
        bus.publish(to(&bus, number, &["a", "b", "c"])).expect("there is room");
        run(&bus);
    }
    bus.publish(ends.follow(3, to(&bus, 3, &["a", "b"]))).expect("there is room");
    run(&bus);
    assert_eq!((meters(&bus, "b").depth, meters(&bus, "b").hops_waiting), (1, 1));
    (bus, clock)
}

#[test]
fn a_hop_waits_its_time_out_and_not_longer() {
    let ends = Log::new();
    let (bus, clock) = stuck(&ends);
    let last = Duration::from_nanos(1);
    clock.advance(TIMEOUT - last);
    run(&bus);
    assert_eq!((ends.len(), meters(&bus, "b").hops_waiting), (0, 1), "not yet");
    clock.advance(last);
    run(&bus);
    assert_eq!(ends.take(), [(3, Settled::Dead(Cause::NextStageFull))]);
    bus.resume_stage("c").unwrap();
    drained(&bus);
}

#[test]
fn a_paused_stage_lets_no_hop_time_out() {
    let ends = Log::new();
    let (bus, clock) = stuck(&ends);
    bus.pause_stage("b").unwrap();
    clock.advance(10 * TIMEOUT);
    run(&bus);
    assert_eq!(ends.len(), 0);
    bus.resume_stage("b").unwrap();
    bus.resume_stage("c").unwrap();
    run(&bus);
    assert_eq!(ends.take(), [(3, Settled::Completed)]);
    drained(&bus);
}

#[test]
fn a_slow_stage_that_works_lets_no_hop_time_out() {
    let (bus, clock) = virtual_time::<u64>();
    bus.add_stage("a", StageSettings { batch: 4, ..room_for(64) }, |_| Ok(())).unwrap();
    // A block of four takes five turns, each of twice the time-out; nothing leaves the ring then.
    let slow = StageSettings { batch: 4, attempts: 5, hop_timeout: TIMEOUT, ..room_for(4) };
    bus.add_stage("b", slow, move |context| {
        clock.advance(TIMEOUT / 2);
        if context.attempts() < 4 { Err(waystage::Failure::new("once more")) } else { Ok(()) }
    })
    .unwrap();
    bus.publish_batch(&mut (0..24).map(|number| to(&bus, number, &["a", "b"]))).unwrap();
    let (mut waited, mut turns) = (0, 0);
    while bus.turn() > 0 || bus.conservation().in_flight > 0 {
        waited = waited.max(meters(&bus, "b").hops_waiting);
        turns += 1;
        assert!(turns < 10_000, "something is left behind");
    }
    assert!(waited > 0, "the line is what this is about");
    assert_eq!(drained(&bus).completed, 24, "{:?}", bus.dead_letters());
}

#[test]
fn a_pause_in_the_middle_of_the_wait_starts_the_time_out_anew() {
    let (bus, clock) = virtual_time::<u64>();
    let ends = Log::new();
    let full = StageSettings { hop_timeout: TIMEOUT, ..room_for(1) };
    let again = bus.route("b").unwrap();
    bus.add_stage("a", room_for(4), |_| Ok(())).unwrap();
    bus.add_stage("b", full, move |context| {
        // What is handled here comes back here, where it finds no room.
        context.push(again)?;
        Ok(())
    })
    .unwrap();
    bus.pause_stage("b").unwrap();
    for number in 0..2 {
        bus.publish(ends.follow(number, to(&bus, number, &["a", "b"]))).unwrap();
    }
    run(&bus);
    assert_eq!(meters(&bus, "b").hops_waiting, 1);
    clock.advance(TIMEOUT * 9 / 10);
    run(&bus);
    bus.resume_stage("b").unwrap();
    bus.pause_stage("b").unwrap();
    bus.resume_stage("b").unwrap();
    clock.advance(TIMEOUT / 5);
    // Its first time-out is over, but it was paused for most of it.
    run(&bus);
    assert_eq!(ends.len(), 0);
    bus.shutdown(Duration::ZERO);
}

#[test]
fn publishes_are_full_while_hops_wait() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let seen = log.clone();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    bus.add_stage("b", StageSettings { batch: 1, ..room_for(1) }, move |context| {
        seen.add(*context.payload());
        Ok(())
    })
    .unwrap();
    bus.pause_stage("b").unwrap();
    for number in 0..3 {
        bus.publish(to(&bus, number, &["a", "b"])).unwrap();
    }
    run(&bus);
    bus.resume_stage("b").unwrap();
    let mut refused = 0;
    while meters(&bus, "b").hops_waiting > 0 {
        refused += u64::from(bus.try_publish(to(&bus, 99, &["b"])).is_err());
        bus.turn();
    }
    assert!(refused > 0);
    run(&bus);
    assert_eq!(log.take(), [0, 1, 2], "accepted work went before new work");
    drained(&bus);
}
