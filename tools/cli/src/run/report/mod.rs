//! What a run did, as plain data: gathered once, printed as a table or as JSON.

mod facts;
pub mod json;
mod parts;
pub mod table;
#[cfg(test)]
mod tests;
pub mod text;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waystage::metrics::Quantiles;
use waystage::{Conservation, StageSnapshot};

use super::account::Lines;
use super::ending::End;
use super::ledger::Refusal;
use super::options::{FailOn, Options};
use super::watch::{Input, Left, Stop, Watched};
use super::{Console, unless_closed};
use crate::exit::Exit;
use crate::flow::Flow;
use crate::flow::model::Format;

pub use parts::{Counted, Dead, GivenUp, Lost, Told, Written};

/// What a run did.
#[derive(Debug)]
pub struct Report {
    /// The flow's name.
    pub flow: String,
    /// How the command ends.
    pub exit: Exit,
    /// Why it was stopped, if it was.
    pub stop: Option<Stop>,
    /// What broke while running, in words.
    pub failures: Vec<String>,
    /// The books of the bus.
    pub books: Conservation,
    /// Whether they add up, and agree with what the input and the records say.
    pub adds_up: bool,
    /// The stages, in the order of the flow.
    pub stages: Vec<StageSnapshot>,
    /// From the first read to the last record's end.
    pub time: Duration,
    /// Worker threads.
    pub workers: usize,
    /// From each record's intended time to its end, of those completed.
    pub latency: Quantiles,
    /// Whether intended times came from a rate.
    pub paced: bool,
    /// How late a record was sent at most, in nanoseconds.
    pub behind_max_ns: u64,
    /// Tallies.
    pub tallies: Vec<Counted>,
    /// Outputs.
    pub written: Vec<Written>,
    /// What became of the lines of the input.
    pub lines: Lines,
    /// Whether the lines are rows of CSV.
    pub of_rows: bool,
    /// Records without the id asked for.
    pub without_id: u64,
    /// Records the bus never got: how many, and the first of them.
    pub refused: (u64, Vec<Refusal>),
    /// The dead letters kept, then those that a stage took.
    pub dead: Vec<Dead>,
    /// How many dead letters were dropped at the bound of those that are kept.
    pub evicted: u64,
    /// How many dead letters a dead-letter stage took; not all are among `dead` by name.
    pub taken: u64,
    /// What was given up where a dead-letter stage gets it, by stage. Such a stage may send a
    /// record on, so that it ends well.
    pub given_up: Vec<GivenUp>,
    /// Records that were dropped or expired, and what made them so, a line each.
    pub lost: Vec<Lost>,
    /// The log that keeps what is not done.
    pub log: Option<PathBuf>,
    /// What was left by a stop, by stage.
    pub leftovers: Vec<Left>,
}

impl Report {
    /// Gathers what a run did.
    #[must_use]
    pub fn new(flow: &Flow, options: &Options, watched: Watched) -> Self {
        let Watched {
            stop,
            input,
            snapshot,
            books,
            mut leftovers,
            dead,
            in_log,
            told,
            time,
            workers,
            ledger,
            kept,
            log_failure,
        } = watched;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (written, mut failures) = parts::finish_outputs(&kept.outputs);
        failures.extend(log_failure);
        let at = snapshot.stages.iter().enumerate().map(|(at, stage)| (stage.name.as_str(), at));
        let at: HashMap<&str, usize> = at.collect();
        leftovers.sort_by_key(|left| at.get(left.stage.as_str()).copied());
        let rests = matches!(input, Input::Ended(_));
        let lines = ledger.lines();
        let adds_up = add_up(&books, rests.then_some(&lines), read(&ledger.told));
        let lines = if rests { lines } else { left_behind(lines, &books) };
        let remains = remains(&input, &mut failures);
        let (dead, taken) = parts::dead(flow, dead, told, in_log);
        let lost = parts::lost(flow, &books, &snapshot.stages);
        let evicted = parts::evicted(&books, &snapshot.stages);
        let given_up = parts::given_up(flow, &snapshot.stages);
        let mut report = Self {
            flow: flow.name.clone(),
            exit: Exit::Done,
            stop,
            failures,
            books,
            adds_up,
            stages: snapshot.stages,
            time,
            workers,
            latency: ledger.latency.quantiles(),
            paced: options.rate.is_some(),
            behind_max_ns: read(&ledger.behind_max_ns),
            tallies: kept.tallies.iter().map(Counted::new).collect(),
            written,
            lines,
            of_rows: flow.input.format == Format::Csv,
            without_id: read(&ledger.without_id),
            refused: (lines.refused, parts::refusals(flow, &ledger)),
            dead,
            evicted,
            taken,
            given_up,
            lost,
            log: flow.durable.as_ref().map(|durable| super::durable::directory(flow, durable)),
            leftovers,
        };
        if !remains && report.leftovers.is_empty() {
            // The wish to stop came after the end.
            report.stop = None;
        }
        let broken = matches!(input, Input::Broken);
        report.exit = report.conclude(options.fail_on, remains, broken);
        report
    }

