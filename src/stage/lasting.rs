//! What an attempt leaves behind for good if it succeeds: state that its stage saves, and what it
//! adds to sinks. Both go into the record of its settlement, so after a crash they are there
//! together with it, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::log::SinkFile;
use crate::log::sink::{Writes, Written};
use crate::sync::{Mutex, lock};

/// The most bytes that one attempt may add to sinks.
pub(crate) const WRITES_BYTES_MAX: usize = 16 << 20;
/// What the names of a stage and of a value that it saves have together, with what is between them.
pub(crate) const NAMES_BYTES_MAX: usize = 255;
/// Between them: no stage's name has it.
pub(crate) const BETWEEN: char = '\n';

/// Why an attempt cannot save a value or add to a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LastingError {
    /// The envelope is in memory only, and its settlement is in no log.
    #[error(
        "the envelope is in memory only, so nothing that lasts can come of it; publish it into a \
         stage with a durable level"
    )]
    NotDurable,
    /// The sink belongs to another bus, or to an earlier one.
    #[error("the sink belongs to another bus; ask this one for it with `sink`")]
    ForeignSink,
    /// The stage saves nothing.
    #[error("this stage saves nothing; set `saves` to the bytes it may save")]
    NotSaving,
    /// The key is empty or too long.
    #[error("a key has 1 to {most} bytes at this stage, this has {length}")]
    Key {
        /// Bytes it has.
        length: usize,
        /// Bytes it may have: 254 less those of the stage's name.
        most: usize,
    },
    /// What is saved would be more than the stage may save.
    #[error("what this stage saves would take {size} bytes, and `saves` is {limit}")]
    TooMuch {
        /// Bytes of all keys and values then.
        size: usize,
        /// The stage's bound.
        limit: usize,
    },
    /// What the attempt adds to sinks is too much.
    #[error("an attempt may add 16 MiB to sinks, this would be {size} bytes")]
    TooLong {
        /// Bytes it would add.
        size: usize,
    },
}

/// What one attempt leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Lasting {
    /// The values it saves, by key; empty ones are removed.
    pub(crate) saves: BTreeMap<String, Vec<u8>>,
    /// What it adds to sinks.
    pub(crate) writes: Writes,
}

/// The same as its record has it.
#[derive(Debug, Default)]
pub struct Left<'a> {
    /// The stage.
    pub(crate) stage: &'a str,
    /// The values that are saved.
    pub(crate) saves: BTreeMap<String, Vec<u8>>,
    /// The sinks that were written to.
    pub(crate) written: Written<'a>,
}

/// The values that a stage has saved.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Bytes of keys and values that there may be.
    limit: usize,
    /// Bytes a key may have.
    key_bytes_max: usize,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    values: BTreeMap<String, Vec<u8>>,
    /// Bytes of all keys and values.
    bytes: usize,
}

impl Held {
    /// Bytes that this key takes; none where there is no value.
    fn bytes_of(&self, key: &str) -> usize {
        self.values.get(key).map_or(0, |value| key.len() + value.len())
    }
}

impl Saved {
    /// Begins with what the log has.
    pub(crate) fn new(limit: usize, stage: &str, values: BTreeMap<String, Vec<u8>>) -> Self {
        let key_bytes_max = NAMES_BYTES_MAX.saturating_sub(stage.len() + BETWEEN.len_utf8());
        let bytes = values.iter().map(|(key, value)| key.len() + value.len()).sum();
        Self { limit, key_bytes_max, held: Mutex::new(Held { values, bytes }) }
    }

    /// The value behind a key.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        lock(&self.held).values.get(key).cloned()
    }

    /// Adds a value to those that an attempt saves.
    pub(crate) fn save(
        &self,
        saves: &mut BTreeMap<String, Vec<u8>>,
        key: &str,
        value: &[u8],
    ) -> Result<(), LastingError> {
        if !(1..=self.key_bytes_max).contains(&key.len()) {
            return Err(LastingError::Key { length: key.len(), most: self.key_bytes_max });
        }
        let before = saves.insert(key.to_owned(), value.to_vec());
        let held = lock(&self.held);
        let new = saves.iter().filter(|(_, value)| !value.is_empty());
        let more: usize = new.map(|(key, value)| key.len() + value.len()).sum();
        let less: usize = saves.keys().map(|key| held.bytes_of(key)).sum();
        let (bytes, size) = (held.bytes, (held.bytes + more).saturating_sub(less));
        drop(held);
        // One that is above the bound, which was higher once, may get smaller.
        if size <= self.limit || size <= bytes {
            return Ok(());
        }
        match before {
            Some(before) => saves.insert(key.to_owned(), before),
            None => saves.remove(key),
        };
        Err(LastingError::TooMuch { size, limit: self.limit })
    }

    /// The record with these has its place.
    pub(crate) fn apply(&self, saves: BTreeMap<String, Vec<u8>>) {
        let mut held = lock(&self.held);
        for (key, value) in saves {
            held.bytes -= held.bytes_of(&key);
            if value.is_empty() {
                held.values.remove(&key);
            } else {
                held.bytes += key.len() + value.len();
                held.values.insert(key, value);
            }
        }
    }
}

/// Adds to what an attempt adds to a sink.
pub(crate) fn add(
    writes: &mut Writes,
    sink: &Arc<SinkFile>,
    bytes: &[u8],
) -> Result<(), LastingError> {
    let size = writes.bytes() + bytes.len();
    if size > WRITES_BYTES_MAX {
        return Err(LastingError::TooLong { size });
    }
    writes.add(sink, bytes);
    Ok(())
}
