//! A panic is a failed attempt and nothing more, wherever it happens: handler, callback, waker,
//! destructor. Permits come back on every path.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use waystage::{Batch, Cause, Failure, OnFull, Settled, StageSettings};

use crate::support::{
    Gate, LONG, Log, drained, eventually, gated, meters, room_for, run, threaded, to, virtual_time,
};

/// A payload whose destructor panics when armed.
struct Bomb {
    armed: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.armed, "a payload's destructor");
    }
}

/// After any mix of endings all permits are back: as many handlers as permits run at once again,
/// and never more.
#[test]
fn a6_permits_are_conserved() {
    const PERMITS: u32 = 2;
    let bus = threaded::<u64>(3);
    let gate = Gate::new();
    let door = gate.door();
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let highest = Arc::clone(&most);
    let settings = StageSettings { permits: PERMITS, attempts: 2, ..room_for(64) };
    bus.add_stage("a", settings, move |context| {
        struct Leave<'a>(&'a AtomicU32);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let now: u32 = inside.fetch_add(1, Ordering::SeqCst) + 1;
        let _leave = Leave(&inside);
        highest.fetch_max(now, Ordering::SeqCst);
        match context.payload() % 5 {
            0 => Err(Failure::new("fails")),
            1 => panic!("panics"),
            2 => Err(Failure::permanent("fails for good")),
            _ if *context.payload() > 20_000 => {
                door.pass();
                Ok(())
            }
            _ => Ok(()),
        }
    })
    .unwrap();
    for number in 0..20_000 {
        let envelope = to(&bus, number, &["a"]);
        let told = envelope.on_settled(move |_, _| assert!(number % 7 != 0, "callback"));
        bus.publish(told).unwrap();
    }
    eventually("all ended", || bus.conservation().in_flight == 0);
    assert!(most.load(Ordering::SeqCst) <= PERMITS, "never more than the permits");
    for _ in 0..PERMITS + 3 {
        bus.publish(to(&bus, 20_003, &["a"])).unwrap();
    }
    gate.await_waiting(PERMITS as usize);
    gate.open();
    drained(&bus);
    assert!(most.load(Ordering::SeqCst) <= PERMITS);
}

#[test]
fn a6_a_shutdown_in_the_middle_of_a_batch_gives_permits_back() {
    for permits in [1, 2] {
        let bus = threaded::<u64>(2);
        let gate = gated(&bus, "a", StageSettings { permits, ..room_for(64) });
        bus.publish_batch(&mut (0..40).map(|number| to(&bus, number, &["a"]))).unwrap();
        gate.await_waiting(permits as usize);
        bus.shutdown(Duration::ZERO);
        gate.open();
        eventually("the books close", || bus.conservation().in_flight == 0);
        let books = bus.conservation();
        assert_eq!(books.completed + books.undelivered, 40, "{books:?}");
    }
}

#[test]
fn a7_panic_in_a_handler_is_a_failed_attempt_with_its_words() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |context| match *context.payload() {
        0 => panic!("plain words"),
        1 => panic!("with {}", "arguments"),
        _ => std::panic::panic_any(Bomb { armed: true }),
    })
    .unwrap();
    for number in 0..3 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    let causes: Vec<_> = bus.dead_letters().into_iter().map(|letter| letter.cause).collect();
    let words = |words: &str| Cause::HandlerPanicked(words.into());
    let want = [words("plain words"), words("with arguments"), words("a panic without words")];
    assert_eq!(causes, want);
    assert_eq!((meters(&bus, "a").panicked, drained(&bus).dead), (3, 3));
}

#[test]
fn a7_panic_in_a_batch_handler_fails_the_batch_and_not_the_stage() {
    let (bus, _clock) = virtual_time::<u64>();
    let settings = StageSettings { attempts: 2, batch: 4, ..room_for(16) };
    bus.add_batch_stage("a", settings, |batch: &mut Batch<'_, u64>| {
        assert!(batch.context(0).attempts() > 0, "every first attempt");
        Ok(())
    })
    .unwrap();
    for number in 0..10 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    assert_eq!((meters(&bus, "a").panicked, drained(&bus).completed), (10, 10));
}

#[test]
fn a7_panic_in_a_callback_leaves_the_completion_to_its_waiter() {
    let bus = threaded::<u64>(1);
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let envelope = to(&bus, 1, &["a"]).on_settled(|_, _| panic!("its own callback"));
    let mut completion = bus.publish_tracked(envelope).unwrap();
    assert_eq!(completion.wait(Duration::from_secs(5)).unwrap().0, Settled::Completed);
    eventually("the panic is counted", || bus.snapshot().panics_outside_handlers == 1);
}

/// A waker that panics.
struct Sour(AtomicBool);

impl Wake for Sour {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
        panic!("a waker");
    }
}

#[test]
fn a7_panic_in_a_waker_of_a_completion_is_counted() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let sour = Arc::new(Sour(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&sour));
    let mut completion = pin!(bus.publish_tracked(to(&bus, 1, &["a"])).unwrap());
    let mut context = TaskContext::from_waker(&waker);
    assert!(completion.as_mut().poll(&mut context).is_pending());
    run(&bus);
    assert!(sour.0.load(Ordering::SeqCst));
    assert!(matches!(completion.poll(&mut context), Poll::Ready((Settled::Completed, Some(_)))));
    assert_eq!((bus.snapshot().panics_outside_handlers, drained(&bus).completed), (1, 1));
}

