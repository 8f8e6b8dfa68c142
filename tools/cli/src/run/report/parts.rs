//! The parts of the report, each from what the run kept of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use waystage::{Cause, Conservation, DeadLetter, DeadLetterInfo, OnFull, Route, StageSnapshot};

use crate::flow::Flow;
use crate::run::ledger::{Ledger, Refusal, RefusalKind, Taken};
use crate::run::output::Output;
use crate::run::prepare::settings_of;
use crate::run::record::{Place, Record};
use crate::run::tally::Tally;
use crate::words::{count, time};

/// Records that ended without a dead letter that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// `dropped` or `expired`.
    pub what: &'static str,
    /// How many, where, and which setting says so.
    pub words: String,
}

/// Records that a stage gave up after its last attempt, and where they went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The stage.
    pub stage: String,
    /// How many.
    pub count: u64,
    /// Its dead-letter stage.
    pub to: String,
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
    /// The lines in it, of this run.
    pub lines: u64,
    /// Whether it is as an earlier run left it: this one ended before its first record.
    pub kept: bool,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// Its id.
    pub id: String,
    /// Where the record stands; not known of one that an earlier run read.
    pub place: Option<Place>,
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
    /// The dead-letter stage that took it; without one it was kept.
    pub taken_by: Option<String>,
}

/// A dead letter that a callback was told of, with the names of its trail.
#[derive(Debug)]
pub struct Told {
    taken: Taken,
    trail: Vec<String>,
}

impl Told {
    /// With these names.
    pub(crate) fn new(mut taken: Taken, name: impl Fn(Route) -> String) -> Self {
        let trail = std::mem::take(&mut taken.trail).into_iter().map(name).collect();
        Self { taken, trail }
    }
}

/// What was dropped or expired, by the setting that says so.
pub(super) fn lost(flow: &Flow, books: &Conservation, stages: &[StageSnapshot]) -> Vec<Lost> {
    let mut lost = Vec::new();
    let first = flow.slip.first().and_then(|name| settings_of(flow, name));
    let expiry = match first.and_then(|settings| settings.expiry) {
        Some(expiry) => format!("expiry {} of the first stage", time(expiry)),
        None => "an expiry".to_owned(),
    };
    for stage in stages {
        let name = &stage.name;
        if stage.dropped > 0 {
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
    let evicted = evicted(books, stages);
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

/// Dead letters dropped at the bound: all that was dropped but by stages that were full.
pub(super) fn evicted(books: &Conservation, stages: &[StageSnapshot]) -> u64 {
    let full: u64 = stages.iter().map(|stage| stage.dropped).sum();
    books.dropped.saturating_sub(full)
}

/// The refused records; of a full stage in the words of its policy.
pub(super) fn refusals(flow: &Flow, ledger: &Ledger) -> Vec<Refusal> {
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
pub(super) fn finish_outputs(outputs: &Outputs) -> (Vec<Written>, Vec<String>) {
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
                "output {path}: {error}; {lost} records that were done are not in it; make room \
                 there, or write elsewhere with --out DIR, and run it again"
            ));
            lines
        });
        let (stages, name) = (vec![stage.clone()], output.name.clone());
        let kept = !output.is_emptied();
        written.push(Written { stages, name, path, lines, kept });
    }
    (written, failures)
}

/// What stages with a dead-letter stage gave up: attempts that failed and were not repeated.
pub(super) fn given_up(flow: &Flow, stages: &[StageSnapshot]) -> Vec<GivenUp> {
    let targets = flow
        .stages
        .iter()
        .filter_map(|stage| Some((stage.name.as_str(), stage.settings.dead_letter.as_deref()?)));
    let targets: HashMap<&str, &str> = targets.collect();
    let given_up = stages.iter().filter_map(|stage| {
        let count = stage.failed.saturating_sub(stage.retried);
        let to = targets.get(stage.name.as_str()).filter(|_| count > 0)?;
        Some(GivenUp { stage: stage.name.clone(), count, to: (*to).to_owned() })
    });
    given_up.collect()
}

