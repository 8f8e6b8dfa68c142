//! B4: any bit flipped anywhere.

use super::*;
use crate::log::frame;
use crate::log::segment::HEADER_BYTES;

/// Bodies that are nearly torn already: one bit from seven zero words, one bit from zeros.
fn treacherous() -> Vec<Vec<u8>> {
    let mut bodies = vec![vec![0; 64], vec![0; 500], Vec::new(), vec![0xFF; 40]];
    for bit in [0, 63, 64, 200, 511] {
        let mut body = vec![0; 120];
        body[bit % 120] = 1;
        bodies.push(body);
    }
    bodies.push((0..=255).collect());
    bodies
}

#[test]
fn b4_every_flipped_bit_is_told_or_lay_behind_the_end() {
    let mut bodies = treacherous();
    every_bit(&bodies, 1);
    // The first segment is sealed by these, with room left behind its end.
    bodies.extend([vec![0; 3_000], vec![1; 10]]);
    every_bit(&bodies, 2);
}

fn every_bit(bodies: &[Vec<u8>], expected: usize) {
    let disk = log_with(bodies, 4_096);
    let segments = names(&disk);
    assert_eq!(segments.len(), expected);
    let good = disk.everything();
    for name in &segments {
        let used = end_of(&good[name]);
        for bit in 0..good[name].len() * 8 {
            let place = bit / 8;
            disk.tamper(name, |bytes| bytes[place] ^= 1 << (bit % 8));
            match recover(&disk, None) {
                Err(_) => assert_eq!(changed(&disk, &good), 1, "nothing else was written"),
                Ok(recovered) => {
                    assert!(place >= used, "{name}: bit {bit} of {used} used bytes passed");
                    let found = records(recovered.as_ref());
                    let found: Vec<_> = found.into_iter().map(|record| record.2).collect();
                    assert_eq!(found, bodies);
                }
            }
            disk.tamper(name, |bytes| bytes.clone_from(&good[name]));
        }
    }
}

/// How many files are not what they were.
fn changed(disk: &SimulatedDisk, good: &std::collections::BTreeMap<String, Vec<u8>>) -> usize {
    disk.everything().iter().filter(|(name, bytes)| good.get(*name) != Some(bytes)).count()
}

fn end_of(bytes: &[u8]) -> usize {
    let header = bytes.first_chunk().expect("a segment has a header");
    let header = crate::log::segment::SegmentHeader::from_bytes(header).expect("it checks");
    let mut offset = HEADER_BYTES;
    while let frame::Found::Record(record) = frame::read(bytes, offset, header.identity) {
        offset += record.size();
    }
    offset
}

#[test]
fn p33_one_bit_in_the_second_of_five_segments() {
    let bodies: Vec<Vec<u8>> = (0..15).map(|number| vec![number; 1_200]).collect();
    let disk = log_with(&bodies, 4_096);
    assert_eq!(names(&disk).len(), 5);
    let second = names(&disk)[1].clone();
    disk.tamper(&second, |bytes| bytes[2_000] ^= 4);
    let before = disk.everything();
    match open(&disk, settings(1, 4_096)) {
        Err(LogError::Damaged(damage)) => assert_eq!((damage.segment, damage.watermark), (2, 12)),
        other => panic!("{other:?}"),
    }
    assert_eq!(disk.everything(), before, "nothing was deleted or changed");
}

#[test]
fn files_swapped_renamed_lost_or_foreign_are_told() {
    let bodies: Vec<Vec<u8>> = (0..9).map(|number| vec![number; 1_200]).collect();
    let disk = log_with(&bodies, 4_096);
    let all = names(&disk);
    let good = disk.everything();
    let fails = |disk: &SimulatedDisk, word: &str| {
        let before = disk.everything();
        let error = open(disk, settings(1, 4_096)).expect_err(word).to_string();
        assert!(error.contains(word), "{error} says {word}");
        assert_eq!(disk.everything(), before, "{word}: nothing was changed");
    };
    let with = |files: &[(&String, &[u8])]| {
        let disk = SimulatedDisk::default();
        for (name, bytes) in files {
            disk.put(name, bytes.to_vec());
        }
        disk
    };
    let [first, second, third] = [&all[0], &all[1], &all[2]];
    let [a, b, c] = [&good[first][..], &good[second][..], &good[third][..]];
    fails(&with(&[(first, b), (second, a), (third, c)]), "that this is segment 1");
    fails(&with(&[(first, a), (third, c)]), "missing");
    fails(&with(&[(second, b), (third, c)]), "record 4 stands where 1 belongs");
    fails(&with(&[(first, a), (second, b)]).with_truncated(second), "bytes where its header says");
    fails(
        &with(&[(first, b"something else, and quite long enough to be a header of sixty-four")]),
        "none",
    );
    fails(&with(&[(first, b"")]), "0 bytes");
    let other = log_with_seed(99, &bodies);
    fails(&with(&[(first, a), (second, &other.contents(second))]), "another log");
    let mut newer = a.to_vec();
    newer[8] = 2;
    let check = frame::check_of(&newer[..56], 0).to_le_bytes();
    newer[56..64].copy_from_slice(&check);
    fails(&with(&[(first, &newer)]), "version 2");
}

fn log_with_seed(seed: u64, bodies: &[Vec<u8>]) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let (_, mut tail) = open(&disk, settings(seed, 4_096)).expect("an empty disk opens");
    for body in bodies {
        tail.push(Kind::Entries, body, 1).expect("the body fits");
    }
    tail.flush().expect("nothing fails");
    disk
}

impl SimulatedDisk {
    fn with_truncated(self, name: &str) -> Self {
        self.tamper(name, |bytes| bytes.truncate(4_000));
        self
    }
}

#[test]
fn no_flipped_bit_of_any_short_body_of_zeros_looks_torn() {
    // At every place between two lines of 512 bytes.
    let mut segment = vec![0; 2_048];
    for length in 0..=130 {
        let mut record = Vec::new();
        let stamp = frame::Stamp { kind: Kind::Entries, sequence: 1, time: 1, watermark: 0 };
        frame::append(&mut record, 0x1234_5678_9ABC_DEF0, stamp, &vec![0; length]);
        for offset in (0..512).step_by(8) {
            segment.fill(0);
            segment[offset..offset + record.len()].copy_from_slice(&record);
            for bit in 0..record.len() * 8 {
                let place = offset + bit / 8;
                segment[place] ^= 1 << (bit % 8);
                match frame::read(&segment, offset, 0x1234_5678_9ABC_DEF0) {
                    frame::Found::Bad(bad) => {
                        assert!(!bad.is_torn, "{length} zeros at {offset}, bit {bit}");
                    }
                    other => panic!("{length} zeros at {offset}, bit {bit}: {other:?}"),
                }
                segment[place] ^= 1 << (bit % 8);
            }
        }
    }
}
