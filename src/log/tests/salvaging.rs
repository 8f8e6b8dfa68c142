//! Salvage: what is left is never handled again by mistake, and nothing that can be read is lost.

use std::collections::BTreeSet;

use super::live::Live;
use super::mishaps::{history, mishap};
use super::model::crashes;
use super::verifying::verified;
use super::*;
use crate::envelope::EnvelopeId;
use crate::log::entry::{CauseCode, DurableLevel, Entry};
use crate::log::salvage::{Salvaged, salvage_on};
use crate::log::state::{Held, State};
use crate::log::verify::Depth;

#[expect(clippy::panic_in_result_fn, reason = "errors are told, panics are failures")]
fn salvaged(disk: &SimulatedDisk) -> Result<(Salvaged, State, SimulatedDisk), LogError> {
    let from: Arc<dyn Disk> = Arc::new(disk.clone());
    let target = SimulatedDisk::default();
    let before = disk.everything();
    let to: Arc<dyn Disk> = Arc::new(target.clone());
    let salvaged = salvage_on(&from, &to, 77);
    assert_eq!(disk.everything(), before, "the damaged log is never touched");
    let salvaged = salvaged?;
    let found = verified(&target, Depth::All);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    let (recovered, mut tail) = open(&target, settings(5, 4_096)).expect("it opens");
    let recovered = recovered.expect("it has segments");
    let state = recovered.state().expect("it folds");
    assert!(state.holds());
    tail.push(Kind::Mark, &[], 0).unwrap();
    tail.flush().expect("it goes on");
    Ok((salvaged, state, target))
}

/// What an envelope is, apart from where it stands.
fn look(held: &Held) -> (DurableLevel, &str, u32, u16, u16, u32) {
    let Held { level, stage, hops, attempts, redrives, body_version, .. } = held;
    (*level, stage, *hops, *attempts, *redrives, *body_version)
}

