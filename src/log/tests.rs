//! Tests of the log on the simulated disk. Each prints its seed when it fails.

mod bits;
mod checkpoints;
mod entries;
mod folds;
mod format;
mod invent;
mod letters;
mod live;
mod mishaps;
mod model;
mod readers;
mod reading;
mod reopen;
mod salvaging;
mod story;
mod together;
mod told;
mod torn;
mod verifying;

use std::sync::Arc;

use super::disk::Disk;
use super::error::LogError;
use super::frame::Kind;
use super::recover::{Recovered, recover};
use super::simulated::SimulatedDisk;
use super::tail::{Tail, TailSettings};

/// Splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("the remainder is below a usize")
    }

    /// A body that may look torn: random bytes, zeros, zeros at one end, single bits.
    fn body(&mut self, limit: usize) -> Vec<u8> {
        let bound = [1, 9, 200, 1_200, limit + 1][self.below(5)];
        let length = self.below(bound);
        let shape = self.below(5);
        let border = self.below(length + 1);
        (0..length)
            .map(|place| match shape {
                0 => 0,
                1 if place >= border => 0,
                2 if place < border => 0,
                3 => u8::from(self.below(100) == 0),
                _ => self.next().to_le_bytes()[0],
            })
            .collect()
    }
}

fn settings(seed: u64, segment_bytes: u64) -> TailSettings {
    TailSettings { segment_bytes, is_safe: true, seed }
}

fn open(
    disk: &SimulatedDisk,
    settings: TailSettings,
) -> Result<(Option<Recovered>, Tail), LogError> {
    let recovered = recover(disk, None)?;
    let tail = Tail::open(Arc::new(disk.clone()), recovered.as_ref(), settings)?;
    Ok((recovered, tail))
}

/// Sequence, time and body of all records.
fn records(recovered: Option<&Recovered>) -> Vec<(u64, u64, Vec<u8>)> {
    let mut records = Vec::new();
    if let Some(recovered) = recovered {
        let all: Result<(), ()> = recovered.visit(|_, record| {
            records.push((record.stamp.sequence, record.stamp.time, record.body().into_owned()));
            Ok(())
        });
        assert_eq!(all, Ok(()));
    }
    records
}

/// A log with these bodies, written record by record and flushed at the end.
fn log_with(bodies: &[Vec<u8>], segment_bytes: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let (_, mut tail) = open(&disk, settings(7, segment_bytes)).expect("an empty disk opens");
    for body in bodies {
        tail.push(Kind::Entries, body, 1).expect("the body fits");
        tail.write().expect("nothing fails");
    }
    tail.flush().expect("nothing fails");
    disk
}

fn names(disk: &SimulatedDisk) -> Vec<String> {
    let mut names = disk.names().expect("nothing fails");
    names.sort();
    names
}
