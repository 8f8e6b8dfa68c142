//! First signs of life.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waystage::{Bus, BusSettings, Envelope, StageSettings};

#[test]
fn three_stages_in_order() {
    let bus: Bus<u64> = Bus::start(BusSettings { workers: 2, ..BusSettings::default() }).unwrap();
    let sum = Arc::new(AtomicU64::new(0));
    for name in ["a", "b", "c"] {
        let sum = Arc::clone(&sum);
        bus.add_stage(name, StageSettings::default(), move |context| {
            sum.fetch_add(*context.payload(), Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    }
    let slip = bus.slip(["a", "b", "c"]).unwrap();
    let mut publisher = bus.publisher();
    for number in 0..100_000 {
        publisher.publish(Envelope::new(number, slip.clone())).unwrap();
    }
    let report = bus.shutdown(Duration::from_secs(20));
    assert!(report.drained, "{report:?}");
    assert_eq!(report.conservation.completed, 100_000);
    assert!(report.conservation.holds());
    assert_eq!(sum.load(Ordering::Relaxed), 3 * (0..100_000).sum::<u64>());
}

#[test]
fn many_producers_and_permits() {
    for round in 0..20 {
        let bus: Bus<u64> =
            Bus::start(BusSettings { workers: 2, ..BusSettings::default() }).unwrap();
        let settings = StageSettings { permits: 3, capacity: 16, ..StageSettings::default() };
        bus.add_stage("a", settings.clone(), |_| Ok(())).unwrap();
        bus.add_stage("b", StageSettings { capacity: 2, ..settings.clone() }, |_| Ok(())).unwrap();
        bus.add_stage("c", settings, |_| Ok(())).unwrap();
        let slip = bus.slip(["a", "b", "c"]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                let mut publisher = bus.publisher();
                let slip = slip.clone();
                scope.spawn(move || {
                    for number in 0..500 {
                        publisher.publish(Envelope::new(number, slip.clone())).unwrap();
                    }
                });
            }
        });
        let report = bus.shutdown(Duration::from_secs(20));
        assert!(report.drained, "round {round}: {report:?}");
        assert_eq!(report.conservation.completed, 3000, "{report:?}");
    }
}
