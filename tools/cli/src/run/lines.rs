//! Cuts an input into lines without ever holding more of one than is allowed.

use std::io::{self, BufRead, Read as _};

/// What is skipped of a refused line at a time.
const SKIP_BYTES: u64 = 1 << 16;

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
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `reader`, none longer than this many bytes.
    pub fn new(reader: R, line_bytes_max: u64) -> Self {
        Self { reader, line_bytes_max, number: 0, bytes: 0, buffer: Vec::new() }
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
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
        if self.number == 1 && self.buffer.starts_with(b"\xEF\xBB\xBF") {
            self.buffer.drain(..3);
        }
        let line = match std::str::from_utf8(&self.buffer) {
            Ok(text) => Line::Text(text.to_owned()),
            Err(error) => Line::NotText(error.valid_up_to() + 1),
        };
        Ok(Some((self.number, line)))
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
                return Ok(skipped + read - 1);
            }
            skipped += read;
            if read == 0 {
                return Ok(skipped);
            }
        }
    }

    /// The next row of CSV: lines are joined while a quote is open. Its number is its first line's.
    ///
    /// # Errors
    /// What the reader says.
    pub fn next_row(&mut self) -> io::Result<Option<(u64, Line)>> {
        let (number, mut row) = match self.next_line()? {
            Some((number, Line::Text(row))) => (number, row),
            other => return Ok(other),
        };
        while has_open_quote(&row) {
            match self.next_line()? {
                Some((_, Line::Text(more))) => {
                    row.push('\n');
                    row.push_str(&more);
                    let length = row.len() as u64;
                    if length > self.line_bytes_max {
                        return Ok(Some((number, Line::TooLong(length))));
                    }
                }
                Some((_, wrong)) => return Ok(Some((number, wrong))),
                None => break,
            }
        }
        Ok(Some((number, Line::Text(row))))
    }
}

fn has_open_quote(row: &str) -> bool {
    row.bytes().filter(|byte| *byte == b'"').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::{Line, Lines};

    fn text(text: &str) -> Line {
        Line::Text(text.to_owned())
    }

    fn all(input: &[u8], line_bytes_max: u64) -> Vec<Line> {
        let mut lines = Lines::new(input, line_bytes_max);
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next_line().unwrap() {
            all.push(line);
            assert_eq!(number, all.len() as u64);
        }
        assert_eq!(lines.bytes(), input.len() as u64);
        all
    }

    #[test]
    fn line_ends_of_all_kinds() {
        assert_eq!(all(b"a\nb\r\n\nc", 9), [text("a"), text("b"), text(""), text("c")]);
        assert_eq!(all(b"\xEF\xBB\xBFa\n", 9), [text("a")]);
        assert_eq!(all(b"", 9), []);
    }

    #[test]
    fn the_bound_is_exact_and_sizes_are_told() {
        assert_eq!(
            all(b"1234\n12345\n123456\n1", 5),
            [text("1234"), text("12345"), Line::TooLong(6), text("1")]
        );
        assert_eq!(all(b"12345\r\n1234567", 5), [text("12345"), Line::TooLong(7)]);
        let mut long = vec![b'x'; 1_000_000];
        long.extend_from_slice(b"\nshort\n");
        assert_eq!(all(&long, 10), [Line::TooLong(1_000_000), text("short")]);
    }

    #[test]
    fn wrong_bytes_are_told_by_place() {
        assert_eq!(all(b"ab\xFFc\nok\n", 9), [Line::NotText(3), text("ok")]);
    }

    #[test]
    fn rows_go_on_while_a_quote_is_open() {
        let mut lines = Lines::new(&b"a,\"b\n\"\"c\"\"\",d\ne\n\"open"[..], 20);
        assert_eq!(lines.next_row().unwrap(), Some((1, text("a,\"b\n\"\"c\"\"\",d"))));
        assert_eq!(lines.next_row().unwrap(), Some((3, text("e"))));
        assert_eq!(lines.next_row().unwrap(), Some((4, text("\"open"))));
        assert_eq!(lines.next_row().unwrap(), None);
    }
}