    fn conclude(&self, fail_on: FailOn, remains: bool, broken: bool) -> Exit {
        if !self.adds_up || broken {
            return Exit::Bug;
        }
        if !self.failures.is_empty() {
            return Exit::Failed;
        }
        if remains || !self.leftovers.is_empty() {
            return Exit::Stopped;
        }
        let Conservation { dead, dropped, expired, .. } = self.books;
        let lost = dead + dropped + expired + self.refused.0;
        if fail_on == FailOn::Dead && lost > 0 {
            return Exit::Dead;
        }
        Exit::Done
    }

    /// How many dead letters that a stage took are not among `dead`.
    #[must_use]
    pub fn unnamed(&self) -> u64 {
        let named = self.dead.iter().filter(|dead| dead.taken_by.is_some()).count();
        self.taken.saturating_sub(named as u64)
    }

    /// Records that ended here per second of the run.
    #[must_use]
    pub fn rate(&self, stage: &StageSnapshot) -> f64 {
        stage.done as f64 / self.time.as_secs_f64().max(1e-9)
    }

    /// Prints it: data on standard output, what needs attention on standard error.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn print(&self, options: &Options, console: &mut Console<'_>) -> io::Result<()> {
        let printed = if options.json {
            console.document(&json::document(self))
        } else {
            text::print(self, options.width, console.data).and_then(|()| console.data.flush())
        };
        // What needs attention is said even if nobody reads the rest.
        text::talk(self, options, console.talk);
        unless_closed(printed)
    }
}

/// Whether something of the input remains; what broke is added to the failures.
fn remains(input: &Input, failures: &mut Vec<String>) -> bool {
    match input {
        Input::Ended(End::Exhausted | End::Limit) => false,
        Input::Ended(End::Stopped) | Input::Waits => true,
        Input::Ended(End::Failed { what, error }) => {
            failures.insert(0, format!("{what}: {error}"));
            true
        }
        Input::Broken => {
            failures.insert(0, "the input's thread panicked; please report it".to_owned());
            true
        }
    }
}

/// The account of an input that was left behind, maybe with a line in its hands.
fn left_behind(mut lines: Lines, books: &Conservation) -> Lines {
    lines.accepted = books.accepted;
    lines.read = lines.read.max(lines.accounted());
    lines.unsent += lines.read - lines.accounted();
    lines
}

/// Whether the books agree with themselves, with the lines of the input (unless it was left behind,
/// maybe between its publish and its own count), and with how many records were told what became of
/// them. While a handler still runs, its record may be told and not counted yet.
fn add_up(books: &Conservation, lines: Option<&Lines>, told: u64) -> bool {
    let input = lines
        .is_none_or(|lines| lines.accepted == books.accepted && lines.read == lines.accounted());
    // Nobody waits to be told of those that an earlier run read.
    let (least, most) = (books.settled().saturating_sub(books.recovered), books.settled());
    let settled = if books.in_flight == 0 { (least..=most).contains(&told) } else { least <= told };
    books.holds() && input && settled
}