/// All dead letters: those in memory, those that callbacks were told of, and those of the log that
/// nobody was told of; and how many a dead-letter stage took.
pub(super) fn dead(
    flow: &Flow,
    in_memory: Vec<DeadLetter<Record>>,
    (told, named): (u64, Vec<Told>),
    in_log: Vec<DeadLetterInfo>,
) -> (Vec<Dead>, u64) {
    let mut dead: Vec<Dead> = kept(flow, in_memory).collect();
    let named = named.into_iter().map(|told| Dead::told(told, flow));
    let (taken, in_log_too): (Vec<Dead>, Vec<Dead>) =
        named.partition(|dead| dead.taken_by.is_some());
    let taken_count = told.saturating_sub(in_log_too.len() as u64);
    let known: HashSet<String> = in_log_too.iter().map(|dead| dead.id.clone()).collect();
    dead.extend(in_log_too);
    let earlier = in_log.into_iter().filter(|info| !known.contains(&info.id.to_string()));
    dead.extend(earlier.map(|info| Dead::of_earlier(info, flow)));
    dead.extend(taken);
    (dead, taken_count)
}

/// The dead letters that the bus kept.
fn kept(flow: &Flow, letters: Vec<DeadLetter<Record>>) -> impl Iterator<Item = Dead> {
    let stages = flow.stages.iter();
    let attempts: HashMap<&str, u16> =
        stages.map(|stage| (stage.name.as_str(), stage.settings.attempts)).collect();
    letters.into_iter().map(move |letter| Dead::kept(letter, &attempts))
}

impl Counted {
    pub(super) fn new((stage, tally): &(String, Arc<Tally>)) -> Self {
        let (stage, by) = (stage.clone(), tally.by().to_owned());
        Self { stage, by, counts: tally.sorted() }
    }
}

impl Dead {
    fn kept(letter: DeadLetter<Record>, attempts: &HashMap<&str, u16>) -> Self {
        Self {
            id: letter.envelope.id().to_string(),
            place: Some(letter.envelope.payload().place.clone()),
            attempts_max: attempts.get(letter.stage.as_str()).copied(),
            stage: letter.stage,
            cause: letter.cause,
            attempts: letter.attempts,
            trail: letter.trail,
            taken_by: None,
        }
    }

    /// One that its callback was told of: a dead-letter stage took it, the last of its trail after
    /// the one that gave it up, or the log keeps it, given up at the last of its trail.
    pub(super) fn told(told: Told, flow: &Flow) -> Self {
        let Told { taken, trail } = told;
        let is_target = |stage: &String| {
            let mut settings = flow.stages.iter().map(|stage| &stage.settings);
            settings.any(|settings| settings.dead_letter.as_ref() == Some(stage))
        };
        if taken.attempts > 0 || !trail.last().is_some_and(is_target) {
            let stage = trail.last().cloned().unwrap_or_default();
            return Self {
                id: taken.id.to_string(),
                place: Some(taken.place),
                cause: taken.cause,
                attempts: taken.attempts,
                attempts_max: settings_of(flow, &stage).map(|settings| settings.attempts),
                stage,
                trail,
                taken_by: None,
            };
        }
        let mut ends = trail.iter().rev();
        let taken_by = ends.next().cloned().unwrap_or_default();
        let stage = ends.next().unwrap_or(&taken_by).clone();
        Self {
            id: taken.id.to_string(),
            place: Some(taken.place),
            stage,
            cause: taken.cause,
            attempts: 0,
            attempts_max: None,
            taken_by: Some(taken_by),
            trail,
        }
    }

    /// One that an earlier run read and this one gave up.
    pub(super) fn of_earlier(info: DeadLetterInfo, flow: &Flow) -> Self {
        Self {
            id: info.id.to_string(),
            place: None,
            attempts_max: settings_of(flow, &info.stage).map(|settings| settings.attempts),
            stage: info.stage,
            cause: info.cause,
            attempts: info.attempts,
            trail: info.trail,
            taken_by: None,
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
