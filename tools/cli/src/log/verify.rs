//! `waystage log verify`: the tick list of a log, and each damage by its place.

use std::io;

use serde_json::{Value, json};
use waystage::log::LogError;
use waystage::log::state::State;
use waystage::log::verify::{Depth, Finding, Verified, verify};

use super::arguments::Verify;
use super::trouble::Subject;
use super::{bytes, json_time};
use crate::arguments::Global;
use crate::exit::Exit;
use crate::run::{Console, unless_closed};
use crate::style::{BAD, STRONG, WARNING};
use crate::words::{count, harmless};

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.log-verify/1";

/// Looks at everything.
///
/// # Errors
/// Standard output took no more.
pub fn command(arguments: &Verify, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &arguments.log };
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let depth = if arguments.deep { Depth::All } else { Depth::Entries };
    let verified = match verify(&arguments.log, depth) {
        Ok(verified) => verified,
        Err(error) => return subject.fail(&error, console),
    };
    if verified.segments.is_empty() {
        let error = LogError::NoLog(arguments.log.display().to_string());
        return subject.fail(&error, console);
    }
    if global.json {
        unless_closed(console.document(&document(&verified, arguments)))?;
    } else {
        unless_closed(text(&verified, arguments, console))?;
    }
    Ok(if verified.is_damaged() { Exit::Failed } else { Exit::Done })
}

fn text(verified: &Verified, arguments: &Verify, console: &mut Console<'_>) -> io::Result<()> {
    let (first, last) = ends(verified);
    let missing = last - first + 1 - verified.segments.len() as u64;
    let missing =
        if missing == 0 { "none missing".to_owned() } else { format!("{missing} missing") };
    tick(
        console,
        &format!("segments {first}..{last}"),
        &format!("{}, {missing}", sizes(verified)),
    )?;
    let records: u64 = verified.segments.iter().map(|segment| segment.records).sum();
    let words = format!("{} valid, durable up to {}", count(records), count(verified.watermark));
    tick(console, "records", &words)?;
    if let Some(checkpoint) = verified.checkpoint {
        let words = format!("of the state at record {}", count(checkpoint.end.at));
        tick(console, "checkpoint", &words)?;
    }
    if let Some(state) = &verified.state {
        tick(console, "entries", &said(state))?;
    }
    if arguments.deep && verified.state.is_some() {
        let words = format!("{} say what the entries say", count(verified.compared as u64));
        tick(console, "checkpoints", &words)?;
    }
    for finding in &verified.findings {
        tell(finding, verified, console)?;
    }
    if verified.is_damaged() {
        let log = arguments.log.display();
        writeln!(console.data, "{STRONG}help{STRONG:#}: waystage log salvage {log} --to DIR")?;
    }
    Ok(())
}

/// What is true after all records, in words.
fn said(state: &State) -> String {
    let (open, letters) = (state.open_len() as u64, state.letters().len() as u64);
    let counts = state.counts();
    format!(
        "{} open, {} dead letters; {} accepted, {} completed",
        count(open),
        count(letters),
        count(counts.accepted),
        count(counts.completed)
    )
}

fn tick(console: &mut Console<'_>, what: &str, found: &str) -> io::Result<()> {
    writeln!(console.data, "\u{2713} {what:<24} {found}")
}

fn tell(finding: &Finding, verified: &Verified, console: &mut Console<'_>) -> io::Result<()> {
    let (style, sign) = if finding.is_torn { (WARNING, '!') } else { (BAD, '\u{2717}') };
    let place = finding.location;
    let sequence = match finding.sequence {
        0 => String::new(),
        sequence => format!(" (sequence {})", count(sequence)),
    };
    writeln!(
        console.data,
        "{style}{sign}{style:#} segment {}, offset {}{sequence}: {}",
        place.segment,
        count(place.offset),
        finding.kind()
    )?;
    writeln!(console.data, "  {}", harmless(&finding.what.to_string()))?;
    let is_above = finding.sequence > verified.watermark;
    let verdict = match () {
        () if finding.is_torn => {
            "above the durable watermark: a torn tail, which opening the log cuts"
        }
        () if !finding.is_needed => "damage, before everything that opening the log needs",
        () if finding.kind() == "record_content" || finding.kind().starts_with("checkpoint") => {
            "every byte is as it was written: a faulty program wrote it"
        }
        () if finding.kind().starts_with("segment") => "this is damage",
        () if is_above => {
            "above the durable watermark, but nothing proves a torn tail: this is damage"
        }
        () => "at or below the durable watermark: this is damage, not a torn tail",
    };
    writeln!(console.data, "  {verdict}")
}

/// The numbers of the first and last segment.
fn ends(verified: &Verified) -> (u64, u64) {
    let segments = &verified.segments;
    (segments[0].number, segments[segments.len() - 1].number)
}

/// `7 x 64 MiB`, or all their bytes where they differ.
fn sizes(verified: &Verified) -> String {
    let segments = &verified.segments;
    let size = segments[0].bytes;
    if segments.iter().all(|segment| segment.bytes == size) {
        return format!("{} \u{d7} {}", count(segments.len() as u64), bytes(size));
    }
    let total = segments.iter().map(|segment| segment.bytes).sum();
    format!("{}, {}", count(segments.len() as u64), bytes(total))
}

fn document(verified: &Verified, arguments: &Verify) -> Value {
    let segments = verified.segments.iter().map(|segment| {
        json!({
            "segment": segment.number,
            "file": super::file(segment.number),
            "bytes": segment.bytes,
            "used": segment.end,
            "records": segment.records,
            "first": segment.first.map(|first| first.0),
            "first_time": json_time(segment.first.map(|first| first.1)),
            "last": segment.last.map(|last| last.0),
            "last_time": json_time(segment.last.map(|last| last.1)),
            "flushed": segment.header.map(|header| !header.is_os),
            "needed": segment.is_needed,
        })
    });
    let findings = verified.findings.iter().map(|finding| {
        json!({
            "segment": finding.location.segment,
            "file": finding.file(),
            "offset": finding.location.offset,
            "sequence": Some(finding.sequence).filter(|&sequence| sequence > 0),
            "kind": finding.kind(),
            "torn": finding.is_torn,
            "needed": finding.is_needed,
            "message": finding.what.to_string(),
        })
    });
    let state = verified.state.as_ref().map(|state| {
        let counts = state.counts();
        json!({
            "open": state.open_len(),
            "dead_letters": state.letters().len(),
            "settled_ids": state.settled().len(),
            "accepted": counts.accepted,
            "completed": counts.completed,
            "expired": counts.expired,
            "dead": counts.dead,
            "redriven": counts.redriven,
        })
    });
    json!({
        "schema": SCHEMA,
        "log": arguments.log.display().to_string(),
        "deep": arguments.deep,
        "damaged": verified.is_damaged(),
        "durable": verified.watermark,
        "last": verified.last,
        "checkpoint": verified.checkpoint.map(|checkpoint| checkpoint.end.at),
        "checkpoints_compared": verified.compared,
        "segments": segments.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "others": verified.others,
        "state": state,
    })
}
