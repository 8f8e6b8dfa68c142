//! A durable bus beside its own limit, interleaved in one run: two bare appends to a log of what
//! an accept and a settlement append.
//!
//! An envelope is published, handled and completed at one stage; the time is that of all of them,
//! until the last has ended. *Replay* takes up envelopes that an earlier bus left. A file system
//! that flushes slowly shows in `each`.

#![expect(clippy::disallowed_methods, reason = "a harness reads the machine's clock")]

use std::path::Path;
use std::time::{Duration, Instant};

use waystage::log::{Log, LogSettings, Sync};
use waystage::{
    Bus, BusSettings, DurableSettings, Envelope, Level, Missing, OnFull, StageSettings,
};
use waystage_peers::interleaved::{Shape, compare_all};

/// Bytes of the records that one such envelope appends: its accept, and its end.
const RECORDS: [usize; 2] = [208, 24];

const SHAPES: &[Shape] = &[
    Shape {
        name: "os, at least once",
        times: 100_000,
        subjects: &[("log", appends_os), ("bus", os_at_least_once)],
    },
    Shape {
        name: "os, exactly once",
        times: 100_000,
        subjects: &[("log", appends_os), ("bus", os_exactly_once)],
    },
    Shape {
        name: "within 10 ms",
        times: 100_000,
        subjects: &[("log", appends_within), ("bus", within)],
    },
    Shape { name: "replay", times: 100_000, subjects: &[("log", appends_os), ("bus", replay)] },
];

fn main() {
    compare_all("ns/envelope", SHAPES);
}

fn appends(directory: &Path, envelopes: u64, sync: Sync) -> Duration {
    let settings = LogSettings { sync, ..LogSettings::default() };
    let (log, _) = Log::open(directory, settings).expect("it opens");
    let bodies = RECORDS.map(|bytes| vec![0x5A; bytes]);
    let begin = Instant::now();
    for _ in 0..envelopes {
        for body in &bodies {
            drop(log.append(body).expect("there is room"));
        }
    }
    begin.elapsed()
}

fn appends_os(directory: &Path, _: &[u8], envelopes: u64) -> Duration {
    appends(directory, envelopes, Sync::Os)
}

fn appends_within(directory: &Path, _: &[u8], envelopes: u64) -> Duration {
    appends(directory, envelopes, Sync::Within(Duration::from_millis(10)))
}

fn open(directory: &Path, sync: Sync, level: Level, workers: usize) -> Bus<Vec<u8>> {
    let mut durable = DurableSettings::in_directory(directory);
    durable.log.sync = sync;
    let settings = BusSettings { workers, ..BusSettings::default() };
    let bus = Bus::start_durable(settings, &durable).expect("it opens");
    let on_full = OnFull::Block(Duration::from_secs(60));
    let stage = StageSettings { level, on_full, ..StageSettings::default() };
    bus.add_stage("stage", stage, |_| Ok(())).expect("the settings are in range");
    bus
}

fn publish_all(bus: &Bus<Vec<u8>>, payload: &[u8], envelopes: u64) {
    let mut publisher = bus.publisher();
    let slip = bus.slip(["stage"]).expect("a short name");
    for _ in 0..envelopes {
        publisher.publish(Envelope::new(payload.to_vec(), slip.clone())).expect("there is room");
    }
}

fn publish_and_end(
    directory: &Path,
    payload: &[u8],
    envelopes: u64,
    sync: Sync,
    level: Level,
) -> Duration {
    let bus = open(directory, sync, level, 1);
    bus.recover(Missing::Refuse).expect("nothing is there");
    let begin = Instant::now();
    publish_all(&bus, payload, envelopes);
    assert!(bus.shutdown(Duration::from_secs(60)).drained);
    begin.elapsed()
}

fn os_at_least_once(directory: &Path, payload: &[u8], envelopes: u64) -> Duration {
    publish_and_end(directory, payload, envelopes, Sync::Os, Level::AtLeastOnce)
}

fn os_exactly_once(directory: &Path, payload: &[u8], envelopes: u64) -> Duration {
    publish_and_end(directory, payload, envelopes, Sync::Os, Level::ExactlyOnce)
}

fn within(directory: &Path, payload: &[u8], envelopes: u64) -> Duration {
    let sync = Sync::Within(Duration::from_millis(10));
    publish_and_end(directory, payload, envelopes, sync, Level::ExactlyOnce)
}

/// Opening the log, taking up what is open, and ending it.
fn replay(directory: &Path, payload: &[u8], envelopes: u64) -> Duration {
    // A stage of a bus without threads takes as many as its ring has room for.
    let mut durable = DurableSettings::in_directory(directory);
    durable.log.sync = Sync::Os;
    let nobody = BusSettings { workers: 0, ..BusSettings::default() };
    let bus: Bus<Vec<u8>> = Bus::start_durable(nobody, &durable).expect("it opens");
    let capacity = usize::try_from(envelopes).expect("a small number");
    let stage = StageSettings { level: Level::AtLeastOnce, capacity, ..StageSettings::default() };
    bus.add_stage("stage", stage, |_| Ok(())).expect("the settings are in range");
    publish_all(&bus, payload, envelopes);
    drop(bus);
    let begin = Instant::now();
    let bus = open(directory, Sync::Os, Level::AtLeastOnce, 1);
    bus.recover(Missing::Refuse).expect("the stage is open");
    assert!(bus.shutdown(Duration::from_secs(60)).drained);
    begin.elapsed()
}
