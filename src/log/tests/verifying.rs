//! `verify` against recovery, which it must agree with, and against known mishaps.

use super::live::Live;
use super::mishaps::{history, mishap};
use super::model::crashes;
use super::salvaging::accept;
use super::*;
use crate::log::fold::FoldError;
use crate::log::frame::Fault;
use crate::log::judge::Flaw;
use crate::log::verify::{Depth, Verified, What, verify_on};

pub(super) fn verified(disk: &SimulatedDisk, depth: Depth) -> Verified {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    verify_on(&disk, depth).expect("the files can be read")
}

#[test]
fn a_whole_log_is_whole_at_every_depth() {
    let mut compared = 0;
    for seed in 0..crashes() / 10 {
        let live = history(seed);
        for depth in [Depth::Records, Depth::Entries, Depth::All] {
            let found = verified(&live.disk, depth);
            assert!(found.findings.is_empty(), "seed {seed}: {:?}", found.findings);
            assert_eq!(found.last, live.states.len() as u64 - 1);
            let expected = (depth > Depth::Records).then_some(&live.state);
            assert_eq!(found.state.as_ref(), expected, "seed {seed}, {depth:?}");
            compared += found.compared;
        }
    }
    assert!(compared > 20, "{compared} checkpoints were compared");
}

/// Whatever happened: what verify says is needed and damaged is what recovery refuses.
fn agrees(seed: u64) {
    let live = history(seed);
    let mut random = Random(seed ^ 0xD15C);
    let disk = live.disk.after_kill();
    let mut what = String::new();
    for _ in 0..=random.below(2) {
        what += &mishap(&disk, &mut random);
    }
    let before = disk.everything();
    let found = verified(&disk, Depth::All);
    assert_eq!(disk.everything(), before, "{what}: nothing was changed");
    let is_refused = found.findings.iter().any(|finding| finding.is_needed && !finding.is_torn);
    match recover(&disk.after_kill(), None) {
        Ok(recovered) => {
            assert!(!is_refused, "{what} opens: {:?}", found.findings);
            let recovered = recovered.expect("there are segments");
            assert_eq!(found.last, recovered.verdict.last, "{what}");
            assert_eq!(found.checkpoint, recovered.checkpoint, "{what}");
            assert_eq!(found.state, Some(recovered.state().expect("it folds")), "{what}");
        }
        Err(LogError::Damaged(damage)) => {
            let is_told = found.findings.iter().any(|finding| {
                let place = finding.location;
                !finding.is_torn && (place.segment, place.offset) == (damage.segment, damage.offset)
            });
            assert!(is_told, "{what}: {damage:?} is not in {:?}", found.findings);
            assert!(is_refused, "{what}: {damage:?}");
        }
        Err(error) => assert!(is_refused, "{what}: {error}"),
    }
}

