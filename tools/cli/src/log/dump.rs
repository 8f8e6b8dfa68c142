//! `waystage log dump`: the entries of a log, one line each, as they are read.

use std::io;

use waystage::clock::{Clock as _, SystemClock};
use waystage::log::entry::entries;
use waystage::log::frame::Kind;
use waystage::log::{LogError, Reader, Shown, Start, Stop};

use super::arguments::Dump;
use super::entry::{Line, when};
use super::filter::Mark;
use super::table::{Side, line};
use super::trouble::Subject;
use crate::arguments::Global;
use crate::exit::Exit;
use crate::run::{Console, unless_closed};
use crate::style::STRONG;
use crate::words::{count, harmless, shortened};

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.log-dump/1";

/// The columns; the widths are those of what usually stands there, since lines are printed as they
/// are read.
const COLUMNS: [(&str, usize, Side); 6] = [
    ("SEQUENCE", 10, Side::Right),
    ("TIME", 24, Side::Left),
    ("KIND", 10, Side::Left),
    ("ENVELOPE", 36, Side::Left),
    ("STAGE", 12, Side::Left),
    ("DETAILS", 0, Side::Left),
];
/// Names of stages are cut to this in text.
const STAGE_CHARACTERS_MAX: usize = 32;

/// Prints what is wanted.
///
/// # Errors
/// Standard output took no more.
pub fn command(dump: &Dump, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &dump.log };
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let now = SystemClock::new().wall_ms().saturating_mul(1_000_000);
    let start = dump.from.map_or(Start::Oldest, |from| from.at(now).start());
    let mut printer = Printer { dump, json: global.json, printed: 0, has_begun: false };
    let to = dump.to.map(|to| to.at(now));
    let walked =
        Reader::open(&dump.log, start).map(|reader| walk(reader, to, &mut printer, console));
    match walked.and_then(|walked| walked) {
        Ok(Walked::Done(ended)) => finish(dump, global, &ended, &printer, console),
        Ok(Walked::Unwritten(error)) => unless_closed(Err(error)).map(|()| Exit::Done),
        Err(error) if printer.has_begun => {
            unless_closed(printer.end(console, Some(&error.to_string())))?;
            let subject = Subject { json: false, ..subject };
            subject.fail(&error, console)
        }
        Err(error) => subject.fail(&error, console),
    }
}

/// How a walk ended, besides by an error of the log.
enum Walked {
    Done(Ended),
    /// Standard output took no more.
    Unwritten(io::Error),
}

/// Where a walk ended.
struct Ended {
    /// Why nothing more is shown; `None`: it was not wanted.
    stop: Option<Stop>,
    position: Start,
    durable: u64,
    is_empty: bool,
}

fn walk(
    mut reader: Reader,
    to: Option<Mark>,
    printer: &mut Printer<'_>,
    console: &mut Console<'_>,
) -> Result<Walked, LogError> {
    let mut is_empty = true;
    let stop = loop {
        if printer.is_full() {
            break None;
        }
        let Some(shown) = reader.next()? else { break Some(reader.stop()) };
        is_empty = false;
        let stamp = shown.record.stamp;
        if to.is_some_and(|to| to.is_before(stamp.sequence, stamp.time)) {
            break None;
        }
        if let Err(error) = printer.record(&shown, console) {
            return Ok(Walked::Unwritten(error));
        }
    };
    let (position, durable) = (reader.position(), reader.durable());
    Ok(Walked::Done(Ended { stop, position, durable, is_empty }))
}

fn finish(
    dump: &Dump,
    global: &Global,
    ended: &Ended,
    printer: &Printer<'_>,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    let log = dump.log.display();
    if ended.is_empty && matches!(ended.stop, Some(Stop::End)) && !has_segments(dump) {
        let subject = Subject { schema: SCHEMA, json: global.json, log: &dump.log };
        return subject.fail(&LogError::NoLog(log.to_string()), console);
    }
    unless_closed(printer.end(console, None))?;
    let next = match ended.position {
        Start::Sequence(next) => next,
        _ => 1,
    };
    match ended.stop {
        Some(Stop::Invalid(place)) => {
            let (segment, offset) = (place.segment, count(place.offset));
            let is_damage = next <= ended.durable;
            let name = if is_damage { "error" } else { "note" };
            if is_damage || !global.quiet {
                console.say(&format_args!(
                    "{name}: no record stands in segment {segment} at offset {offset}; \
                     `waystage log verify {log}` says what that is"
                ));
            }
            Ok(if is_damage { Exit::Failed } else { Exit::Done })
        }
        Some(Stop::Unsafe(sequence)) if !global.quiet => {
            console.say(&format_args!(
                "note: records from {sequence} on are there and not known to be durable; opening \
                 the log makes them so"
            ));
            Ok(Exit::Done)
        }
        _ => Ok(Exit::Done),
    }
}

