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
    let slip = bus.slip(["a"]).expect("a short name");
    let envelopes = payloads.map(|payload| Envelope::new(payload, slip.clone()));
    bus.publish_batch(envelopes).expect("there is room");
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
    const LARGE: usize = 16 << 10;
    let bus = bus::<[u8; LARGE]>();
    let settings = StageSettings { batch: 1024, ..StageSettings::default() };
    bus.add_stage("a", settings, |_| Ok(())).expect("the settings are in range");
    for _ in 0..4 {
        publish_all(&bus, (0..1024).map(|_| [0; LARGE]));
    }
    let (kept, bytes) = bus.core.blocks_kept();
    assert!(bytes <= 16 << 20, "{kept} blocks of {bytes} bytes in all");
    assert!(bus.core.blocks_of_a_scratch().iter().all(|bytes| *bytes <= 2 << 20), "64 of 16 KiB");
}
