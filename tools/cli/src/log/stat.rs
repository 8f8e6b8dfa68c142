//! `waystage log stat`: a log at a glance.

use std::io;

use serde_json::{Value, json};
use waystage::log::{Outline, SegmentOutline, outline};

use super::arguments::Stat;
use super::condition::{Condition, is_odd};
use super::table::{self, Side};
use super::trouble::{Subject, words};
use super::{bytes, file, json_time, time};
use crate::arguments::Global;
use crate::exit::Exit;
use crate::run::{Console, unless_closed};
use crate::words::count;

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.log-stat/1";

/// Prints what there is.
///
/// # Errors
/// Standard output took no more.
pub fn command(stat: &Stat, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &stat.log };
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let outline = match outline(&stat.log) {
        Ok(outline) => outline,
        Err(error) => return subject.fail(&error, console),
    };
    if outline.segments.is_empty() {
        let error = waystage::log::LogError::NoLog(stat.log.display().to_string());
        return subject.fail(&error, console);
    }
    let is_readable = outline.segments.iter().all(|segment| segment.header.is_ok());
    let condition = match is_readable && is_odd(&outline) {
        true => Condition::of(&stat.log),
        false => Ok(Condition::Whole),
    };
    let condition = match condition {
        Ok(condition) => condition,
        Err(error) => return subject.fail(&error, console),
    };
    if global.json {
        unless_closed(console.document(&document(&outline, &condition, stat)))?;
    } else {
        unless_closed(text(&outline, stat, console))?;
    }
    let wrong = outline.segments.iter().filter_map(|segment| segment.header.as_ref().err());
    let mut exit = Exit::Done;
    for error in wrong {
        console.say(&format_args!("error: {}", words(error)));
        exit = Exit::Failed;
    }
    match &condition {
        Condition::Whole => {}
        Condition::Torn(_) if global.quiet => {}
        Condition::Torn(tail) => console.say(&format_args!("note: {tail}")),
        Condition::Damaged(damage) => {
            console.say(&format_args!("error: {damage}"));
            exit = Exit::Failed;
        }
    }
    if exit != Exit::Done || condition != Condition::Whole && !global.quiet {
        let log = stat.log.display();
        console.say(&format_args!("help: waystage log verify {log} says what is wrong"));
    }
    Ok(exit)
}

fn text(outline: &Outline, stat: &Stat, console: &mut Console<'_>) -> io::Result<()> {
    let segments = &outline.segments;
    let total: u64 = segments.iter().map(size).sum();
    let (first, last) = (segments[0].number, segments[segments.len() - 1].number);
    let mut lines = vec![
        ("log", stat.log.display().to_string()),
        (
            "segments",
            format!("{first}..{last}   {}, {}", count(segments.len() as u64), bytes(total)),
        ),
    ];
    let begin = segments.iter().find_map(|segment| segment.first);
    lines.push((
        "records",
        match (begin, outline.last) {
            (Some((first, begin)), Some((last, end))) => {
                format!("{first}..{last}   {} to {}", time(begin), time(end))
            }
            _ => "none".to_owned(),
        },
    ));
    let end = outline.end;
    lines.push(("end", format!("segment {}, offset {}", end.segment, count(end.offset))));
    if outline.is_cut_short {
        lines.push(("", "no record stands there, though something does".to_owned()));
    }
    lines.push((
        "durable",
        match outline.durable {
            0 => "nothing is known to be".to_owned(),
            durable => format!("up to {durable}, as far as the log says"),
        },
    ));
    if segments.iter().any(is_os) {
        lines.push(("sync", "os: of some segments nothing is flushed".to_owned()));
    }
    if !outline.others.is_empty() {
        lines.push(("others", format!("{} files that are no segments", outline.others.len())));
    }
    for (name, words) in lines {
        writeln!(console.data, "{name:<10}{words}")?;
    }
    if stat.segments {
        writeln!(console.data)?;
        table_of(outline, console)?;
    }
    Ok(())
}

fn table_of(outline: &Outline, console: &mut Console<'_>) -> io::Result<()> {
    let header = [
        ("SEGMENT", Side::Right),
        ("BYTES", Side::Right),
        ("FIRST", Side::Right),
        ("RECORDS", Side::Right),
        ("TIME", Side::Left),
        ("SYNC", Side::Left),
    ];
    let none = || "-".to_owned();
    let rows: Vec<_> = outline
        .segments
        .iter()
        .enumerate()
        .map(|(index, segment)| {
            let first = segment.first;
            vec![
                segment.number.to_string(),
                if segment.header.is_ok() { count(size(segment)) } else { none() },
                first.map_or_else(none, |(sequence, _)| sequence.to_string()),
                records(outline, index).map_or_else(none, count),
                first.map_or_else(none, |(_, begin)| time(begin)),
                match &segment.header {
                    Ok(header) => if header.is_os { "os" } else { "flushed" }.to_owned(),
                    Err(_) => "unreadable".to_owned(),
                },
            ]
        })
        .collect();
    table::print(&header, &rows, console.data)
}

/// How many records a segment holds, as far as its neighbour says so.
fn records(outline: &Outline, index: usize) -> Option<u64> {
    let first = outline.segments[index].first?.0;
    let next = outline.segments[index + 1..].iter().find_map(|segment| segment.first);
    let end = next.map(|next| next.0).or_else(|| outline.last.map(|(last, _)| last + 1))?;
    end.checked_sub(first)
}

fn size(segment: &SegmentOutline) -> u64 {
    segment.header.as_ref().map_or(0, |header| header.size)
}

fn is_os(segment: &SegmentOutline) -> bool {
    segment.header.as_ref().is_ok_and(|header| header.is_os)
}

fn document(outline: &Outline, condition: &Condition, stat: &Stat) -> Value {
    let segments = outline.segments.iter().enumerate().map(|(index, segment)| {
        json!({
            "segment": segment.number,
            "file": file(segment.number),
            "bytes": segment.header.as_ref().ok().map(|header| header.size),
            "error": segment.header.as_ref().err().map(words),
            "first": segment.first.map(|first| first.0),
            "records": records(outline, index),
            "time": json_time(segment.first.map(|first| first.1)),
            "flushed": segment.header.as_ref().ok().map(|header| !header.is_os),
        })
    });
    let first = outline.segments.iter().find_map(|segment| segment.first);
    json!({
        "schema": SCHEMA,
        "log": stat.log.display().to_string(),
        "bytes": outline.segments.iter().map(size).sum::<u64>(),
        "first": first.map(|first| first.0),
        "first_time": json_time(first.map(|first| first.1)),
        "last": outline.last.map(|last| last.0),
        "last_time": json_time(outline.last.map(|last| last.1)),
        "durable": outline.durable,
        "end": {"segment": outline.end.segment, "offset": outline.end.offset},
        "cut_short": outline.is_cut_short,
        "damage": condition.damage(),
        "segments": segments.collect::<Vec<_>>(),
        "others": outline.others,
    })
}