fn has_segments(dump: &Dump) -> bool {
    waystage::log::outline(&dump.log).is_ok_and(|outline| !outline.segments.is_empty())
}

/// Prints lines as they come.
struct Printer<'a> {
    dump: &'a Dump,
    json: bool,
    printed: u64,
    /// Whether the header, or the beginning of the document, is printed.
    has_begun: bool,
}

impl Printer<'_> {
    fn is_full(&self) -> bool {
        self.dump.limit.is_some_and(|limit| self.printed >= limit)
    }

    fn record(&mut self, shown: &Shown<'_>, console: &mut Console<'_>) -> io::Result<()> {
        let sequence = shown.record.stamp.sequence;
        if shown.record.stamp.kind != Kind::Entries {
            return self.line(&Line::record(shown), shown, console);
        }
        let body = shown.record.body();
        for (index, entry) in (0..).zip(entries(&body)) {
            match entry {
                Ok(entry) => self.line(&Line::entry(sequence, index, &entry), shown, console)?,
                Err(error) => self.line(&Line::other(sequence, &body, &error), shown, console)?,
            }
        }
        Ok(())
    }

    fn line(
        &mut self,
        found: &Line<'_>,
        shown: &Shown<'_>,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        let is_kind = self.dump.kind.as_ref().is_none_or(|kinds| kinds.has(found.kind));
        let is_id = self.dump.id.is_none_or(|id| found.id == id);
        if !is_kind || !is_id || self.is_full() {
            return Ok(());
        }
        let is_first = self.printed == 0;
        self.begin(console)?;
        self.printed += 1;
        if self.json {
            let comma = if is_first { "" } else { "," };
            write!(console.data, "{comma}\n    {}", found.json(shown, self.dump.payload))
        } else {
            self.text(found, shown, console)
        }
    }

    fn text(
        &self,
        found: &Line<'_>,
        shown: &Shown<'_>,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        let id = if found.id.is_nil() { "-".to_owned() } else { found.id.to_string() };
        let stage = shortened(found.stage.unwrap_or("-"), STAGE_CHARACTERS_MAX);
        let mut details = found.words();
        if !shown.is_durable {
            details.push_str("  unsafe");
        }
        let cells = [found.number(), when(shown), found.kind.to_owned(), id, stage, details];
        let columns = COLUMNS.map(|(_, width, side)| (width, side));
        writeln!(console.data, "{}", line(&columns, cells.iter().map(String::as_str)))?;
        if let (true, Some(payload)) = (self.dump.payload, found.payload_text()) {
            writeln!(console.data, "{:>10}  {payload}", "")?;
        }
        Ok(())
    }

    /// The header, or the beginning of the document.
    fn begin(&mut self, console: &mut Console<'_>) -> io::Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        if self.json {
            return self.opening(console);
        }
        let columns = COLUMNS.map(|(_, width, side)| (width, side));
        let header = line(&columns, COLUMNS.iter().map(|(title, ..)| *title));
        writeln!(console.data, "{STRONG}{header}{STRONG:#}")
    }

    fn opening(&self, console: &mut Console<'_>) -> io::Result<()> {
        let log = serde_json::Value::from(self.dump.log.display().to_string());
        write!(console.data, "{{\n  \"schema\": \"{SCHEMA}\",\n  \"log\": {log},\n  \"entries\": [")
    }

    /// The end of the document, or of the table.
    fn end(&self, console: &mut Console<'_>, error: Option<&str>) -> io::Result<()> {
        if !self.json {
            if self.is_full() {
                let printed = count(self.printed);
                writeln!(console.data, "{printed} shown (--limit)")?;
            }
            return Ok(());
        }
        if !self.has_begun {
            self.opening(console)?;
        }
        let end = if self.printed == 0 { "]" } else { "\n  ]" };
        let error = serde_json::Value::from(error.map(harmless));
        writeln!(console.data, "{end},\n  \"count\": {},\n  \"stopped\": {error}\n}}", self.printed)
    }
}
