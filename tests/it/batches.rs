//! Many at once: batch handlers and batch publishes at their edges.

use waystage::{Cause, Envelope, Failure, OnFull, Refused, StageSettings};

use crate::support::{drained, room_for, run, to, virtual_time};

#[test]
fn failing_what_is_not_in_the_batch_fails_the_attempt_and_no_later_one() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_batch_stage("a", room_for(8), |batch| {
        if batch.payloads().any(|&number| number == 13) {
            batch.fail(2, Failure::new("there is no third"));
        }
        Ok(())
    })
    .unwrap();
    for numbers in [[1, 2, 3].as_slice(), &[13], &[4, 5, 6]] {
        for &number in numbers {
            bus.publish(to(&bus, number, &["a"])).unwrap();
        }
        run(&bus);
    }
    let dead = bus.dead_letters();
    assert!(
        matches!(&dead[..], [one] if matches!(one.cause, Cause::HandlerPanicked(_))),
        "{dead:?}"
    );
    assert_eq!(drained(&bus).completed, 6);
}

#[test]
fn a_refused_batch_takes_no_more_from_an_endless_iterator() {
    let (bus, _clock) = virtual_time::<u64>();
    let settings = StageSettings { on_full: OnFull::Reject, batch: 4, ..room_for(8) };
    bus.add_stage("a", settings, |_| Ok(())).unwrap();
    let slip = bus.slip(["a"]).unwrap();
    let mut numbers = (0..).map(|number| Envelope::new(number, slip.clone()));
    let refused = bus.publish_batch(&mut numbers).unwrap_err();
    assert_eq!(refused.reason, Refused::Full);
    let rest: Vec<u64> = refused.rest.iter().map(|envelope| *envelope.payload()).collect();
    let next = numbers.next().map(Envelope::into_payload);
    assert!((0..).skip(refused.accepted).take(rest.len()).eq(rest.iter().copied()));
    assert_eq!(next, Some((refused.accepted + rest.len()) as u64), "the next is still there");
    run(&bus);
    assert_eq!(drained(&bus).completed, refused.accepted as u64);
}

#[test]
fn a_slip_of_endless_names_is_refused() {
    let (bus, _clock) = virtual_time::<u64>();
    let error = bus.slip(std::iter::repeat("a")).unwrap_err();
    assert!(error.to_string().contains("65535 hops"), "{error}");
}
