//! What the parser of TOML could not read, without what only follows from it.

use toml::de::Error;

use super::problem::{Problem, Span};
use super::reader::Reader;

/// More syntax errors than this are not looked at.
const ERRORS_MAX: usize = 100;

impl Reader<'_> {
    /// Reports syntax errors, and takes back what may be a consequence of them: what is missing may
    /// stand where the text could not be read, and what else is wrong with a line that could not be
    /// read is guesswork.
    pub(super) fn syntax(&mut self, errors: &[Error]) {
        let mut errors: Vec<&Error> = errors.iter().collect();
        errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
        let mut broken: Vec<Span> = Vec::new();
        let mut first_of_line: Vec<&Error> = Vec::new();
        for error in errors.into_iter().take(ERRORS_MAX) {
            let line = line(self.source, error.span());
            if broken.contains(&line) {
                continue;
            }
            broken.push(line);
            if !first_of_line.last().is_some_and(|last| follows(last, error)) {
                first_of_line.push(error);
            }
        }
        self.problems.retain(|problem| match &problem.span {
            Some(span) => broken.iter().all(|line| span.end < line.start || line.end < span.start),
            None => false,
        });
        for error in first_of_line {
            let span = error.span().unwrap_or(0..0);
            self.report(Problem::error(span, error.message()));
        }
    }
}

/// Whether an error says again what the last one said: after a bracket that is never closed, every
/// line is a wrong element.
fn follows(last: &Error, error: &Error) -> bool {
    let message = error.message();
    last.message() == message && (message.contains("array") || message.contains("inline table"))
}

/// The line that a span begins in.
fn line(source: &str, span: Option<Span>) -> Span {
    let at = span.map_or(0, |span| span.start.min(source.len()));
    let bytes = source.as_bytes();
    let newline = |byte: &u8| *byte == b'\n';
    let start = bytes[..at].iter().rposition(newline).map_or(0, |at| at + 1);
    let end = bytes[at..].iter().position(newline).map_or(bytes.len(), |end| at + end);
    start..end
}
