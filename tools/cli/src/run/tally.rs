//! Counting records by a value, with a bound on how many values are told apart.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jsonptr::PointerBuf;
use serde_json::Value;

/// Values told apart; more are counted together.
const VALUES_MAX: usize = 10_000;
/// The name of records without the value.
const NONE: &str = "(none)";
/// The name of what came after the table was full.
const OTHERS: &str = "(others)";

/// The counts of one stage.
#[derive(Debug)]
pub struct Tally {
    by: PointerBuf,
    counts: Mutex<HashMap<String, u64>>,
}

impl Tally {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(by: PointerBuf) -> Self {
        Self { by, counts: Mutex::new(HashMap::new()) }
    }

    /// The pointer.
    #[must_use]
    pub fn by(&self) -> &str {
        self.by.as_str()
    }

    /// Counts one record.
    pub fn count(&self, value: Option<&Value>) {
        let found = value.and_then(|value| self.by.resolve(value).ok());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = |name: &str| {
            if let Some(count) = counts.get_mut(name) {
                *count += 1;
                return;
            }
            let name = if counts.len() < VALUES_MAX { name } else { OTHERS };
            *counts.entry(name.to_owned()).or_default() += 1;
        };
        match found {
            None => count(NONE),
            Some(Value::String(text)) => count(text),
            Some(other) => count(&other.to_string()),
        }
    }

    /// The counts, most frequent first, equals by name.
    #[must_use]
    pub fn sorted(&self) -> Vec<(String, u64)> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = counts.iter().map(|(name, count)| (name.clone(), *count)).collect();
        drop(counts);
        all.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        all
    }
}

#[cfg(test)]
mod tests {
    use jsonptr::PointerBuf;
    use serde_json::json;

    use super::{Tally, VALUES_MAX};

    #[test]
    fn sorted_by_count_then_name() {
        let tally = Tally::new(PointerBuf::parse("/a").unwrap());
        for value in [json!({"a": "x"}), json!({"a": "y"}), json!({"a": 1}), json!({"a": "y"})] {
            tally.count(Some(&value));
        }
        tally.count(None);
        let want = [("y", 2), ("(none)", 1), ("1", 1), ("x", 1)];
        assert_eq!(tally.sorted(), want.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn memory_is_bounded() {
        let tally = Tally::new(PointerBuf::parse("/a").unwrap());
        for number in 0..VALUES_MAX + 100 {
            tally.count(Some(&json!({ "a": number })));
        }
        assert_eq!(tally.sorted()[0], ("(others)".to_owned(), 100));
        assert_eq!(tally.sorted().len(), VALUES_MAX + 1);
    }
}
