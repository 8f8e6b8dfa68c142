//! `waystage run`: a flow becomes a bus, its input is fed, and what became of it is reported.
//!
//! 1. Everything that can be wrong is looked at, nothing touched: [`mod@prepare`].
//! 2. One thread reads and publishes ([`feed`]), the bus's workers do the rest, the caller's thread
//!    watches for the end, for Ctrl-C and for the clock ([`watch`]).
//! 3. The books are closed and reported ([`report`]). Standard output gets the table or the JSON
//!    document, standard error everything else.

pub mod account;
pub mod durable;
pub mod ending;
pub mod feed;
pub mod handlers;
pub mod ledger;
pub mod lines;
pub mod locate;
pub mod options;
pub mod output;
pub mod parse;
pub mod payload;
pub mod prepare;
pub mod problem;
pub mod progress;
pub mod record;
pub mod report;
pub mod resume;
pub mod rules;
pub mod schedule;
pub mod signals;
pub mod sources;
pub mod tally;
pub mod unique;
pub mod watch;

use std::io::{self, BufRead, IsTerminal as _, Write};

use serde_json::{Value, json};
use waystage::OnFull;

use crate::exit::Exit;
use crate::flow::{self, Flow, Severity};

use options::Options;
use prepare::{Prepared, prepare};
use report::Report;
use signals::Interrupt;

/// Where a command writes: data apart from everything else.
pub struct Console<'w> {
    /// Standard output: the table, or one JSON document.
    pub data: &'w mut dyn Write,
    /// Standard error: everything else.
    pub talk: &'w mut dyn Write,
}

impl std::fmt::Debug for Console<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl Console<'_> {
    /// Says something on standard error; that it cannot be said is no failure.
    pub fn say(&mut self, line: &dyn std::fmt::Display) {
        let _ = writeln!(self.talk, "{line}");
    }

    /// Asks, and says whether the answer was yes.
    pub fn ask(&mut self, question: &str, answers: &mut dyn BufRead) -> bool {
        let _ = write!(self.talk, "{question} [y/N] ");
        let _ = self.talk.flush();
        let mut answer = String::new();
        let is_read = answers.read_line(&mut answer).is_ok();
        is_read && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    /// Prints a JSON document.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn document(&mut self, document: &Value) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *self.data, document).map_err(io::Error::from)?;
        writeln!(self.data)?;
        self.data.flush()
    }
}

/// The result without the error of a closed pipe: whoever read has seen enough.
///
/// # Errors
/// Any other.
pub fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}

/// Ends a run that cannot start as nothing it was asked for makes sense; `json` prints why as a
/// document too.
///
/// # Errors
/// Standard output took no more.
pub fn usage(json: bool, messages: &[String], console: &mut Console<'_>) -> io::Result<Exit> {
    not_started(Exit::Usage, json, messages, console)
}

fn not_started(
    exit: Exit,
    json: bool,
    messages: &[String],
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    if json {
        let error = json!({"kind": exit.name(), "messages": messages});
        let document = json!({"schema": report::json::SCHEMA, "error": error});
        unless_closed(console.document(&document))?;
    }
    Ok(exit)
}

/// `waystage run`: reads the flow file and runs it.
///
/// # Errors
/// Standard output took no more.
pub fn command(options: &Options, console: &mut Console<'_>) -> io::Result<Exit> {
    let flow = match flow::read(&options.flow_file) {
        Ok((flow, warnings)) => {
            if !options.quiet {
                let _ = warnings.write(console.talk, "the run goes on");
            }
            flow
        }
        Err(problems) => {
            // That it cannot be said is no failure of its own.
            let _ = problems.write(console.talk, "nothing was started");
            let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
            let messages: Vec<_> = errors.map(|problem| problem.message.clone()).collect();
            return usage(options.json, &messages, console);
        }
    };
    let interrupt = match Interrupt::watch() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            console.say(&format_args!("error: signals cannot be watched: {error}"));
            return Ok(Exit::Failed);
        }
    };
    run(&flow, options, &interrupt, console)
}

