//! A flow, as plain data: what a flow file says once it has been read and found right.
//!
//! Paths are as written; whoever opens them resolves them against [`Flow::directory`].

use std::path::PathBuf;
use std::time::Duration;

use jsonptr::PointerBuf;
use serde_json::Value;
use waystage::log::Sync;
use waystage::{BusSettings, Level, StageSettings};

/// A flow file that is right.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Its name (`flow = "..."`, else the file's stem).
    pub name: String,
    /// The folder of the flow file: relative paths start there.
    pub directory: PathBuf,
    /// The stages every record visits, first hop first.
    pub slip: Vec<String>,
    /// Where records come from.
    pub input: Input,
    /// The bus: workers, idle, pin.
    pub bus: BusSettings,
    /// Where a log is kept, and what is promised by it; without it everything stays in memory.
    pub durable: Option<Durable>,
    /// The stages, in the order of the file.
    pub stages: Vec<Stage>,
}

/// Where records come from.
#[derive(Debug, Clone)]
pub struct Input {
    /// Files and patterns, in order; `-` is standard input.
    pub files: Vec<String>,
    /// How a file is cut into records.
    pub format: Format,
    /// Where a record's own id is; without it, file and line.
    pub id: Option<PointerBuf>,
    /// A record whose id was seen within the last this many is skipped.
    pub unique: Option<usize>,
    /// The longest line in bytes.
    pub max_line: u64,
}

/// How text is cut into records, or read by `parse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON value a line.
    Ndjson,
    /// Comma-separated with a header line: a record is an object of strings.
    Csv,
    /// One record a line, as text.
    Lines,
}

/// What makes a run go on after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable {
    /// The directory of the log.
    pub directory: PathBuf,
    /// What is promised of every record.
    pub level: Level,
    /// When a record counts as safe.
    pub sync: Sync,
}

impl Format {
    /// All of them, as a flow file names them.
    pub const NAMES: &[(&str, Self)] =
        &[("ndjson", Self::Ndjson), ("csv", Self::Csv), ("lines", Self::Lines)];

    /// As a flow file names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| *name)
    }

    /// The one of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }
}

/// One stage.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its settings, `[defaults]` included.
    pub settings: StageSettings,
    /// What it does.
    pub handler: Handler,
    /// Whether a record can come here: by the slip, a rule or as a dead letter. A stage that none
    /// reaches is not opened, and its file not touched.
    pub reached: bool,
}

impl Flow {
    /// The stages that records can come to.
    pub fn opened(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.reached)
    }
}

/// What a stage does with a record.
#[derive(Debug, Clone)]
pub enum Handler {
    /// Reads the text as JSON (or CSV, or a JSON string). What cannot be read is a dead letter
    /// after one attempt.
    Parse(Format),
    /// Ends the itinerary of records that do not match.
    Filter(When),
    /// Changes the itinerary of records by rules; every rule that matches applies, in order.
    Route(Vec<Rule>),
    /// Counts records by the value at a pointer.
    Tally(PointerBuf),
    /// Appends records to a file, one JSON value a line.
    Write(PathBuf),
    /// Keeps a core busy: for trying settings out.
    Work(Duration),
}

/// One rule of `route`.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Which records.
    pub when: When,
    /// What becomes of their itinerary.
    pub action: Action,
}

/// What a rule does to an itinerary; stages in the order they are visited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// These come before what remains.
    First(Vec<String>),
    /// These come after what remains.
    Then(Vec<String>),
    /// These replace what remains.
    Instead(Vec<String>),
}

/// Conditions that must all hold.
#[derive(Debug, Clone, Default)]
pub struct When(pub Vec<(PointerBuf, Test)>);

/// A condition on the value at a pointer.
#[derive(Debug, Clone)]
pub enum Test {
    /// It is there and equal.
    Equals(Value),
    /// It is there and one of these.
    OneOf(Vec<Value>),
    /// All of these hold.
    All(Vec<Comparison>),
}

/// One comparison. Numbers compare with numbers, strings with strings; anything else is false.
#[derive(Debug, Clone)]
pub enum Comparison {
    /// Equal.
    Eq(Value),
    /// Not equal, or not there.
    Ne(Value),
    /// Less.
    Lt(Value),
    /// Less or equal.
    Le(Value),
    /// Greater or equal.
    Ge(Value),
    /// Greater.
    Gt(Value),
    /// There (true) or not (false).
    Exists(bool),
    /// A string that contains this text.
    Matches(String),
}
