//! Entries as bytes: one of each kind written by hand, and what decodes is encoded again.

use super::Random;
use crate::envelope::codec::Parts;
use crate::envelope::{Cause, EnvelopeId};
use crate::log::entry::{
    CauseCode, DurableLevel, Entry, EntryEncodeError, EntryError, EntryKind, EntryNumber, Original,
    PATH_BYTES_MAX, REASON_BYTES_MAX, Sink, entries,
};

const ID: EnvelopeId = EnvelopeId::from_u128(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100);
const ID_BYTES: &str = "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f";
const NUMBER: EntryNumber = EntryNumber { sequence: 0x1234, index: 3 };
const NUMBER_BYTES: &str = "34 12 00 00 00 00 00 00 03 00 00 00";

/// The wire form of `envelope`: 56 bytes, the stage, padding, 2 bytes of payload.
const ENVELOPE_BYTES: &str = "
    57 41 59 45 01 00 01 00 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f
    00 00 00 00 00 00 00 00 05 00 00 00 07 00 00 00 02 00 00 00 00 00 00 00
    00 00 00 00 04 00 00 00 73 6f 72 74 00 00 00 00 68 69";
/// The same without payload.
const REFERENCE_BYTES: &str = "
    57 41 59 45 01 00 00 00 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f
    00 00 00 00 00 00 00 00 05 00 00 00 07 00 00 00 00 00 00 00 00 00 00 00
    00 00 00 00 04 00 00 00 73 6f 72 74 00 00 00 00";

fn envelope() -> Parts<'static> {
    Parts { payload: Some(b"hi"), ..reference() }
}

fn reference() -> Parts<'static> {
    Parts { hops: 7, body_version: 5, current: Some("sort"), ..Parts::new(ID) }
}

/// One of each kind, and its bytes as the table has them.
fn samples() -> Vec<(Entry<'static>, String)> {
    let sink = Sink { device: 1, inode: 2, length: 4, added: 3, checksum: 0xAB };
    let level = DurableLevel::ExactlyOnce;
    let (of, letter, id) = (Original::Open(NUMBER), NUMBER, ID);
    let (at_ms, cause) = (0x0506, CauseCode::HandlerPanicked);
    let dead = Entry::Dead { id, at_ms, attempts: 4, cause, reason: "why" };
    vec![
        (
            Entry::Accept { level, envelope: envelope() },
            format!("4a 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00 {ENVELOPE_BYTES} 00*6"),
        ),
        (
            Entry::Hop { envelope: reference() },
            format!("40 00 00 00 02 00 00 00 {REFERENCE_BYTES}"),
        ),
        (
            Entry::Attempt { id, attempts: 0x0102, due_ms: 0x0304 },
            format!(
                "20 00 00 00 03 00 00 00 {ID_BYTES} 04 03 00 00 00 00 00 00 02 01 00 00 00 00 00 00"
            ),
        ),
        (Entry::Completed { id }, format!("10 00 00 00 04 00 00 00 {ID_BYTES}")),
        (Entry::Expired { id }, format!("10 00 00 00 05 00 00 00 {ID_BYTES}")),
        (dead, format!("1f 00 00 00 06 00 00 00 {ID_BYTES} 06 05 00*6 04 00 02 00 77 68 79 00")),
        (
            Entry::Redriven { letter, envelope: reference() },
            format!("50 00 00 00 07 00 00 00 {NUMBER_BYTES} 00 00 00 00 {REFERENCE_BYTES}"),
        ),
        (
            Entry::Purged { letter, id },
            format!("20 00 00 00 08 00 00 00 {NUMBER_BYTES} 00 00 00 00 {ID_BYTES}"),
        ),
        (
            Entry::Duplicate { letter, id },
            format!("20 00 00 00 09 00 00 00 {NUMBER_BYTES} 00 00 00 00 {ID_BYTES}"),
        ),
        (
            Entry::State { name: "sort", value: b"39" },
            "0a 00 00 00 0a 00 00 00 04 73 6f 72 74 00 00 00 33 39 00*6".to_owned(),
        ),
        (
            Entry::Source { name: "quakes1", value: &[] },
            "08 00 00 00 0b 00 00 00 07 71 75 61 6b 65 73 31".to_owned(),
        ),
        (
            Entry::Sink { name: b"a/b", sink },
            "2b 00 00 00 0c 00 00 00 01 00*7 02 00*7 04 00*7 03 00*7 ab 00*7 61 2f 62 00*5"
                .to_owned(),
        ),
        (
            Entry::Copy { of, envelope: envelope() },
            format!("52 00 00 00 0d 00 00 00 {NUMBER_BYTES} 00 00 00 00 {ENVELOPE_BYTES} 00*6"),
        ),
        (
            Entry::Copy { of: Original::Dead(NUMBER), envelope: envelope() },
            format!("52 00 00 00 0d 00 00 00 {NUMBER_BYTES} 01 00 00 00 {ENVELOPE_BYTES} 00*6"),
        ),
        (
            Entry::Redriven { letter, envelope: envelope() },
            format!("52 00 00 00 07 00 00 00 {NUMBER_BYTES} 00 00 00 00 {ENVELOPE_BYTES} 00*6"),
        ),
        (Entry::Window { count: 9 }, "04 00 00 00 0e 00 00 00 09 00 00 00 00 00 00 00".to_owned()),
        (Entry::Handled { id }, format!("10 00 00 00 0f 00 00 00 {ID_BYTES}")),
    ]
}

/// Bytes from digits; `00*5` is five zeros.
fn bytes(digits: &str) -> Vec<u8> {
    let words = digits.split_whitespace().flat_map(|word| match word.split_once('*') {
        Some((digits, count)) => vec![digits; count.parse().unwrap()],
        None => vec![word],
    });
    words.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
}

