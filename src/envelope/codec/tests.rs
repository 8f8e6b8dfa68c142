//! The wire form: round trips, damage, limits. Goldens are in `golden` below.

use super::*;
use crate::envelope::headers::{HeaderValue, Headers};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

mod golden;

/// Parts that own what they consist of.
#[derive(Debug, Clone, Default)]
struct Owned {
    id: u128,
    numbers: (u32, u16, u32),
    expires_at_ms: Option<u64>,
    content_type: Option<String>,
    current: Option<String>,
    remaining: Vec<String>,
    trail: Vec<String>,
    headers: Headers,
    payload: Option<Vec<u8>>,
}

impl Owned {
    fn encode(&self) -> Vec<u8> {
        let remaining: Vec<&str> = self.remaining.iter().map(|name| &**name).collect();
        let trail: Vec<&str> = self.trail.iter().map(|name| &**name).collect();
        let parts = Parts {
            id: EnvelopeId::from_u128(self.id),
            hops: self.numbers.0,
            attempts: self.numbers.1,
            body_version: self.numbers.2,
            expires_at_ms: self.expires_at_ms,
            content_type: self.content_type.as_deref(),
            current: self.current.as_deref(),
            remaining: (&*remaining).into(),
            trail: (&*trail).into(),
            headers: (&self.headers).into(),
            payload: self.payload.as_deref(),
        };
        let message = encoded(&parts);
        let view = EnvelopeView::parse(&message).unwrap();
        assert_eq!(view.parts(), &parts);
        assert_eq!(view.headers().to_headers(), self.headers);
        assert_eq!(view.remaining().len(), self.remaining.len());
        assert_eq!(view.remaining().iter().count(), self.remaining.len());
        assert_eq!(view.trail().iter().count(), self.trail.len());
        assert_eq!(view.headers().iter().count(), view.headers().len());
        message
    }
}

fn encoded(parts: &Parts<'_>) -> Vec<u8> {
    let mut out = b"odd".to_vec();
    encode(parts, &mut out).unwrap();
    assert_eq!(out.len(), 3 + encoded_len(parts));
    assert_eq!(&out[..3], b"odd");
    out.split_off(3)
}

