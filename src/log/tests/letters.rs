//! Dead letters: which are picked, what becomes of them, and what a crash in the middle leaves.

use std::collections::BTreeMap;
use std::time::Duration;

use super::live::Live;
use super::model::crashes;
use super::verifying::verified;
use super::*;
use crate::clock::ManualClock;
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;
use crate::log::entry::{CAUSE_HEADER, CauseCode, DurableLevel, Entry, EntryNumber, Sink};
use crate::log::letters::{LetterFilter, Letters, OpenLetters, Redrive, Redriven};
use crate::log::settings::{LogSettings, Sync};
use crate::log::simulated::Fault;
use crate::log::state::State;
use crate::log::store::Log;
use crate::log::verify::Depth;

fn id(number: u128) -> EnvelopeId {
    EnvelopeId::from_u128(number)
}

fn accept(number: u128, stage: &'static str) -> Entry<'static> {
    let envelope = Parts {
        current: Some(stage),
        payload: Some(b"as it was"),
        content_type: Some("text/plain"),
        expires_at_ms: Some(5),
        remaining: (&["ship", "bill"]).into(),
        ..Parts::new(id(number))
    };
    Entry::Accept { level: DurableLevel::ExactlyOnce, envelope }
}

fn dead(number: u128, at_ms: u64, reason: &'static str) -> Entry<'static> {
    let cause = if reason.is_empty() { CauseCode::NoRoute } else { CauseCode::HandlerFailed };
    Entry::Dead { id: id(number), at_ms, attempts: 3, cause, reason }
}

/// Letters 1 to 3 of `price` and 4 of `pack`; 2 is open again, and 3 has completed since.
fn disk() -> SimulatedDisk {
    let mut live = Live::new(1);
    let mut hop = Parts { current: Some("price"), hops: 1, ..Parts::new(id(1)) };
    hop.trail = (&["parse"]).into();
    hop.remaining = (&["ship"]).into();
    let story = [
        Entry::Window { count: 9 },
        accept(1, "parse"),
        Entry::Hop { envelope: hop },
        dead(1, 100, "no pears"),
        accept(2, "price"),
        dead(2, 200, "no apples"),
        accept(2, "price"),
        accept(3, "price"),
        dead(3, 300, "no pears, again"),
        accept(3, "price"),
        Entry::Completed { id: id(3) },
        accept(4, "pack"),
        dead(4, 400, ""),
    ];
    for entry in story {
        let mut body = Vec::new();
        entry.encode(&mut body).unwrap();
        live.entries(&body).unwrap();
    }
    live.tail.flush().unwrap();
    live.disk.after_kill()
}

const LETTERS: [EntryNumber; 4] = [number(4), number(6), number(9), number(13)];

const fn number(sequence: u64) -> EntryNumber {
    EntryNumber { sequence, index: 0 }
}

fn log_settings() -> LogSettings {
    // Each record is written at once, so that a crash comes between them.
    let sync = Sync::Within(Duration::from_secs(3_600));
    LogSettings { sync, segment_bytes: 4_096, seed: Some(4), ..LogSettings::default() }
}

fn opened(disk: &SimulatedDisk) -> Result<OpenLetters, LogError> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let clock = Arc::new(ManualClock::new());
    let (log, recovered) = Log::on(Arc::clone(&shared), &log_settings(), clock, None)?;
    Ok(OpenLetters::on(log, recovered, shared)?.expect("there is a log"))
}

fn looked(disk: &SimulatedDisk) -> Letters {
    Letters::on(Arc::new(disk.clone())).unwrap().expect("there is a log")
}

fn of(number: u128) -> LetterFilter {
    LetterFilter { ids: vec![id(number)], ..LetterFilter::default() }
}

fn redrive(letters: &mut OpenLetters, plan: &Redrive) -> [usize; 4] {
    numbers_of(letters.redrive(plan, None, &mut |_| true).unwrap())
}

fn numbers_of(outcome: Redriven) -> [usize; 4] {
    [outcome.redriven, outcome.guarded, outcome.refused, outcome.duplicates]
}

#[test]
fn filters_pick_what_fits_all_of_them() {
    let letters = looked(&disk());
    let all = LetterFilter::default();
    let picks = |filter: LetterFilter| {
        let place = |found| LETTERS.iter().position(|letter| *letter == found).unwrap();
        letters.picked(&filter).into_iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(picks(all.clone()), [0, 1, 2, 3]);
    assert_eq!(picks(of(3)), [2]);
    assert!(picks(of(9)).is_empty());
    assert_eq!(picks(LetterFilter { letters: vec![LETTERS[0]], ..of(3) }), [0, 2]);
    assert_eq!(picks(LetterFilter { stage: Some("pack".into()), ..all.clone() }), [3]);
    assert_eq!(picks(LetterFilter { cause: Some("no_route".into()), ..all.clone() }), [3]);
    let pears = LetterFilter { error: Some("pears".into()), ..all.clone() };
    assert_eq!(picks(pears.clone()), [0, 2]);
    assert_eq!(picks(LetterFilter { since_ms: Some(101), ..pears }), [2]);
    assert_eq!(picks(LetterFilter { since_ms: Some(400), ..all.clone() }), [3], "from then on");
    let shares = letters.shares(&all);
    let found: Vec<_> = shares
        .iter()
        .map(|share| (share.cause.name(), &*share.stage, share.count, &*share.sample))
        .collect();
    let want = [("handler_failed", "price", 3, "no pears, again"), ("no_route", "pack", 1, "")];
    assert_eq!(found, want);
    assert_eq!((shares[0].oldest_ms, shares[0].newest_ms), (100, 300));
}

#[test]
fn a_letter_is_shown_with_its_body_and_its_way() {
    let letters = looked(&disk());
    let content = letters.content(LETTERS[0]).unwrap();
    assert_eq!(
        (content.trail, content.remaining),
        (vec!["parse".to_owned(), "price".to_owned()], vec!["ship".to_owned()])
    );
    assert_eq!(content.payload, b"as it was", "it stands in the accept, not in the hop");
    assert_eq!(content.content_type.as_deref(), Some("text/plain"));
    assert!(letters.content(number(7)).is_err(), "an accept is no letter");
}

#[test]
fn a_redrive_claims_the_id() {
    let disk = disk();
    let before = disk.everything();
    assert_eq!(numbers_of(looked(&disk).would(&Redrive::default())), [2, 0, 1, 1]);
    assert_eq!(disk.everything(), before, "looking changes nothing");
    let mut letters = opened(&disk).unwrap();
    let dry = Redrive { dry_run: true, ..Redrive::default() };
    assert_eq!(redrive(&mut letters, &dry), [2, 0, 1, 1]);
    assert_eq!(letters.letters().state().letters().len(), 4);
    assert_eq!(redrive(&mut letters, &Redrive::default()), [2, 0, 1, 1]);
    let state = letters.letters().state();
    assert!(state.letter(LETTERS[1]).is_some(), "its id is on its way, and it stays");
    assert_eq!((state.letters().len(), state.counts().duplicates), (1, 1));
    let open = state.open(id(1)).unwrap();
    assert_eq!((&*open.held.stage, open.held.hops), ("price", 1));
    assert_eq!((open.held.attempts, open.held.redrives), (0, 1));
    assert_eq!(redrive(&mut letters, &Redrive::default()), [0, 0, 1, 0], "nothing else is left");
    letters.close().unwrap();
    let found = verified(&disk, Depth::All);
    assert!(!found.is_damaged(), "{:?}", found.findings);
}

#[test]
fn a_letter_that_was_redriven_often_enough_stays() {
    let disk = disk();
    for round in 0..3 {
        let mut letters = opened(&disk).unwrap();
        let plan = Redrive { filter: of(1), ..Redrive::default() };
        assert_eq!(redrive(&mut letters, &plan), [1, 0, 0, 0], "round {round}");
        letters.close().unwrap();
        die_again(&disk);
    }
    let plan = Redrive { filter: of(1), ..Redrive::default() };
    let mut letters = opened(&disk).unwrap();
    assert_eq!(numbers_of(letters.letters().would(&plan)), [0, 1, 0, 0]);
    assert_eq!(redrive(&mut letters, &plan), [0, 1, 0, 0]);
    let plan = Redrive { redrives_max: 4, ..plan };
    assert_eq!(redrive(&mut letters, &plan), [1, 0, 0, 0]);
    letters.close().unwrap();
}

/// Envelope 1 is given up once more.
fn die_again(disk: &SimulatedDisk) {
    let clock = Arc::new(ManualClock::new());
    let (log, _) = Log::on(Arc::new(disk.clone()), &log_settings(), clock, None).unwrap();
    let mut body = Vec::new();
    dead(1, 500, "no pears").encode(&mut body).unwrap();
    let _receipt = log.append(&body).unwrap();
    log.close().unwrap();
}

#[test]
fn elsewhere_and_edited() {
    let disk = disk();
    let mut letters = opened(&disk).unwrap();
    let limit = 4_096;
    let plan = Redrive { filter: of(1), to: Some("fruit".into()), ..Redrive::default() };
    let large = vec![b'x'; limit];
    let error = letters.redrive(&plan, Some(&large), &mut |_| true).unwrap_err();
    assert!(matches!(error, LogError::TooLarge { .. }), "{error}");
    let long = Redrive { to: Some("n".repeat(256)), ..plan.clone() };
    letters.redrive(&long, None, &mut |_| true).unwrap_err();
    assert_eq!(letters.letters().state().letters().len(), 4, "nothing was done");
    let outcome = letters.redrive(&plan, Some(b"two apples"), &mut |_| true).unwrap();
    assert_eq!(numbers_of(outcome), [1, 0, 0, 0]);
    letters.close().unwrap();
    die_again(&disk);
    let letters = looked(&disk);
    let (number, letter) = letters.state().letters().last().unwrap();
    assert_eq!((letter.held.body_version, &*letter.held.stage), (1, "fruit"));
    let content = letters.content(number).unwrap();
    assert_eq!(content.payload, b"two apples");
    assert_eq!(content.content_type.as_deref(), Some("text/plain"));
    assert_eq!(content.trail, ["parse", "price", "fruit"]);
    assert_eq!((content.remaining, content.expires_at_ms), (vec!["ship".to_owned()], None));
    let salvaged = SimulatedDisk::default();
    let from: Arc<dyn Disk> = Arc::new(disk.clone());
    crate::log::salvage::salvage_on(&from, &(Arc::new(salvaged.clone()) as _), 7).unwrap();
    assert_eq!(looked(&salvaged).content(number).unwrap().payload, b"two apples");
}

#[test]
fn what_went_to_a_dead_letter_stage_lives_again_elsewhere_only() {
    for to in [None, Some("price")] {
        let mut live = Live::new(1);
        let mut headers = crate::envelope::Headers::default();
        headers.insert(CAUSE_HEADER, &b"\x01no pears"[..]).unwrap();
        let Entry::Accept { level, envelope } = accept(1, "sorry") else { unreachable!() };
        let envelope = Parts { headers: (&headers).into(), ..envelope };
        let mut body = Vec::new();
        Entry::Accept { level, envelope }.encode(&mut body).unwrap();
        dead(1, 1, "no").encode(&mut body).unwrap();
        live.entries(&body).unwrap();
        live.tail.flush().unwrap();
        let disk = live.disk.after_kill();
        let mut letters = opened(&disk).unwrap();
        let plan = Redrive { to: to.map(str::to_owned), ..Redrive::default() };
        assert_eq!(redrive(&mut letters, &plan), [1, 0, 0, 0]);
        let open = letters.letters().state().open(id(1)).unwrap().held.clone();
        letters.close().unwrap();
        let form = crate::log::letters::Form::on(&(Arc::new(disk) as _), &open).unwrap();
        let has_cause = form.view().unwrap().headers().to_headers().get(CAUSE_HEADER).is_some();
        assert_eq!(has_cause, to.is_none());
    }
}

#[test]
fn bounds_and_pace_leave_the_rest() {
    let disk = disk();
    let mut letters = opened(&disk).unwrap();
    let plan = Redrive { limit: 1, ..Redrive::default() };
    assert_eq!(redrive(&mut letters, &plan), [1, 0, 0, 0]);
    let outcome = letters.redrive(&Redrive::default(), None, &mut |done| done < 1).unwrap();
    assert_eq!(numbers_of(outcome), [0, 0, 1, 0], "the first of those left");
    let pack = LetterFilter { stage: Some("pack".into()), ..LetterFilter::default() };
    assert_eq!(letters.purge(&pack, &mut |_| false).unwrap(), 0);
    assert_eq!(letters.purge(&pack, &mut |_| true).unwrap(), 1);
    assert_eq!(letters.purge(&pack, &mut |_| true).unwrap(), 0);
    letters.close().unwrap();
    let letters = looked(&disk);
    assert_eq!(letters.picked(&LetterFilter::default()), LETTERS[1..3]);
    assert_eq!(letters.state().counts().purged, 1);
}

/// What was added to an output is looked at by who has that output, before it is taken for safe.
#[test]
fn a_log_that_was_not_closed_is_left_to_who_has_its_outputs() {
    for is_safe in [false, true] {
        let mut live = Live::new(1);
        let mut body = Vec::new();
        let sink = Sink { device: 1, inode: 2, length: 3, added: 3, checksum: 4 };
        Entry::Sink { name: b"alerts", sink }.encode(&mut body).unwrap();
        live.entries(&body).unwrap();
        live.tail.flush().unwrap();
        if is_safe {
            live.record(Kind::Mark, &[]).unwrap();
        }
        let opened = recover(&live.disk.after_kill(), Some(&[]));
        assert_eq!(matches!(opened, Err(LogError::SinkNotGiven(_))), !is_safe);
    }
}

/// Letters by number, and open envelopes by id with how often they were re-driven.
fn standing(state: &State) -> (BTreeMap<EntryNumber, EnvelopeId>, BTreeMap<EnvelopeId, u16>) {
    let letters = state.letters().map(|(number, letter)| (number, letter.id)).collect();
    let open = state.open_in_order().into_iter();
    (letters, open.map(|(id, open)| (id, open.held.redrives)).collect())
}

/// A crash at any moment of a re-drive or a purge leaves each letter as it was, or done; the same
/// call once more does the rest, and nothing is done twice.
#[test]
fn what_a_crash_leaves_is_done_by_the_next_call() {
    let (mut interrupted, mut moved) = (0, 0);
    for seed in 0..crashes() {
        let mut live = Live::new(seed);
        live.some_entries(60).unwrap();
        live.tail.flush().unwrap();
        let (letters, open) = standing(&live.state);
        let mut random = Random(seed ^ 0xDEAD);
        let mut disk = live.disk.after_kill();
        let is_purge = random.below(4) == 0;
        let plan = Redrive { redrives_max: u16::MAX, ..Redrive::default() };
        let act = |disk: &SimulatedDisk| -> Result<(), LogError> {
            let mut letters = opened(disk)?;
            if is_purge {
                letters.purge(&plan.filter, &mut |_| true)?;
            } else {
                letters.redrive(&plan, None, &mut |_| true)?;
            }
            letters.close()
        };
        for _ in 0..random.below(3) {
            disk.fail_at(disk.operations() + random.below(40), Fault::Crash);
            let is_done = act(&disk).is_ok();
            disk = disk.after_power_cut(&mut |bound| random.below(bound));
            let state = looked(&disk).state().clone();
            let (left, now_open) = standing(&state);
            interrupted += u32::from(!is_done && left.len() < letters.len() && !left.is_empty());
            for (number, id) in letters.iter().filter(|(number, _)| !left.contains_key(number)) {
                let came = now_open.get(id).copied().unwrap_or(0);
                let is_gone = is_purge || state.settled().contains(*id);
                assert!(is_gone || came > 0, "seed {seed}: {number} of {id} is nowhere");
            }
        }
        act(&disk).unwrap();
        let state = looked(&disk).state().clone();
        assert!(state.holds(), "seed {seed}");
        let (left, now_open) = standing(&state);
        let added = if is_purge { 0 } else { now_open.len() - open.len() };
        moved += added;
        let counts = (live.state.counts(), state.counts());
        assert_eq!(counts.1.redriven - counts.0.redriven, added as u64, "seed {seed}: twice");
        for (number, id) in &left {
            assert!(!is_purge && now_open.contains_key(id), "seed {seed}: {number} was left");
        }
        assert!(open.iter().all(|(id, redrives)| now_open[id] == *redrives), "seed {seed}");
    }
    assert!(interrupted > 20 && moved > 100, "{interrupted} {moved}");
}
