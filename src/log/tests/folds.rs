//! The fold against the second account, and every transition that is not allowed.

use std::collections::BTreeMap;

use super::Random;
use super::story::Account;
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;
use crate::log::entry::{CauseCode, DurableLevel, Entry, EntryKind, EntryNumber, Original, Sink};
use crate::log::fold::{Breach, FoldError, Standing, fold, fold_record};
use crate::log::segment::Location;
use crate::log::state::{Place, State};

fn sink(number: u64) -> Sink {
    Sink { device: number, inode: number, length: number, added: number, checksum: number }
}

#[test]
fn the_fold_and_the_account_agree_after_every_record() {
    let mut refused = BTreeMap::new();
    let mut told = BTreeMap::new();
    for seed in 0..800 {
        let mut random = Random(seed);
        let (mut state, mut account) = (State::default(), Account::default());
        for sequence in 1..200 {
            let body = account.invent(&mut random);
            let location = Location { segment: 1 + sequence / 20, offset: 64 + sequence * 8 };
            let before = state.clone();
            let folded = fold_record(&mut state, sequence, location, &body);
            match account.after(sequence, location, &body) {
                Some(after) => {
                    assert_eq!(folded, Ok(()), "seed {seed}, record {sequence}");
                    account = after;
                }
                None => {
                    let Err(FoldError::Violation(violation)) = folded else {
                        panic!("seed {seed}, record {sequence}: {folded:?}");
                    };
                    assert!(state == before, "seed {seed}, record {sequence}: {violation}");
                    *refused.entry(violation.entry).or_insert(0) += 1;
                }
            }
            account.compare(&state);
        }
        for (kind, count) in account.tally {
            *told.entry(kind).or_insert(0) += count;
        }
    }
    // The stories are rich enough to mean something.
    for kind in EntryKind::ALL {
        assert!(told[&kind] > 20, "{}: {told:?}", kind.name());
        let is_free = matches!(
            kind,
            EntryKind::State | EntryKind::Source | EntryKind::Sink | EntryKind::Window
        );
        assert!(is_free || refused[&kind] > 50, "{}: {refused:?}", kind.name());
    }
}

const OPEN: EnvelopeId = EnvelopeId::from_u128(1);
const SETTLED: EnvelopeId = EnvelopeId::from_u128(2);
const DEAD: EnvelopeId = EnvelopeId::from_u128(3);
const UNKNOWN: EnvelopeId = EnvelopeId::from_u128(4);
/// Dead letters of ids that are open, and settled.
const OPEN_LETTER: EntryNumber = EntryNumber { sequence: 8, index: 0 };
const SETTLED_LETTER: EntryNumber = EntryNumber { sequence: 4, index: 0 };
const LETTER: EntryNumber = EntryNumber { sequence: 11, index: 0 };

fn envelope(id: EnvelopeId) -> Parts<'static> {
    let payload = Some(&b"payload"[..]);
    Parts { hops: 2, body_version: 3, current: Some("sort"), payload, ..Parts::new(id) }
}

fn reference(id: EnvelopeId) -> Parts<'static> {
    Parts { payload: None, ..envelope(id) }
}

fn accept(id: EnvelopeId) -> Entry<'static> {
    Entry::Accept { level: DurableLevel::ExactlyOnce, envelope: envelope(id) }
}

fn dead(id: EnvelopeId) -> Entry<'static> {
    Entry::Dead { id, at_ms: 7, attempts: 1, cause: CauseCode::NoRoute, reason: "" }
}

fn at(sequence: u64) -> Place {
    let number = EntryNumber { sequence, index: 0 };
    Place { number, location: Location { segment: 1, offset: 64 } }
}

/// A state with an id in each standing.
fn scene() -> State {
    let mut state = State::default();
    let story = [
        Entry::Window { count: 2 },
        // The letter comes first, then its id comes in anew.
        Entry::Sink { name: b"x", sink: sink(1) },
        accept(SETTLED),
        dead(SETTLED),
        accept(SETTLED),
        Entry::Completed { id: SETTLED },
        accept(OPEN),
        dead(OPEN),
        accept(OPEN),
        accept(DEAD),
        dead(DEAD),
        Entry::Attempt { id: OPEN, attempts: 4, due_ms: 9 },
    ];
    for (sequence, entry) in (1..).zip(story) {
        fold(&mut state, at(sequence), &entry).unwrap();
    }
    state
}

/// Folding `entry` into the scene is refused for that reason, alone and behind a good entry, and
/// changes nothing.
#[track_caller]
fn refused(entry: &Entry<'_>, breach: Breach) {
    let before = scene();
    let mut state = scene();
    let violation = fold(&mut state, at(50), entry).unwrap_err();
    assert_eq!(
        (violation.breach, violation.entry, violation.id),
        (breach, entry.kind(), entry.id())
    );
    assert_eq!(violation.number, at(50).number);
    assert!(state == before, "{violation}");
}

