//! The report for people: a table, the books, and what needs attention. Text is not stable; JSON
//! is.

use std::fmt::Write as _;
use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use waystage::StageSnapshot;
use waystage::metrics::Quantiles;

use super::{Counted, Dead, Lost, Report};
use crate::exit::Exit;
use crate::run::options::Options;
use crate::run::watch::Left;
use crate::style::{BAD, STRONG, WARNING};
use crate::words::{count, microseconds, rate, shortened, time};

/// Dead letters, refused records and tally values shown one by one.
const SHOWN_MAX: usize = 10;
/// The longest name shown whole.
const NAME_CHARACTERS_MAX: usize = 32;

/// What the table says of a stage, in its order.
#[must_use]
pub fn cells(report: &Report, stage: &StageSnapshot) -> Vec<String> {
    let mut cells = vec![shortened(&stage.name, NAME_CHARACTERS_MAX)];
    cells.extend([stage.entered, stage.done, stage.retried, stage.dead].map(count));
    for meter in [&stage.wait, &stage.service] {
        cells.extend([0.5, 0.99, 0.999].map(|quantile| duration(meter, quantile)));
    }
    cells.push(if stage.entered == 0 { "-".to_owned() } else { rate(report.rate(stage)) });
    cells
}

fn duration(meter: &Quantiles, quantile: f64) -> String {
    if meter.count() == 0 { "-".to_owned() } else { microseconds(meter.at(quantile)) }
}

/// Prints the table, the books, tallies and outputs.
///
/// # Errors
/// The writer took no more.
pub fn table(report: &Report, data: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "STAGE",
        "IN",
        "DONE",
        "RETRIED",
        "DEAD",
        "WAIT \u{b5}s p50",
        "p99",
        "p99.9",
        "SERVICE \u{b5}s p50",
        "p99",
        "p99.9",
        "RATE/s",
    ]);
    for stage in &report.stages {
        table.add_row(cells(report, stage));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_name = index == 0;
        column.set_padding(if is_name { (0, 0) } else { (2, 0) });
        column.set_cell_alignment(if is_name { CellAlignment::Left } else { CellAlignment::Right });
    }
    for (index, line) in table.lines().enumerate() {
        let line = line.trim_end();
        if index == 0 {
            writeln!(data, "{STRONG}{line}{STRONG:#}")?;
        } else {
            writeln!(data, "{line}")?;
        }
    }
    writeln!(data)?;
    books(report, data)?;
    for (label, words) in facts(report) {
        writeln!(data, "{label:<16} {words}")?;
    }
    Ok(())
}

/// The conservation line.
fn books(report: &Report, data: &mut dyn Write) -> io::Result<()> {
    let books = &report.books;
    let terms = |terms: &[(u64, &str, bool)]| {
        let shown = terms.iter().filter(|(number, _, always)| *always || *number > 0);
        let shown = shown.map(|(number, name, _)| format!("{} {name}", count(*number)));
        shown.collect::<Vec<_>>().join(" + ")
    };
    let left = terms(&[
        (books.accepted, "accepted", true),
        (books.recovered, "recovered", false),
        (books.redriven, "redriven", false),
    ]);
    let right = terms(&[
        (books.completed, "completed", true),
        (books.dead, "dead", true),
        (books.expired, "expired", true),
        (books.dropped, "dropped", false),
        (books.undelivered, "undelivered", true),
        (books.in_flight, "in flight", false),
    ]);
    let workers = match report.workers {
        1 => "1 worker".to_owned(),
        workers => format!("{workers} workers"),
    };
    let end = format!("{}, {workers}", time(report.time));
    if report.adds_up {
        return writeln!(data, "{left} = {right}        {end}");
    }
    let words = "these books do not add up: this is a mistake of waystage, please report it";
    writeln!(data, "{BAD}{left} = {right}{BAD:#}        {end}")?;
    writeln!(data, "{BAD}{words}{BAD:#}")
}

