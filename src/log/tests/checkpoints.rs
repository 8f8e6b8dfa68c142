//! Checkpoints: the state from one and the rest is the state from everything, whatever is written
//! between its parts, given up, removed or cut off.

use super::live::{Live, SEGMENT_BYTES};
use super::*;
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;
use crate::log::checkpoint::{CheckpointError, End, Reading, Writing};
use crate::log::entry::{DurableLevel, Entry};
use crate::log::frame;
use crate::log::judge::Flaw;
use crate::log::recover::inspect;
use crate::log::segment;
use crate::log::simulated::Fault;
use crate::log::state::State;

#[test]
fn a_checkpoint_and_the_rest_are_everything() {
    let (mut parts, mut removed) = (0, 0);
    for seed in 0..60 {
        let mut live = Live::new(seed);
        let mut newest = None;
        for _ in 0..14 {
            let count = live.random.below(16);
            live.some_entries(count).unwrap();
            match live.random.below(6) {
                0 => drop(live.checkpoint(false).unwrap()),
                1..4 => {
                    let before = live.tail.segment();
                    live.copy_below(before).unwrap();
                    newest = live.checkpoint(true).unwrap();
                    parts += newest.unwrap().parts;
                }
                4 => {
                    // Older than the newest: it must never be taken.
                    let end = End {
                        number: u64::MAX,
                        at: 0,
                        first_part: 1,
                        lowest: 1,
                        check: 0,
                        parts: 1,
                    };
                    live.record(Kind::CheckpointEnd, &end.to_body()).unwrap();
                }
                _ => {}
            }
            live.tail.flush().unwrap();
            let recovered = inspect(&live.disk).unwrap().unwrap();
            assert_eq!(recovered.checkpoint.map(|found| found.end), newest, "seed {seed}");
            assert!(recovered.state().unwrap() == live.state, "seed {seed}");
            let Some(end) = newest else { continue };
            let first = recovered.segments[0].survey.header.number;
            assert_eq!(first, end.lowest, "nothing older is looked at");
            let older: Vec<_> =
                names(&live.disk).iter().filter_map(|name| segment::number(name)).collect();
            let older: Vec<_> = older.into_iter().filter(|&number| number < end.lowest).collect();
            assert_eq!(recovered.unneeded, older);
            if live.random.below(2) == 0 {
                removed += older.len();
                live.remove_below(end.lowest).unwrap();
                let recovered = inspect(&live.disk).unwrap().unwrap();
                assert!(recovered.state().unwrap() == live.state, "seed {seed}: removed");
                assert!(recovered.unneeded.is_empty());
            }
        }
        live.account.compare(&live.state);
    }
    assert!(parts > 1_000 && removed > 200, "{parts} parts, {removed} segments removed");
}

#[test]
fn a_crash_at_any_operation_leaves_a_state_that_was() {
    for seed in 0..3 {
        let mut base = Live::new(seed);
        base.some_entries(60).unwrap();
        base.checkpoint(true).unwrap();
        base.some_entries(40).unwrap();
        base.checkpoint(false).unwrap();
        base.tail.flush().unwrap();
        for operation in 0.. {
            let disk = base.disk.after_kill();
            disk.fail_at(operation, Fault::Crash);
            let (acknowledged, states, is_done) = match base.on(disk.clone(), seed + 50) {
                Ok(mut live) => {
                    let result = rewrite(&mut live);
                    (live.tail.watermark(), live.states, result.is_ok())
                }
                Err(LogError::Storage { .. }) => (0, base.states.clone(), false),
                Err(error) => panic!("seed {seed}, operation {operation}: {error}"),
            };
            let acknowledged = acknowledged.max(base.tail.sequence());
            for cut in 0..4 {
                let mut random = Random(seed * 7 + cut);
                let left = match cut {
                    0 => disk.after_kill(),
                    _ => disk.after_power_cut(&mut |bound| random.below(bound)),
                };
                let recovered = recover(&left, None).unwrap_or_else(|error| {
                    panic!("seed {seed}, operation {operation}, cut {cut}: {error}")
                });
                let recovered = recovered.expect("segments are there");
                let last = recovered.verdict.last;
                assert!(last >= acknowledged, "seed {seed}, operation {operation}, cut {cut}");
                let state = recovered.state().unwrap();
                let expected = &states[usize::try_from(last).unwrap()];
                assert!(state == *expected, "seed {seed}, operation {operation}, cut {cut}");
            }
            if is_done {
                assert!(operation > 40, "{operation} operations");
                break;
            }
        }
    }
}

/// Entries, copies, a checkpoint given up, one that counts, and the removal of what it spares.
fn rewrite(live: &mut Live) -> Result<(), LogError> {
    live.some_entries(10)?;
    live.checkpoint(false)?;
    let before = live.tail.segment();
    live.copy_below(before)?;
    let end = live.checkpoint(true)?.expect("it is whole");
    live.remove_below(end.lowest)?;
    live.some_entries(10)?;
    live.tail.flush()
}

/// A log whose first segments went, and the end of its only checkpoint.
fn shortened() -> (Live, End) {
    let mut live = Live::new(1);
    live.some_entries(80).unwrap();
    let before = live.tail.segment();
    live.copy_below(before).unwrap();
    while live.tail.segment() <= before + 1 {
        live.some_entries(1).unwrap();
    }
    let end = live.checkpoint(true).unwrap().unwrap();
    assert_eq!(end.lowest, before, "its parts come later");
    while live.tail.segment() <= before + 3 {
        live.some_entries(1).unwrap();
    }
    live.tail.flush().unwrap();
    live.remove_below(end.lowest).unwrap();
    (live, end)
}

