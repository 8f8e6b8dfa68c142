//! Files in `tests/golden` that pin the wire form: they may be added to, never changed.
//!
//! One of them was written by hand, from the table of bytes. The others were written once by
//! `cargo test --lib write_golden_files -- --ignored`, which leaves files that exist alone.

use super::{Owned, sample};
use crate::envelope::codec::{EnvelopeView, Parts, encode};
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/envelope_v1_{name}.bin"))
}

fn files() -> Vec<(&'static str, Owned)> {
    let names = |range: std::ops::Range<u32>| range.map(|hop| format!("stage-{hop}")).collect();
    vec![
        ("minimal", Owned::default()),
        ("full", sample()),
        ("empty_payload", Owned { payload: Some(Vec::new()), ..sample() }),
        // A hop that left the payload alone: the body is named, not repeated.
        ("body_reference", Owned { payload: None, content_type: None, ..sample() }),
        ("expired_at_zero", Owned { expires_at_ms: Some(0), ..Owned::default() }),
        ("long_slip", Owned { remaining: names(64..364), trail: names(0..64), ..sample() }),
        (
            "largest_numbers",
            Owned {
                id: u128::MAX,
                numbers: (u32::MAX, u16::MAX, u32::MAX),
                expires_at_ms: Some(u64::MAX),
                current: Some("\u{20ac}".repeat(85)),
                payload: Some((0..=255).collect()),
                ..Owned::default()
            },
        ),
    ]
}

#[test]
fn golden_files_still_fit() {
    for (name, owned) in files() {
        let file = std::fs::read(path(name)).unwrap();
        assert!(owned.encode() == file, "{name} is written differently now");
    }
}

#[test]
#[ignore = "writes the golden files that are missing"]
fn write_golden_files() {
    for (name, owned) in files() {
        if !path(name).exists() {
            std::fs::write(path(name), owned.encode()).unwrap();
        }
    }
}

/// The bytes of the file written by hand, in the order of the table.
const BY_HAND: &str = "
    57 41 59 45                                      magic WAYE
    01 00                                            version 1
    03 00                                            a payload and an expiry
    ad bf 98 c8 5c f7 02 80 00 70 00 f4 51 c2 8c 01  id, least significant byte first
    60 de 52 c2 8c 01 00 00                          expiry 1704067260000
    01 00 00 00                                      body version 1
    02 00 00 00                                      2 hops taken
    09 00 00 00                                      9 bytes of payload
    03 00                                            3 attempts
    02 00                                            2 remaining hops
    01 00                                            1 visited stage
    02                                               2 headers
    0a                                               10 bytes of content type
    05                                               5 bytes of current stage
    00 00 00                                         reserved
    74 65 78 74 2f 70 6c 61 69 6e                    text/plain
    70 72 69 63 65                                   price
    04 70 61 63 6b                                   pack
    04 73 68 69 70                                   ship
    05 63 68 65 63 6b                                check
    03 00 02 00 6b 65 79 31 37                       key, text of 2 bytes: 17
    05 01 02 00 74 72 61 63 65 17 ff                 trace, 2 bytes: 17 ff
    00 00 00 00 00                                   padding
    31 37 20 61 70 70 6c 65 73                       17 apples
";

#[test]
fn the_bytes_written_by_hand() {
    let bytes: Vec<u8> = BY_HAND
        .lines()
        .flat_map(|line| line.get(4..52).unwrap_or(line).split_whitespace())
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect();
    assert_eq!(std::fs::read(path("by_hand")).unwrap(), bytes);
    assert_eq!(sample().encode(), bytes);
    let view = EnvelopeView::parse(&bytes).unwrap();
    assert_eq!(view.id().to_string(), "018cc251-f400-7000-8002-f75cc898bfad");
    assert_eq!((view.hops(), view.attempts(), view.body_version()), (2, 3, 1));
    assert_eq!(view.expires_at_ms(), Some(1_704_067_260_000));
    assert_eq!((view.content_type(), view.current()), (Some("text/plain"), Some("price")));
    assert_eq!(view.remaining().iter().collect::<Vec<_>>(), ["pack", "ship"]);
    assert_eq!(view.trail().iter().collect::<Vec<_>>(), ["check"]);
    assert_eq!(view.headers().get("key").and_then(|value| value.as_text()), Some("17"));
    assert_eq!(view.headers().get("trace").unwrap().as_bytes(), [0x17, 0xff]);
    assert_eq!(view.headers().get("other"), None);
    assert_eq!(view.payload(), Some(&b"17 apples"[..]));
    let mut again = Vec::new();
    encode(&Parts { hops: 2, ..*view.parts() }, &mut again).unwrap();
    assert_eq!(again, bytes);
}