fn encoded(entry: &Entry<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    entry.encode(&mut out).unwrap();
    out
}

/// What a body holds, encoded again.
fn again(body: &[u8]) -> Result<Vec<u8>, EntryError> {
    let mut out = Vec::new();
    for entry in entries(body) {
        entry?.encode(&mut out).unwrap();
    }
    Ok(out)
}

#[test]
fn each_kind_has_its_bytes() {
    let mut whole = Vec::new();
    for (entry, digits) in samples() {
        assert_eq!(encoded(&entry), bytes(&digits), "{}", entry.kind().name());
        assert_eq!(entries(&bytes(&digits)).collect::<Vec<_>>(), [Ok(entry)]);
        entry.encode(&mut whole).unwrap();
    }
    let all: Vec<Entry<'_>> = entries(&whole).map(|entry| entry.unwrap()).collect();
    assert!(all.iter().eq(samples().iter().map(|(entry, _)| entry)), "one behind the other");
    for kind in EntryKind::ALL {
        assert!(all.iter().any(|entry| entry.kind() == kind), "{} has no sample", kind.name());
        assert_eq!(EntryKind::from_number(kind.number()), Some(kind));
    }
}

#[test]
fn what_is_cut_or_changed_is_an_error_or_another_entry() {
    for (entry, digits) in samples() {
        let good = bytes(&digits);
        for length in 1..good.len() {
            let error = again(&good[..length]).expect_err("cut");
            assert!(error.offset() <= length, "{error}");
        }
        for bit in 0..good.len() * 8 {
            let mut body = good.clone();
            body[bit / 8] ^= 1 << (bit % 8);
            match again(&body) {
                Ok(again) => assert_eq!(again, body, "bit {bit} of {}", entry.kind().name()),
                Err(error) => assert!(error.offset() <= body.len(), "{error}"),
            }
        }
    }
    let mut random = Random(3);
    for _ in 0..20_000 {
        let mut body = bytes(&samples()[random.below(samples().len())].1);
        for _ in 0..random.below(6) {
            let place = random.below(body.len());
            body[place] = random.next().to_le_bytes()[0];
        }
        if let Ok(again) = again(&body) {
            assert_eq!(again, body);
        }
    }
}

#[test]
fn errors_name_the_byte() {
    let body = |entry: &Entry<'_>, place: usize, byte: u8| {
        let mut body = encoded(&Entry::Window { count: 1 });
        body.extend(encoded(entry));
        body[16 + place] = byte;
        again(&body).unwrap_err()
    };
    let completed = Entry::Completed { id: ID };
    let error = body(&completed, 4, 99);
    assert_eq!(error, EntryError::Unknown { offset: 20, what: "the kind of entry", found: 99 });
    assert_eq!(body(&completed, 6, 1).offset(), 22, "a reserved byte");
    assert_eq!(body(&completed, 0, 15).offset(), 39, "the length leaves a byte in the padding");
    let (id, cause) = (ID, CauseCode::NoRoute);
    let dead = Entry::Dead { id, at_ms: 1, attempts: 1, cause, reason: "\u{e9}" };
    assert_eq!(body(&dead, 34, 10).offset(), 50, "a cause");
    assert_eq!(body(&dead, 37, b'x').offset(), 52, "no text");
    let error = body(&Entry::Hop { envelope: reference() }, 8 + 4, 9);
    assert!(matches!(error, EntryError::Envelope { offset: 24, .. }), "{error}");
    assert_eq!(error.offset(), 28, "the version of the wire form");
}

#[test]
fn what_is_too_long_is_refused_and_leaves_nothing() {
    let long = "n".repeat(256);
    let (name, value) = (&*long, &b""[..]);
    let sink = Sink { device: 0, inode: 0, length: 0, added: 0, checksum: 0 };
    let path = vec![b'p'; PATH_BYTES_MAX + 1];
    let reason = "r".repeat(REASON_BYTES_MAX + 1);
    let (id, attempts, cause) = (ID, 0, CauseCode::HandlerFailed);
    let cases = [
        (Entry::State { name, value }, EntryEncodeError::Name { length: 256 }),
        (Entry::Source { name: "", value }, EntryEncodeError::Name { length: 0 }),
        (Entry::Sink { name: &path, sink }, EntryEncodeError::Path { length: 4097 }),
        (Entry::Sink { name: b"", sink }, EntryEncodeError::Path { length: 0 }),
        (
            Entry::Dead { id, at_ms: 0, attempts, cause, reason: &reason },
            EntryEncodeError::Reason { length: 1025 },
        ),
    ];
    for (entry, expected) in cases {
        let mut out = vec![7; 8];
        assert_eq!(entry.encode(&mut out), Err(expected));
        assert_eq!(out, [7; 8]);
    }
    let envelope = Parts { current: Some(&long), ..reference() };
    assert!(matches!(
        Entry::Hop { envelope }.encode(&mut Vec::new()),
        Err(EntryEncodeError::Envelope(_))
    ));
}

#[test]
fn causes_keep_their_numbers_and_reasons_are_cut_between_characters() {
    for (number, code) in (1..).zip(CauseCode::ALL) {
        assert_eq!((code.number(), CauseCode::from_number(number)), (number, Some(code)));
        let cause = code.cause("because");
        let (found, reason) = CauseCode::of(&cause);
        assert_eq!((found, found.cause(reason)), (code, cause));
    }
    let cause = Cause::HandlerFailed("\u{20ac}".repeat(400));
    assert_eq!(CauseCode::of(&cause).1.len(), 1023, "341 characters of three bytes");
}
