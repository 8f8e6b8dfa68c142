//! W6: what an opening leaves behind holds in a power cut, though what it read proves nothing.

use super::*;
use crate::log::frame;
use crate::log::simulated::Fault;
use crate::log::torn::SECTOR_BYTES;

fn bodies(disk: &SimulatedDisk) -> Vec<Vec<u8>> {
    let (recovered, _) = open(disk, settings(9, 4_096)).unwrap();
    records(recovered.as_ref()).into_iter().map(|record| record.2).collect()
}

/// A process is killed at each operation by which it makes the first segment (W1). Another one
/// finds the name or not, and a record that it flushes stays.
#[test]
fn a_name_that_a_killed_process_gave_is_made_durable() {
    let mut found = 0;
    for killed in 0..5 {
        let first = SimulatedDisk::default();
        first.fail_at(killed, Fault::Crash);
        assert!(open(&first, settings(1, 4_096)).is_err(), "killed at {killed}");
        let second = first.after_kill();
        let (recovered, mut tail) = open(&second, settings(2, 4_096)).unwrap();
        found += usize::from(recovered.is_some());
        tail.push(Kind::Entries, b"flushed", 1).unwrap();
        tail.flush().unwrap();
        assert_eq!(bodies(&second.after_bare_power_cut()), [b"flushed"], "killed at {killed}");
    }
    assert!(found > 0, "none was killed between the name and its flush");
}

/// A torn record is cut, but the flush of the zeros fails: the cache has them, the medium still
/// holds what stood behind the place. The next opening reads a clean end.
#[test]
fn what_was_cut_stays_away_though_its_flush_failed() {
    let disk = SimulatedDisk::default();
    let (_, mut tail) = open(&disk, settings(1, 4_096)).unwrap();
    tail.push(Kind::Entries, b"kept", 1).unwrap();
    tail.flush().unwrap();
    // The record behind begins a sector of its own, which nothing else will overwrite.
    let start = usize::try_from(tail.position()).unwrap();
    let length = 4 * SECTOR_BYTES - start - frame::size(0);
    for body in [vec![1; length], b"behind".to_vec()] {
        tail.push(Kind::Entries, &body, 1).unwrap();
    }
    tail.write().unwrap();
    assert_eq!(tail.position(), (4 * SECTOR_BYTES + frame::size(6)) as u64);
    // One sector of the large record did not arrive, all else did.
    disk.tamper(&names(&disk)[0], |bytes| bytes[SECTOR_BYTES..2 * SECTOR_BYTES].fill(0));

    // The flush is the last that recovery does.
    let (disk, rehearsal) = (disk.after_kill(), disk.after_kill());
    recover(&rehearsal, None).unwrap();
    disk.fail_at(rehearsal.operations() - 1, Fault::Error(std::io::ErrorKind::Other));
    assert!(matches!(recover(&disk, None), Err(LogError::Storage { action: "flush", .. })));
    let zeros = disk.contents(&names(&disk)[0]).split_off(start);
    assert!(zeros.iter().all(|&byte| byte == 0), "the cache shows a clean end");

    let disk = disk.after_kill();
    let (_, mut tail) = open(&disk, settings(2, 4_096)).unwrap();
    // As long as what was cut, so that the record behind it would follow.
    tail.push(Kind::Entries, &vec![2; length], 1).unwrap();
    tail.flush().unwrap();
    let found = bodies(&disk.after_bare_power_cut());
    assert_eq!(found, [b"kept".to_vec(), vec![2; length]], "a cut record came back");
}
