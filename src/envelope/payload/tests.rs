//! Round trips and refusals of the built-in payloads.

use super::*;

fn round_trip<P: Payload + PartialEq + std::fmt::Debug>(payload: &P, want: &[u8]) {
    let mut bytes = b"before".to_vec();
    payload.encode(&mut bytes).unwrap();
    assert_eq!(&bytes[..6], b"before", "encoding appends");
    assert_eq!(&bytes[6..], want);
    assert_eq!(&P::decode(want).unwrap(), payload);
}

#[test]
fn bytes_and_text() {
    for bytes in [&b""[..], &[0, 255, 10]] {
        round_trip(&Bytes::copy_from_slice(bytes), bytes);
        round_trip(&bytes.to_vec(), bytes);
    }
    round_trip(&String::new(), b"");
    round_trip(&"k\u{e4}se".to_owned(), "k\u{e4}se".as_bytes());
    let error = String::decode(b"ab\xff").unwrap_err();
    assert!(matches!(&error, PayloadError::NotText(source) if source.valid_up_to() == 2));
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn plain_values() {
    round_trip(&Plain(0x0102_0304_u32), &[4, 3, 2, 1]);
    round_trip(&Plain([1_u16, 2]), &[1, 0, 2, 0]);
    round_trip(&Plain(()), b"");
    // From an address that is not aligned for the type.
    let bytes = [9, 1, 0, 0, 0, 0, 0, 0, 0, 9];
    for start in 0..2 {
        let aligned = Plain::<u64>::decode(&bytes[start..start + 8]).unwrap();
        assert_eq!(aligned.0.to_le_bytes(), bytes[start..start + 8]);
    }
    for length in [0, 7, 9] {
        let error = Plain::<u64>::decode(&[0; 9][..length]).unwrap_err();
        assert!(
            matches!(error, PayloadError::Length { expected: 8, found } if found == length),
            "{error}"
        );
    }
}

#[test]
fn errors_can_cross_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<PayloadError>();
}

#[cfg(feature = "json")]
#[test]
fn json() {
    use std::collections::BTreeMap;

    round_trip(&Json(vec![1, 2, 3]), b"[1,2,3]");
    round_trip(&Json(None::<u8>), b"null");
    for bytes in [&b""[..], b"[1", b"[1] 2", b"\xff"] {
        let error = Json::<Vec<u8>>::decode(bytes).unwrap_err();
        assert!(matches!(error, PayloadError::Decode(_)), "{error}");
    }
    let unwritable = Json(BTreeMap::from([(vec![1], 2)]));
    let error = unwritable.encode(&mut Vec::new()).unwrap_err();
    assert!(matches!(error, PayloadError::Encode(_)), "{error}");
}
