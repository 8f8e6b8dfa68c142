//! Handlers that do not return, with workers stepped by hand: what others do meanwhile is called in
//! the midst of the handler, so one thread plays all of them.

use std::sync::Arc;
use std::time::Duration;

use crate::bus::{Bus, BusSettings};
use crate::clock::{Clock as _, ManualClock};
use crate::coord::on_worker::InTurn;
use crate::envelope::Envelope;
use crate::stage::settings::StageSettings;
use crate::sync::{Mutex, Pause, lock, pause_at, spawn_thread};
use crate::worker::shared::Shared;
use crate::worker::step::{Rest, SENTINEL_NS, Step, Worker};
use crate::worker::{Pool, PoolSettings};

/// What is played while a handler hangs.
type Play = Arc<dyn Fn(&Scene, u64) + Send + Sync>;

/// A bus, its workers, and what was seen while handlers hung.
struct Scene {
    bus: Bus<u64>,
    clock: ManualClock,
    shared: Arc<Shared>,
    workers: Vec<Mutex<Worker>>,
    seen: Mutex<Vec<u64>>,
}

impl Scene {
    /// Stages `s0`, `s1`, ... at home with the worker of that number, modulo the workers. An
    /// envelope of zero is handled at once, with another one its handler hangs while `play` runs.
    fn new<const N: usize>(workers: usize, permits: [u32; N], play: &Play) -> Arc<Self> {
        let clock = ManualClock::new();
        let settings = PoolSettings { workers, ..PoolSettings::default() };
        let (pool, workers) = Pool::without_threads(&settings, Arc::new(clock.clone()));
        let bus = Bus::on_pool(&Arc::new(pool), BusSettings::default()).expect("it starts");
        let shared = Arc::clone(&bus.core.shared);
        let workers = workers.into_iter().map(Mutex::new).collect();
        let scene = Arc::new(Self { bus, clock, shared, workers, seen: Mutex::default() });
        for (number, permits) in permits.into_iter().enumerate() {
            let settings = StageSettings { permits, ..StageSettings::default() };
            let (view, play) = (Arc::downgrade(&scene), Arc::clone(play));
            let add = scene.bus.add_stage(&format!("s{number}"), settings, move |context| {
                let (scene, payload) = (view.upgrade(), *context.payload());
                if let Some(scene) = scene.filter(|_| payload != 0) {
                    let outside = InTurn::end();
                    play(&scene, payload);
                    drop(outside);
                }
                Ok(())
            });
            add.expect("the settings are in range");
        }
        scene
    }

    fn envelope(&self, stage: usize, payload: u64) -> Envelope<u64> {
        Envelope::new(payload, self.bus.slip([&*format!("s{stage}")]).expect("a short name"))
    }

    fn publish(&self, stage: usize, payload: u64) {
        self.bus.try_publish(self.envelope(stage, payload)).expect("there is room");
    }

    fn step(&self, worker: usize) -> Step {
        lock(&self.workers[worker]).step()
    }

    fn settle_down(&self, worker: usize) -> Rest {
        lock(&self.workers[worker]).settle_down()
    }

    /// The time of a parked sentinel is up.
    fn time_out(&self, worker: usize) {
        self.clock.advance(Duration::from_nanos(SENTINEL_NS));
        assert!(self.shared.sleep.retract(worker), "it was parked");
        lock(&self.workers[worker]).rise(false);
    }

    fn note(&self, what: bool) {
        lock(&self.seen).push(u64::from(what));
    }

    fn is_woken(&self, worker: usize) -> bool {
        self.shared.sleep.has_token(worker)
    }
}

