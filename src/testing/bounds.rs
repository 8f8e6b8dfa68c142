//! Bounds that only the inside shows: timers of closed stages, memory of spare blocks.

use std::sync::Arc;
use std::time::Duration;

use crate::bus::{Bus, BusSettings};
use crate::clock::ManualClock;
use crate::envelope::Envelope;
use crate::stage::handler::Failure;
use crate::stage::settings::{Retry, StageSettings};

fn bus<P: Send + 'static>() -> Bus<P> {
    let settings = BusSettings { workers: 0, ..BusSettings::default() };
    Bus::start_with_clock(settings, Arc::new(ManualClock::new())).expect("it starts")
}

fn publish_all<P: Send + 'static>(bus: &Bus<P>, payloads: impl Iterator<Item = P>) {
    publish_all_to(bus, "a", payloads);
}

fn publish_all_to<P: Send + 'static>(bus: &Bus<P>, name: &str, payloads: impl Iterator<Item = P>) {
    let slip = bus.slip([name]).expect("a short name");
    let mut envelopes = payloads.map(|payload| Envelope::new(payload, slip.clone()));
    bus.publish_batch(&mut envelopes).expect("there is room");
    while bus.turn() > 0 {}
}

#[test]
fn a_closed_stage_leaves_no_timers_behind() {
    let bus = bus::<u64>();
    let hour = Duration::from_secs(3600);
    let retry = Retry::Delayed { first: hour, max: hour, jitter: 0.0 };
    for _ in 0..3 {
        let settings = StageSettings { attempts: 2, retry, ..StageSettings::default() };
        bus.add_stage("a", settings, |_| Err(Failure::new("later"))).expect("it is closed");
        publish_all(&bus, 0..100);
        assert_eq!(bus.core.shared.timers.len(), 100, "one for each that waits");
        bus.close_stage("a").expect("it is open");
        assert_eq!(bus.core.shared.timers.len(), 0, "nothing waits any more");
    }
    assert_eq!(bus.conservation().dead, 300);
}

#[test]
fn spare_blocks_are_bounded_in_bytes() {
    const LARGE: usize = 4 << 10;
    const COUNT: usize = 8192;
    let bus = bus::<[u8; LARGE]>();
    let settings = StageSettings { capacity: COUNT, ..StageSettings::default() };
    bus.add_stage("a", settings, |_| Ok(())).expect("the settings are in range");
    // In 128 blocks at once, of more than 256 KiB each.
    publish_all(&bus, (0..COUNT).map(|_| [0; LARGE]));
    let (kept, bytes) = bus.core.blocks_kept();
    assert!(kept > 0 && bytes <= 16 << 20, "{kept} blocks of {bytes} bytes in all");
    let large = StageSettings { batch: 4096, ..StageSettings::default() };
    bus.add_batch_stage("b", StageSettings { capacity: COUNT, ..large }, |_| Ok(())).expect("fine");
    publish_all_to(&bus, "b", (0..COUNT).map(|_| [0; LARGE]));
    let most = 64 * size_of::<Envelope<[u8; LARGE]>>();
    let scratch = bus.core.blocks_of_a_scratch();
    assert!(scratch.iter().all(|bytes| *bytes <= most), "{scratch:?}");
}
