//! Cuts an input into lines without ever holding more of one than is allowed.

use std::io::{self, BufRead, Read as _};

use crate::flow::model::Format;

/// What is skipped of a refused line at a time.
const SKIP_BYTES: u64 = 1 << 16;

/// The byte order mark, which is no text.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Its text, without the line end.
    Text(String),
    /// It is longer than allowed: this many bytes.
    TooLong(u64),
    /// It is not UTF-8: the first wrong byte's place in the line, from one.
    NotText(usize),
}

/// The lines of an input.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    line_bytes_max: u64,
    /// Lines read so far.
    number: u64,
    bytes: u64,
    /// Whether the last byte of a row was `\r`: a `\n` after it ends no other line.
    after_return: bool,
    /// Whether the input ended within the last line.
    is_cut_short: bool,
    buffer: Vec<u8>,
}

/// Where in a row of CSV one is. The rules are the parser's: a quote opens only at the start of a
/// field, two inside quotes are one, and what follows a closing quote is taken as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    /// At the start of a field.
    Start,
    /// In a field without quotes, or behind its quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// After a quote between quotes: the closing one, or the first of two.
    Closing,
}

impl Quoting {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Closing,
            (Self::Quoted, _) | (Self::Start | Self::Closing, b'"') => Self::Quoted,
            (_, b',' | b'\r' | b'\n') => Self::Start,
            _ => Self::Plain,
        }
    }
}

/// Whether a quote of this row of CSV is never closed.
#[must_use]
pub fn is_open(row: &str) -> bool {
    row.contains('"') && row.bytes().fold(Quoting::Start, Quoting::after) == Quoting::Quoted
}

/// Whether a line holds no record: white space where JSON is expected, nothing at all between two
/// rows of CSV (a blank is a field there). Where lines are records, every line is one.
#[must_use]
pub fn is_blank(text: &str, format: Format) -> bool {
    match format {
        Format::Ndjson => text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')),
        Format::Csv => text.is_empty(),
        Format::Lines => false,
    }
}

/// Whether a byte at this place of an input belongs to a byte order mark.
fn is_of_mark(at: u64, byte: u8) -> bool {
    usize::try_from(at).ok().and_then(|at| MARK.get(at)) == Some(&byte)
}

impl<R: BufRead> Lines<R> {
    /// The lines of `reader`, none longer than this many bytes.
    pub fn new(reader: R, line_bytes_max: u64) -> Self {
        Self {
            reader,
            line_bytes_max,
            number: 0,
            bytes: 0,
            after_return: false,
            is_cut_short: false,
            buffer: Vec::new(),
        }
    }

    /// The same behind what was read before: `number` lines, the last byte of which was a `\r` or
    /// not.
    #[must_use]
    pub fn after(mut self, number: u64, after_return: bool) -> Self {
        (self.number, self.after_return) = (number, after_return);
        self
    }

    /// Lines read so far, those before included.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last byte of a row was `\r`: a `\n` after it ends no other line.
    pub fn is_after_return(&self) -> bool {
        self.after_return
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the last line has no line end.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// The next line and its number, from one.
    ///
    /// # Errors
    /// What the reader says.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, Line)>> {
        self.buffer.clear();
        // Room for the longest line and its end of two bytes.
        let room = self.line_bytes_max.saturating_add(2);
        let read = (&mut self.reader).take(room).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.bytes += read as u64;
        self.number += 1;
        let ended = self.buffer.last() == Some(&b'\n');
        self.is_cut_short = !ended;
        if ended {
            self.buffer.pop();
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        let mut length = self.buffer.len() as u64;
        if length > self.line_bytes_max {
            if !ended {
                length = read as u64 + self.skip()?;
            }
            return Ok(Some((self.number, Line::TooLong(length))));
        }
        Ok(Some((self.number, self.line(self.number))))
    }

    /// Skips the rest of a line; returns its bytes without the line end.
    fn skip(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            self.buffer.clear();
            let read =
                (&mut self.reader).take(SKIP_BYTES).read_until(b'\n', &mut self.buffer)? as u64;
            self.bytes += read;
            if self.buffer.last() == Some(&b'\n') {
                self.is_cut_short = false;
                return Ok(skipped + read - 1);
            }
            skipped += read;
            if read == 0 {
                return Ok(skipped);
            }
        }
    }

    /// The next row of CSV and the number of its first line. A row ends at `\n`, `\r` or `\r\n`
    /// outside quotes, and each of these ends a line, inside quotes too.
    ///
    /// A row that is too long or not UTF-8 is wrong as a whole, up to its end.
    ///
    /// # Errors
    /// What the reader says.
    pub fn next_row(&mut self) -> io::Result<Option<(u64, Line)>> {
        self.buffer.clear();
        let number = self.number + 1;
        let kept_max = usize::try_from(self.line_bytes_max).unwrap_or(usize::MAX);
        let mut length = 0_u64;
        let mut quoting = Quoting::Start;
        let mut ended = false;
        while !ended {
            let chunk = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                if length == 0 {
                    return Ok(None);
                }
                self.number += 1;
                self.is_cut_short = true;
                break;
            }
            // The rest of an end of two bytes, when the row before ended at the first.
            let begin = usize::from(length == 0 && self.after_return && chunk[0] == b'\n');
            self.after_return &= begin == 0;
            let mut kept = 0;
            for byte in &chunk[begin..] {
                let is_rest = *byte == b'\n' && self.after_return;
                let is_end = matches!(byte, b'\r' | b'\n');
                self.number += u64::from(is_end && !is_rest);
                self.after_return = *byte == b'\r';
                ended = is_end && quoting != Quoting::Quoted;
                if ended {
                    break;
                }
                if number > 1 || !is_of_mark(length + kept as u64, *byte) {
                    quoting = quoting.after(*byte);
                }
                kept += 1;
            }
            let row = &chunk[begin..begin + kept];
            let room = kept_max.saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&row[..kept.min(room)]);
            length += kept as u64;
            let used = begin + kept + usize::from(ended);
            self.reader.consume(used);
            self.bytes += used as u64;
        }
        if length > self.line_bytes_max {
            return Ok(Some((number, Line::TooLong(length))));
        }
        Ok(Some((number, self.line(number))))
    }

    /// What was read, as a line.
    fn line(&mut self, number: u64) -> Line {
        if number == 1 && self.buffer.starts_with(MARK) {
            self.buffer.drain(..MARK.len());
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => Line::Text(text.to_owned()),
            Err(error) => Line::NotText(error.valid_up_to() + 1),
        }
    }
}

#[cfg(test)]
mod tests;
