//! Problems as rustc draws them: message, file and line, the line itself with carets, remedy.
//!
//! The text carries colours only when asked for; writers that strip them (anstream) may always
//! ask.

use std::fmt;
use std::io::{self, Write};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::problem::{Problem, Problems, Severity, Span};

/// More problems than this are counted, not drawn.
const DRAWN_MAX: usize = 50;

impl Problems {
    /// The problems as text, each followed by an empty line; without the closing line.
    pub fn render(&self, colours: bool) -> String {
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for problem in self.iter().take(DRAWN_MAX) {
            text.push_str(&renderer.render(&[self.group(problem)]));
            text.push_str("\n\n");
        }
        let more = self.iter().len().saturating_sub(DRAWN_MAX);
        if more > 0 {
            text.push_str(&format!("and {more} more like these\n\n"));
        }
        text
    }

    /// Writes the problems, coloured, and the closing line with what became of the flow:
    /// `flow.toml: 2 errors, 1 warning; nothing was started`.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&self, out: &mut dyn Write, outcome: &str) -> io::Result<()> {
        let Some(count) = self.count() else {
            return Ok(());
        };
        out.write_all(self.render(true).as_bytes())?;
        writeln!(out, "{count}; {outcome}")
    }

    fn group<'a>(&'a self, problem: &'a Problem) -> Group<'a> {
        let level = match problem.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let path = self.path().display().to_string();
        let mut group = Group::with_title(level.primary_title(&problem.message));
        if let Some(span) = &problem.span {
            let mut primary = AnnotationKind::Primary.span(self.inside(span));
            if let Some(label) = &problem.label {
                primary = primary.label(label);
            }
            let others = problem.others.iter().map(|(span, label)| -> Annotation<'_> {
                AnnotationKind::Context.span(self.inside(span)).label(label)
            });
            let snippet = Snippet::source(self.source()).path(path).annotation(primary);
            group = group.element(snippet.annotations(others));
        } else {
            group = group.element(Origin::path(path));
        }
        group.elements(problem.help.iter().map(|help| Level::HELP.message(help)))
    }

    /// The span, cut to the source and to whole characters.
    fn inside(&self, span: &Span) -> Span {
        let floor = |mut at: usize| {
            at = at.min(self.source().len());
            while !self.source().is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        floor(span.start)..floor(span.end.max(span.start))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(false))?;
        match self.count() {
            Some(count) if self.errors() > 0 => write!(formatter, "{count}; nothing was started"),
            Some(count) => formatter.write_str(&count),
            None => Ok(()),
        }
    }
}