#[test]
fn without_its_checkpoint_a_shortened_log_is_damaged() {
    let (live, end) = shortened();
    // The last segments are made anew without the end of the checkpoint: every record from the
    // first part on is gone, as if it had never been flushed.
    let first = names(&live.disk)[0].clone();
    for name in names(&live.disk).into_iter().skip(1) {
        live.disk.remove(&name).unwrap();
    }
    let before = live.disk.everything();
    let error = recover(&live.disk, None).unwrap_err();
    assert!(matches!(error, LogError::Damaged(_)), "{error}");
    assert_eq!(live.disk.everything(), before, "nothing was changed");

    // Not even where no watermark says that anything was durable.
    let disk = SimulatedDisk::default();
    let bytes = before[&first].clone();
    let header = segment::SegmentHeader::from_bytes(bytes.first_chunk().unwrap()).unwrap();
    let mut bytes = header.to_bytes().to_vec();
    let stamp = frame::Stamp { kind: Kind::Mark, sequence: 90, time: 1, watermark: 0 };
    frame::append(&mut bytes, header.identity, stamp, &[]);
    bytes.resize(4_096, 0);
    disk.put(&first, bytes);
    match recover(&disk, None) {
        Err(LogError::Damaged(damage)) => {
            assert_eq!((damage.segment, damage.flaw), (end.lowest - 1, Flaw::Segment));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_segment_that_the_checkpoint_needs_is_missed() {
    let (live, end) = shortened();
    live.disk.remove(&segment::name(end.lowest)).unwrap();
    let before = live.disk.everything();
    let error = recover(&live.disk, None).unwrap_err();
    assert!(matches!(error, LogError::Damaged(_)), "{error}");
    assert_eq!(live.disk.everything(), before, "nothing was changed");
}

#[test]
fn a_checkpoint_behind_a_hole_does_not_count() {
    // Nothing is flushed here when a segment is full, so the middle one may be lost alone.
    let mut live = Live::new(6);
    // One that stays open, so that the first segment stays needed.
    let id = EnvelopeId::from_u128(1_000);
    let envelope = Parts { current: Some("sort"), payload: Some(b""), ..Parts::new(id) };
    let mut body = Vec::new();
    Entry::Accept { level: DurableLevel::AtLeastOnce, envelope }.encode(&mut body).unwrap();
    live.entries(&body).unwrap();
    live.some_entries(30).unwrap();
    let end = live.checkpoint(true).unwrap().unwrap();
    let unsafe_settings = TailSettings { is_safe: false, ..settings(8, SEGMENT_BYTES) };
    live.tail = {
        let recovered = recover(&live.disk, None).unwrap();
        Tail::open(Arc::new(live.disk.clone()), recovered.as_ref(), unsafe_settings).unwrap()
    };
    let before = live.tail.segment();
    let mut last = live.states.len() - 1;
    while live.tail.segment() <= before + 1 {
        last = if live.tail.segment() == before { live.states.len() - 1 } else { last };
        live.some_entries(1).unwrap();
    }
    let state = live.state.clone();
    let mut writing = Writing::new(&state, 99, live.tail.body_bytes_max());
    let part = writing.next().unwrap().unwrap();
    let first = live.record(Kind::CheckpointPart, &part).unwrap();
    assert!(writing.next().is_none(), "it is one part");
    let newest = writing.end(first, live.tail.segment());
    assert!(newest.lowest <= before);
    live.record(Kind::CheckpointEnd, &newest.to_body()).unwrap();
    let whole = inspect(&live.disk).unwrap().unwrap();
    assert_eq!(whole.checkpoint.unwrap().end, newest);

    live.disk.tamper(&segment::name(before + 1), |bytes| bytes[segment::HEADER_BYTES..].fill(0));
    let recovered = recover(&live.disk, None).unwrap().unwrap();
    assert_eq!(recovered.checkpoint.unwrap().end, end);
    let found = usize::try_from(recovered.verdict.last).unwrap();
    assert!(found == last || found == last + 1, "{found} and {last}");
    assert!(recovered.state().unwrap() == live.states[found]);
}

#[test]
fn only_the_whole_checkpoint_is_read() {
    let mut live = Live::new(5);
    live.some_entries(80).unwrap();
    let mut writing = Writing::new(&live.state, 3, 60);
    let parts: Vec<_> = writing.by_ref().map(Result::unwrap).collect();
    let end = writing.end(100, 1);
    assert!(parts.len() > 10);
    let read = |end: End, parts: &[Vec<u8>]| {
        let mut reading = Reading::new(end);
        parts.iter().try_for_each(|part| reading.part(part))?;
        reading.finish()
    };
    assert!(read(end, &parts) == Ok(live.state.clone()));
    assert_eq!(End::from_body(&end.to_body()), Ok(end));
    let sum = |what| Err(CheckpointError::Sum { number: 3, what });
    assert_eq!(read(end, &parts[..9]), sum("parts are missing"));
    assert_eq!(read(End { check: 1, ..end }, &parts), sum("its check differs"));
    assert_eq!(read(End { at: 1, ..end }, &parts), sum("it is of another record"));
    let mut swapped = parts.clone();
    swapped.swap(3, 4);
    let expected = CheckpointError::Part { number: 3, expected: 3, found: 4 };
    assert_eq!(read(end, &swapped), Err(expected));
    // A part of another checkpoint between them does not matter.
    let mut other = parts.clone();
    other.insert(2, Writing::new(&State::default(), 4, 60).next().unwrap().unwrap());
    assert!(read(end, &other) == Ok(live.state.clone()));
    for place in 0..parts[0].len() {
        let mut changed = parts.clone();
        changed[0][place] ^= 1;
        assert!(read(end, &changed).is_err(), "byte {place}");
    }
}
