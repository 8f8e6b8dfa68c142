//! Nothing waits for ever: lost wake-ups, starvation, stuck handlers. By counting, never by time.

use std::future::Future as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use waystage::{
    Bus, BusSettings, Context, Envelope, Failure, Handle, Idle, OnFull, Settled, StageSettings,
};

use crate::support::{
    Gate, LONG, Log, drained, eventually, gated, meters, room_for, run, threaded, to, virtual_time,
};

/// One message at a time: the next is sent only after the one before was handled, so each finds
/// the workers on their way to sleep.
fn one_at_a_time(settings: BusSettings, stage: StageSettings, rounds: u64) {
    let bus: Bus<u64> = Bus::start(settings).expect("the settings are fine");
    let (done, handled) = mpsc::channel();
    bus.add_stage("a", stage, move |context| {
        done.send(*context.payload())?;
        Ok(())
    })
    .expect("the stage is fine");
    let slip = bus.slip(["a"]).expect("the name is fine");
    let mut publisher = bus.publisher();
    for round in 0..rounds {
        publisher.publish(Envelope::new(round, slip.clone())).expect("there is room");
        let seen = handled.recv_timeout(LONG);
        assert_eq!(seen, Ok(round), "a lost wake-up");
        if round % 3 == 0 {
            // Long enough for some workers to park, not for all.
            for _ in 0..round % 64 {
                std::thread::yield_now();
            }
        }
    }
    assert_eq!(drained(&bus).completed, rounds);
}

#[test]
fn a5_no_wake_up_is_lost_with_one_worker() {
    let settings = BusSettings { workers: 1, ..BusSettings::default() };
    one_at_a_time(settings, StageSettings::default(), 20_000);
}

#[test]
fn a5_no_wake_up_is_lost_with_several_workers_and_permits() {
    let settings = BusSettings { workers: 3, ..BusSettings::default() };
    one_at_a_time(settings, StageSettings { permits: 3, ..room_for(1) }, 10_000);
}

#[test]
fn a5_no_wake_up_is_lost_whatever_the_idle_policy() {
    for idle in [Idle::Park, Idle::Yield, Idle::Spin] {
        let settings = BusSettings { workers: 1, idle, ..BusSettings::default() };
        one_at_a_time(settings, room_for(2), 50);
    }
}

#[test]
fn a5_no_blocked_publisher_is_forgotten() {
    const EACH: u64 = 300;
    let bus = threaded::<u64>(2);
    let settings = StageSettings { on_full: OnFull::Block(LONG), ..room_for(2) };
    bus.add_stage("a", settings, |_| Ok(())).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for number in 0..EACH {
                    bus.publish(to(&bus, number, &["a"])).unwrap();
                }
            });
        }
    });
    assert_eq!(drained(&bus).completed, 6 * EACH);
}

#[test]
fn a5_a_waiting_future_that_is_dropped_passes_its_turn_on() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(1), |_| Ok(())).unwrap();
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    let woken: [Arc<Woken>; 2] = std::array::from_fn(|_| Arc::default());
    let mut waiting: Vec<_> = (1..3).map(|n| bus.publish_async(to(&bus, n, &["a"]))).collect();
    for (future, woken) in waiting.iter_mut().zip(&woken) {
        let waker = Waker::from(Arc::clone(woken));
        assert!(pin!(future).poll(&mut TaskContext::from_waker(&waker)).is_pending());
    }
    let is_woken = || [0, 1].map(|place: usize| woken[place].0.load(Ordering::SeqCst));
    run(&bus);
    assert_eq!(is_woken(), [true, false], "one freed place wakes one");
    drop(waiting.remove(0));
    assert_eq!(is_woken(), [true, true]);
    let mut context = TaskContext::from_waker(Waker::noop());
    assert!(matches!(pin!(&mut waiting[0]).poll(&mut context), Poll::Ready(Ok(()))));
    run(&bus);
    assert_eq!(drained(&bus).completed, 2);
}

/// A waker that remembers.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A handler that publishes its own envelope again, as often as there is room.
fn publish_again(handle: &Handle<u64>, context: &Context<'_, u64>, name: &str) -> Option<Failure> {
    let slip = handle.slip([name]).expect("the name is fine");
    let refused = handle.publish(Envelope::new(*context.payload(), slip)).err()?;
    Some(Failure::new(refused.reason.to_string()))
}

