//! The input's thread: reads records, paces them, skips what was seen, and publishes.
//!
//! A thread of its own: a read of standard input cannot be called off, and is left behind.

mod offer;

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jsonptr::PointerBuf;
use serde_json::Value;
use waystage::clock::Clock;
use waystage::{Envelope, EnvelopeId, Level, Publisher, Slip};

use super::durable;
use super::ending::{End, Halt, await_interrupt};
use super::ledger::{Ledger, Refusal, RefusalKind};
use super::lines::{Line, Lines, is_blank};
use super::locate::id_at;
use super::options::Rate;
use super::output::Output;
use super::parse::{header, is_json, row};
use super::record::{Place, Record};
use super::resume::{Position, checksum};
use super::schedule::Schedule;
use super::sources::Source;
use super::unique::Window;
use crate::flow::model::Format;
use crate::words::count;

/// What is read from an input at a time.
const READ_BYTES: usize = 1 << 18;

/// What the input thread needs.
#[derive(Debug)]
pub struct Feed {
    /// The inputs in order.
    pub sources: Vec<Source>,
    /// How they are cut.
    pub format: Format,
    /// Where a record's id is.
    pub id: Option<PointerBuf>,
    /// The ids seen lately.
    pub window: Option<Window>,
    /// The longest line.
    pub line_bytes_max: u64,
    /// Whether no stage reads rows, so that a wrong one must be refused here.
    pub refuses_wrong_rows: bool,
    /// The schedule.
    pub rate: Option<Rate>,
    /// The most records to send.
    pub limit: Option<u64>,
    /// What is promised of records, where they go into a log.
    pub durable: Option<Level>,
    /// Whether the input waits for room as long as it takes.
    pub waits_for_room: bool,
    /// What is emptied once there is something to write, or nothing will come.
    pub outputs: Vec<Arc<Output>>,
    /// The way into the bus.
    pub publisher: Publisher<Record>,
    /// The itinerary.
    pub slip: Slip,
    /// Where everything is written down.
    pub ledger: Arc<Ledger>,
}

impl Feed {
    /// Sends everything.
    #[must_use]
    pub fn run(mut self) -> End {
        match self.all() {
            Ok(()) => End::Exhausted,
            Err(Halt::At(end)) => end,
            Err(Halt::Io(what, error)) => End::Failed { what, error },
        }
    }

    fn all(&mut self) -> Result<(), Halt> {
        let mut schedule = Schedule::from(self.ledger.clock.monotonic_ns());
        for source in std::mem::take(&mut self.sources) {
            self.check_stop()?;
            let opened = source.open();
            let reader = opened.map_err(|error| self.failed(&source, error))?;
            let (feed, schedule) = (&mut *self, &mut schedule);
            let inode = feed.durable.and_then(|_| durable::inode(&source));
            let mut input = Input { feed, source: &source, schedule, columns: None, inode };
            input.columns = input.header_before()?;
            input.feed(reader)?;
        }
        self.empty_outputs()
    }

    fn check_stop(&self) -> Result<(), Halt> {
        if self.ledger.is_stopped() { Err(Halt::At(End::Stopped)) } else { Ok(()) }
    }

    /// What an input does after a stop is no failure.
    fn failed(&self, source: &Source, error: io::Error) -> Halt {
        if self.ledger.is_stopped() {
            return Halt::At(End::Stopped);
        }
        Halt::Io(format!("input {}", source.name), error)
    }

    /// Before the first record is sent, or at the end of an input without any: until then the
    /// outputs of an earlier run stay as they are.
    fn empty_outputs(&mut self) -> Result<(), Halt> {
        for output in std::mem::take(&mut self.outputs) {
            output.empty().map_err(|error| Halt::Io(format!("output {}", output.name), error))?;
        }
        Ok(())
    }
}

/// One input being read.
struct Input<'f> {
    feed: &'f mut Feed,
    source: &'f Source,
    schedule: &'f mut Schedule,
    /// The header of CSV, once it was read.
    columns: Option<Arc<[String]>>,
    /// The file, where a run may go on with it.
    inode: Option<u64>,
}

/// Where a record stands in its file.
#[derive(Debug, Clone, Copy)]
struct Span {
    begin: u64,
    end: u64,
    lines: u64,
    after_return: bool,
    cut_short: bool,
}

