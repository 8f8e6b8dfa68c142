//! Sends a million envelopes to a busy stage in memory. Run under `strace -c -f` it shows that
//! publishing makes no system calls: fewer than one per thousand, start and end included. An
//! argument sets the stage's capacity: a small one makes the publisher wait for room, too.
#![expect(clippy::print_stdout, reason = "an example tells what it did")]

use std::time::Duration;

use waystage::{Bus, BusSettings, Envelope, StageSettings};

const COUNT: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bus: Bus<[u64; 8]> = Bus::start(BusSettings { workers: 1, ..BusSettings::default() })?;
    // Room for many and something to do for each: the worker never runs dry, and the publisher
    // waits rarely.
    let capacity = std::env::args().nth(1).map_or(Ok(1 << 16), |number| number.parse())?;
    let settings = StageSettings { capacity, ..StageSettings::default() };
    bus.add_stage("busy", settings, |context| {
        for round in 0..50 {
            let payload = context.payload_mut();
            payload[0] = std::hint::black_box(payload[0].rotate_left(7) ^ round);
        }
        Ok(())
    })?;
    let slip = bus.slip(["busy"])?;
    let mut publisher = bus.publisher();
    for number in 0..COUNT {
        publisher.publish(Envelope::new([number; 8], slip.clone()))?;
    }
    let report = bus.shutdown(Duration::from_secs(60));
    println!("{} envelopes completed", report.conservation.completed);
    if report.conservation.completed == COUNT { Ok(()) } else { Err("some were not".into()) }
}