#[test]
fn a8_publishing_from_a_handler_never_deadlocks() {
    // One worker, room for one, stages that publish to themselves and in a ring of two and three.
    for names in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        let bus = threaded::<u64>(1);
        let full = Arc::new(AtomicU64::new(0));
        for (place, name) in names.iter().enumerate() {
            let next = names[(place + 1) % names.len()];
            let (handle, full) = (bus.handle(), Arc::clone(&full));
            let settings = StageSettings { on_full: OnFull::Block(LONG), ..room_for(1) };
            bus.add_stage(name, settings, move |context| {
                for _ in 0..2 {
                    if publish_again(&handle, context, next).is_some() {
                        full.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            })
            .unwrap();
        }
        let other = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&other);
        bus.add_stage("other", room_for(1), move |_| {
            seen.store(true, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        bus.publish(to(&bus, 1, &["a"])).unwrap();
        eventually("full is said, and work goes on", || full.load(Ordering::Relaxed) > 100);
        bus.publish(to(&bus, 1, &["other"])).unwrap();
        eventually("the bus serves others", || other.load(Ordering::Relaxed));
        // It feeds itself until the intake shuts.
        drained(&bus);
    }
}

#[test]
fn p03_a_publish_from_a_handler_to_its_own_full_stage_is_full_at_once() {
    let (bus, _clock) = virtual_time::<u64>();
    let log = Log::new();
    let (seen, handle) = (log.clone(), bus.handle());
    bus.add_stage("a", StageSettings { batch: 1, ..room_for(1) }, move |context| {
        seen.add((publish_again(&handle, context, "a"), publish_again(&handle, context, "a")));
        Err(Failure::permanent("enough"))
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    assert_eq!(bus.turn() + bus.turn(), 2);
    let full = || Some(Failure::new("the stage is full"));
    assert_eq!(log.take(), [(None, full()), (None, full())]);
}

/// Stages that feed themselves for ever; another gets one message and must come to its turn after
/// at most a batch of each.
fn others_get_their_turn(endless: &[&str], batch: usize) {
    let (bus, _clock) = virtual_time::<u64>();
    let calls = Arc::new(AtomicU64::new(0));
    let waited = Arc::new(AtomicU64::new(u64::MAX));
    for (place, name) in endless.iter().enumerate() {
        let next = bus.route(endless[(place + 1) % endless.len()]).expect("the name is fine");
        let calls = Arc::clone(&calls);
        bus.add_stage(name, StageSettings { batch, ..room_for(64) }, move |context| {
            calls.fetch_add(1, Ordering::Relaxed);
            context.push(next)?;
            Ok(())
        })
        .expect("the stage is fine");
    }
    let (seen, clock) = (Arc::clone(&waited), Arc::clone(&calls));
    bus.add_stage("cold", room_for(64), move |context| {
        seen.store(clock.load(Ordering::Relaxed) - context.payload(), Ordering::Relaxed);
        Ok(())
    })
    .expect("the stage is fine");
    for number in 0..32 {
        bus.publish(to(&bus, number, &[endless[0]])).expect("there is room");
    }
    // Run-on allows each turn a second batch over all stages.
    let bound = (2 * batch * (endless.len() + 1)) as u64;
    for _ in 0..50 {
        for _ in 0..7 {
            bus.turn();
        }
        bus.publish(to(&bus, calls.load(Ordering::Relaxed), &["cold"])).expect("there is room");
        while meters(&bus, "cold").depth > 0 {
            bus.turn();
        }
        let waited = waited.load(Ordering::Relaxed);
        assert!(waited <= bound, "{waited} calls before its turn, more than {bound}");
    }
}

#[test]
fn a9_a_stage_that_feeds_itself_starves_nobody() {
    for batch in [1, 4, 64] {
        others_get_their_turn(&["hot"], batch);
    }
}

#[test]
fn p07_ping_pong_does_not_starve_a_third_stage() {
    for batch in [1, 4, 64] {
        others_get_their_turn(&["ping", "pong"], batch);
        others_get_their_turn(&["ping", "pong", "pung"], batch);
    }
}

#[test]
fn a9_expired_envelopes_starve_nobody() {
    let (bus, clock) = virtual_time::<u64>();
    let settings = StageSettings { batch: 4, ..room_for(64) };
    bus.add_stage("stale", settings, |_| Ok(())).unwrap();
    bus.add_stage("cold", room_for(4), |_| Ok(())).unwrap();
    let second = Duration::from_secs(1);
    for number in 0..60 {
        bus.publish(to(&bus, number, &["stale"]).with_time_to_live(second)).unwrap();
    }
    bus.publish(to(&bus, 0, &["cold"])).unwrap();
    clock.advance(second);
    assert!(bus.turn() <= 4, "a turn takes up a batch");
    run(&bus);
    let books = drained(&bus);
    assert_eq!((books.expired, books.completed), (60, 1));
}

#[test]
fn a11_work_behind_a_blocked_handler_is_run_by_another_worker() {
    let bus = threaded::<u64>(2);
    let gate = Gate::new();
    let door = gate.door();
    let (done, handled) = mpsc::channel();
    let handle = bus.handle();
    bus.add_stage("job", room_for(4), move |context| {
        done.send(*context.payload())?;
        Ok(())
    })
    .unwrap();
    bus.add_stage("a", room_for(4), move |context| {
        publish_again(&handle, context, "job").map_or(Ok(()), Err)?;
        door.pass();
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 17, &["a"])).unwrap();
    assert_eq!(handled.recv_timeout(LONG), Ok(17), "while its scheduler is stuck");
    gate.open();
    assert_eq!(drained(&bus).completed, 2);
}

#[test]
fn a11_the_rest_of_a_block_is_run_by_another_permit() {
    let bus = threaded::<u64>(2);
    let gate = Gate::new();
    let door = gate.door();
    let (done, handled) = mpsc::channel();
    bus.add_stage("a", StageSettings { permits: 2, ..room_for(64) }, move |context| {
        if *context.payload() == 0 {
            door.pass();
        }
        done.send(*context.payload())?;
        Ok(())
    })
    .unwrap();
    bus.publish_batch(&mut (0..32).map(|number| to(&bus, number, &["a"]))).unwrap();
    let mut others: Vec<_> = (1..32).map(|_| handled.recv_timeout(LONG).unwrap()).collect();
    others.sort_unstable();
    assert!(others.into_iter().eq(1..32), "all but the one that is stuck");
    gate.open();
    assert_eq!(drained(&bus).completed, 32);
}

#[test]
fn a20_a_stuck_handler_leaves_all_other_stages_going() {
    let bus = threaded::<u64>(2);
    let counts: Vec<_> = (0..8).map(|_| Arc::new(AtomicU64::new(0))).collect();
    for (stage, count) in counts.iter().enumerate() {
        let count = Arc::clone(count);
        bus.add_stage(&format!("s{stage}"), room_for(16), move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    }
    let gate = gated(&bus, "stuck", room_for(4));
    // All stages are hot, some of them with the worker that gets stuck.
    for stage in 0..8 {
        bus.publish(to(&bus, 0, &[&format!("s{stage}")])).unwrap();
    }
    bus.publish(to(&bus, 0, &["stuck"])).unwrap();
    gate.await_waiting(1);
    for round in 2..200 {
        for (stage, count) in counts.iter().enumerate() {
            bus.publish(to(&bus, round, &[&format!("s{stage}")])).unwrap();
            eventually("the stage goes on", || count.load(Ordering::Relaxed) == round);
        }
    }
    gate.open();
    drained(&bus);
}

#[test]
fn a20_others_go_on_beside_a_stuck_handler_and_a_stage_under_load() {
    // A smoke test of the whole: the busy worker has breaks, in which it steals. That it looks
    // after others without any is shown step by step in `src/testing/busy.rs`.
    // The order of the names decides which worker is whose home.
    for names in [["busy", "cold", "stuck"], ["stuck", "busy", "cold"], ["cold", "stuck", "busy"]] {
        let bus = threaded::<u64>(2);
        for name in names {
            bus.route(name).unwrap();
        }
        let (done, handled) = mpsc::channel();
        let again = bus.route("busy").unwrap();
        bus.add_stage("cold", room_for(4), move |context| {
            done.send(*context.payload())?;
            Ok(())
        })
        .unwrap();
        let circle = StageSettings { hop_timeout: Duration::from_secs(1), ..room_for(4) };
        bus.add_stage("busy", circle, move |context| {
            context.push(again)?;
            Ok(())
        })
        .unwrap();
        let gate = gated(&bus, "stuck", room_for(4));
        bus.publish(to(&bus, 0, &["cold"])).unwrap();
        handled.recv_timeout(LONG).unwrap();
        bus.publish(to(&bus, 0, &["stuck"])).unwrap();
        gate.await_waiting(1);
        let limit = Duration::from_secs(5);
        let busy = Arc::new(AtomicBool::new(true));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while busy.load(Ordering::Relaxed) {
                    let _ = bus.try_publish(to(&bus, 0, &["busy"]));
                }
            });
            for number in 1..6 {
                bus.publish(to(&bus, number, &["cold"])).unwrap();
                let seen = handled.recv_timeout(limit);
                if seen != Ok(number) {
                    busy.store(false, Ordering::Relaxed);
                }
                assert_eq!(seen, Ok(number), "one worker is stuck, the other always busy");
            }
            busy.store(false, Ordering::Relaxed);
        });
        gate.open();
        drained(&bus);
    }
}

#[test]
fn a20_user_code_runs_under_no_lock() {
    // Each callback asks the bus for what takes its locks.
    let bus = Arc::new(threaded::<u64>(2));
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let gate = gated(&bus, "stuck", room_for(8));
    let asks = |what: &str| {
        let (inner, what) = (Arc::downgrade(&bus), what.to_owned());
        move |_, _| {
            let Some(bus) = inner.upgrade() else { return };
            bus.pause();
            bus.resume();
            let _ = (bus.snapshot(), bus.dead_letters(), bus.route(&what), bus.publisher());
            let _ = bus.open_stage(&what, StageSettings::default(), None);
        }
    };
    bus.publish(to(&bus, 1, &["a"]).on_settled(asks("completed"))).unwrap();
    bus.publish(to(&bus, 1, &["a", "nowhere"]).on_settled(asks("dead"))).unwrap();
    eventually("both are told", || bus.conservation().in_flight == 0);
    for _ in 0..2 {
        bus.publish(to(&bus, 1, &["stuck"])).unwrap();
    }
    gate.await_waiting(1);
    bus.publish(to(&bus, 1, &["stuck"]).on_settled(asks("closed"))).unwrap();
    bus.close_stage("stuck").unwrap();
    gate.open();
    eventually("the last call ends", || bus.conservation().in_flight == 0);
    bus.add_stage("late", room_for(8), |_| Ok(())).unwrap();
    bus.pause_stage("late").unwrap();
    bus.resume_stage("late").unwrap();
    bus.open_stage("deaf", room_for(8), None).unwrap();
    drained(&bus);
}

#[test]
fn a20_callbacks_of_a_shutdown_run_under_no_lock() {
    let bus = Arc::new(threaded::<u64>(1));
    let gate = gated(&bus, "a", room_for(8));
    bus.publish(to(&bus, 0, &["a"])).unwrap();
    gate.await_waiting(1);
    let log = Log::new();
    let (inner, told) = (Arc::downgrade(&bus), log.clone());
    let envelope = to(&bus, 1, &["a"]).on_settled(move |end, _| {
        if let Some(bus) = inner.upgrade() {
            bus.pause();
            bus.resume();
            let _ = bus.open_stage("new", StageSettings::default(), None);
            told.add((end, bus.shutdown(LONG).drained));
        }
    });
    bus.publish(envelope).unwrap();
    let report = bus.shutdown(Duration::ZERO);
    assert_eq!(report.leftovers.len(), 2);
    assert_eq!(log.take(), [(Settled::Undelivered, false)]);
    gate.open();
}

/// A future that waits at a stage which is full; others take each slot that is freed before it is
/// polled. After how many slots it is woken, if after `slots` at most.
fn woken_after(slots: usize, call: Duration) -> Option<usize> {
    let (bus, clock) = virtual_time::<u64>();
    let settings = StageSettings { batch: 1, on_full: OnFull::Reject, ..room_for(16) };
    bus.add_stage("a", settings, move |_| {
        clock.advance(call);
        Ok(())
    })
    .expect("the stage is fine");
    // The class of the handler is known.
    for _ in 0..2 {
        bus.publish(to(&bus, 0, &["a"])).expect("there is room");
        assert_eq!(bus.turn(), 1);
    }
    while bus.publish(to(&bus, 0, &["a"])).is_ok() {}
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = TaskContext::from_waker(&waker);
    let mut future = bus.publish_async(to(&bus, 1, &["a"]));
    let mut poll = || pin!(&mut future).poll(&mut context).is_ready();
    assert!(!poll());
    let freed = (1..=slots).find(|_| {
        assert_eq!(bus.turn(), 1);
        bus.publish(to(&bus, 0, &["a"])).expect("there is room");
        woken.0.load(Ordering::SeqCst)
    });
    assert!(!poll(), "others were faster");
    assert_eq!(bus.turn(), 1);
    assert!(poll() || freed.is_none());
    freed
}

#[test]
fn a5_a_waiting_future_is_woken_however_full_others_keep_the_stage() {
    assert_eq!(woken_after(16, Duration::ZERO), Some(9), "fast calls: after half of the ring");
    assert_eq!(woken_after(16, Duration::from_millis(1)), Some(1), "slow calls: at once");
}
