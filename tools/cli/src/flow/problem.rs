//! What is wrong with a flow file: each problem with its place and its remedy.
//!
//! Places are byte ranges of the source, which travels with the list so that it can be drawn
//! ([`Problems::write`]) long after the file was read.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A longer text, which quotes a long text of the file, is cut.
const TEXT_CHARS_MAX: usize = 300;

/// A byte range of the source.
pub type Span = Range<usize>;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The flow is not started.
    Error,
    /// The flow is started, and is likely not what its author meant.
    Warning,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where; without it the problem is the whole file's.
    pub span: Option<Span>,
    /// What stands beside the carets.
    pub label: Option<String>,
    /// Other places that matter, and why.
    pub others: Vec<(Span, String)>,
    /// What to do.
    pub help: Vec<String>,
}

impl Problem {
    pub(super) fn error(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::of_file(message) }
    }

    pub(super) fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    pub(super) fn of_file(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: shortened(message.into()),
            span: None,
            label: None,
            others: Vec::new(),
            help: Vec::new(),
        }
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(shortened(label.into()));
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(shortened(help.into()));
        self
    }

    /// Adds the question "did you mean", if there is something to suggest.
    pub(super) fn suggest(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    pub(super) fn also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.others.push((span, shortened(label.into())));
        self
    }
}

/// Everything that is wrong with a flow file, in the order of the file.
#[derive(Debug, Clone)]
pub struct Problems {
    path: PathBuf,
    source: String,
    list: Vec<Problem>,
}

impl Problems {
    pub(super) fn new(path: &Path, source: &str, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| problem.span.as_ref().map_or(0, |span| span.start));
        Self { path: path.to_owned(), source: source.to_owned(), list }
    }

    /// The flow file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text; empty when it could not be read.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The problems, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many are errors.
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    /// How many are warnings.
    pub fn warnings(&self) -> usize {
        self.list.len() - self.errors()
    }

    /// `flow.toml: 2 errors, 1 warning`, or nothing when there are no problems.
    pub fn count(&self) -> Option<String> {
        let counted = |number: usize, what: &str| match number {
            0 => None,
            1 => Some(format!("1 {what}")),
            _ => Some(format!("{number} {what}s")),
        };
        let counts = [counted(self.errors(), "error"), counted(self.warnings(), "warning")];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        (!counts.is_empty()).then(|| format!("{}: {}", self.path.display(), counts.join(", ")))
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::error::Error for Problems {}

fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}
