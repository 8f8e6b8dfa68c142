//! A durable bus beside its own limit, interleaved in one run: two bare appends to a log of what
//! an accept and a settlement append.
//!
//! An envelope is published, handled and completed at one stage; the time is that of all of them,
//! until the last has ended. *Replay* takes up envelopes that an earlier bus left. A file system
//! that flushes slowly shows in `each`.

#![expect(clippy::disallowed_methods, reason = "a harness reads the machine's clock")]

#[path = "../gate.rs"]
mod gate;
#[path = "../statistics.rs"]
mod statistics;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use waystage::log::{Log, LogSettings, Sync};
use waystage::{
    Bus, BusSettings, DurableSettings, Envelope, Level, Missing, OnFull, StageSettings,
};

use statistics::Summary;

/// Bytes of the records that one such envelope appends: its accept, and its end.
const RECORDS: [usize; 2] = [208, 24];

/// Moves so many envelopes with such a payload, and returns the time it took.
type Run = fn(&Path, &str, u64) -> Duration;

/// A name, envelopes of one run, and both subjects.
type Shape = (&'static str, u64, [(&'static str, Run); 2]);

const SHAPES: &[Shape] = &[
    ("os, at least once", 100_000, [("log", appends_os), ("bus", os_at_least_once)]),
    ("os, exactly once", 100_000, [("log", appends_os), ("bus", os_exactly_once)]),
    ("within 10 ms", 100_000, [("log", appends_within), ("bus", within)]),
    ("replay", 100_000, [("log", appends_os), ("bus", replay)]),
];

/// Measures a durable bus against bare appends to a log.
#[derive(Parser)]
struct Arguments {
    /// Only shapes whose name contains this.
    #[arg(default_value = "")]
    shape: String,
    /// Quiet runs of each subject.
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Bytes of a payload.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// Where to write; default: the directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Take runs of a busy machine too.
    #[arg(long)]
    no_gate: bool,
}

fn main() {
    let arguments = Arguments::parse();
    println!(
        "{:<18} {:<6} {:>11} {:>9} {:>9}  {:>6} {:>15}  runs",
        "SHAPE", "SUBJECT", "ns/envelope", "min", "max", "ratio", "interval"
    );
    for (name, envelopes, subjects) in SHAPES {
        if name.contains(&arguments.shape) {
            compare(name, *envelopes, subjects, &arguments);
        }
    }
}

fn compare(shape: &str, envelopes: u64, subjects: &[(&str, Run); 2], arguments: &Arguments) {
    let payload = "p".repeat(arguments.bytes);
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let run = |run: Run| {
        let directory = tempfile::tempdir_in(&parent).expect("the directory can be written");
        run(directory.path(), &payload, envelopes).as_nanos() as f64 / envelopes as f64
    };
    let mut times = [Vec::new(), Vec::new()];
    let mut tries = 0;
    while times[0].len() < arguments.pairs && tries < 4 * arguments.pairs {
        tries += 1;
        let mut round = Vec::new();
        for (_, subject) in subjects {
            let quiet = arguments.no_gate || gate::is_quiet();
            gate::free();
            let time = run(*subject);
            if quiet && (arguments.no_gate || gate::is_quiet()) {
                round.push(time);
            }
        }
        if round.len() == subjects.len() {
            times.iter_mut().zip(round).for_each(|(times, time)| times.push(time));
        }
    }
    for ((name, _), own) in subjects.iter().zip(&times) {
        let row = Summary::of(own, &times[0]);
        println!(
            "{shape:<18} {name:<6} {:>11.0} {:>9.0} {:>9.0}  {:>6.2} {:>6.2} ... {:>4.2}  \
             {}/{tries}",
            row.median,
            row.min,
            row.max,
            row.ratio,
            row.low,
            row.high,
            own.len()
        );
    }
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

fn appends_os(directory: &Path, _: &str, envelopes: u64) -> Duration {
    appends(directory, envelopes, Sync::Os)
}

fn appends_within(directory: &Path, _: &str, envelopes: u64) -> Duration {
    appends(directory, envelopes, Sync::Within(Duration::from_millis(10)))
}

fn open(directory: &Path, sync: Sync, level: Level, workers: usize) -> Bus<String> {
    let mut durable = DurableSettings::in_directory(directory);
    durable.log.sync = sync;
    let settings = BusSettings { workers, ..BusSettings::default() };
    let bus = Bus::start_durable(settings, &durable).expect("it opens");
    let on_full = OnFull::Block(Duration::from_secs(60));
    let stage = StageSettings { level, on_full, ..StageSettings::default() };
    bus.add_stage("stage", stage, |_| Ok(())).expect("the settings are in range");
    bus
}

fn publish_all(bus: &Bus<String>, payload: &str, envelopes: u64) {
    let mut publisher = bus.publisher();
    let slip = bus.slip(["stage"]).expect("a short name");
    for _ in 0..envelopes {
        publisher.publish(Envelope::new(payload.to_owned(), slip.clone())).expect("there is room");
    }
}

fn publish_and_end(
    directory: &Path,
    payload: &str,
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

fn os_at_least_once(directory: &Path, payload: &str, envelopes: u64) -> Duration {
    publish_and_end(directory, payload, envelopes, Sync::Os, Level::AtLeastOnce)
}

fn os_exactly_once(directory: &Path, payload: &str, envelopes: u64) -> Duration {
    publish_and_end(directory, payload, envelopes, Sync::Os, Level::ExactlyOnce)
}

fn within(directory: &Path, payload: &str, envelopes: u64) -> Duration {
    let sync = Sync::Within(Duration::from_millis(10));
    publish_and_end(directory, payload, envelopes, sync, Level::ExactlyOnce)
}

/// Opening the log, taking up what is open, and ending it.
fn replay(directory: &Path, payload: &str, envelopes: u64) -> Duration {
    // A stage of a bus without threads takes as many as its ring has room for.
    let mut durable = DurableSettings::in_directory(directory);
    durable.log.sync = Sync::Os;
    let nobody = BusSettings { workers: 0, ..BusSettings::default() };
    let bus: Bus<String> = Bus::start_durable(nobody, &durable).expect("it opens");
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