#[test]
fn a7_panic_in_a_waker_of_a_publisher_does_not_hurt_the_stage() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(1), |_| Ok(())).unwrap();
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    let sour = Arc::new(Sour(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&sour));
    let mut context = TaskContext::from_waker(&waker);
    let mut waiting = pin!(bus.publish_async(to(&bus, 1, &["a"])));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    run(&bus);
    assert!(sour.0.load(Ordering::SeqCst));
    assert!(matches!(waiting.poll(&mut context), Poll::Ready(Ok(()))));
    run(&bus);
    assert_eq!((bus.snapshot().panics_outside_handlers, drained(&bus).completed), (1, 2));
}

#[test]
fn a7_panic_in_a_destructor_at_every_end_is_counted() {
    let (bus, clock) = virtual_time::<Bomb>();
    let minute = Duration::from_secs(60);
    bus.add_stage("works", room_for(8), |_| Ok(())).unwrap();
    bus.add_batch_stage("batch", room_for(8), |_| Ok(())).unwrap();
    bus.add_stage("fails", room_for(8), |_| Err(Failure::new("no"))).unwrap();
    bus.add_stage("expires", StageSettings { expiry: Some(minute), ..room_for(8) }, |_| Ok(()))
        .unwrap();
    let drops = StageSettings { on_full: OnFull::DropOldest, ..room_for(1) };
    bus.add_stage("drops", drops, |_| Ok(())).unwrap();
    let slip = bus.slip(["works"]).unwrap();
    bus.add_stage("emits", room_for(8), move |context| {
        context.emit(Bomb { armed: true }, slip.clone())?;
        Err(Failure::new("its emit is dropped"))
    })
    .unwrap();
    for name in ["works", "batch", "fails", "expires", "drops", "drops", "emits"] {
        bus.publish(to(&bus, Bomb { armed: true }, &[name])).unwrap();
    }
    assert_eq!(bus.snapshot().panics_outside_handlers, 1, "the victim");
    clock.advance(minute);
    run(&bus);
    assert_eq!(bus.snapshot().panics_outside_handlers, 6, "and all but the two dead letters");
    let books = drained(&bus);
    assert_eq!((books.completed, books.dead, books.expired, books.dropped), (3, 2, 1, 1));
    // Two dead letters are dropped with the bus: neither a panic here nor the end of the process.
    drop(bus);
}

#[test]
fn a7_panics_leave_the_workers_alive() {
    let bus = threaded::<Bomb>(2);
    bus.add_stage("a", StageSettings { permits: 2, ..room_for(64) }, |context| {
        assert!(context.payload().armed, "handler");
        Ok(())
    })
    .unwrap();
    for number in 0..2_000 {
        let envelope = to(&bus, Bomb { armed: number % 2 == 0 }, &["a"]);
        // Not while it holds a payload that panics too: two panics at once end any process.
        let told = envelope.on_settled(|end, _| assert_eq!(end, Settled::Completed, "callback"));
        bus.publish(told).unwrap();
    }
    eventually("all ended", || bus.conservation().in_flight == 0);
    let books = bus.conservation();
    assert_eq!((books.completed, books.dead, bus.workers()), (1_000, 1_000, 2));
    drop(bus);
}

#[test]
fn p05_a_panic_keeps_what_waits_behind_it() {
    for attempts in [1, 3] {
        let bus = threaded::<u64>(1);
        let gate = Gate::new();
        let door = gate.door();
        let log = Log::new();
        let seen = log.clone();
        bus.add_stage("a", StageSettings { attempts, ..room_for(128) }, move |context| {
            door.pass();
            assert_ne!(*context.payload(), 3, "the third");
            seen.add(*context.payload());
            Ok(())
        })
        .unwrap();
        for number in 1..=100 {
            bus.publish(to(&bus, number, &["a"])).unwrap();
        }
        gate.open();
        assert_eq!(drained(&bus).completed, 99);
        assert!(log.take().into_iter().eq((1..=100).filter(|number| *number != 3)));
        assert_eq!(bus.dead_letters()[0].attempts, attempts);
    }
}

#[test]
fn p06_panics_do_not_use_up_the_pool() {
    let bus = threaded::<u64>(2);
    bus.add_stage("a", StageSettings { permits: 2, ..room_for(64) }, |context| {
        assert!(*context.payload() >= 10, "one of the first ten");
        Ok(())
    })
    .unwrap();
    let settings = StageSettings { on_full: OnFull::Block(LONG), ..room_for(64) };
    bus.add_stage("b", settings, |_| Ok(())).unwrap();
    for number in 0..1_010 {
        bus.publish(to(&bus, number, &["a", "b"])).unwrap();
    }
    let failed = eventually_failed(&bus, 10);
    let books = drained(&bus);
    assert_eq!((books.completed, books.dead, failed, bus.workers()), (1_000, 10, 10, 2));
}

fn eventually_failed(bus: &waystage::Bus<u64>, want: u64) -> u64 {
    eventually("all attempts failed", || meters(bus, "a").failed >= want);
    meters(bus, "a").failed
}
