//! Counting records by a value, with a bound on how many values are told apart.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jsonptr::PointerBuf;
use serde_json::Value;
use waystage::EnvelopeId;

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
    /// The counts that an earlier run saved, if any.
    #[must_use]
    pub fn new<'s>(by: PointerBuf, saved: impl IntoIterator<Item = &'s Vec<u8>>) -> Self {
        let counts = saved.into_iter().filter_map(|value| Self::read(value)).collect();
        Self { by, counts: Mutex::new(counts) }
    }

    /// A count with its name, from how it was saved.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<(String, u64)> {
        let (count, name) = value.split_first_chunk()?;
        Some((String::from_utf8(name.to_vec()).ok()?, u64::from_le_bytes(*count)))
    }

    /// Takes the counts that were saved for its own.
    pub fn agree<'s>(&self, saved: impl IntoIterator<Item = &'s Vec<u8>>) {
        let counts = saved.into_iter().filter_map(|value| Self::read(value)).collect();
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    /// The key under which a count is saved: names of values may be longer than keys.
    #[must_use]
    pub fn key(name: &str) -> String {
        EnvelopeId::from_key(name.as_bytes()).to_string()
    }

    /// A count with its name, as it is saved.
    #[must_use]
    pub fn saved(name: &str, count: u64) -> Vec<u8> {
        [&count.to_le_bytes(), name.as_bytes()].concat()
    }

    /// The pointer.
    #[must_use]
    pub fn by(&self) -> &str {
        self.by.as_str()
    }

    /// Under which name a record counts.
    #[must_use]
    pub fn name(&self, value: Option<&Value>) -> String {
        let name = match value.and_then(|value| self.by.resolve(value).ok()) {
            None => NONE.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told_apart = counts.len() < VALUES_MAX || counts.contains_key(&name);
        if is_told_apart { name } else { OTHERS.to_owned() }
    }

    /// Counts one record.
    pub fn count(&self, name: String) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(name).or_default() += 1;
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
        let tally = Tally::new(PointerBuf::parse("/a").unwrap(), []);
        for value in [json!({"a": "x"}), json!({"a": "y"}), json!({"a": 1}), json!({"a": "y"})] {
            tally.count(tally.name(Some(&value)));
        }
        tally.count(tally.name(None));
        let want = [("y", 2), ("(none)", 1), ("1", 1), ("x", 1)];
        assert_eq!(tally.sorted(), want.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn memory_is_bounded() {
        let tally = Tally::new(PointerBuf::parse("/a").unwrap(), []);
        for number in 0..VALUES_MAX + 100 {
            tally.count(tally.name(Some(&json!({ "a": number }))));
        }
        assert_eq!(tally.sorted()[0], ("(others)".to_owned(), 100));
        assert_eq!(tally.sorted().len(), VALUES_MAX + 1);
    }
}
