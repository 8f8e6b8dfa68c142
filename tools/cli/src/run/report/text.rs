//! The report for people: a table, the books, and what needs attention. Text is not stable; JSON
//! is.

use std::fmt::Write as _;
use std::io::{self, Write};

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::facts::{INPUT, facts, sum};
use super::{Dead, Lost, Report, table};
use crate::exit::Exit;
use crate::run::options::Options;
use crate::run::watch::Left;
use crate::shell;
use crate::style::{BAD, STRONG, WARNING};
use crate::words::{count, time};

/// Dead letters, refused records and tally values shown one by one.
pub(super) const SHOWN_MAX: usize = 10;
/// The longest name shown whole.
pub(super) const NAME_CHARACTERS_MAX: usize = 32;

/// Prints the table, the books, tallies and outputs, no wider than the terminal.
///
/// # Errors
/// The writer took no more.
pub fn print(report: &Report, width: Option<usize>, data: &mut dyn Write) -> io::Result<()> {
    table::print(report, width, data)?;
    writeln!(data)?;
    books(report, width, data)?;
    for (label, items) in facts(report) {
        let indent = 17.min(width.unwrap_or(usize::MAX) / 4);
        // The terms of an equation stand closer than facts that are apart.
        let between = if label == INPUT { " " } else { "   " };
        for line in wrapped(&format!("{label:<16} "), &items, between, indent, width) {
            writeln!(data, "{line}")?;
        }
    }
    Ok(())
}