/// A thread that runs the turn of a stage with two permits itself hangs in its handler; the only
/// worker found nothing there and sleeps. A publish wakes it, for the other permit.
#[test]
fn a_caller_that_hangs_leaves_the_other_permit_to_publishers() {
    let play = |scene: &Scene, payload: u64| {
        if payload != 1 {
            return scene.note(true);
        }
        assert_eq!(scene.step(0), Step::Polled);
        assert!(matches!(scene.settle_down(0), Rest::Park(_)), "nothing to do");
        scene.publish(0, 2);
        if scene.is_woken(0) {
            lock(&scene.workers[0]).park(None);
            scene.step(0);
        }
        // The handler returns: from here on its thread goes on itself.
        scene.note(false);
    };
    let scene = Scene::new(1, [2], &(Arc::new(play) as Play));
    // Measured as fast, and its ticket stays with the worker.
    scene.publish(0, 0);
    assert_eq!(scene.step(0), Step::Worked(1));
    assert_eq!(lock(&scene.workers[0]).tickets(), 1);
    scene.bus.publish_inline(scene.envelope(0, 1)).expect("the stage is idle");
    assert_eq!(*lock(&scene.seen), [1, 0], "the publish is slept through");
}

/// Three workers: the second has the tickets of `s1`, `s4` and `s7`, the first is the sentinel, the
/// third sleeps without a time-out. The handler of `s1` hangs.
fn watched(play: &Play) -> Arc<Scene> {
    let scene = Scene::new(3, [1; 8], play);
    for stage in [1, 4, 7] {
        scene.publish(stage, 0);
    }
    for _ in 0..3 {
        assert_eq!(scene.step(1), Step::Worked(1));
    }
    assert!(matches!(scene.settle_down(0), Rest::Park(Some(_))), "the sentinel");
    assert_eq!(scene.settle_down(2), Rest::Park(None));
    scene.publish(1, 1);
    scene
}

/// The sentinel takes work by stealing after its look, and gets stuck in that: another one watches.
#[test]
fn a_sentinel_that_steals_appoints_the_next() {
    let play = |scene: &Scene, payload: u64| {
        if payload != 1 {
            // The thief hangs as well, with `s7` behind the first of them.
            return scene.note(scene.is_woken(2));
        }
        scene.publish(4, 2);
        scene.publish(7, 0);
        assert!(!scene.is_woken(2), "both stages are attended");
        scene.time_out(0);
        assert_eq!(scene.step(0), Step::Empty, "the first look sees a new turn");
        lock(&scene.workers[0]).steal();
    };
    let scene = watched(&(Arc::new(play) as Play));
    assert_eq!(scene.step(1), Step::Worked(1));
    assert_eq!(*lock(&scene.seen), [1], "nobody watches");
}

/// The sentinel rises for a timer and gets stuck in its action: another one watches.
#[test]
fn a_sentinel_that_runs_what_is_due_appoints_the_next() {
    let play = |scene: &Scene, _: u64| {
        scene.publish(4, 0);
        scene.time_out(0);
        scene.step(0);
    };
    let scene = watched(&(Arc::new(play) as Play));
    let view = Arc::downgrade(&scene);
    let action = move || {
        let scene = view.upgrade().expect("the scene is played");
        scene.note(scene.is_woken(2));
    };
    let deadline = scene.clock.monotonic_ns() + SENTINEL_NS;
    scene.shared.timers.add(deadline, Box::new(action));
    assert_eq!(scene.step(1), Step::Worked(1));
    assert_eq!(*lock(&scene.seen), [1], "nobody watches");
}