#[test]
fn a_whole_log_comes_over_whole() {
    for seed in 0..crashes() / 10 {
        let live = history(seed);
        if live.states.len() == 1 {
            continue;
        }
        let (report, state, _) = salvaged(&live.disk).unwrap();
        assert_eq!(report.holes, []);
        assert!(report.uncertain.is_empty() && report.lost.is_empty() && report.mended == 0);
        assert_eq!(state.counts(), live.state.counts(), "seed {seed}");
        assert_eq!(state.settled(), live.state.settled());
        assert!(state.states().eq(live.state.states()));
        assert!(state.sources().eq(live.state.sources()));
        assert!(state.sinks().eq(live.state.sinks()));
        let open = |state: &State| {
            let all = state.open_in_order().into_iter();
            all.map(|(id, open)| {
                format!("{id} {} {:?} {}", open.number, look(&open.held), open.due_ms)
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(open(&state), open(&live.state));
        let letters = |state: &State| {
            let all = state.letters();
            all.map(|(number, letter)| {
                let (cause, reason) = (letter.cause, letter.reason.to_string());
                (number, letter.id, cause, reason, format!("{:?}", look(&letter.held)))
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(letters(&state), letters(&live.state));
    }
}

/// After any mishap: what is open was open, and what was open is somewhere.
fn never_a_replay(seed: u64) -> Option<Salvaged> {
    let live = history(seed);
    let mut random = Random(seed ^ 0x5A17);
    let disk = live.disk.after_kill();
    let mut what = String::new();
    for _ in 0..=random.below(2) {
        what += &mishap(&disk, &mut random);
    }
    let (report, state, _) = match salvaged(&disk) {
        Ok(salvaged) => salvaged,
        Err(LogError::NothingLeft(_) | LogError::NoLog(_) | LogError::Version { .. }) => {
            return None;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    // What was true in the end, and where opening without damage would have cut.
    let last = usize::try_from(report.first - 1).unwrap();
    let told = verified(&disk, Depth::Records);
    let is_cut = !told.is_damaged();
    let truth = &live.states[if is_cut { usize::try_from(told.last).unwrap() } else { last }
        .min(live.states.len() - 1)];
    // Without any word of a loss, the end of the log is not known to be gone.
    let is_known = is_cut || last == live.states.len() - 1;
    for (id, open) in state.open_in_order() {
        let Some(true_open) = truth.open(id) else {
            panic!("{what}: {id} is open again, {open:?}, {report:?}");
        };
        assert_eq!(look(&open.held).1, look(&true_open.held).1, "{what}: {id}");
        assert_eq!(open.held.hops, true_open.held.hops, "{what}: {id}");
        assert_eq!(open.held.body_version, true_open.held.body_version, "{what}: {id}");
    }
    let lost: BTreeSet<_> = report.lost.iter().copied().collect();
    let in_hole = |sequence: u64| {
        report
            .holes
            .iter()
            .any(|hole| sequence >= hole.first && hole.last.is_none_or(|last| sequence <= last))
    };
    for (id, open) in truth.open_in_order() {
        let letters: Vec<_> = state.letters().filter(|(_, letter)| letter.id == id).collect();
        let is_there = state.open(id).is_some() || !letters.is_empty() || lost.contains(&id);
        let number = open.number.sequence;
        assert!(is_there || in_hole(number) || !is_known, "{what}: {id} of {number}, {report:?}");
    }
    if report.holes.is_empty() && is_cut {
        assert!(report.uncertain.is_empty() && report.mended == 0, "{what}: {report:?}");
    }
    Some(report)
}

#[test]
fn nothing_that_may_have_ended_is_handled_again() {
    let (mut uncertain, mut mended, mut holes, mut lost) = (0, 0, 0, 0);
    for seed in 0..crashes() {
        let result = std::panic::catch_unwind(|| never_a_replay(seed));
        let Ok(report) = result else { panic!("seed {seed}") };
        let Some(report) = report else { continue };
        uncertain += report.uncertain.len();
        mended += report.mended;
        holes += report.holes.len();
        lost += report.lost.len();
    }
    assert!(uncertain > 100 && mended > 100 && holes > 100 && lost > 10);
}

pub(super) fn accept(id: u128, stage: &str) -> Vec<u8> {
    let envelope = crate::envelope::codec::Parts {
        current: Some(stage),
        payload: Some(b"a payload"),
        ..crate::envelope::codec::Parts::new(EnvelopeId::from_u128(id))
    };
    let mut body = Vec::new();
    Entry::Accept { level: DurableLevel::ExactlyOnce, envelope }.encode(&mut body).unwrap();
    body
}

#[test]
fn an_accept_whose_settlement_may_lie_in_the_hole_becomes_an_uncertain_letter() {
    let mut live = Live::new(1);
    let (early, late) = (EnvelopeId::from_u128(901), EnvelopeId::from_u128(902));
    live.entries(&accept(901, "price")).unwrap();
    let mut body = Vec::new();
    Entry::Completed { id: early }.encode(&mut body).unwrap();
    let end = usize::try_from(live.tail.position()).unwrap();
    live.entries(&body).unwrap();
    live.entries(&accept(902, "ship")).unwrap();
    live.tail.flush().unwrap();
    live.record(Kind::Mark, &[]).unwrap();
    let (report, state, _) = salvaged(&live.disk).unwrap();
    assert_eq!((report.open, state.open(early)), (1, None));
    // The record of the completion is damaged.
    live.disk.tamper(&names(&live.disk)[0], |bytes| bytes[end + 50] ^= 1);
    let (report, state, _) = salvaged(&live.disk).unwrap();
    assert_eq!(report.uncertain, [early]);
    assert_eq!(report.holes.len(), 1);
    assert_eq!((report.holes[0].first, report.holes[0].last), (2, Some(2)));
    assert!(report.is_behind);
    assert_eq!(state.open_in_order().iter().map(|(id, _)| *id).collect::<Vec<_>>(), [late]);
    let letters: Vec<_> = state.letters().map(|(_, letter)| letter.clone()).collect();
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((letter.id, letter.cause), (early, CauseCode::Uncertain));
    assert_eq!(&*letter.held.stage, "price");
}

#[test]
fn an_attempt_behind_a_hole_does_not_say_where() {
    let mut live = Live::new(1);
    let id = EnvelopeId::from_u128(901);
    live.entries(&accept(901, "price")).unwrap();
    let hop = crate::envelope::codec::Parts {
        current: Some("ship"),
        hops: 1,
        ..crate::envelope::codec::Parts::new(id)
    };
    let mut bodies = [Vec::new(), Vec::new(), Vec::new()];
    Entry::Hop { envelope: hop }.encode(&mut bodies[0]).unwrap();
    Entry::Attempt { id, attempts: 1, due_ms: 0 }.encode(&mut bodies[1]).unwrap();
    let end = usize::try_from(live.tail.position()).unwrap();
    live.entries(&bodies[0]).unwrap();
    live.entries(&bodies[1]).unwrap();
    live.tail.flush().unwrap();
    live.disk.tamper(&names(&live.disk)[0], |bytes| bytes[end + 50] ^= 1);
    let (report, state, _) = salvaged(&live.disk).unwrap();
    assert_eq!((report.uncertain, state.open(id)), (vec![id], None), "it was to be shipped");
    // Another hop says it.
    let hop = crate::envelope::codec::Parts { current: Some("bill"), hops: 2, ..hop };
    Entry::Hop { envelope: hop }.encode(&mut bodies[2]).unwrap();
    live.entries(&bodies[2]).unwrap();
    let (report, state, _) = salvaged(&live.disk).unwrap();
    assert!(report.uncertain.is_empty());
    assert_eq!(state.open(id).map(|open| (&*open.held.stage, open.held.hops)), Some(("bill", 2)));
}

#[test]
fn a_log_without_entries_is_copied_record_by_record() {
    let bodies: Vec<Vec<u8>> = (1..10).map(|number| vec![number; 1_200]).collect();
    let disk = log_with(&bodies, 4_096);
    let all = names(&disk);
    disk.tamper(&all[0], |bytes| bytes[64 + 1_248 + 100] ^= 1);
    disk.tamper(&all[1], |bytes| bytes[40] ^= 1);
    let from: Arc<dyn Disk> = Arc::new(disk.clone());
    let target = SimulatedDisk::default();
    let to: Arc<dyn Disk> = Arc::new(target.clone());
    let report = salvage_on(&from, &to, 7).unwrap();
    assert!(report.is_raw);
    assert_eq!(report.records, 8, "a header that is damaged costs nothing");
    let recovered = recover(&target, None).unwrap();
    let found = records(recovered.as_ref());
    for (index, body) in bodies.iter().enumerate() {
        let expected = if index == 1 { &[][..] } else { body };
        assert_eq!((found[index].0, &found[index].2[..]), (index as u64 + 1, expected));
    }
}

#[test]
fn never_over_anything_and_never_in_place() {
    use crate::log::salvage::salvage;
    use crate::log::{Log, LogSettings};
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    let settings = LogSettings { segment_bytes: 65_536, ..LogSettings::default() };
    let (log, _) = Log::open(&from, settings).unwrap();
    log.append(&accept(7, "price")).unwrap().wait().unwrap();
    assert!(matches!(salvage(&from, &to), Err(LogError::Locked(_))), "it is written to");
    log.close().unwrap();
    assert!(matches!(salvage(&from, &from), Err(LogError::Inside(_))));
    assert!(matches!(salvage(&from, &from.join("new/er")), Err(LogError::Inside(_))));
    std::fs::create_dir(&to).unwrap();
    std::fs::write(to.join("notes.txt"), b"mine").unwrap();
    assert!(matches!(salvage(&from, &to), Err(LogError::NotEmpty(_))));
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 1);
    std::fs::remove_file(to.join("notes.txt")).unwrap();
    assert_eq!(salvage(&from, &to).unwrap().open, 1);
    assert!(matches!(salvage(&from, &to), Err(LogError::NotEmpty(_))));
    let nothing = directory.path().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let new = directory.path().join("new");
    assert!(matches!(salvage(&nothing, &new), Err(LogError::NoLog(_))));
    assert!(!new.exists(), "nothing was made");
    let (log, recovered) = Log::open(&to, settings).unwrap();
    assert_eq!(recovered.unwrap().state().unwrap().open_len(), 1);
    log.close().unwrap();
}
