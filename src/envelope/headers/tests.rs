//! Limits of headers, and their map against a `BTreeMap`.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn insert_get_replace_remove() {
    let mut headers = Headers::new();
    assert!(headers.is_empty());
    headers.insert("b", "text").unwrap();
    headers.insert("a", &[1, 2]).unwrap();
    headers.insert("c", &String::from("third")).unwrap();
    assert_eq!(headers.len(), 3);
    assert_eq!(headers.get("b"), Some(HeaderValue::Text("text")));
    assert_eq!(headers.get("a").unwrap().as_text(), None);
    assert_eq!(headers.get("a").unwrap().as_bytes(), [1, 2]);
    headers.insert("b", &b"bytes"[..]).unwrap();
    assert_eq!(headers.get("b"), Some(HeaderValue::Bytes(b"bytes")));
    assert_eq!(headers.iter().map(|field| field.0).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(headers.remove("b") && !headers.remove("b"));
    assert_eq!(headers.get("b"), None);
    assert_eq!(format!("{headers:?}"), r#"{"a": Bytes([1, 2]), "c": Text("third")}"#);
}

#[test]
fn equality_does_not_depend_on_the_order_of_inserts() {
    let one = Headers::try_from_iter([("a", "1"), ("b", "2")]).unwrap();
    let other = Headers::try_from_iter([("b", "0"), ("b", "2"), ("a", "1")]).unwrap();
    assert_eq!(one, other);
    let bytes = Headers::try_from_iter([("a", &b"1"[..]), ("b", &b"2"[..])]).unwrap();
    assert_ne!(one, bytes, "a text and its bytes are not the same value");
}

#[test]
fn names_have_limits() {
    let mut headers = Headers::new();
    for name in ["a", "traceparent", "x-1_2.3", KEY, CONTENT_TYPE, &"n".repeat(64)] {
        headers.insert(name, "").unwrap();
    }
    let before = headers.clone();
    let error = headers.insert("", "").unwrap_err();
    assert_eq!(error, HeaderError::NameLength { name: String::new(), length: 0 });
    let error = headers.insert(&"n".repeat(100_000), "").unwrap_err();
    assert_eq!(error, HeaderError::NameLength { name: "n".repeat(64), length: 100_000 });
    for (name, offset) in [("Key", 0), ("a b", 1), ("a:", 1), ("k\u{e4}se", 1), ("ok\n", 2)] {
        let error = headers.insert(name, "").unwrap_err();
        assert_eq!(error, HeaderError::NameCharacter { name: name.to_owned(), offset });
    }
    assert_eq!(headers, before, "a refused insert changes nothing");
}

#[test]
fn values_have_a_limit() {
    let mut headers = Headers::new();
    headers.insert("a", &vec![0; 4096]).unwrap();
    let error = headers.insert("a", &vec![0; 4097]).unwrap_err();
    assert_eq!(error, HeaderError::ValueTooLong { name: "a".to_owned(), length: 4097 });
    assert!(error.to_string().contains("`a`") && error.to_string().contains("4096"), "{error}");
    assert_eq!(headers.get("a").unwrap().as_bytes().len(), 4096);
}

#[test]
fn their_number_has_a_limit() {
    let mut headers = Headers::new();
    for index in 0..64 {
        headers.insert(&index.to_string(), "v").unwrap();
    }
    let error = headers.insert("one-more", "v").unwrap_err();
    assert_eq!(error, HeaderError::TooMany { name: "one-more".to_owned() });
    headers.insert("7", "replaced").unwrap();
    headers.remove("8");
    headers.insert("one-more", "v").unwrap();
    assert_eq!(headers.len(), 64);
}

#[test]
fn the_total_has_a_limit() {
    let mut headers = Headers::new();
    for name in ["a", "b", "c"] {
        headers.insert(name, &vec![0; 4096]).unwrap();
    }
    headers.insert("d", &vec![0; 4096 - 4]).unwrap();
    let error = headers.insert("e", "").unwrap_err();
    assert_eq!(error, HeaderError::TotalTooLong { name: "e".to_owned(), total: 16_385 });
    let error = headers.insert("d", &vec![0; 4096 - 3]).unwrap_err();
    assert_eq!(error, HeaderError::TotalTooLong { name: "d".to_owned(), total: 16_385 });
    headers.insert("a", "").unwrap();
    headers.insert("e", "").unwrap();
}

#[test]
fn empty_headers_hold_no_allocation() {
    assert_eq!(Headers::new().entries.capacity(), 0);
    assert_eq!(Headers::default().clone().entries.capacity(), 0);
}

proptest! {
    #[test]
    fn behaves_as_an_ordered_map(
        steps in proptest::collection::vec(
            ("[a-c]{1,2}", proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9))),
            0..60,
        ),
    ) {
        let mut headers = Headers::new();
        let mut model = BTreeMap::new();
        for (name, value) in steps {
            match value {
                Some(value) => {
                    headers.insert(&name, &value).unwrap();
                    model.insert(name, value);
                }
                None => prop_assert_eq!(headers.remove(&name), model.remove(&name).is_some()),
            }
            let total: usize = model.iter().map(|(name, value)| name.len() + value.len()).sum();
            prop_assert_eq!(headers.total, total);
            prop_assert_eq!(headers.len(), model.len());
            let listed = headers.iter().map(|(name, value)| (name, value.as_bytes()));
            prop_assert!(listed.eq(model.iter().map(|(name, value)| (&**name, &**value))));
        }
    }
}
