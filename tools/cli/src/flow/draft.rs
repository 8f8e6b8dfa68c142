//! A flow as far as it could be read, with the places that the checks of the whole point at.

use jsonptr::PointerBuf;
use waystage::{BusSettings, StageSettings};

use super::model::{Durable, Handler, Input, Test};
use super::problem::Span;

/// The name of a stage, where it stands in the file.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) span: Span,
}

/// A condition, where its test stands in the file.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) pointer: PointerBuf,
    pub(super) test: Test,
    pub(super) span: Span,
}

/// A flow as far as it could be read.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) name: Option<String>,
    /// None: it is missing or wrong, and that has been reported.
    pub(super) slip: Option<Vec<Named>>,
    pub(super) slip_span: Span,
    pub(super) input: Input,
    pub(super) bus: BusSettings,
    pub(super) durable: Option<Durable>,
    pub(super) stages: Vec<DraftStage>,
}

/// A stage as far as it could be read.
#[derive(Debug)]
pub(super) struct DraftStage {
    pub(super) name: Named,
    pub(super) settings: StageSettings,
    /// Where `permits` stands, in the stage or in the defaults.
    pub(super) permits: Option<Span>,
    /// Where `dead-letter` stands, in the stage or in the defaults.
    pub(super) dead_letter: Option<Span>,
    /// Whether keys that are not known have been reported.
    pub(super) unknown_keys: bool,
    /// None: it is missing or wrong, and that has been reported.
    pub(super) handler: Option<Handler>,
    /// The path of `write`.
    pub(super) path: Option<Span>,
    /// Whether a record can come here.
    pub(super) reached: bool,
    /// The conditions of its handler.
    pub(super) conditions: Vec<Condition>,
    /// The stages that rules name.
    pub(super) targets: Vec<Named>,
}