#[test]
fn it_agrees_with_recovery() {
    for seed in 0..crashes() {
        let result = std::panic::catch_unwind(|| agrees(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// Nine records in three segments, and a mark that covers them.
fn nine() -> SimulatedDisk {
    let bodies: Vec<Vec<u8>> = (0..9).map(|number| vec![number; 1_200]).collect();
    let disk = log_with(&bodies, 4_096);
    let (_, mut tail) = open(&disk, settings(9, 4_096)).unwrap();
    tail.push(Kind::Mark, &[], 1).unwrap();
    tail.flush().unwrap();
    disk
}

fn places(found: &Verified) -> Vec<(u64, u64, u64, &'static str, bool)> {
    let place = |finding: &crate::log::verify::Finding| {
        let location = finding.location;
        let (segment, offset) = (location.segment, location.offset);
        (segment, offset, finding.sequence, finding.kind(), finding.is_torn)
    };
    found.findings.iter().map(place).collect()
}

#[test]
fn every_damage_is_told_with_its_place_sequence_and_kind() {
    let disk = nine();
    let all = names(&disk);
    assert_eq!(all.len(), 3);
    // Records of 1,248 bytes from byte 64.
    disk.tamper(&all[0], |bytes| bytes[64 + 1_248 + 100] ^= 1);
    disk.tamper(&all[1], |bytes| bytes[64 + 1_248 + 9] ^= 1);
    disk.tamper(&all[2], |bytes| bytes[64 + 1_248 + 600] ^= 1);
    disk.tamper(&all[0], |bytes| bytes[64 + 3 * 1_248 + 16] = 1);
    let found = verified(&disk, Depth::Records);
    assert_eq!(
        places(&found),
        [
            (1, 64 + 1_248, 2, "record_checksum", false),
            (2, 64 + 1_248, 5, "record_header", false),
            (3, 64 + 1_248, 8, "record_checksum", false),
        ],
        "bytes behind the last record of a segment belong to nothing"
    );
    assert!(matches!(found.findings[1].what, What::Flaw(Flaw::Record(Fault::Header))));
    let first = &found.segments[0];
    assert_eq!((first.records, first.first, first.last), (2, Some((1, 1)), Some((3, 1))));
    assert_eq!(found.watermark, 9);
    disk.remove(&all[1]).unwrap();
    let found = verified(&disk, Depth::Records);
    let want =
        [(1, 64 + 3 * 1_248, 4, "record_header", false), (2, 0, 4, "segment_missing", false)];
    assert_eq!(places(&found)[1..3], want, "now nothing goes on behind it");
    assert_eq!(found.findings.len(), 4);
}

#[test]
fn a_torn_tail_is_told_apart() {
    let disk = nine();
    let (_, mut tail) = open(&disk, settings(19, 4_096)).unwrap();
    tail.push(Kind::Entries, &[5; 1_000], 1).unwrap();
    tail.flush().unwrap();
    let name = names(&disk)[3].clone();
    disk.tamper(&name, |bytes| bytes[512..1_024].fill(0));
    let found = verified(&disk, Depth::Records);
    assert_eq!(places(&found), [(4, 64, 11, "record_checksum", true)]);
    assert!(!found.is_damaged());
    assert_eq!((found.watermark, found.last), (9, 10));
    disk.tamper(&name, |bytes| bytes[512..1_024].fill(5));
    disk.tamper(&name, |bytes| bytes[600] ^= 1);
    assert!(verified(&disk, Depth::Records).is_damaged(), "a flip is none");
}

#[test]
fn files_that_are_none_are_told() {
    let disk = nine();
    let all = names(&disk);
    let good = disk.everything();
    disk.put("notes.txt", b"mine".to_vec());
    disk.put("00000000000000000009.segment.tmp", b"half".to_vec());
    let kinds = |disk: &SimulatedDisk| {
        let found = verified(disk, Depth::All);
        assert_eq!(found.others, ["00000000000000000009.segment.tmp", "notes.txt"]);
        found.findings.iter().map(|finding| finding.kind()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&disk), ["record_content"], "these bodies are no entries");
    disk.tamper(&all[1], |bytes| bytes.clone_from(&good[&all[2]]));
    assert_eq!(kinds(&disk), ["segment_number"]);
    disk.tamper(&all[1], |bytes| *bytes = vec![b'x'; 100]);
    assert_eq!(kinds(&disk), ["segment_foreign"]);
    disk.tamper(&all[1], |bytes| bytes.clone_from(&good[&all[1]][..4_000].to_vec()));
    assert_eq!(kinds(&disk), ["segment_size"]);
    disk.tamper(&all[1], |bytes| {
        bytes.clone_from(&good[&all[1]]);
        bytes[8] = 2;
        let check = crate::log::frame::check_of(&bytes[..56], 0).to_le_bytes();
        bytes[56..64].copy_from_slice(&check);
    });
    assert_eq!(kinds(&disk), ["segment_version"]);
    disk.tamper(&all[1], |bytes| {
        bytes.clone_from(&good[&all[1]]);
        bytes[24] ^= 1;
        let check = crate::log::frame::check_of(&bytes[..56], 0).to_le_bytes();
        bytes[56..64].copy_from_slice(&check);
    });
    assert_eq!(kinds(&disk)[0], "segment_of_other_log");
}

#[test]
fn what_the_newest_checkpoint_needs_is_looked_at_from_its_first_record_on() {
    for zeros in [false, true] {
        let mut live = Live::new(8);
        // It stays open, so its segment is needed.
        live.entries(&accept(901, "price")).unwrap();
        while live.tail.segment() < 3 {
            live.some_entries(1).unwrap();
        }
        live.checkpoint(true).unwrap();
        let disk = live.disk.after_kill();
        assert!(recover(&disk.after_kill(), None).is_ok());
        disk.tamper(&names(&disk)[0], |bytes| match zeros {
            false => bytes[64 + 20] ^= 1,
            true => bytes[64..].fill(0),
        });
        match recover(&disk.after_kill(), None) {
            Err(LogError::Damaged(damage)) => assert_eq!((damage.segment, damage.offset), (1, 64)),
            other => panic!("{other:?}"),
        }
        assert!(verified(&disk, Depth::Records).is_damaged());
    }
}

#[test]
fn what_cannot_be_is_told_though_every_byte_is_right() {
    let mut live = Live::new(3);
    live.some_entries(20).unwrap();
    let mut body = Vec::new();
    let id = crate::envelope::EnvelopeId::from_u128(99);
    crate::log::entry::Entry::Completed { id }.encode(&mut body).unwrap();
    live.record(Kind::Entries, &body).unwrap();
    let found = verified(&live.disk, Depth::Entries);
    let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!((finding.sequence, finding.kind()), (21, "record_content"));
    assert!(matches!(finding.what, What::Record(FoldError::Violation(_))));
    assert!(found.is_damaged() && found.state.is_none());
    assert!(!verified(&live.disk, Depth::Records).is_damaged());
}

#[test]
fn a_checkpoint_that_differs_from_the_entries_is_told() {
    let mut live = Live::new(4);
    live.some_entries(20).unwrap();
    // Another state with the same counts is written.
    let mut other = live.state.clone();
    other.states.insert("odd".into(), Box::default());
    let state = std::mem::replace(&mut live.state, other);
    live.checkpoint_alone();
    live.state = state;
    live.some_entries(5).unwrap();
    live.checkpoint(true).unwrap();
    assert!(verified(&live.disk, Depth::Entries).findings.is_empty());
    let found = verified(&live.disk, Depth::All);
    assert_eq!(found.compared, 2);
    let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!(finding.kind(), "checkpoint_differs");
}