/// Whatever the bytes are: an error within them, or an envelope that has just this encoding.
fn check_any(bytes: &[u8]) -> bool {
    match EnvelopeView::parse(bytes) {
        Ok(view) => {
            assert_eq!(encoded(view.parts()), bytes);
            assert_eq!(view.headers(), (&view.headers().to_headers()).into());
            true
        }
        Err(error) => {
            assert!(error.offset() <= bytes.len(), "{error} of {} bytes", bytes.len());
            let place = format!("byte {}: expected", error.offset());
            assert!(error.to_string().starts_with(&place), "{error}");
            false
        }
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[a-z\u{e4}]{1,12}", 1 => "[a-z]{255}", 1 => "\\PC{1,60}"]
}

fn headers() -> impl Strategy<Value = Headers> {
    let value = (any::<bool>(), ".{0,30}");
    vec(("[a-z0-9._-]{1,20}", value), 0..6).prop_map(|fields| {
        Headers::try_from_iter(fields.iter().map(|(name, (is_text, value))| {
            let bytes = HeaderValue::Bytes(value.as_bytes());
            (name, if *is_text { HeaderValue::Text(value) } else { bytes })
        }))
        .unwrap()
    })
}

fn owned() -> impl Strategy<Value = Owned> {
    let routing =
        (option::of(name()), option::of(name()), vec(name(), 0..9), vec(name(), 0..9), headers());
    let payload = option::of(vec(any::<u8>(), 0..100));
    (any::<u128>(), any::<(u32, u16, u32)>(), any::<Option<u64>>(), routing, payload).prop_map(
        |(id, numbers, expires_at_ms, routing, payload)| {
            let (content_type, current, remaining, trail, headers) = routing;
            Owned {
                id,
                numbers,
                expires_at_ms,
                content_type,
                current,
                remaining,
                trail,
                headers,
                payload,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(owned in owned()) {
        owned.encode();
    }

    #[test]
    fn damaged_bytes_are_refused_or_an_envelope_of_their_own(
        owned in owned(),
        damage in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut message = owned.encode();
        for (index, value) in damage {
            *index.get_mut(&mut message) = value;
        }
        check_any(&message);
    }

    #[test]
    fn every_truncation_and_extension_is_refused(owned in owned()) {
        let mut message = owned.encode();
        for length in 0..message.len() {
            prop_assert!(!check_any(&message[..length]), "cut to {} bytes", length);
        }
        let length = message.len();
        message.push(0);
        let want = DecodeError::Trailing { offset: length, found: 1 };
        prop_assert_eq!(EnvelopeView::parse(&message), Err(want));
    }

    #[test]
    fn bytes_of_any_kind(bytes in vec(any::<u8>(), 0..200)) {
        check_any(&bytes);
        let mut message = b"WAYE\x01\0\x03\0".to_vec();
        message.extend(bytes);
        check_any(&message);
    }
}

/// An envelope that has everything, and whose every byte is known.
fn sample() -> Owned {
    Owned {
        id: 0x018c_c251_f400_7000_8002_f75c_c898_bfad,
        numbers: (2, 3, 1),
        expires_at_ms: Some(1_704_067_260_000),
        content_type: Some("text/plain".to_owned()),
        current: Some("price".to_owned()),
        remaining: vec!["pack".to_owned(), "ship".to_owned()],
        trail: vec!["check".to_owned()],
        headers: Headers::try_from_iter([
            ("key", HeaderValue::Text("17")),
            ("trace", HeaderValue::Bytes(&[0x17, 0xff])),
        ])
        .unwrap(),
        payload: Some(b"17 apples".to_vec()),
    }
}

#[test]
fn every_single_bit_counts() {
    let message = sample().encode();
    let mut accepted = 0;
    for bit in 0..8 * message.len() {
        let mut damaged = message.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        accepted += usize::from(check_any(&damaged));
    }
    let free = 8 * (16 + 8 + 4 + 4 + 2 + 9);
    assert!(accepted >= free, "id, expiry, numbers and payload may have any value: {accepted}");
}

#[test]
fn each_field_is_refused_at_its_own_byte() {
    let message = sample().encode();
    let check = |offset: usize, bytes: &[u8], want: DecodeError| {
        let mut damaged = message.clone();
        damaged[offset..offset + bytes.len()].copy_from_slice(bytes);
        assert_eq!(EnvelopeView::parse(&damaged).unwrap_err(), want);
    };
    let truncated =
        |offset, what, needed, found| DecodeError::Truncated { offset, what, needed, found };
    let out_of_range =
        |offset, what, low, high, found| DecodeError::OutOfRange { offset, what, low, high, found };
    check(0, b"EYAW", DecodeError::Magic { found: *b"EYAW" });
    check(4, &[2, 1], DecodeError::Version { found: 258 });
    check(6, &[7], DecodeError::Flags { found: 7 });
    check(6, &[3, 1], DecodeError::Flags { found: 0x103 });
    let what = "an expiry without its flag";
    check(6, &[1], DecodeError::NotZero { offset: 24, what });
    let what = "a payload length without its flag";
    check(6, &[2], DecodeError::NotZero { offset: 40, what });
    let what = "a payload length";
    check(40, &[1, 0, 0, 64], out_of_range(40, what, 0, 1 << 30, (1 << 30) + 1));
    check(40, &[10], truncated(112, "a payload", 10, 9));
    check(40, &[8], DecodeError::Trailing { offset: 120, found: 1 });
    check(50, &[65], out_of_range(50, "a number of headers", 0, 64, 65));
    let what = "reserved bytes";
    check(54, &[1], DecodeError::NotZero { offset: 54, what });
    check(57, &[0xff], DecodeError::NotText { offset: 57, what: "a content type" });
    let what = "a remaining hop's name";
    check(71, &[0], out_of_range(71, what, 1, 255, 0));
    check(71, &[200], truncated(72, what, 200, 49));
    check(81, &[0], out_of_range(81, "a visited stage's name", 1, 255, 0));
    check(87, &[0], out_of_range(87, "a header's name length", 1, 64, 0));
    check(87, &[65], out_of_range(87, "a header's name length", 1, 64, 65));
    check(88, &[2], DecodeError::HeaderKind { offset: 88, found: 2 });
    check(89, &[1, 16], out_of_range(89, "a header's value length", 0, 4096, 4097));
    check(92, b"E", DecodeError::HeaderName { offset: 92, found: b'E' });
    check(91, b"z", DecodeError::HeaderOrder { offset: 100 });
    check(95, &[0x80], DecodeError::NotText { offset: 95, what: "a header's text" });
    let what = "padding before the payload";
    check(111, &[1], DecodeError::NotZero { offset: 111, what });
}

#[test]
fn equal_header_names_are_refused() {
    let fields = Headers::try_from_iter([("a", "1"), ("b", "2")]).unwrap();
    let mut message = Owned { headers: fields, ..Owned::default() }.encode();
    let place = message.iter().rposition(|&byte| byte == b'b').unwrap();
    message[place] = b'a';
    let want = DecodeError::HeaderOrder { offset: place };
    assert_eq!(EnvelopeView::parse(&message), Err(want));
}

#[test]
fn all_headers_together_have_a_limit() {
    let mut fields = Headers::new();
    for name in ["a", "b", "c", "d"] {
        fields.insert(name, &vec![7; 4095]).unwrap();
    }
    let mut longer = Owned { headers: fields, ..Owned::default() }.encode();
    // The fourth value grows by the one byte that is too much.
    let fourth = 56 + 3 * 4100;
    longer[fourth + 2..fourth + 4].copy_from_slice(&4096_u16.to_le_bytes());
    let want = DecodeError::OutOfRange {
        offset: fourth,
        what: "all bytes of headers",
        low: 0,
        high: 16_384,
        found: 16_385,
    };
    longer.resize(longer.len() + 8, 0);
    assert_eq!(EnvelopeView::parse(&longer), Err(want));
}

#[test]
fn an_empty_payload_is_not_an_absent_one() {
    let absent = Owned::default().encode();
    let empty = Owned { payload: Some(Vec::new()), ..Owned::default() }.encode();
    assert_ne!(absent, empty);
    assert_eq!(EnvelopeView::parse(&absent).unwrap().payload(), None);
    assert_eq!(EnvelopeView::parse(&empty).unwrap().payload(), Some(&[][..]));
}

#[test]
fn the_payload_is_aligned_within_the_message() {
    for length in 1..=17 {
        let owned = Owned {
            current: Some("n".repeat(length)),
            payload: Some(vec![7; 5]),
            ..Owned::default()
        };
        assert_eq!(owned.encode().len() % 8, 5);
    }
}

#[test]
fn limits_are_refused_and_leave_the_output_as_it_was() {
    let check = |parts: Parts<'_>, want: EncodeError| {
        let mut out = b"before".to_vec();
        assert_eq!(encode(&parts, &mut out), Err(want));
        assert_eq!(out, b"before");
    };
    let (empty, long) = (Parts::new(EnvelopeId::NIL), "n".repeat(256));
    let name = |what, position, length| EncodeError::Name { what, position, length };
    check(Parts { content_type: Some(""), ..empty }, name("content type", 0, 0));
    check(Parts { current: Some(&long), ..empty }, name("current stage", 0, 256));
    let names = ["a", &long];
    check(Parts { remaining: (&names).into(), ..empty }, name("remaining hop", 1, 256));
    check(Parts { trail: (&["a", "b", ""]).into(), ..empty }, name("visited stage", 2, 0));
    let names = vec!["a"; 65_536];
    let (what, count) = ("remaining hops", 65_536);
    check(Parts { remaining: (&*names).into(), ..empty }, EncodeError::TooManyHops { what, count });
    // Zeros that nobody reads take no memory.
    let payload = vec![0; (1 << 30) + 1];
    let length = payload.len();
    check(Parts { payload: Some(&payload), ..empty }, EncodeError::PayloadTooLong { length });
}

#[test]
fn the_most_hops_and_headers() {
    let mut headers = Headers::new();
    for index in 0..64 {
        headers.insert(&format!("{index:064}"), &vec![0; 192]).unwrap();
    }
    let hops: Vec<String> = (0..65_535).map(|index| format!("stage-{index}")).collect();
    let owned = Owned { remaining: hops.clone(), trail: hops, headers, ..Owned::default() };
    owned.encode();
}

#[test]
fn a_view_can_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<EnvelopeView<'_>>();
    check::<Parts<'_>>();
    check::<DecodeError>();
}
