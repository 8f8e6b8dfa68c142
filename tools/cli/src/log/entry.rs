//! One entry of a log as a line and as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use waystage::EnvelopeId;
use waystage::envelope::codec::Parts;
use waystage::log::Shown;
use waystage::log::checkpoint::End;
use waystage::log::entry::{DurableLevel, Entry, EntryError, Original};
use waystage::log::frame::Kind;

use super::{json_time, time};
use crate::words::{count, harmless};

/// One line of a dump: an entry, or a record that holds none.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// The record's sequence.
    pub sequence: u64,
    /// Its index in the record; `None` for a record without entries.
    pub index: Option<u32>,
    /// What kind it is.
    pub kind: &'static str,
    /// The envelope it is about; nil: none.
    pub id: EnvelopeId,
    /// The stage it names.
    pub stage: Option<&'a str>,
    /// What else it says, by name.
    pub details: Vec<(&'static str, Value)>,
    /// The payload, or the value of a state or source, or what is no entry.
    pub payload: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    fn new(sequence: u64, index: Option<u32>, kind: &'static str) -> Self {
        let (id, details) = (EnvelopeId::NIL, Vec::new());
        Self { sequence, index, kind, id, stage: None, details, payload: None }
    }

    /// An entry of a record.
    #[must_use]
    pub fn entry(sequence: u64, index: u32, entry: &Entry<'a>) -> Self {
        let mut line = Self::new(sequence, Some(index), entry.kind().name());
        line.id = entry.id();
        match *entry {
            Entry::Accept { level, envelope } => {
                let level = match level {
                    DurableLevel::AtLeastOnce => "at-least-once",
                    DurableLevel::ExactlyOnce => "exactly-once",
                };
                line.details.push(("level", level.into()));
                line.envelope(&envelope);
            }
            Entry::Hop { envelope } => line.envelope(&envelope),
            Entry::Attempt { attempts, due_ms, .. } => {
                line.details.push(("attempts", attempts.into()));
                if due_ms > 0 {
                    let due = json_time(due_ms.checked_mul(1_000_000));
                    line.details.push(("due", due));
                }
            }
            Entry::Dead { attempts, cause, reason, .. } => {
                line.details.push(("cause", cause.name().into()));
                line.details.push(("attempts", attempts.into()));
                line.details.push(("reason", reason.into()));
            }
            Entry::Redriven { letter, envelope } => {
                line.details.push(("letter", letter.to_string().into()));
                line.envelope(&envelope);
            }
            Entry::Purged { letter, .. } | Entry::Duplicate { letter, .. } => {
                line.details.push(("letter", letter.to_string().into()));
            }
            Entry::State { name, value } | Entry::Source { name, value } => {
                line.details.push(("name", name.into()));
                line.details.push(("value_bytes", value.len().into()));
                line.payload = Some(value);
            }
            Entry::Sink { name, sink } => {
                line.details.push(("name", String::from_utf8_lossy(name).into()));
                line.details.push(("length", sink.length.into()));
                line.details.push(("added", sink.added.into()));
            }
            Entry::Copy { of, envelope } => {
                let (what, number) = match of {
                    Original::Open(number) => ("open", number),
                    Original::Dead(number) => ("letter", number),
                };
                line.details.push((what, number.to_string().into()));
                line.envelope(&envelope);
            }
            Entry::Window { count } => line.details.push(("ids", count.into())),
            _ => {}
        }
        line
    }

    /// What is no entry.
    #[must_use]
    pub fn other(sequence: u64, body: &'a [u8], error: &EntryError) -> Self {
        let mut line = Self::new(sequence, None, "other");
        line.details.push(("bytes", body.len().into()));
        line.details.push(("error", error.to_string().into()));
        line.payload = Some(body);
        line
    }

    /// A record that holds no entries by its kind.
    #[must_use]
    pub fn record(shown: &Shown<'_>) -> Self {
        let stamp = shown.record.stamp;
        let kind = if stamp.kind == Kind::Mark { "mark" } else { "checkpoint" };
        let mut line = Line::new(stamp.sequence, None, kind);
        match stamp.kind {
            Kind::Mark => line.details.push(("durable", stamp.watermark.into())),
            Kind::CheckpointEnd => {
                if let Ok(end) = End::from_body(&shown.record.body()) {
                    line.details.push(("end", end.number.into()));
                    line.details.push(("at", end.at.into()));
                    line.details.push(("parts", end.parts.into()));
                }
            }
            _ => line.details.push(("part_bytes", shown.record.body().len().into())),
        }
        line
    }

    fn envelope(&mut self, envelope: &Parts<'a>) {
        self.stage = envelope.current;
        self.details.push(("hops", envelope.hops.into()));
        if let Some(expires) = envelope.expires_at_ms {
            self.details.push(("expires", json_time(expires.checked_mul(1_000_000))));
        }
        let remaining: Vec<&str> = envelope.remaining.iter().collect();
        if !remaining.is_empty() {
            self.details.push(("next", remaining.join(",").into()));
        }
        if let Some(payload) = envelope.payload {
            self.details.push(("bytes", payload.len().into()));
        }
        self.payload = envelope.payload;
    }

    /// What stands in the column of sequences.
    #[must_use]
    pub fn number(&self) -> String {
        match self.index {
            None | Some(0) => self.sequence.to_string(),
            Some(index) => format!("{}.{index}", self.sequence),
        }
    }

    /// The details in one column.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = String::new();
        for (name, value) in &self.details {
            let value = match value {
                Value::String(text) => harmless(text),
                Value::Number(number) if *name == "bytes" => {
                    number.as_u64().map_or_else(|| number.to_string(), count)
                }
                other => other.to_string(),
            };
            let space = if words.is_empty() { "" } else { "  " };
            let _ = write!(words, "{space}{name} {value}");
        }
        words
    }

    /// The line as a JSON object.
    #[must_use]
    pub fn json(&self, shown: &Shown<'_>, has_payload: bool) -> Map<String, Value> {
        let stamp = shown.record.stamp;
        let mut object = Map::new();
        object.insert("sequence".into(), self.sequence.into());
        object.insert("index".into(), self.index.into());
        object.insert("time".into(), json_time(Some(stamp.time)));
        object.insert("segment".into(), shown.location.segment.into());
        object.insert("offset".into(), shown.location.offset.into());
        object.insert("safe".into(), shown.is_durable.into());
        object.insert("kind".into(), self.kind.into());
        let id = (!self.id.is_nil()).then(|| self.id.to_string());
        object.insert("id".into(), id.into());
        object.insert("stage".into(), self.stage.into());
        object.extend(self.details.iter().map(|(name, value)| ((*name).into(), value.clone())));
        if let (true, Some(payload)) = (has_payload, self.payload) {
            match std::str::from_utf8(payload) {
                Ok(text) => object.insert("payload".into(), text.into()),
                Err(_) => object.insert("payload_hex".into(), hex(payload).into()),
            };
        }
        object
    }

    /// The payload as text may show it.
    #[must_use]
    pub fn payload_text(&self) -> Option<String> {
        let payload = self.payload?;
        Some(match std::str::from_utf8(payload) {
            Ok(text) => harmless(text),
            Err(_) => format!("hex {}", hex(payload)),
        })
    }
}

/// The time column.
#[must_use]
pub fn when(shown: &Shown<'_>) -> String {
    time(shown.record.stamp.time)
}

/// Bytes in two digits each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
