//! Cases of the earlier ports' own suites, under their names, where C1 to C7 do not hold them
//! already. Publish-subscribe and durable levels are not in this version.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use waystage::{OnFull, Refused, Settled, StageSettings};

use crate::support::{Gate, LONG, Log, drained, gated, meters, room_for, threaded, to};

#[test]
fn ported_delivers_point_to_point() {
    // Two consumers are one handler with two permits here.
    let bus = threaded::<u64>(2);
    let gate = Gate::new();
    let (door, log) = (gate.door(), Log::new());
    let seen = log.clone();
    bus.add_stage("a", StageSettings { permits: 2, ..room_for(32) }, move |context| {
        door.pass();
        seen.add(*context.payload());
        Ok(())
    })
    .unwrap();
    for number in 0..20 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    gate.await_waiting(2);
    gate.open();
    assert_eq!(drained(&bus).completed, 20);
    let mut delivered = log.take();
    delivered.sort_unstable();
    assert!(delivered.into_iter().eq(0..20));
}

#[test]
fn ported_routing_slip_visits_every_stage_in_order_and_tells_the_producer() {
    let bus = threaded::<Vec<&'static str>>(2);
    for name in ["three", "one", "two"] {
        bus.add_stage(name, room_for(4), move |context| {
            context.payload_mut().push(name);
            Ok(())
        })
        .unwrap();
    }
    let mut completion = bus.publish_tracked(to(&bus, vec![], &["one", "two", "three"])).unwrap();
    let (end, envelope) = completion.wait(LONG).unwrap();
    assert_eq!(end, Settled::Completed);
    assert_eq!(envelope.unwrap().into_payload(), ["one", "two", "three"]);
}

#[test]
fn ported_rejects_when_at_capacity_with_a_gated_consumer() {
    for on_full in [OnFull::Reject, OnFull::DropNewest, OnFull::DropOldest] {
        let bus = threaded::<u64>(1);
        let gate = gated(&bus, "a", StageSettings { on_full, ..room_for(2) });
        bus.publish(to(&bus, 0, &["a"])).unwrap();
        gate.await_waiting(1);
        let accepted = 1 + (1..10).filter(|n| bus.publish(to(&bus, *n, &["a"])).is_ok()).count();
        let want = if on_full == OnFull::DropOldest { 10 } else { 3 };
        assert_eq!((accepted, meters(&bus, "a").refused), (want, 10 - want as u64), "{on_full:?}");
        gate.open();
        assert_eq!(drained(&bus).completed, 3, "{on_full:?}: one running, two waiting");
    }
}

#[test]
fn ported_pause_stops_delivery_then_resumes() {
    let bus = threaded::<u64>(2);
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    bus.add_stage("a", room_for(4), move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    bus.pause();
    let refused = bus.publish(to(&bus, 1, &["a"])).unwrap_err();
    assert_eq!((refused.reason, refused.reason.is_retryable()), (Refused::Paused, true));
    bus.resume();
    bus.publish(*refused.envelope).unwrap();
    assert_eq!((drained(&bus).completed, count.load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn ported_many_producers_deliver_everything() {
    let bus = threaded::<u64>(2);
    let settings = StageSettings { permits: 8, on_full: OnFull::Block(LONG), ..room_for(10) };
    bus.add_stage("a", settings, |_| Ok(())).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let (mut publisher, slip) = (bus.publisher(), bus.slip(["a"]).unwrap());
            scope.spawn(move || {
                for number in 0..500 {
                    publisher.publish(waystage::Envelope::new(number, slip.clone())).unwrap();
                }
            });
        }
    });
    assert_eq!(drained(&bus).completed, 3_000);
}
