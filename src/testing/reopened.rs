//! A task that publishes while its stage is closed and opened anew: it is woken by whichever stage
//! of that name is there.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::bus::{Bus, BusSettings};
use crate::envelope::Envelope;
use crate::stage::settings::StageSettings;
use crate::sync::{AtomicU64, Ordering, Pause, pause_at, spawn_thread};

/// Counts its wake-ups.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // ORDERING: Relaxed: read by the thread that wakes.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn envelope(bus: &Bus<u64>) -> Envelope<u64> {
    Envelope::new(1, bus.slip(["a"]).expect("a short name"))
}

/// Opens the stage `a`, and fills it.
fn open(bus: &Bus<u64>) {
    let settings = StageSettings { capacity: 1, ..StageSettings::default() };
    bus.add_stage("a", settings, |_| Ok(())).expect("the name is free");
    while bus.try_publish(envelope(bus)).is_ok() {}
}

/// A task polls its publish once and stops at a place of that, while the stage is closed and opened
/// anew. Whether there is such a place.
fn is_woken(place: usize) -> bool {
    let settings = BusSettings { workers: 0, ..BusSettings::default() };
    let bus = Arc::new(Bus::start(settings).expect("it starts"));
    open(&bus);
    let stage = bus.find("a").expect("it is open");
    let (pause, woken) = (Pause::default(), Arc::new(Woken::default()));
    let victim = {
        let (bus, pause) = (Arc::clone(&bus), pause.clone());
        let waker = Waker::from(Arc::clone(&woken));
        spawn_thread("victim".to_owned(), move || {
            let mut publish = pin!(bus.publish_async(envelope(&bus)));
            pause_at(place, pause.clone());
            let polled = publish.as_mut().poll(&mut Context::from_waker(&waker));
            pause.release();
            if let Poll::Ready(published) = polled {
                assert!(published.is_err(), "place {place}: there is no room");
                return;
            }
            while bus.turn() > 0 {}
            // ORDERING: Relaxed: written by this thread.
            assert!(woken.0.load(Ordering::Relaxed) > 0, "place {place}: nobody wakes it");
        })
    };
    let stands = pause.wait();
    // Where it holds the stage's lock nobody can close that.
    if stands && !stage.is_locked() {
        bus.close_stage("a").expect("it is open");
        open(&bus);
    }
    pause.release();
    victim.expect("a thread more").join().expect("no panic");
    bus.shutdown(Duration::ZERO);
    stands
}

#[test]
fn a_task_is_woken_by_the_stage_that_is_there() {
    let places = (0..).take_while(|place| is_woken(*place)).count();
    assert!(places >= 3, "only {places} places");
}
