//! `waystage log dump`: the entries of a log, one line each, as they are read.

use std::io;
use std::path::Path;

use serde_json::Value;
use waystage::clock::{Clock as _, SystemClock};
use waystage::log::entry::entries;
use waystage::log::frame::Kind;
use waystage::log::{LogError, Reader, Shown, Start, Stop};

use super::arguments::{Dump, Format};
use super::condition::Condition;
use super::entry::{Line, when};
use super::filter::Mark;
use super::table::{Side, line};
use super::trouble::{Subject, words};
use crate::arguments::Global;
use crate::exit::Exit;
use crate::run::{Console, unless_closed};
use crate::style::STRONG;
use crate::words::{count, harmless, shortened};

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.log-dump/1";
/// That of one line of `--format ndjson`.
const ENTRY_SCHEMA: &str = "waystage.log-entry/1";

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
    let format = dump.format(global.json);
    let subject = Subject { schema: SCHEMA, json: format == Format::Json, log: &dump.log };
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let now = SystemClock::new().wall_ms().saturating_mul(1_000_000);
    let start = dump.from.map_or(Start::Oldest, |from| from.at(now).start());
    let mut printer = Printer { dump, format, printed: 0, has_begun: false };
    let to = dump.to.map(|to| to.at(now));
    let walked =
        Reader::open(&dump.log, start).map(|reader| walk(reader, to, &mut printer, console));
    match walked.and_then(|walked| walked) {
        Ok(Walked::Done(ended)) => finish(subject, global, &ended, &printer, console),
        Ok(Walked::Unwritten(error)) => unless_closed(Err(error)).map(|()| Exit::Done),
        Err(error) if printer.has_begun => broken(subject, &printer, &error, console),
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
    Ok(Walked::Done(Ended { stop, is_empty }))
}

/// Ends what was begun, with an error of the log.
fn broken(
    subject: Subject<'_>,
    printer: &Printer<'_>,
    error: &LogError,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    unless_closed(printer.end(console, Some(&words(error))))?;
    // The document says it already.
    Subject { json: false, ..subject }.fail(error, console)
}

fn finish(
    subject: Subject<'_>,
    global: &Global,
    ended: &Ended,
    printer: &Printer<'_>,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    let log = subject.log.display();
    if ended.is_empty && matches!(ended.stop, Some(Stop::End)) && !has_segments(subject.log) {
        return subject.fail(&LogError::NoLog(log.to_string()), console);
    }
    let condition = match ended.stop {
        None => Ok(Condition::Whole),
        Some(Stop::Invalid(_)) => Condition::of(subject.log),
        Some(_) => Condition::at_the_end(subject.log),
    };
    let condition = match condition {
        Ok(condition) => condition,
        Err(error) => return broken(subject, printer, &error, console),
    };
    unless_closed(printer.end(console, condition.damage()))?;
    let verify = format!("`waystage log verify {log}` says more");
    if let Some(damage) = condition.damage() {
        console.say(&format_args!("error: {damage}; {verify}"));
        return Ok(Exit::Failed);
    }
    if global.quiet {
        return Ok(Exit::Done);
    }
    if let Some(Stop::Unsafe(sequence)) = ended.stop {
        console.say(&format_args!(
            "note: records from {sequence} on are there and not known to be durable; opening the \
             log makes them so"
        ));
    }
    if let Condition::Torn(tail) = condition {
        console.say(&format_args!("note: {tail}; {verify}"));
    }
    Ok(Exit::Done)
}

fn has_segments(log: &Path) -> bool {
    waystage::log::outline(log).is_ok_and(|outline| !outline.segments.is_empty())
}

/// Prints lines as they come.
struct Printer<'a> {
    dump: &'a Dump,
    format: Format,
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
        let object = || found.json(shown, self.dump.payload);
        match self.format {
            Format::Table => self.text(found, shown, console),
            Format::Json => {
                let comma = if is_first { "" } else { "," };
                write!(console.data, "{comma}\n    {}", Value::Object(object()))
            }
            Format::Ndjson => {
                let schema = ("schema".to_owned(), ENTRY_SCHEMA.into());
                let object = std::iter::once(schema).chain(object());
                writeln!(console.data, "{}", Value::Object(object.collect()))
            }
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
        match self.format {
            Format::Table => {}
            Format::Json => return self.opening(console),
            Format::Ndjson => return Ok(()),
        }
        let columns = COLUMNS.map(|(_, width, side)| (width, side));
        let header = line(&columns, COLUMNS.iter().map(|(title, ..)| *title));
        writeln!(console.data, "{STRONG}{header}{STRONG:#}")
    }

    fn opening(&self, console: &mut Console<'_>) -> io::Result<()> {
        let log = Value::from(self.dump.log.display().to_string());
        write!(console.data, "{{\n  \"schema\": \"{SCHEMA}\",\n  \"log\": {log},\n  \"entries\": [")
    }

    /// The end of the document, or of the table.
    fn end(&self, console: &mut Console<'_>, error: Option<&str>) -> io::Result<()> {
        match self.format {
            Format::Table if self.is_full() => {
                let printed = count(self.printed);
                return writeln!(console.data, "{printed} shown (--limit)");
            }
            Format::Table | Format::Ndjson => return Ok(()),
            Format::Json => {}
        }
        if !self.has_begun {
            self.opening(console)?;
        }
        let end = if self.printed == 0 { "]" } else { "\n  ]" };
        let error = Value::from(error.map(harmless));
        writeln!(console.data, "{end},\n  \"count\": {},\n  \"stopped\": {error}\n}}", self.printed)
    }
}
