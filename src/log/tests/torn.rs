//! B3, B5: the tail of a log cut short in every way a crash can.

use super::*;
use crate::log::frame;
use crate::log::judge::Flaw;
use crate::log::segment::HEADER_BYTES;
use crate::log::torn::SECTOR_BYTES;

fn bodies() -> Vec<Vec<u8>> {
    vec![vec![7; 100], vec![1; 700], vec![0; 600], vec![9; 1_300], b"tail".to_vec()]
}

/// Where each record begins, and where the last ends.
fn offsets() -> Vec<usize> {
    let mut offsets = vec![HEADER_BYTES];
    for body in bodies() {
        offsets.push(offsets[offsets.len() - 1] + frame::size(body.len()));
    }
    offsets
}

/// The log is opened, holds the first `whole` records, takes two more, and holds those too.
fn goes_on(disk: &SimulatedDisk, whole: usize, what: &str) {
    let mut expected: Vec<Vec<u8>> = bodies()[..whole].to_vec();
    for round in 0..3_u8 {
        let (recovered, mut tail) = open(disk, settings(u64::from(round), 65_536))
            .unwrap_or_else(|error| panic!("{what}, round {round}: {error}"));
        let found: Vec<_> =
            records(recovered.as_ref()).into_iter().map(|record| record.2).collect();
        assert_eq!(found, expected, "{what}, round {round}");
        for body in [vec![round; 30], vec![0; 900]] {
            tail.push(Kind::Entries, &body, 5).unwrap();
            expected.push(body);
        }
        tail.flush().unwrap();
    }
}

fn with_tail(change: impl FnOnce(&mut Vec<u8>)) -> SimulatedDisk {
    let disk = log_with(&bodies(), 65_536);
    disk.tamper(&names(&disk)[0], change);
    disk
}

#[test]
fn b3_cut_at_every_byte_of_the_last_three_records() {
    let offsets = offsets();
    for cut in offsets[2]..offsets[5] {
        // What a file system may leave of the last sector is a multiple of eight at least.
        if !cut.is_multiple_of(8) {
            continue;
        }
        let disk = with_tail(|bytes| bytes[cut..].fill(0));
        let whole = offsets.iter().filter(|&&offset| offset <= cut).count() - 1;
        // A record that ends in fewer zeros than prove anything is damage, and no other is.
        let start = offsets[whole];
        let piece = cut.next_multiple_of(SECTOR_BYTES).min(offsets[whole + 1]);
        let is_provable =
            cut == start || cut - start < 8 || is_torn_at(cut, start, offsets[whole + 1]);
        if is_provable {
            goes_on(&disk, whole, &format!("cut at {cut}"));
        } else {
            assert!(open(&disk, settings(1, 65_536)).is_err(), "cut at {cut}, piece to {piece}");
        }
    }
}

/// Whether zeros from `cut` on prove that the record from `start` to `end` was cut short.
fn is_torn_at(cut: usize, start: usize, end: usize) -> bool {
    let line = cut.next_multiple_of(SECTOR_BYTES);
    if cut < start + frame::HEADER_BYTES {
        // The header does not check: its check is zero, or a whole piece of it.
        return cut <= start + 32 || line < start + frame::HEADER_BYTES;
    }
    // A later piece is all zero, or this one ends in enough zeros.
    line < end || line.min(end) - cut >= 64
}

#[test]
fn b3_each_sector_of_the_last_three_records_never_arrived() {
    let offsets = offsets();
    for sector in offsets[2] / SECTOR_BYTES..=(offsets[5] - 1) / SECTOR_BYTES {
        let (from, to) = (sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES);
        for from in std::iter::once(from).chain(offsets.iter().copied()) {
            // The sector holds zeros, or only what was there before one of its records.
            if from < sector * SECTOR_BYTES || from >= to || from < offsets[2] {
                continue;
            }
            let disk = with_tail(|bytes| bytes[from..to].fill(0));
            let whole = offsets.iter().filter(|&&offset| offset <= from).count() - 1;
            goes_on(&disk, whole, &format!("sector {sector} from {from}"));
        }
    }
}

#[test]
fn b3_header_or_body_alone_arrived() {
    let offsets = offsets();
    let (start, end) = (offsets[3], offsets[4]);
    let disk = with_tail(|bytes| bytes[start + frame::HEADER_BYTES..].fill(0));
    goes_on(&disk, 3, "header only");
    let disk = with_tail(|bytes| bytes[start..start + frame::HEADER_BYTES].fill(0));
    goes_on(&disk, 3, "body only");
    let disk = with_tail(|bytes| bytes[start..start + 8].fill(0));
    goes_on(&disk, 3, "all but the first word, as the map leaves it");
    assert!(end < 65_536);
}

#[test]
fn a_torn_place_below_the_watermark_is_damage() {
    // The mark says that all before it is durable.
    let disk = log_with(&bodies(), 65_536);
    let (_, mut tail) = open(&disk, settings(1, 65_536)).unwrap();
    tail.push(Kind::Mark, &[], 9).unwrap();
    tail.flush().unwrap();
    let name = names(&disk)[0].clone();
    for &start in &offsets()[..5] {
        let before = disk.everything();
        disk.tamper(&name, |bytes| bytes[start..start + 8].fill(0));
        match open(&disk, settings(1, 65_536)) {
            Err(LogError::Damaged(damage)) => {
                assert_eq!((damage.segment, damage.offset), (1, start as u64));
                assert!(matches!(damage.flaw, Flaw::Record(_)));
            }
            other => panic!("{other:?}"),
        }
        disk.tamper(&name, |bytes| bytes.clone_from(&before[&name]));
    }
}
