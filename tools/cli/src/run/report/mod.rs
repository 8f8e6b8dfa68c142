//! What a run did, as plain data: gathered once, printed as a table or as JSON.

pub mod json;
#[cfg(test)]
mod tests;
pub mod text;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waystage::metrics::Quantiles;
use waystage::{Cause, Conservation, DeadLetter, OnFull, StageSnapshot};

use super::feed::End;
use super::ledger::{Ledger, Refusal, RefusalKind};
use super::options::{FailOn, Options};
use super::output::Output;
use super::prepare::settings_of;
use super::record::{Place, Record};
use super::tally::Tally;
use super::watch::{Input, Left, Stop, Watched};
use super::{Console, unless_closed};
use crate::exit::Exit;
use crate::flow::Flow;
use crate::words::{count, time};

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
    /// Records skipped because their id was seen.
    pub skipped: u64,
    /// Records without the id asked for.
    pub without_id: u64,
    /// Records the bus never got: how many, and the first of them.
    pub refused: (u64, Vec<Refusal>),
    /// The dead letters kept.
    pub dead: Vec<Dead>,
    /// Records that were dropped or expired, and what made them so, a line each.
    pub lost: Vec<Lost>,
    /// What was left by a stop, by stage.
    pub leftovers: Vec<Left>,
}

/// Records that ended without a dead letter that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// `dropped` or `expired`.
    pub what: &'static str,
    /// How many, where, and which setting says so.
    pub words: String,
}

/// A tally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its stage.
    pub stage: String,
    /// The pointer to what was counted.
    pub by: String,
    /// Values and how often each came, the most frequent first.
    pub counts: Vec<(String, u64)>,
}

/// An output file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The stages that write it.
    pub stages: Vec<String>,
    /// Its name in the flow.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// The lines in it.
    pub lines: u64,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// Its id.
    pub id: String,
    /// Where the record stands.
    pub place: Place,
    /// Where it was given up.
    pub stage: String,
    /// Why.
    pub cause: Cause,
    /// Attempts there.
    pub attempts: u16,
    /// Attempts allowed there.
    pub attempts_max: Option<u16>,
    /// The stages it visited.
    pub trail: Vec<String>,
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
            time,
            workers,
            ledger,
            kept,
        } = watched;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (written, mut failures) = finish_outputs(&kept.outputs);
        leftovers
            .sort_by_key(|left| snapshot.stages.iter().position(|stage| stage.name == left.stage));
        let sent = matches!(input, Input::Ended(_)).then(|| read(&ledger.sent));
        let adds_up = add_up(&books, sent, read(&ledger.told));
        let remains = match &input {
            Input::Ended(End::Exhausted | End::Limit) => false,
            Input::Ended(End::Stopped) | Input::Waits => true,
            Input::Ended(End::Failed { input, error }) => {
                failures.insert(0, format!("input {input}: {error}"));
                true
            }
            Input::Broken => {
                failures.insert(0, "the input's thread panicked; please report it".to_owned());
                true
            }
        };
        let lost = lost(flow, &books, &snapshot.stages);
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
            skipped: read(&ledger.skipped),
            without_id: read(&ledger.without_id),
            refused: (read(&ledger.refused), refusals(flow, &ledger)),
            dead: dead.into_iter().map(|letter| Dead::new(flow, letter)).collect(),
            lost,
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
            text::table(self, console.data).and_then(|()| console.data.flush())
        };
        // What needs attention is said even if nobody reads the rest.
        text::talk(self, options, console.talk);
        unless_closed(printed)
    }
}

/// Whether the books agree with themselves, with what the input says it sent (unless it was left
/// behind, maybe between its publish and its own count), and with how many records were told what
/// became of them. While a handler still runs, its record may be told and not counted yet.
fn add_up(books: &Conservation, sent: Option<u64>, told: u64) -> bool {
    let accepted = sent.is_none_or(|sent| sent == books.accepted);
    let settled =
        if books.in_flight == 0 { books.settled() == told } else { books.settled() <= told };
    books.holds() && accepted && settled
}

/// What was dropped or expired, by the setting that says so.
fn lost(flow: &Flow, books: &Conservation, stages: &[StageSnapshot]) -> Vec<Lost> {
    let mut lost = Vec::new();
    let first = flow.slip.first().and_then(|name| settings_of(flow, name));
    let expiry = match first.and_then(|settings| settings.expiry) {
        Some(expiry) => format!("expiry {} of the first stage", time(expiry)),
        None => "an expiry".to_owned(),
    };
    let mut dropped = 0;
    for stage in stages {
        let name = &stage.name;
        if stage.dropped > 0 {
            dropped += stage.dropped;
            let number = count(stage.dropped);
            let words = format!("{name}: {number} when it was full, as its on-full says");
            lost.push(Lost { what: "dropped", words });
        }
        if stage.expired > 0 {
            let number = count(stage.expired);
            let words = format!("{name}: {number} not handled in time, as {expiry} says");
            lost.push(Lost { what: "expired", words });
        }
    }
    let evicted = books.dropped.saturating_sub(dropped);
    if evicted > 0 {
        let (number, bound) = (count(evicted), count(flow.bus.dead_letters as u64));
        let words = format!(
            "{number} more dead letters were dropped at the bound of {bound}; raise dead-letters \
             in [bus]"
        );
        lost.push(Lost { what: "dropped", words });
    }
    lost
}

/// The refused records; of a full stage in the words of its policy.
fn refusals(flow: &Flow, ledger: &Ledger) -> Vec<Refusal> {
    let mut refusals = ledger.refusals();
    let first = flow.slip.first();
    let settings = first.and_then(|name| settings_of(flow, name));
    if let (Some(name), Some(OnFull::Block(limit))) = (first, settings.map(|it| it.on_full)) {
        // The input publishes to the first stage only.
        for refusal in refusals.iter_mut().filter(|refusal| refusal.kind == RefusalKind::Full) {
            refusal.words = format!("stage `{name}` stayed full for {}", time(limit));
        }
    }
    refusals
}

type Outputs = [(String, Arc<Output>)];

/// Closes all outputs; says what could not be written.
fn finish_outputs(outputs: &Outputs) -> (Vec<Written>, Vec<String>) {
    let (mut written, mut failures) = (Vec::<Written>::new(), Vec::new());
    for (stage, output) in outputs {
        let path = output.path().display().to_string();
        if let Some(before) = written.iter_mut().find(|written| written.path == path) {
            before.stages.push(stage.clone());
            continue;
        }
        let lines = output.finish().unwrap_or_else(|(lines, lost, error)| {
            let lost = count(lost);
            failures.push(format!(
                "output {path}: {error}; {lost} records that were done are not in it"
            ));
            lines
        });
        let (stages, name) = (vec![stage.clone()], output.name.clone());
        written.push(Written { stages, name, path, lines });
    }
    (written, failures)
}

impl Counted {
    fn new((stage, tally): &(String, Arc<Tally>)) -> Self {
        let (stage, by) = (stage.clone(), tally.by().to_owned());
        Self { stage, by, counts: tally.sorted() }
    }
}

impl Dead {
    fn new(flow: &Flow, letter: DeadLetter<Record>) -> Self {
        Self {
            id: letter.envelope.id().to_string(),
            place: letter.envelope.payload().place.clone(),
            attempts_max: settings_of(flow, &letter.stage).map(|settings| settings.attempts),
            stage: letter.stage,
            cause: letter.cause,
            attempts: letter.attempts,
            trail: letter.trail,
        }
    }

    /// Why, in words.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.cause {
            Cause::HandlerFailed(reason) => reason.clone(),
            other => other.to_string(),
        }
    }
}