/// The first of two workers parks and stops at a place of that, then the second is woken, and ends
/// a turn of a stage that others could serve. Whether there is such a place.
fn post_is_filled(place: usize) -> bool {
    let nothing: Play = Arc::new(|_, _| {});
    let scene = Scene::new(2, [1, 2], &nothing);
    assert!(matches!(scene.settle_down(0), Rest::Park(Some(_))), "the sentinel");
    assert_eq!(scene.settle_down(1), Rest::Park(None));
    scene.time_out(0);
    let pause = Pause::default();
    let victim = {
        let (scene, pause) = (Arc::clone(&scene), pause.clone());
        spawn_thread("victim".to_owned(), move || {
            pause_at(place, pause.clone());
            scene.settle_down(0);
            pause.release();
        })
    };
    let stands = pause.wait();
    scene.publish(1, 0);
    assert!(scene.is_woken(1), "its home is parked");
    lock(&scene.workers[1]).park(None);
    assert_eq!(scene.step(1), Step::Worked(1));
    pause.release();
    victim.expect("a thread more").join().expect("no panic");
    let is_filled = scene.shared.sleep.sentinel().is_some() || scene.is_woken(0);
    assert!(is_filled, "place {place}: nobody watches");
    stands
}

#[test]
fn whoever_leaves_the_post_again_looks_who_was_woken() {
    let places = (0..).take_while(|place| post_is_filled(*place)).count();
    assert!(places >= 1, "only {places} places");
}

/// Four workers: the first has three tickets and hangs in the turn of one. The sentinel is woken
/// for work, wakes the next to keep watch, and hangs too; that one finds the second ticket first,
/// and hangs in turn. The last one keeps watch over the third.
#[test]
fn who_is_woken_to_watch_and_steals_appoints_the_next() {
    let play = |scene: &Scene, payload: u64| match payload {
        1 => {
            scene.publish(4, 3);
            scene.publish(8, 0);
            scene.publish(1, 2);
            lock(&scene.workers[1]).park(None);
            assert!(scene.is_woken(2), "to watch");
            scene.step(1);
        }
        2 => {
            lock(&scene.workers[2]).park(None);
            assert_eq!(scene.step(2), Step::Empty);
            lock(&scene.workers[2]).steal();
        }
        _ => scene.note(scene.is_woken(3)),
    };
    let scene = Scene::new(4, [1; 9], &(Arc::new(play) as Play));
    for stage in [0, 4, 8] {
        scene.publish(stage, 0);
    }
    for _ in 0..3 {
        assert_eq!(scene.step(0), Step::Worked(1));
    }
    assert!(matches!(scene.settle_down(1), Rest::Park(Some(_))), "the sentinel");
    assert_eq!(scene.settle_down(2), Rest::Park(None));
    assert_eq!(scene.settle_down(3), Rest::Park(None));
    scene.publish(0, 1);
    assert_eq!(scene.step(0), Step::Worked(1));
    assert_eq!(*lock(&scene.seen), [1], "nobody watches");
}

/// All sleep, the sentinel until a timer that is far away; then one works for a stage that others
/// could serve: the sentinel is woken, to watch.
#[test]
fn a_sentinel_that_dozes_is_woken_to_watch() {
    let nothing: Play = Arc::new(|_, _| {});
    let scene = Scene::new(2, [1, 2], &nothing);
    let hour = Duration::from_secs(3_600);
    let deadline = scene.clock.monotonic_ns() + u64::try_from(hour.as_nanos()).expect("an hour");
    scene.shared.timers.add(deadline, Box::new(|| {}));
    assert!(matches!(scene.settle_down(0), Rest::Park(Some(_))), "the sentinel");
    assert_eq!(scene.settle_down(1), Rest::Park(None));
    scene.time_out(0);
    let Rest::Park(Some(long)) = scene.settle_down(0) else { panic!("there is a timer") };
    assert!(long > Duration::from_nanos(SENTINEL_NS), "all sleep");
    scene.publish(1, 0);
    assert!(scene.is_woken(1) && !scene.is_woken(0), "its home is parked");
    lock(&scene.workers[1]).park(None);
    assert_eq!(scene.step(1), Step::Worked(1));
    assert!(scene.is_woken(0), "nobody watches");
    lock(&scene.workers[0]).park(None);
    let Rest::Park(Some(short)) = scene.settle_down(0) else { panic!("one works") };
    assert_eq!(short, Duration::from_nanos(SENTINEL_NS));
}