#[test]
fn a_record_is_taken_back_whole() {
    let story = [
        Entry::Hop { envelope: Parts { hops: 3, body_version: 4, ..envelope(OPEN) } },
        Entry::State { name: "a", value: b"b" },
        Entry::State { name: "a", value: b"c" },
        Entry::Source { name: "a", value: b"b" },
        Entry::Sink { name: b"x", sink: sink(2) },
        Entry::Completed { id: OPEN },
        Entry::Redriven { letter: LETTER, envelope: reference(DEAD) },
        Entry::Completed { id: DEAD },
        Entry::Duplicate { letter: OPEN_LETTER, id: OPEN },
        Entry::Window { count: 1 },
        accept(SETTLED),
        accept(UNKNOWN),
        Entry::Window { count: 0 },
        Entry::Completed { id: UNKNOWN },
        Entry::Expired { id: SETTLED },
        Entry::Purged { letter: SETTLED_LETTER, id: SETTLED },
    ];
    for length in 0..=story.len() {
        let mut body = Vec::new();
        for entry in &story[..length] {
            entry.encode(&mut body).unwrap();
        }
        let mut state = scene();
        fold_record(&mut state, 50, at(50).location, &body).unwrap();
        assert!(length == 0 || state != scene());

        let mut state = scene();
        let mut illegal = body.clone();
        Entry::Expired { id: EnvelopeId::NIL }.encode(&mut illegal).unwrap();
        let error = fold_record(&mut state, 50, at(50).location, &illegal).unwrap_err();
        assert!(matches!(error, FoldError::Violation(_)));
        assert!(state == scene(), "{length} entries are taken back");

        body.push(1);
        let error = fold_record(&mut state, 50, at(50).location, &body).unwrap_err();
        assert!(matches!(error, FoldError::Entry(_)));
        assert!(state == scene(), "{length} entries before bytes that are none");
    }
}

#[test]
fn the_scene_stands_as_told() {
    let state = scene();
    assert!(state.open(OPEN).is_some() && state.settled().contains(SETTLED));
    for (number, id) in [(OPEN_LETTER, OPEN), (SETTLED_LETTER, SETTLED), (LETTER, DEAD)] {
        assert_eq!(state.letter(number).unwrap().id, id);
    }
}

#[test]
fn every_entry_needs_its_id_where_the_table_says() {
    let standing = Breach::Standing;
    refused(&accept(OPEN), standing(Standing::Open));
    refused(&accept(SETTLED), standing(Standing::Settled));
    refused(&accept(EnvelopeId::NIL), Breach::Nil);
    for (id, found) in
        [(UNKNOWN, Standing::Unknown), (DEAD, Standing::Unknown), (SETTLED, Standing::Settled)]
    {
        let of = Original::Open(EntryNumber { sequence: 5, index: 0 });
        for entry in [
            Entry::Hop { envelope: Parts { hops: 3, ..reference(id) } },
            Entry::Attempt { id, attempts: 1, due_ms: 0 },
            Entry::Completed { id },
            Entry::Expired { id },
            Entry::Handled { id },
            dead(id),
            Entry::Copy { of, envelope: envelope(id) },
        ] {
            refused(&entry, standing(found));
        }
    }
    let (letter, number) = (at(7).number, at(7).number);
    for entry in [
        Entry::Redriven { letter, envelope: reference(DEAD) },
        Entry::Purged { letter, id: DEAD },
        Entry::Duplicate { letter, id: DEAD },
        Entry::Copy { of: Original::Dead(letter), envelope: envelope(DEAD) },
    ] {
        refused(&entry, Breach::NoLetter { number });
    }
    let (letter, id) = (LETTER, SETTLED);
    for entry in [
        Entry::Redriven { letter, envelope: reference(id) },
        Entry::Purged { letter, id },
        Entry::Duplicate { letter, id },
        Entry::Copy { of: Original::Dead(letter), envelope: envelope(id) },
    ] {
        refused(&entry, Breach::LetterOf { number: letter, id: DEAD });
    }
    refused(
        &Entry::Redriven { letter: OPEN_LETTER, envelope: reference(OPEN) },
        standing(Standing::Open),
    );
    refused(
        &Entry::Redriven { letter: SETTLED_LETTER, envelope: reference(SETTLED) },
        standing(Standing::Settled),
    );
    refused(&Entry::Duplicate { letter: LETTER, id: DEAD }, standing(Standing::Unknown));
    refused(&Entry::Duplicate { letter: OPEN_LETTER, id: OPEN }, standing(Standing::Open));
}