/// The items after a label, on as many lines as it takes; an item stays whole.
pub(super) fn wrapped(
    label: &str,
    items: &[String],
    between: &str,
    indent: usize,
    width: Option<usize>,
) -> Vec<String> {
    let width = width.unwrap_or(usize::MAX);
    let (mut lines, mut line, mut is_first) = (Vec::new(), label.to_owned(), true);
    for item in items {
        let between = if is_first { "" } else { between };
        let fits = line.width() + between.width() + item.width() <= width;
        if fits || line.trim().is_empty() {
            line.push_str(between);
        } else {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            line = " ".repeat(indent);
        }
        line.push_str(item);
        is_first = false;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// The conservation line.
fn books(report: &Report, width: Option<usize>, data: &mut dyn Write) -> io::Result<()> {
    let books = &report.books;
    let left = [
        (books.accepted, "accepted", true),
        (books.recovered, "recovered", false),
        (books.redriven, "redriven", false),
    ];
    let right = [
        (books.completed, "completed", true),
        (books.dead, "dead", true),
        (books.expired, "expired", true),
        (books.dropped, "dropped", false),
        (books.undelivered, "undelivered", true),
        (books.in_flight, "in flight", false),
    ];
    let mut items = sum("", &left);
    items.extend(sum("= ", &right));
    let (style, bad) = if report.adds_up { (Style::new(), false) } else { (BAD, true) };
    let mut lines = wrapped("", &items, " ", 2, width);
    let workers = match report.workers {
        1 => "1 worker".to_owned(),
        workers => format!("{workers} workers"),
    };
    let end = format!("{}, {workers}", time(report.time));
    let last = lines.pop().unwrap_or_default();
    for line in lines {
        writeln!(data, "{style}{line}{style:#}")?;
    }
    let fits = width.is_none_or(|width| last.width() + 8 + end.width() <= width);
    let gap = if fits { "        " } else { "\n" };
    writeln!(data, "{style}{last}{style:#}{gap}{end}")?;
    if bad {
        let words = "these books do not add up: this is a mistake of waystage, please report it";
        writeln!(data, "{BAD}{words}{BAD:#}")?;
    }
    Ok(())
}

/// Says on standard error what needs attention, and what to do next. That it cannot be said is no
/// failure.
pub fn talk(report: &Report, options: &Options, talk: &mut dyn Write) {
    let mut say = |line: &dyn std::fmt::Display| {
        let _ = writeln!(talk, "{line}");
    };
    for failure in &report.failures {
        say(&format_args!("{BAD}error{BAD:#}: {failure}"));
    }
    if options.quiet {
        return;
    }
    for refusal in report.refused.1.iter().take(SHOWN_MAX) {
        say(&format_args!("{WARNING}refused{WARNING:#}: {}: {}", refusal.place, refusal.words));
    }
    more(report.refused.0, report.refused.1.len(), "refused records", &mut say);
    for dead in report.dead.iter().take(SHOWN_MAX) {
        say(&dead_line(dead, report));
    }
    let listed = report.dead.len();
    more(listed as u64 + report.unnamed(), listed, "dead letters", &mut say);
    for Lost { what, words } in &report.lost {
        say(&format_args!("{WARNING}{what}{WARNING:#}: {words}"));
    }
    for left in &report.leftovers {
        say(&left_line(left));
    }
    say(&format_args!("{STRONG}next{STRONG:#}: {}", next(report, options)));
}

fn more(all: u64, listed: usize, what: &str, say: &mut dyn FnMut(&dyn std::fmt::Display)) {
    if all > SHOWN_MAX as u64 {
        let listed = match listed as u64 {
            listed if listed < all => format!("{} of them", count(listed)),
            _ => "them".to_owned(),
        };
        let all = count(all);
        say(&format_args!("{SHOWN_MAX} of {all} {what} shown; --json lists {listed}"));
    }
}

fn dead_line(dead: &Dead, report: &Report) -> String {
    let Dead { place, stage, attempts, .. } = dead;
    let mut line = format!("{WARNING}dead{WARNING:#}: {place}: {stage}: {}", dead.words());
    if *attempts > 0 {
        let max = dead.attempts_max.unwrap_or(*attempts);
        let _ = write!(line, " (attempt {attempts} of {max})");
    }
    if let Some(stage) = &dead.taken_by {
        let _ = write!(line, " (now in {stage})");
    } else if let Some(log) = &report.log {
        let _ = write!(line, " \u{2192} waystage dead show {} {}", shell::file(log), dead.id);
    }
    line
}

fn left_line(left: &Left) -> String {
    let mut line = format!("{WARNING}left{WARNING:#}: {}:", left.stage);
    if left.waiting > 0 {
        let place = if left.in_log { "in the log" } else { "waiting" };
        let _ = write!(line, " {} {place}", count(left.waiting));
    }
    if left.running > 0 {
        let _ = write!(line, " {} still in its handler", count(left.running));
    }
    let places: Vec<_> = left.places.iter().take(3).map(ToString::to_string).collect();
    if !places.is_empty() {
        let dots = if left.waiting > 3 { ", \u{2026}" } else { "" };
        let _ = write!(line, " ({}{dots})", places.join(", "));
    }
    line
}

/// How to see the dead letters: all of them, or those that are kept when there were too many.
fn listing(report: &Report, options: &Options) -> String {
    let (listed, gone) = (report.dead.len() as u64, report.evicted + report.unnamed());
    let what = match gone {
        0 => "every dead letter with its cause, stage and place".to_owned(),
        _ => {
            let (listed, all) = (count(listed), count(listed + gone));
            format!("{listed} of {all} dead letters are kept; the others were dropped")
        }
    };
    if let Some(log) = &report.log {
        return format!("waystage dead list {}   # {what}", shell::file(log));
    }
    if options.json {
        return format!("read `dead_letters` of the document   # {what}");
    }
    format!("{}   # {what}", options.command.with("--json", ""))
}

/// The command that is of most use now.
fn next(report: &Report, options: &Options) -> String {
    let (flow, again) = (shell::file(&options.flow_file), &options.command);
    match report.exit {
        Exit::Dead if !report.dead.is_empty() => listing(report, options),
        Exit::Dead if report.refused.0 > 0 => {
            format!("mend these lines or the flow's limits, then {again}")
        }
        Exit::Dead if !report.lost.is_empty() => {
            format!("change the settings named above in {flow}, then {again}")
        }
        Exit::Stopped if report.log.is_some() => {
            format!("{again}   # goes on where this run ended")
        }
        Exit::Stopped if !report.leftovers.is_empty() => {
            let again = again.with("--drain", "5m");
            format!("{again}   # more time for what is in flight")
        }
        Exit::Stopped => format!("{again}   # starts from the beginning"),
        Exit::Failed => format!("mend what the error names, then {again}"),
        Exit::Done | Exit::Dead | Exit::Usage | Exit::Bug => {
            match report.written.iter().find(|file| file.lines > 0) {
                Some(file) => {
                    let path = shell::file(file.path.as_ref());
                    format!("head -n 3 {path}, or change `slip` in {flow} and run again")
                }
                None => format!("change `slip` in {flow}, then waystage check {flow}"),
            }
        }
    }
}
