//! Where each value of a flow comes from: its line of the file, the defaults of the file, or the
//! program's own.

use std::time::Duration;

use toml::de::{DeTable, DeValue};
use waystage::log::Sync;
use waystage::{Idle, Level, OnFull, Pin, Retry, StageSettings};

use super::model::Flow;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Not in the file.
    Default,
    /// This line.
    Line(usize),
    /// This line, which is in `[defaults]`.
    Defaults(usize),
}

/// A setting, its value as a flow file writes it, and its origin.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// How many tables a flow file has, each stage one.
pub(super) fn tables(source: &str) -> usize {
    let (table, _) = DeTable::parse_recoverable(source);
    let count =
        |table: &DeTable<'_>| table.values().filter(|value| value.get_ref().is_table()).count();
    let stages = table.get_ref().get("stage").and_then(|stage| stage.get_ref().as_table());
    count(table.get_ref()) + stages.map_or(0, |stages| count(stages).saturating_sub(1))
}

/// Every setting of a flow that came from this source.
pub(super) fn settings(flow: &Flow, source: &str) -> Vec<Setting> {
    let (table, _) = DeTable::parse_recoverable(source);
    let file = Origins { source, table: table.get_ref() };
    let mut all = Vec::new();
    let mut add = |table: &[&str], key: &str, value: String| {
        let path: Vec<&str> = table.iter().copied().chain([key]).collect();
        let origin = match (file.line(&path), table) {
            (Some(line), _) => Origin::Line(line),
            (None, ["stage", _]) => {
                file.line(&["defaults", key]).map_or(Origin::Default, Origin::Defaults)
            }
            _ => Origin::Default,
        };
        all.push(Setting { key: path.join("."), value, origin });
    };
    add(&[], "flow", flow.name.clone());
    add(&["input"], "files", flow.input.files.join(", "));
    add(&["input"], "format", flow.input.format.name().to_owned());
    let id = flow.input.id.as_ref().map_or("file and line", |pointer| pointer.as_str());
    add(&["input"], "id", id.to_owned());
    let unique = flow.input.unique.map_or_else(|| "false".to_owned(), |window| window.to_string());
    add(&["input"], "unique", unique);
    add(&["input"], "max-line", format!("{} B", flow.input.max_line));
    add(&["bus"], "workers", flow.bus.workers.to_string());
    add(&["bus"], "idle", idle_text(flow.bus.idle).to_owned());
    add(&["bus"], "pin", pin_text(&flow.bus.pin));
    add(&["bus"], "hop-limit", flow.bus.hop_limit.to_string());
    add(&["bus"], "dead-letters", flow.bus.dead_letters.to_string());
    if let Some(durable) = &flow.durable {
        add(&["durable"], "dir", durable.directory.display().to_string());
        add(&["durable"], "level", level_text(durable.level).to_owned());
        add(&["durable"], "sync", sync_text(durable.sync));
    }
    for stage in &flow.stages {
        for (key, value) in stage_settings(&stage.settings) {
            add(&["stage", &stage.name], key, value);
        }
    }
    all
}

struct Origins<'a> {
    source: &'a str,
    table: &'a DeTable<'a>,
}

impl Origins<'_> {
    /// The line of a key, if the file has it.
    fn line(&self, path: &[&str]) -> Option<usize> {
        let (last, tables) = path.split_last()?;
        let mut table = self.table;
        for key in tables {
            let DeValue::Table(inner) = table.get(*key)?.get_ref() else {
                return None;
            };
            table = inner;
        }
        let (key, _) = table.get_key_value(*last)?;
        let before = self.source.as_bytes().get(..key.span().start)?;
        Some(1 + before.iter().filter(|byte| **byte == b'\n').count())
    }
}

fn stage_settings(settings: &StageSettings) -> [(&'static str, String); 9] {
    let expiry = settings.expiry.map_or_else(|| "never".to_owned(), duration_text);
    [
        ("capacity", settings.capacity.to_string()),
        ("permits", settings.permits.to_string()),
        ("batch", settings.batch.to_string()),
        ("on-full", on_full_text(settings.on_full)),
        ("retry", retry_text(settings.attempts, settings.retry)),
        ("dead-letter", settings.dead_letter.clone().unwrap_or_else(|| "none".to_owned())),
        ("hop-timeout", duration_text(settings.hop_timeout)),
        ("expiry", expiry),
        ("emits", settings.emits.to_string()),
    ]
}

fn level_text(level: Level) -> &'static str {
    match level {
        Level::ExactlyOnce => "exactly-once",
        Level::AtLeastOnce => "at-least-once",
        _ => "at-most-once",
    }
}

fn sync_text(sync: Sync) -> String {
    match sync {
        Sync::Each => "each".to_owned(),
        Sync::Within(time) => duration_text(time),
        _ => "os".to_owned(),
    }
}

fn duration_text(duration: Duration) -> String {
    format!("{duration:?}")
}

fn on_full_text(on_full: OnFull) -> String {
    match on_full {
        OnFull::Reject => "reject".to_owned(),
        OnFull::DropNewest => "drop-newest".to_owned(),
        OnFull::DropOldest => "drop-oldest".to_owned(),
        OnFull::Block(wait) => format!("block {}", duration_text(wait)),
        other => format!("{other:?}"),
    }
}

fn retry_text(attempts: u16, retry: Retry) -> String {
    let attempts =
        if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
    match retry {
        Retry::Delayed { first, max, jitter } => {
            let (first, max) = (duration_text(first), duration_text(max));
            format!("{attempts}, {first}..{max}, jitter {jitter}")
        }
        _ => attempts,
    }
}

fn idle_text(idle: Idle) -> &'static str {
    match idle {
        Idle::Park => "park",
        Idle::Yield => "yield",
        _ => "spin",
    }
}

fn pin_text(pin: &Pin) -> String {
    match pin {
        Pin::Off => "false".to_owned(),
        Pin::InOrder => "true".to_owned(),
        other => format!("{other:?}"),
    }
}
