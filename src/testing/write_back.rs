//! Orders in which a machine may write what nobody flushed, step by step: the log without the
//! outputs, an output that a failed flush left in memory only; and what is told meanwhile.

use std::sync::Arc;
use std::time::Duration;

use super::crashes::{Told, finish, open};
use super::random::Random;
use crate::log::Sync;
use crate::log::simulated::{Fault, SimulatedDisk};
use crate::stage::settings::Level;
use crate::sync::{Mutex, lock};

const LEVEL: Level = Level::ExactlyOnce;
/// Operations of a few settlements and their flushes, at most.
const OPERATIONS: usize = 40;

fn told() -> Arc<Mutex<Told>> {
    Arc::new(Mutex::new(Told::default()))
}

/// The system writes the whole log by itself, a checkpoint that was never flushed included, and
/// nothing of the outputs: the log ends where the outputs do, whatever the checkpoint says.
#[test]
fn the_log_is_written_back_before_the_outputs() {
    let within = Sync::Within(Duration::from_secs(3600));
    for crash in 0..OPERATIONS {
        let (disk, random, told) = (SimulatedDisk::default(), Random::new(7), told());
        let life = open(&disk, (within, LEVEL), 1, &random, &told).expect("the disk is whole");
        for number in [1, 2, 4, 6, 8] {
            drop(life.publish(number, &told));
            for _ in 0..20 {
                life.bus.turn();
            }
        }
        disk.fail_at(disk.operations() + crash, Fault::Crash);
        drop(life.bus.core.journal.as_ref().map(|journal| journal.write_checkpoint()));
        let left = disk.after_write_back();
        let life = open(&left, (within, LEVEL), 2, &random, &told).expect("the disk is whole");
        finish(&life, &left, LEVEL, &told, crash as u64);
    }
}

/// A flush of an output fails, and the process ends. The next one finds the output whole, in
/// memory; what it makes durable of the log has to be on the disk with it.
#[test]
fn a_failed_flush_leaves_an_output_in_memory_only() {
    for fault in 0..OPERATIONS {
        let (disk, random, told) = (SimulatedDisk::default(), Random::new(7), told());
        let life = open(&disk, (Sync::Each, LEVEL), 1, &random, &told).expect("the disk is whole");
        for number in [1, 2, 4, 6, 8] {
            drop(life.publish(number, &told));
        }
        disk.fail_at(disk.operations() + fault, Fault::Error(std::io::ErrorKind::Other));
        for _ in 0..100 {
            life.bus.turn();
        }
        let killed = disk.after_kill();
        drop(open(&killed, (Sync::Each, LEVEL), 2, &random, &told).expect("the disk is whole"));
        let left = killed.after_bare_power_cut();
        let life = open(&left, (Sync::Each, LEVEL), 3, &random, &told).expect("the disk is whole");
        finish(&life, &left, LEVEL, &told, fault as u64);
    }
}

/// Nobody is told of an end before it would survive a power cut.
#[test]
fn ends_are_told_when_they_are_safe() {
    let (disk, random, told) = (SimulatedDisk::default(), Random::new(7), told());
    let life = open(&disk, (Sync::Each, LEVEL), 1, &random, &told).expect("the disk is whole");
    drop(life.publish(1, &told));
    for _ in 0..20 {
        life.pool.turn();
    }
    assert!(lock(&told).ends.is_empty(), "its record is not flushed yet");
    life.bus.turn();
    assert_eq!(lock(&told).ends.len(), 1);
    let left = disk.after_bare_power_cut();
    let life = open(&left, (Sync::Each, LEVEL), 2, &random, &told).expect("the disk is whole");
    assert_eq!(life.bus.conservation().recovered, 0, "what was told is done");
}