/// Runs a flow to its end.
///
/// # Errors
/// Standard output took no more.
pub fn run(
    flow: &Flow,
    options: &Options,
    interrupt: &Interrupt,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    let mut ask = |question: &str| {
        let can_answer = io::stdin().is_terminal() && io::stderr().is_terminal();
        can_answer && console.ask(question, &mut io::stdin().lock())
    };
    let prepared = match prepare(flow, options, &mut ask) {
        Ok(prepared) => prepared,
        Err(problems) => {
            for problem in &problems {
                console.say(problem);
            }
            let flow = options.flow_file.display();
            console.say(&format_args!(
                "{flow}: {}; nothing was started",
                match problems.len() {
                    1 => "1 error".to_owned(),
                    count => format!("{count} errors"),
                }
            ));
            let has_failed = problems.iter().any(|problem| problem.is_failure);
            let exit = if has_failed { Exit::Failed } else { Exit::Usage };
            let messages: Vec<_> = problems.into_iter().map(|problem| problem.what).collect();
            return not_started(exit, options.json, &messages, console);
        }
    };
    describe(flow, options, &prepared, console);
    let watched = watch::watch(prepared, options, interrupt, console);
    let report = Report::new(flow, options, watched);
    report.print(options, console)?;
    Ok(report.exit)
}

/// Says what the run is made of, when that is wanted; and that a terminal is waited for.
fn describe(flow: &Flow, options: &Options, prepared: &Prepared, console: &mut Console<'_>) {
    let reads_input = prepared.feed.sources.iter().any(|source| source.path.is_none());
    if reads_input && !options.quiet && io::stdin().is_terminal() {
        console.say(&"reading from this terminal: Ctrl-D ends the input, Ctrl-C the run");
    }
    if prepared.recovered > 0 && !options.quiet {
        let number = crate::words::count(prepared.recovered);
        console.say(&format_args!("going on: {number} records of an earlier run are taken up"));
    }
    if !options.verbose {
        return;
    }
    for source in &prepared.feed.sources {
        let bytes = source
            .bytes
            .map_or_else(String::new, |bytes| format!(" ({} bytes)", crate::words::count(bytes)));
        console.say(&format_args!("input {}{bytes}", source.key));
    }
    let (workers, idle) = (prepared.bus.workers(), flow.bus.idle);
    console.say(&format_args!("bus: workers {workers}, idle {idle:?}, pin {:?}", flow.bus.pin));
    for stage in flow.opened() {
        let settings = &stage.settings;
        console.say(&format_args!(
            "stage {}: permits {}, capacity {}, batch {}, attempts {}, on-full {}",
            stage.name,
            settings.permits,
            settings.capacity,
            settings.batch,
            settings.attempts,
            on_full(settings.on_full)
        ));
    }
    for (stage, output) in &prepared.kept.outputs {
        console.say(&format_args!("output of {stage}: {}", output.path().display()));
    }
}

/// A policy as the flow file has it.
fn on_full(policy: OnFull) -> String {
    match policy {
        OnFull::Reject => "reject".to_owned(),
        OnFull::DropNewest => "drop-newest".to_owned(),
        OnFull::DropOldest => "drop-oldest".to_owned(),
        OnFull::Block(limit) => format!("block {}", crate::words::time(limit)),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Console;

    #[test]
    fn only_yes_is_yes() {
        for (answer, want) in
            [("y\n", true), ("Yes", true), ("", false), ("n\n", false), ("yy", false)]
        {
            let (mut data, mut talk) = (Vec::new(), Vec::new());
            let mut console = Console { data: &mut data, talk: &mut talk };
            assert_eq!(console.ask("Purge 3?", &mut answer.as_bytes()), want, "{answer:?}");
            assert_eq!(talk, b"Purge 3? [y/N] ");
            assert!(data.is_empty());
        }
    }
}