#[test]
fn every_wire_form_has_to_go_on_from_the_one_before() {
    let accept = |envelope| Entry::Accept { level: DurableLevel::AtLeastOnce, envelope };
    let hop = |envelope| Entry::Hop { envelope };
    let redriven = |envelope| Entry::Redriven { letter: LETTER, envelope };
    let copy = |envelope| Entry::Copy { of: Original::Open(at(9).number), envelope };
    let next = Parts { hops: 3, ..reference(OPEN) };
    let back = reference(DEAD);
    let same = Parts { attempts: 4, ..envelope(OPEN) };
    let new = Some(&b"new"[..]);

    refused(&accept(Parts { current: None, ..envelope(UNKNOWN) }), Breach::NoStage);
    refused(&accept(reference(UNKNOWN)), Breach::NoBody);
    let attempts = |held, found| Breach::Attempts { held, found };
    refused(&accept(Parts { attempts: 1, ..envelope(UNKNOWN) }), attempts(0, 1));

    refused(&hop(Parts { current: None, ..next }), Breach::NoStage);
    refused(&hop(Parts { attempts: 4, ..next }), attempts(0, 4));
    for found in [1, 2, 4] {
        refused(&hop(Parts { hops: found, ..next }), Breach::Hops { held: 2, found });
    }
    let body = |found, is_new| Breach::Body { held: 3, found, is_new };
    refused(&hop(Parts { body_version: 2, ..next }), body(2, false));
    refused(&hop(Parts { body_version: 4, ..next }), body(4, false));
    refused(&hop(Parts { payload: new, ..next }), body(3, true));

    for found in [0, 3, 4] {
        let entry = Entry::Attempt { id: OPEN, attempts: found, due_ms: 0 };
        refused(&entry, attempts(4, found));
    }
    refused(&dead(OPEN), attempts(4, 1));

    refused(&redriven(Parts { current: None, ..back }), Breach::NoStage);
    refused(&redriven(Parts { attempts: 1, ..back }), attempts(0, 1));
    refused(&redriven(Parts { hops: 1, ..back }), Breach::Hops { held: 2, found: 1 });
    refused(&redriven(Parts { body_version: 2, ..back }), body(2, false));
    refused(&redriven(Parts { body_version: 4, ..back }), body(4, false));
    refused(&redriven(Parts { body_version: 3, payload: new, ..back }), body(3, true));

    let (held, found) = (at(9).number, at(7).number);
    let entry = Entry::Copy { of: Original::Open(found), envelope: same };
    refused(&entry, Breach::Number { held, found });
    refused(&copy(Parts { current: Some("other"), ..same }), Breach::Stage);
    refused(&copy(Parts { hops: 3, ..same }), Breach::Hops { held: 2, found: 3 });
    refused(&copy(Parts { attempts: 0, ..same }), attempts(4, 0));
    refused(&copy(Parts { body_version: 4, ..same }), body(4, false));
    refused(&copy(Parts { payload: None, ..same }), Breach::NoBody);

    let edited = Parts { body_version: 4, payload: new, ..back };
    let goods = [
        accept(envelope(UNKNOWN)),
        hop(next),
        redriven(back),
        redriven(edited),
        copy(same),
        Entry::Handled { id: OPEN },
    ];
    for good in goods {
        fold(&mut scene(), at(50), &good).unwrap();
    }
}

#[test]
fn an_entry_never_comes_before_the_last_one() {
    let last = at(12).number;
    for sequence in [1, 11, 12] {
        let mut state = scene();
        let violation = fold(&mut state, at(sequence), &accept(UNKNOWN)).unwrap_err();
        assert_eq!(violation.breach, Breach::Passed { last });
        assert!(state == scene());
    }
}

#[test]
fn settled_ids_are_forgotten_in_order_and_then_free() {
    let mut state = State::default();
    let mut sequence = 0;
    let mut next = |state: &mut State, entry: &Entry<'_>| {
        sequence += 1;
        fold(state, at(sequence), entry)
    };
    let id = |number: u32| EnvelopeId::from_u128(u128::from(number) + 1);
    next(&mut state, &Entry::Window { count: 3 }).unwrap();
    for number in 0..5 {
        next(&mut state, &accept(id(number))).unwrap();
    }
    // Completed in another order than accepted.
    for number in [4, 2, 0, 1, 3] {
        next(&mut state, &Entry::Completed { id: id(number) }).unwrap();
    }
    let settled: Vec<_> = state.settled().iter().copied().collect();
    assert_eq!(settled, [id(0), id(1), id(3)]);
    assert_eq!(state.counts().forgotten, 2);
    next(&mut state, &accept(id(4))).unwrap();
    next(&mut state, &accept(id(3))).unwrap_err();
    next(&mut state, &Entry::Window { count: 1 }).unwrap();
    next(&mut state, &accept(id(1))).unwrap();
    next(&mut state, &accept(id(3))).unwrap_err();
    assert_eq!(state.counts().forgotten, 4);
}
