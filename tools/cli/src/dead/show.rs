//! `waystage dead show`: one dead letter, a field a line, or its body alone.

use std::io;

use serde_json::Value;
use waystage::log::entry::{DurableLevel, EntryNumber};
use waystage::log::letters::{Content, Letters};
use waystage::log::state::Letter;

use super::arguments::Show;
use super::choose::{ambiguous, find, unknown, written};
use super::{ago, list, now_ms};
use crate::arguments::Global;
use crate::exit::Exit;
use crate::log::entry::hex;
use crate::log::time;
use crate::log::trouble::Subject;
use crate::run::{Console, unless_closed};
use crate::words::{count, harmless};

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.dead-show/1";

/// Prints it.
///
/// # Errors
/// Standard output took no more.
pub fn command(show: &Show, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &show.log };
    if show.body && global.json {
        let help = "say one of them: --json has the body too";
        return subject.end(Exit::Usage, "--body is no JSON document", help, console);
    }
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let letters = match Letters::look(&show.log) {
        Ok(letters) => letters,
        Err(error) => return subject.fail(&error, console),
    };
    let number = match &find(&letters, &show.letter)[..] {
        [number] => *number,
        [] => return subject.problem(&unknown(&show.letter, &subject), console),
        several => return subject.problem(&ambiguous(&show.letter, several), console),
    };
    let content = match letters.content(number) {
        Ok(content) => content,
        Err(error) => return subject.fail(&error, console),
    };
    let Some(letter) = letters.letter(number) else { return Ok(Exit::Failed) };
    if show.body {
        unless_closed(console.data.write_all(&content.payload))?;
    } else if global.json {
        unless_closed(console.document(&document(&letters, number, letter, &content)))?;
    } else {
        unless_closed(text(number, letter, &content, console))?;
    }
    Ok(Exit::Done)
}

fn text(
    number: EntryNumber,
    letter: &Letter,
    content: &Content,
    console: &mut Console<'_>,
) -> io::Result<()> {
    let when = time(letter.at_ms.saturating_mul(1_000_000));
    let join = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| harmless(name)).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(" > ") }
    };
    let mut lines = vec![
        ("letter", written(number)),
        ("envelope", letter.id.to_string()),
        ("died", format!("{when}   {} ago", ago(letter.at_ms, now_ms()))),
        ("cause", letter.cause.name().to_owned()),
        ("reason", if letter.reason.is_empty() { "-".into() } else { harmless(&letter.reason) }),
        ("stage", harmless(&letter.held.stage)),
        ("attempts", count(letter.held.attempts)),
        ("redrives", count(letter.held.redrives)),
        ("hops", count(letter.held.hops)),
        ("trail", join(&content.trail)),
        ("next", join(&content.remaining)),
        ("level", level(letter).to_owned()),
    ];
    if let Some(expires) = content.expires_at_ms {
        lines.push(("deadline", time(expires.saturating_mul(1_000_000))));
    }
    for (name, value) in content.headers.iter() {
        let value = value_text(value.as_bytes());
        lines.push(("header", format!("{}: {value}", harmless(name))));
    }
    let kind = content.content_type.as_deref().map_or_else(|| "-".to_owned(), harmless);
    lines.push(("body", format!("{} bytes, {kind}", count(content.payload.len() as u64))));
    for (name, words) in lines {
        writeln!(console.data, "{name:<10}{words}")?;
    }
    writeln!(console.data, "{}", value_text(&content.payload))
}

/// Bytes as a terminal may show them.
fn value_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => harmless(text),
        Err(_) => format!("hex {}", hex(bytes)),
    }
}

fn level(letter: &Letter) -> &'static str {
    match letter.held.level {
        DurableLevel::AtLeastOnce => "at-least-once",
        DurableLevel::ExactlyOnce => "exactly-once",
    }
}

fn document(letters: &Letters, number: EntryNumber, letter: &Letter, content: &Content) -> Value {
    let mut document = serde_json::Map::new();
    document.insert("schema".into(), SCHEMA.into());
    if let Value::Object(fields) = list::json(letters, number, content) {
        document.extend(fields);
    }
    document.insert("level".into(), level(letter).into());
    let expires = content.expires_at_ms.map_or(Value::Null, super::json_ms);
    document.insert("expires".into(), expires);
    let headers = content.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_owned(), Value::from(value))
    });
    document.insert("headers".into(), Value::Object(headers.collect()));
    document.insert("content_type".into(), content.content_type.clone().into());
    match std::str::from_utf8(&content.payload) {
        Ok(text) => document.insert("payload".into(), text.into()),
        Err(_) => document.insert("payload_hex".into(), hex(&content.payload).into()),
    };
    Value::Object(document)
}
