//! Rules over JSON pointers: whether a record is meant.
//!
//! A record that was not read matches like one without any value: only `exists = false` and `ne`
//! hold. Numbers compare as numbers, whole ones exactly and any other as 64-bit floats; strings
//! compare by their bytes.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::flow::model::{Comparison, Test, When};

/// Whether every condition holds.
#[must_use]
pub fn matches(when: &When, value: Option<&Value>) -> bool {
    when.0.iter().all(|(pointer, test)| {
        let found = value.and_then(|value| pointer.resolve(value).ok());
        passes(test, found)
    })
}

fn passes(test: &Test, found: Option<&Value>) -> bool {
    match test {
        Test::Equals(wanted) => found.is_some_and(|found| equal(found, wanted)),
        Test::OneOf(list) => found.is_some_and(|found| list.iter().any(|one| equal(found, one))),
        Test::All(comparisons) => comparisons.iter().all(|comparison| holds(comparison, found)),
    }
}

fn holds(comparison: &Comparison, found: Option<&Value>) -> bool {
    let ordered = |wanted: &Value, fine: fn(Ordering) -> bool| {
        found.and_then(|found| order(found, wanted)).is_some_and(fine)
    };
    match comparison {
        Comparison::Eq(wanted) => found.is_some_and(|found| equal(found, wanted)),
        Comparison::Ne(wanted) => !found.is_some_and(|found| equal(found, wanted)),
        Comparison::Lt(wanted) => ordered(wanted, Ordering::is_lt),
        Comparison::Le(wanted) => ordered(wanted, Ordering::is_le),
        Comparison::Ge(wanted) => ordered(wanted, Ordering::is_ge),
        Comparison::Gt(wanted) => ordered(wanted, Ordering::is_gt),
        Comparison::Exists(there) => found.is_some() == *there,
        Comparison::Matches(text) => {
            found.and_then(Value::as_str).is_some_and(|found| found.contains(text.as_str()))
        }
    }
}

/// Equal, with 1 and 1.0 the same number inside lists and objects too.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            compare(left, right) == Some(Ordering::Equal)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(key, value)| right.get(key).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (left.as_i128(), right.as_i128()) {
        return Some(left.cmp(&right));
    }
    left.as_f64()?.partial_cmp(&right.as_f64()?)
}

#[cfg(test)]
mod tests {
    use jsonptr::PointerBuf;
    use serde_json::{Value, json};

    use super::matches;
    use crate::flow::model::{Comparison, Test, When};

    fn record() -> Value {
        let text = r#"{"mag": 4.50, "whole": 4, "big": 9007199254740993, "type": "quarry blast",
            "none": null, "list": [1, {"a": 2.0}], "odd/key": true, "text4": "4"}"#;
        serde_json::from_str(text).unwrap()
    }

    fn check(pointer: &str, test: &Test, want: bool) {
        let value = record();
        let when = When(vec![(PointerBuf::parse(pointer).unwrap(), test.clone())]);
        assert_eq!(matches(&when, Some(&value)), want, "{pointer} {test:?}");
    }

    #[test]
    fn equality() {
        for (pointer, wanted, want) in [
            ("/mag", json!(4.5), true),
            ("/whole", json!(4.0), true),
            ("/whole", json!(4), true),
            ("/whole", json!("4"), false),
            ("/text4", json!(4), false),
            ("/big", json!(9_007_199_254_740_993_i64), true),
            ("/big", json!(9_007_199_254_740_992_i64), false),
            ("/type", json!("quarry blast"), true),
            ("/none", json!(null), true),
            ("/missing", json!(null), false),
            ("/list", json!([1.0, {"a": 2}]), true),
            ("/list/1/a", json!(2), true),
            ("/list/7", json!(2), false),
            ("/odd~1key", json!(true), true),
        ] {
            check(pointer, &Test::Equals(wanted.clone()), want);
            check(pointer, &Test::All(vec![Comparison::Eq(wanted.clone())]), want);
            check(pointer, &Test::All(vec![Comparison::Ne(wanted.clone())]), !want);
            check(pointer, &Test::OneOf(vec![json!("other"), wanted]), want);
            check(pointer, &Test::OneOf(vec![]), false);
        }
    }

    #[test]
    fn order() {
        type Make = fn(Value) -> Comparison;
        let all: [(Make, [bool; 3]); 4] = [
            (Comparison::Lt, [true, false, false]),
            (Comparison::Le, [true, true, false]),
            (Comparison::Ge, [false, true, true]),
            (Comparison::Gt, [false, false, true]),
        ];
        let sides = [
            ("/mag", [json!(5), json!(4.5), json!(-4)]),
            ("/whole", [json!(4.1), json!(4.0), json!(3)]),
            ("/big", [json!(1e300), json!(9_007_199_254_740_993_i64), json!(0)]),
            ("/type", [json!("z"), json!("quarry blast"), json!("a")]),
        ];
        for (pointer, wanted) in sides {
            for (make, want) in &all {
                for (wanted, want) in wanted.iter().zip(want) {
                    check(pointer, &Test::All(vec![make(wanted.clone())]), *want);
                }
            }
        }
        for (make, _) in all {
            check("/type", &Test::All(vec![make(json!(1))]), false);
            check("/mag", &Test::All(vec![make(json!("4"))]), false);
            check("/none", &Test::All(vec![make(json!(0))]), false);
            check("/missing", &Test::All(vec![make(json!(0))]), false);
        }
    }

    #[test]
    fn presence_text_and_conjunction() {
        check("/none", &Test::All(vec![Comparison::Exists(true)]), true);
        check("/missing", &Test::All(vec![Comparison::Exists(false)]), true);
        check("/missing", &Test::All(vec![Comparison::Exists(true)]), false);
        check("/type", &Test::All(vec![Comparison::Matches("blast".into())]), true);
        check("/type", &Test::All(vec![Comparison::Matches("Blast".into())]), false);
        check("/whole", &Test::All(vec![Comparison::Matches("4".into())]), false);
        let between = |low: f64, high: f64| {
            Test::All(vec![Comparison::Ge(json!(low)), Comparison::Lt(json!(high))])
        };
        check("/mag", &between(4.0, 5.0), true);
        check("/mag", &between(4.6, 5.0), false);
        check("/mag", &Test::All(vec![]), true);
    }

    #[test]
    fn nothing_is_required_of_everything() {
        assert!(matches(&When::default(), None));
        let there = When(vec![(
            PointerBuf::parse("/a").unwrap(),
            Test::All(vec![Comparison::Exists(false)]),
        )]);
        assert!(matches(&there, None), "a record that was not read has no value anywhere");
    }
}
