//! Appending to the log beside okaywal and commitlog, interleaved in one run.
//!
//! Every run writes to a fresh directory beside `--dir`, and every subject does what its row says:
//! `each` returns from an append only after a flush of the file (okaywal does the same by
//! `fdatasync`); `not synced` leaves the bytes with the operating system (commitlog never flushes
//! its data file). Making the first segment is not timed. Runs on a busy machine are repeated.

#![expect(clippy::disallowed_methods, reason = "a harness reads the machine's clock")]

use std::path::Path;
use std::time::{Duration, Instant};

use waystage::log::{Log, LogSettings, Receipt, Sync};
use waystage_peers::interleaved::{Shape, compare_all};

const SHAPES: &[Shape] = &[
    Shape {
        name: "not synced, 1 thread",
        times: 400_000,
        subjects: &[("commitlog", commitlog_appends), ("waystage", not_synced)],
    },
    Shape {
        name: "each, 1 thread",
        times: 1_500,
        subjects: &[("okaywal", okaywal_1), ("waystage", each_1)],
    },
    Shape {
        name: "each, 2 threads",
        times: 2_000,
        subjects: &[("okaywal", okaywal_2), ("waystage", each_2)],
    },
    Shape {
        name: "each, 8 threads",
        times: 8_000,
        subjects: &[("okaywal", okaywal_8), ("waystage", each_8)],
    },
    Shape {
        name: "each, 32 threads",
        times: 16_000,
        subjects: &[("okaywal", okaywal_32), ("waystage", each_32)],
    },
    Shape {
        name: "each, window 64",
        times: 100_000,
        subjects: &[("okaywal", okaywal_batch_64), ("waystage", window_64)],
    },
    Shape {
        name: "each, window 1024",
        times: 400_000,
        subjects: &[("okaywal", okaywal_batch_1024), ("waystage", window_1024)],
    },
];

fn main() {
    compare_all("ns/append", SHAPES);
}

fn open(directory: &Path, sync: Sync) -> Log {
    Log::open(directory, LogSettings { sync, ..LogSettings::default() }).expect("it opens").0
}

fn not_synced(directory: &Path, body: &[u8], appends: u64) -> Duration {
    let log = open(directory, Sync::Os);
    let begin = Instant::now();
    for _ in 0..appends {
        drop(log.append(body).expect("there is room"));
    }
    begin.elapsed()
}

fn each(directory: &Path, body: &[u8], appends: u64, threads: u64) -> Duration {
    let log = open(directory, Sync::Each);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..appends / threads {
                    log.append(body).and_then(|receipt| receipt.wait()).expect("it is durable");
                }
            });
        }
    });
    begin.elapsed()
}

fn each_1(directory: &Path, body: &[u8], appends: u64) -> Duration {
    each(directory, body, appends, 1)
}

fn each_2(directory: &Path, body: &[u8], appends: u64) -> Duration {
    each(directory, body, appends, 2)
}

fn each_8(directory: &Path, body: &[u8], appends: u64) -> Duration {
    each(directory, body, appends, 8)
}

fn each_32(directory: &Path, body: &[u8], appends: u64) -> Duration {
    each(directory, body, appends, 32)
}

/// One thread with so many appends that are not acknowledged yet.
fn window(directory: &Path, body: &[u8], appends: u64, window: usize) -> Duration {
    let log = open(directory, Sync::Each);
    let begin = Instant::now();
    let mut receipts: Vec<Receipt> = Vec::with_capacity(window);
    for _ in 0..appends {
        receipts.push(log.append(body).expect("there is room"));
        if receipts.len() == window {
            for receipt in receipts.drain(..) {
                receipt.wait().expect("it is durable");
            }
        }
    }
    begin.elapsed()
}

fn window_64(directory: &Path, body: &[u8], appends: u64) -> Duration {
    window(directory, body, appends, 64)
}

fn window_1024(directory: &Path, body: &[u8], appends: u64) -> Duration {
    window(directory, body, appends, 1_024)
}

fn okaywal_log(directory: &Path) -> okaywal::WriteAheadLog {
    let settings = okaywal::Configuration::default_for(directory)
        .preallocate_bytes(64 << 20)
        .checkpoint_after_bytes(48 << 20);
    settings.open(okaywal::LogVoid).expect("it opens")
}

fn okaywal_threads(
    directory: &Path,
    body: &[u8],
    appends: u64,
    threads: u64,
    batch: u64,
) -> Duration {
    let log = okaywal_log(directory);
    let append = |count: u64| {
        let mut entry = log.begin_entry().expect("it can be written");
        for _ in 0..count {
            entry.write_chunk(body).expect("it can be written");
        }
        entry.commit().expect("it is durable");
    };
    // The first entry makes the first segment.
    append(1);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..appends / threads / batch {
                    append(batch);
                }
            });
        }
    });
    let time = begin.elapsed();
    log.shutdown().expect("it stops");
    time
}

fn okaywal_1(directory: &Path, body: &[u8], appends: u64) -> Duration {
    okaywal_threads(directory, body, appends, 1, 1)
}

fn okaywal_2(directory: &Path, body: &[u8], appends: u64) -> Duration {
    okaywal_threads(directory, body, appends, 2, 1)
}

fn okaywal_8(directory: &Path, body: &[u8], appends: u64) -> Duration {
    okaywal_threads(directory, body, appends, 8, 1)
}

fn okaywal_32(directory: &Path, body: &[u8], appends: u64) -> Duration {
    okaywal_threads(directory, body, appends, 32, 1)
}

fn okaywal_batch_64(directory: &Path, body: &[u8], appends: u64) -> Duration {
    okaywal_threads(directory, body, appends, 1, 64)
}

fn okaywal_batch_1024(directory: &Path, body: &[u8], appends: u64) -> Duration {
    okaywal_threads(directory, body, appends, 1, 1_024)
}

fn commitlog_appends(directory: &Path, body: &[u8], appends: u64) -> Duration {
    let mut options = commitlog::LogOptions::new(directory);
    options.segment_max_bytes(64 << 20);
    let mut log = commitlog::CommitLog::new(options).expect("it opens");
    let begin = Instant::now();
    for _ in 0..appends {
        log.append_msg(body).expect("there is room");
    }
    begin.elapsed()
}
