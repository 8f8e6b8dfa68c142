//! Records and segments as bytes: every field where the table says, at every alignment.

use super::*;
use crate::log::frame::{self, Found, Stamp};
use crate::log::mask;
use crate::log::segment::{self, HEADER_BYTES, SegmentHeader};

const IDENTITY: u64 = 0x0123_4567_89AB_CDEF;

fn stamp(sequence: u64) -> Stamp {
    Stamp { kind: Kind::Entries, sequence, time: 77, watermark: sequence - 1 }
}

fn encoded(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::append(&mut out, IDENTITY, stamp(3), body);
    out
}

#[test]
fn fields_stand_where_the_table_says() {
    let bytes = encoded(b"seven b");
    assert_eq!(bytes.len(), 56);
    assert_eq!(bytes[..8], [7, 0, 0, 0, 1, 0xA5, 0, 0]);
    assert_eq!(bytes[8..16], 3_u64.to_le_bytes());
    assert_eq!(bytes[16..24], 77_u64.to_le_bytes());
    assert_eq!(bytes[24..32], 2_u64.to_le_bytes());
    assert_eq!(bytes[32..40], frame::check_of(&bytes[..32], IDENTITY).to_le_bytes());
    assert_eq!(bytes[40..48], *b"seven b\0");
    assert_eq!(bytes[48..], frame::check_of(&bytes[..48], IDENTITY).to_le_bytes());
}

#[test]
fn what_is_written_is_read_at_all_alignments() {
    let mut random = Random(5);
    for round in 0..2_000 {
        let body = random.body(3_000);
        let record = encoded(&body);
        let shift = round % 8;
        let mut bytes = vec![0xEE; shift];
        bytes.extend(&record);
        bytes.extend([0; 100]);
        match frame::read(&bytes, shift, IDENTITY) {
            Found::Record(found) => {
                assert_eq!((found.stamp, found.size()), (stamp(3), record.len()));
                assert_eq!(*found.body(), *body);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(frame::read(&bytes, shift, IDENTITY ^ 1), Found::Bad(_)));
    }
}

#[test]
fn a_stored_body_has_no_run_of_light_words() {
    let mut random = Random(6);
    for _ in 0..2_000 {
        let body = random.body(3_000);
        let bytes = encoded(&body);
        let stored = &bytes[40..40 + body.len()];
        assert!(!mask::needs_mask(stored));
        assert_eq!(mask::needs_mask(&body), bytes[6] != 0, "only what needs it is masked");
    }
}

#[test]
fn b17_hostile_lengths_are_refused() {
    for length in [0_u32, 1, 65_535, 65_536, 1 << 31, u32::MAX] {
        let mut bytes = encoded(&[5; 200]);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        assert!(matches!(frame::read(&bytes, 0, IDENTITY), Found::Bad(_)), "{length}");
        // Even where the header's check agrees.
        let check = frame::check_of(&bytes[..32], IDENTITY).to_le_bytes();
        bytes[32..40].copy_from_slice(&check);
        assert!(matches!(frame::read(&bytes, 0, IDENTITY), Found::Bad(_)), "{length}");
    }
}

#[test]
fn p48_an_empty_body_is_a_body() {
    let disk = log_with(&[Vec::new(), b"x".to_vec(), Vec::new()], 4_096);
    let (recovered, _) = open(&disk, settings(1, 4_096)).unwrap();
    let bodies: Vec<_> = records(recovered.as_ref()).into_iter().map(|record| record.2).collect();
    assert_eq!(bodies, [b"".to_vec(), b"x".to_vec(), b"".to_vec()]);
}

#[test]
fn b8_names_sort_like_numbers() {
    for number in [1, 9, 10, 99, 100, 9_999, 10_000, u64::MAX - 1] {
        assert_eq!(segment::number(&segment::name(number)), Some(number));
        assert!(segment::name(number) > segment::name(number - 1));
    }
    for name in [
        "1.segment",
        "00000000000000000000.segment",
        "+0000000000000000001.segment",
        "00000000000000000001.segment.tmp",
        "0000000000000000000x.segment",
        "18446744073709551615.segment",
        "99999999999999999999.segment",
    ] {
        assert_eq!(segment::number(name), None, "{name}");
    }
}

#[test]
fn a_segment_header_reads_back() {
    let header =
        SegmentHeader { size: 65_536, log: [9; 16], number: 4, identity: IDENTITY, is_os: false };
    let bytes = header.to_bytes();
    assert_eq!(SegmentHeader::from_bytes(&bytes), Ok(header));
    for bit in 0..HEADER_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(SegmentHeader::from_bytes(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn b7_a_roll_is_exact() {
    // The second record leaves this much room, then a record of each size comes.
    let room = usize::try_from(segment::record_bytes_max(4_096)).unwrap();
    for left in [0, 8, 40, 48, 56, 96, 104] {
        for size in [48, 56, 96, 104, room] {
            let first = vec![3; room - left - 48];
            let bodies = [first, vec![4; size - 48], vec![5; 100]];
            let disk = log_with(&bodies, 4_096);
            let (recovered, tail) = open(&disk, settings(1, 4_096)).unwrap();
            let found = records(recovered.as_ref());
            assert_eq!(found.into_iter().map(|record| record.2).collect::<Vec<_>>(), bodies);
            let expected = if size > left { 2 } else { 1 };
            assert!(tail.segment() >= expected, "{left} left, {size} wanted");
        }
    }
}

#[test]
fn a_record_above_the_limit_is_refused_with_both_sizes() {
    let disk = SimulatedDisk::default();
    let (_, mut tail) = open(&disk, settings(1, 4_096)).unwrap();
    let limit = tail.body_bytes_max();
    assert_eq!(tail.push(Kind::Entries, &vec![1; limit], 0).unwrap(), 1);
    let error = tail.push(Kind::Entries, &vec![1; limit + 1], 0).unwrap_err().to_string();
    assert!(
        error.contains(&(limit + 1).to_string()) && error.contains(&limit.to_string()),
        "{error}"
    );
    assert_eq!(tail.push(Kind::Entries, b"next", 0).unwrap(), 2, "it took no sequence");
}