impl Input<'_> {
    /// The header of a file of CSV whose beginning was read by an earlier run.
    fn header_before(&self) -> Result<Option<Arc<[String]>>, Halt> {
        if self.feed.format != Format::Csv || self.source.position.is_none() {
            return Ok(None);
        }
        let whole = Source { position: None, ..self.source.clone() };
        let reader = whole.open().map_err(|error| self.failed(error))?;
        let mut lines = Lines::new(BufReader::new(reader), self.feed.line_bytes_max);
        loop {
            match lines.next_row().map_err(|error| self.failed(error))? {
                Some((_, Line::Text(text))) if is_blank(&text, Format::Csv) => {}
                Some((_, Line::Text(text))) => {
                    let names = header(&text).map_err(|words| {
                        self.failed(io::Error::new(io::ErrorKind::InvalidData, words))
                    })?;
                    return Ok(Some(names.into()));
                }
                _ => return Ok(None),
            }
        }
    }

    /// Where an input goes on behind a record.
    fn position(&self, text: &str, span: Span) -> Option<Vec<u8>> {
        let Span { begin, end, lines, after_return, cut_short } = span;
        let (inode, checksum) = (self.inode?, checksum(text.as_bytes()));
        let position = Position { inode, begin, end, lines, after_return, cut_short, checksum };
        Some(position.to_bytes())
    }

    fn feed(&mut self, reader: impl Read) -> Result<(), Halt> {
        let buffered = BufReader::with_capacity(READ_BYTES, reader);
        let mut lines = Lines::new(buffered, self.feed.line_bytes_max);
        let start = self.source.position.map_or(0, |position| position.end);
        if let Some(position) = self.source.position {
            lines = lines.after(position.lines, position.after_return);
        }
        let before = self.feed.ledger.bytes.load(Ordering::Relaxed);
        loop {
            self.check_limits()?;
            let begin = start + lines.bytes();
            let next = match self.feed.format {
                Format::Csv => lines.next_row(),
                Format::Ndjson | Format::Lines => lines.next_line(),
            };
            let next = next.map_err(|error| self.failed(error))?;
            self.feed.ledger.bytes.store(before + lines.bytes(), Ordering::Relaxed);
            if next.is_none() || lines.is_cut_short() {
                await_interrupt(self.source, &self.feed.ledger);
            }
            let Some((number, line)) = next else {
                return self.feed.check_stop();
            };
            self.feed.ledger.read.fetch_add(1, Ordering::Relaxed);
            if let Err(halt) = self.feed.check_stop() {
                // A stop came before its end: it is no record.
                self.feed.ledger.unsent.fetch_add(1, Ordering::Relaxed);
                return Err(halt);
            }
            let place = Place { file: Arc::clone(&self.source.name), line: number };
            let (kind, words) = match line {
                Line::Text(text) => {
                    let span = Span {
                        begin,
                        end: start + lines.bytes(),
                        lines: lines.number(),
                        after_return: lines.is_after_return(),
                        cut_short: lines.is_cut_short(),
                    };
                    self.take(text, place, span)?;
                    continue;
                }
                Line::TooLong(bytes) => {
                    let (bytes, max) = (count(bytes), count(self.feed.line_bytes_max));
                    let words =
                        format!("the line has {bytes} bytes, more than the {max} of max-line");
                    (RefusalKind::TooLong, words)
                }
                Line::NotText(byte) => {
                    (RefusalKind::NotText, format!("the line is not UTF-8 at byte {byte}"))
                }
            };
            if self.feed.format == Format::Csv && self.columns.is_none() {
                // Without its header nothing of the file means anything.
                self.feed.ledger.headers.fetch_add(1, Ordering::Relaxed);
                return Err(self.failed(io::Error::new(io::ErrorKind::InvalidData, words)));
            }
            self.refuse(place, kind, words);
        }
    }

    fn failed(&self, error: io::Error) -> Halt {
        self.feed.failed(self.source, error)
    }

    fn check_limits(&self) -> Result<(), Halt> {
        self.feed.check_stop()?;
        let sent = self.feed.ledger.sent.load(Ordering::Relaxed);
        if self.feed.limit.is_some_and(|limit| sent >= limit) {
            return Err(Halt::At(End::Limit));
        }
        Ok(())
    }

    fn refuse(&self, place: Place, kind: RefusalKind, words: String) {
        self.feed.ledger.refuse(Refusal { place, kind, words });
    }

    fn take(&mut self, text: String, place: Place, span: Span) -> Result<(), Halt> {
        if is_blank(&text, self.feed.format) {
            self.feed.ledger.blank.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let position = self.position(&text, span);
        let mut record = Record { text, value: None, read_as: None, columns: None, place };
        if self.feed.format == Format::Csv && !self.read_row(&mut record)? {
            return Ok(());
        }
        let id = self.id_of(&record);
        if self.feed.window.as_ref().is_some_and(|window| window.has(id.0)) {
            self.feed.ledger.skipped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.publish(record, id, position)
    }

    /// Gives a row its value; false for the header, and for what is refused.
    fn read_row(&mut self, record: &mut Record) -> Result<bool, Halt> {
        let Some(columns) = &self.columns else {
            self.feed.ledger.headers.fetch_add(1, Ordering::Relaxed);
            let names = header(&record.text).map_err(|words| {
                let words = format!("line {}: {words}", record.place.line);
                self.failed(io::Error::new(io::ErrorKind::InvalidData, words))
            })?;
            self.columns = Some(names.into());
            return Ok(false);
        };
        record.columns = Some(Arc::clone(columns));
        match row(&record.text, Some(columns)) {
            Ok(value) => (record.value, record.read_as) = (Some(value), Some(Format::Csv)),
            Err(words) if self.feed.refuses_wrong_rows => {
                self.refuse(record.place.clone(), RefusalKind::NotARow, words);
                return Ok(false);
            }
            // The stage that parses says what is wrong.
            Err(_) => {}
        }
        Ok(true)
    }

    /// The id of a record, and its own key if it has one; without one, or with an empty one, file
    /// and line make the id. A number is the same id as a string of its digits.
    fn id_of(&self, record: &Record) -> (EnvelopeId, Option<String>) {
        let own = self.feed.id.as_ref().and_then(|pointer| match &record.value {
            Some(value) => pointer.resolve(value).ok().and_then(Value::as_str).map(str::to_owned),
            // A wrong row, whose columns nobody knows.
            None if self.feed.format == Format::Csv => None,
            None => id_at(&record.text, pointer),
        });
        let own = own.filter(|key| !key.is_empty());
        if let Some(key) = own {
            return (EnvelopeId::from_key(key.as_bytes()), Some(key));
        }
        if self.feed.id.is_some() {
            self.feed.ledger.without_id.fetch_add(1, Ordering::Relaxed);
        }
        (self.source.id_of_place(record.place.line), None)
    }

    fn publish(
        &mut self,
        record: Record,
        (id, key): (EnvelopeId, Option<String>),
        position: Option<Vec<u8>>,
    ) -> Result<(), Halt> {
        self.feed.empty_outputs()?;
        let Feed { slip, ledger, rate, window, durable, .. } = &mut *self.feed;
        // The id of a record that cannot be read must not stand in the way of one that can.
        let is_good =
            window.is_some() && (key.is_none() || record.value.is_some() || is_json(&record.text));
        let due_ns = match rate {
            None => ledger.clock.monotonic_ns(),
            Some(rate) => self.schedule.next(*rate),
        };
        if rate.is_some() {
            if !ledger.wait_until(due_ns) {
                ledger.unsent.fetch_add(1, Ordering::Relaxed);
                return Err(Halt::At(End::Stopped));
            }
            let behind = ledger.clock.monotonic_ns().saturating_sub(due_ns);
            ledger.behind_max_ns.fetch_max(behind, Ordering::Relaxed);
        }
        let place = record.place.clone();
        let mut envelope = Envelope::new(record, slip.clone());
        envelope = match &key {
            // Two records on their way with one id would be one: the place tells them apart.
            Some(_) if *durable == Some(Level::AtLeastOnce) && window.is_none() => {
                envelope.with_id(self.source.id_of_place(place.line))
            }
            Some(key) => envelope.with_key(key),
            None => envelope.with_id(id),
        };
        if let Some(position) = position {
            envelope = envelope.with_position(&self.source.key, &position);
        }
        let teller = Arc::clone(ledger);
        let envelope = envelope.on_settled(move |end, envelope: Option<Envelope<Record>>| {
            teller.tell(due_ns, &end, envelope.as_ref());
        });
        self.offer(envelope, place, is_good.then_some(id))
    }
}