/// The labelled lines below the books.
fn facts(report: &Report) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let latency = &report.latency;
    if latency.count() > 0 {
        let from = if report.paced { "its intended time" } else { "its reading" };
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|at| microseconds(latency.at(at)));
        let words = format!("p50 {p50}   p99 {p99}   p99.9 {p999}   from {from} to its end");
        facts.push(("latency \u{b5}s".to_owned(), words));
    }
    if report.paced {
        let words =
            format!("{} \u{b5}s behind its intended time", microseconds(report.behind_max_ns));
        facts.push(("latest send".to_owned(), words));
    }
    for Counted { by, counts, .. } in &report.tallies {
        let mut words = String::new();
        for (name, number) in counts.iter().take(SHOWN_MAX) {
            let name = shortened(name, NAME_CHARACTERS_MAX);
            let _ = write!(words, "{name} {}   ", count(*number));
        }
        if counts.len() > SHOWN_MAX {
            let _ = write!(words, "({SHOWN_MAX} of {} shown)", count(counts.len() as u64));
        }
        facts.push((format!("tally {by}"), words.trim_end().to_owned()));
    }
    if !report.written.is_empty() {
        let files = report.written.iter();
        let files = files.map(|file| format!("{} {}", file.name, count(file.lines)));
        facts.push(("written".to_owned(), files.collect::<Vec<_>>().join("   ")));
    }
    if report.skipped > 0 {
        let words = format!("{} whose id was seen before", count(report.skipped));
        facts.push(("skipped".to_owned(), words));
    }
    if report.without_id > 0 {
        let words = format!("{}: file and line stand for it", count(report.without_id));
        facts.push(("without id".to_owned(), words));
    }
    if report.refused.0 > 0 {
        facts.push(("refused".to_owned(), count(report.refused.0)));
    }
    facts
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
    more(report.refused.0, "refused records", &mut say);
    for dead in report.dead.iter().take(SHOWN_MAX) {
        say(&dead_line(dead));
    }
    more(report.dead.len() as u64, "dead letters", &mut say);
    for Lost { what, words } in &report.lost {
        say(&format_args!("{WARNING}{what}{WARNING:#}: {words}"));
    }
    for left in &report.leftovers {
        say(&left_line(left));
    }
    say(&format_args!("{STRONG}next{STRONG:#}: {}", next(report, options)));
}

fn more(all: u64, what: &str, say: &mut dyn FnMut(&dyn std::fmt::Display)) {
    if all > SHOWN_MAX as u64 {
        let all = count(all);
        say(&format_args!("{SHOWN_MAX} of {all} {what} shown; --json lists them"));
    }
}

fn dead_line(dead: &Dead) -> String {
    let Dead { place, stage, attempts, .. } = dead;
    let mut line = format!("{WARNING}dead{WARNING:#}: {place}: {stage}: {}", dead.words());
    if *attempts > 0 {
        let max = dead.attempts_max.unwrap_or(*attempts);
        let _ = write!(line, " (attempt {attempts} of {max})");
    }
    line
}

fn left_line(left: &Left) -> String {
    let mut line = format!("{WARNING}left{WARNING:#}: {}:", left.stage);
    if left.waiting > 0 {
        let _ = write!(line, " {} waiting", count(left.waiting));
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

/// The command that is of most use now.
fn next(report: &Report, options: &Options) -> String {
    let (flow, again) = (options.flow_file.display(), &options.command);
    match report.exit {
        Exit::Dead if !report.dead.is_empty() => {
            format!("{again} --json   # every dead letter with its cause, stage and place")
        }
        Exit::Dead if report.refused.0 > 0 => {
            format!("mend these lines or the flow's limits, then {again}")
        }
        Exit::Dead if !report.lost.is_empty() => {
            format!("change the settings named above in {flow}, then {again}")
        }
        Exit::Stopped if !report.leftovers.is_empty() => {
            format!("{again} --drain 5m   # more time for what is in flight")
        }
        Exit::Stopped => format!("{again}   # starts from the beginning"),
        Exit::Failed => format!("mend what the error names, then {again}"),
        Exit::Done | Exit::Dead | Exit::Usage | Exit::Bug => match report.written.first() {
            Some(file) => {
                format!("head -n 3 {}, or change `slip` in {flow} and run again", file.path)
            }
            None => format!("change `slip` in {flow}, then waystage check {flow}"),
        },
    }
}
