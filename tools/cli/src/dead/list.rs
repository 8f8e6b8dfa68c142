//! `waystage dead list`: a line for each, or counts by cause and stage.

use std::io;

use serde_json::{Value, json};
use waystage::log::LogError;
use waystage::log::entry::EntryNumber;
use waystage::log::letters::{Content, LetterFilter, Letters, Share};

use super::arguments::List;
use super::choose::written;
use super::{ago, json_ms, now_ms};
use crate::arguments::Global;
use crate::exit::Exit;
use crate::log::table::{self, Side};
use crate::log::trouble::Subject;
use crate::run::{Console, unless_closed};
use crate::words::{count, shortened};

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.dead-list/1";
/// Names of stages are cut to this in text.
const STAGE_CHARACTERS_MAX: usize = 24;
/// Reasons are cut to this in text.
const REASON_CHARACTERS_MAX: usize = 60;

/// Prints them.
///
/// # Errors
/// Standard output took no more.
pub fn command(list: &List, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &list.log };
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let letters = match Letters::look(&list.log) {
        Ok(letters) => letters,
        Err(error) => return subject.fail(&error, console),
    };
    let filter = list.filters.filter();
    if list.count {
        let shares = letters.shares(&filter);
        if global.json {
            unless_closed(console.document(&counts(&shares, list)))?;
        } else {
            unless_closed(histogram(&shares, console))?;
        }
        return Ok(Exit::Done);
    }
    let all = letters.picked(&filter);
    let limit = usize::try_from(list.limit).unwrap_or(usize::MAX);
    let rows = rows(&letters, &all[..all.len().min(limit)]);
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => return subject.fail(&error, console),
    };
    if global.json {
        let rows = rows.iter().map(|(number, content)| json(&letters, *number, content));
        let document = json!({
            "schema": SCHEMA,
            "log": list.log.display().to_string(),
            "letters": rows.collect::<Vec<_>>(),
            "count": all.len(),
        });
        unless_closed(console.document(&document))?;
    } else {
        unless_closed(text(&letters, &rows, (all.len(), &filter), console))?;
    }
    Ok(Exit::Done)
}

/// Letters with what the log has of them.
type Rows = Vec<(EntryNumber, Content)>;

fn rows(letters: &Letters, numbers: &[EntryNumber]) -> Result<Rows, LogError> {
    let row = |&number| letters.content(number).map(|content| (number, content));
    numbers.iter().map(row).collect()
}

fn text(
    letters: &Letters,
    rows: &Rows,
    (all, filter): (usize, &LetterFilter),
    console: &mut Console<'_>,
) -> io::Result<()> {
    if all == 0 {
        return none(letters.state().letters().len(), filter.is_all(), console);
    }
    let header = [
        ("LETTER", Side::Right),
        ("ENVELOPE", Side::Left),
        ("AGO", Side::Right),
        ("CAUSE", Side::Left),
        ("STAGE", Side::Left),
        ("ATTEMPTS", Side::Right),
        ("REDRIVES", Side::Right),
        ("BYTES", Side::Right),
        ("REASON", Side::Left),
    ];
    let now = now_ms();
    let cells = rows.iter().filter_map(|(number, content)| {
        let letter = letters.letter(*number)?;
        Some(vec![
            written(*number),
            letter.id.to_string(),
            ago(letter.at_ms, now),
            letter.cause.name().to_owned(),
            shortened(&letter.held.stage, STAGE_CHARACTERS_MAX),
            count(letter.held.attempts),
            count(letter.held.redrives),
            count(content.payload.len() as u64),
            reason(&letter.reason),
        ])
    });
    table::print(&header, &cells.collect::<Vec<_>>(), console.data)?;
    if rows.len() < all {
        let (shown, all) = (count(rows.len() as u64), count(all as u64));
        writeln!(console.data, "{shown} of {all} shown (--limit)")?;
    }
    Ok(())
}

fn reason(reason: &str) -> String {
    if reason.is_empty() { "-".to_owned() } else { shortened(reason, REASON_CHARACTERS_MAX) }
}

fn none(all: usize, is_all: bool, console: &mut Console<'_>) -> io::Result<()> {
    match all {
        0 => writeln!(console.data, "no dead letters"),
        _ if is_all => Ok(()),
        all => writeln!(console.data, "none of {} dead letters fits", count(all as u64)),
    }
}

fn histogram(shares: &[Share], console: &mut Console<'_>) -> io::Result<()> {
    if shares.is_empty() {
        return writeln!(console.data, "no dead letters");
    }
    let header = [
        ("CAUSE", Side::Left),
        ("STAGE", Side::Left),
        ("COUNT", Side::Right),
        ("OLDEST", Side::Left),
        ("NEWEST", Side::Left),
        ("SAMPLE", Side::Left),
    ];
    let now = now_ms();
    let cells = shares.iter().map(|share| {
        vec![
            share.cause.name().to_owned(),
            shortened(&share.stage, STAGE_CHARACTERS_MAX),
            count(share.count as u64),
            ago(share.oldest_ms, now),
            ago(share.newest_ms, now),
            reason(&share.sample),
        ]
    });
    table::print(&header, &cells.collect::<Vec<_>>(), console.data)
}

fn counts(shares: &[Share], list: &List) -> Value {
    let rows = shares.iter().map(|share| {
        json!({
            "cause": share.cause.name(),
            "stage": &*share.stage,
            "count": share.count,
            "oldest": json_ms(share.oldest_ms),
            "newest": json_ms(share.newest_ms),
            "sample": &*share.sample,
        })
    });
    json!({
        "schema": SCHEMA,
        "log": list.log.display().to_string(),
        "shares": rows.collect::<Vec<_>>(),
        "count": shares.iter().map(|share| share.count).sum::<usize>(),
    })
}

/// A letter as a JSON object, without its body.
#[must_use]
pub fn json(letters: &Letters, number: EntryNumber, content: &Content) -> Value {
    let Some(letter) = letters.letter(number) else { return Value::Null };
    json!({
        "letter": written(number),
        "id": letter.id.to_string(),
        "time": json_ms(letter.at_ms),
        "cause": letter.cause.name(),
        "reason": &*letter.reason,
        "stage": &*letter.held.stage,
        "attempts": letter.held.attempts,
        "redrives": letter.held.redrives,
        "hops": letter.held.hops,
        "trail": content.trail,
        "next": content.remaining,
        "bytes": content.payload.len(),
    })
}
