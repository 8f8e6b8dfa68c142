//! `waystage check`: everything that can be known about a flow before it starts, as a tick list.
//!
//! Files are opened and closed, nothing is created or changed. Problems of the flow file go to
//! the error stream, the tick list is data.

mod destination;
mod files;
mod log;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use waystage::{Bus, BusSettings, Level, StageSettings};

use super::model::Flow;
use super::origins::{self, Origin};
use super::{Problems, read};
use crate::run::record::Record;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Exit code of a flow that can be run.
const FINE: u8 = 0;
/// Exit code when the report could not be written.
const FAILED: u8 = 1;
/// Exit code of a flow that is wrong; nothing was touched.
const WRONG: u8 = 2;

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// The flow file.
    pub path: PathBuf,
    /// Relative output paths start here, not at the flow file's folder.
    pub out: Option<PathBuf>,
    /// The variable that folder came from, if it came from one.
    pub out_variable: Option<String>,
    /// Leave out the files that the flow names.
    pub no_files: bool,
    /// A warning is as bad as an error.
    pub deny_warnings: bool,
    /// Also print every setting and where it comes from.
    pub verbose: bool,
}

/// One line of the tick list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// What was looked at.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What is wrong with it, a line each; empty when all is well.
    pub wrong: Vec<String>,
}

/// What a check found.
#[derive(Debug)]
pub struct Report {
    /// The flow, if the file is right.
    pub flow: Option<Flow>,
    /// What is wrong with or odd about the file.
    pub problems: Problems,
    /// The tick list, as far as it goes.
    pub ticks: Vec<Tick>,
}

impl Report {
    /// Whether the flow can be run.
    pub fn fine(&self, deny_warnings: bool) -> bool {
        let problems =
            if deny_warnings { self.problems.iter().len() } else { self.problems.errors() };
        problems == 0 && self.ticks.iter().all(|tick| tick.wrong.is_empty())
    }
}

/// Checks the flow file and, unless told otherwise, the files it names.
pub fn check(options: &CheckOptions) -> Report {
    let (flow, problems) = match read(&options.path) {
        Ok(read) => read,
        Err(problems) => return Report { flow: None, problems, ticks: Vec::new() },
    };
    let tables = counted(origins::tables(problems.source()), "table");
    let stages = counted(flow.stages.len(), "stage");
    let hops = counted(flow.slip.len(), "hop");
    let mut ticks =
        vec![right("syntax and keys", tables), right("slip", format!("{hops}, {stages}"))];
    ticks.extend(refusal(&flow));
    if !options.no_files {
        ticks.push(files::input(&flow));
        ticks.push(files::outputs(&flow, options));
        ticks.extend(flow.durable.as_ref().map(|durable| log::log(&flow, durable)));
    }
    Report { flow: Some(flow), problems, ticks }
}

/// Checks and prints: the tick list to `out`, problems to `err`, both coloured. Gives the exit
/// code: 0 when the flow can be run, 2 when not.
pub fn run_check(options: &CheckOptions, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let report = check(options);
    let fine = report.fine(options.deny_warnings);
    match print(&report, options, fine, out, err) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => FAILED,
        _ if fine => FINE,
        _ => WRONG,
    }
}

fn print(
    report: &Report,
    options: &CheckOptions,
    fine: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    let denied = options.deny_warnings && report.problems.warnings() > 0;
    let outcome = match report.problems.errors() {
        0 if denied => "warnings are denied",
        0 => "the flow can be run",
        _ => "nothing was started",
    };
    report.problems.write(err, outcome)?;
    for tick in &report.ticks {
        let (mark, style) =
            if tick.wrong.is_empty() { ('\u{2713}', GOOD) } else { ('\u{2717}', BAD) };
        writeln!(out, "{style}{mark}{style:#} {:<24} {}", tick.what, tick.found)?;
        for wrong in &tick.wrong {
            writeln!(out, "    {wrong}")?;
        }
    }
    let Some(flow) = &report.flow else {
        return Ok(());
    };
    if options.verbose {
        settings(flow, report.problems.source(), out)?;
    }
    if fine {
        return writeln!(out, "{GOOD}ok{GOOD:#}");
    }
    writeln!(out, "{BAD}not ok{BAD:#}")
}

/// Every setting, its value and where that comes from.
fn settings(flow: &Flow, source: &str, out: &mut dyn Write) -> io::Result<()> {
    for setting in origins::settings(flow, source) {
        let origin = match setting.origin {
            Origin::Default => "default".to_owned(),
            Origin::Line(line) => format!("line {line}"),
            Origin::Defaults(line) => format!("line {line}, [defaults]"),
        };
        writeln!(out, "  {:<32} {:<24} {origin}", setting.key, setting.value)?;
    }
    Ok(())
}

/// What the bus would refuse, asked of one without threads and with room for nothing: cores that
/// this process may not use, say.
fn refusal(flow: &Flow) -> Option<Tick> {
    let trial = || {
        let bus = Bus::<Record>::start(BusSettings { workers: 0, ..flow.bus.clone() })?;
        for stage in flow.opened() {
            // No log is opened for it either.
            let level = Level::AtMostOnce;
            let settings = StageSettings { capacity: 1, level, saves: 0, ..stage.settings.clone() };
            bus.open_stage(&stage.name, settings, None)?;
        }
        bus.slip(flow.slip.iter().map(String::as_str))
    };
    let error: waystage::BusError = trial().err()?;
    Some(Tick { what: "bus", found: "refused".to_owned(), wrong: vec![error.to_string()] })
}

fn right(what: &'static str, found: String) -> Tick {
    Tick { what, found, wrong: Vec::new() }
}

/// `1 file`, `3 files`, `1,679 files`.
fn counted(number: usize, what: &str) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text} {what}{}", if number == 1 { "" } else { "s" })
}

/// A size for people: `812 B`, `0.8 MB`.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    // From a tenth of a unit on, so that a file just short of a megabyte is 0.8 MB.
    match UNITS.iter().find(|(unit, _)| bytes >= unit / 10 && bytes >= 1_000) {
        Some((unit, name)) => {
            let tenths = (bytes + unit / 20) / (unit / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}
