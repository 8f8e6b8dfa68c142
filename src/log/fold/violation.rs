//! What the state does not allow.

use crate::envelope::EnvelopeId;
use crate::log::entry::{EntryError, EntryKind, EntryNumber};

/// Why a record cannot be folded. The state is what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// It does not hold entries.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// An entry cannot follow what was before.
    #[error(transparent)]
    Violation(#[from] Violation),
}

/// An entry that cannot follow what was before. The state is what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("entry {number} ({}) cannot follow: envelope {id} {breach}", entry.name())]
pub struct Violation {
    /// The entry.
    pub number: EntryNumber,
    /// Its kind.
    pub entry: EntryKind,
    /// The envelope it is about; nil where it is about none.
    pub id: EnvelopeId,
    /// What does not fit.
    pub breach: Breach,
}

/// Where an id stands, besides among dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Nowhere: it may come in.
    Unknown,
    /// It is to be handled.
    Open,
    /// It was completed exactly once, and is remembered.
    Settled,
}

/// How an entry does not fit the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Breach {
    /// Its id stands elsewhere.
    #[error("{}", standing(*.0))]
    Standing(Standing),
    /// There is no such dead letter.
    #[error("has no dead letter {number}")]
    NoLetter {
        /// The number of the letter.
        number: EntryNumber,
    },
    /// The dead letter is another envelope's.
    #[error("is not that of dead letter {number}, which is {id}")]
    LetterOf {
        /// The number of the letter.
        number: EntryNumber,
        /// Its envelope.
        id: EnvelopeId,
    },
    /// The id is nil.
    #[error("has no id")]
    Nil,
    /// The wire form names no stage.
    #[error("stands at no stage")]
    NoStage,
    /// The wire form has no body.
    #[error("has no body")]
    NoBody,
    /// A copy stands at another stage.
    #[error("stands at another stage")]
    Stage,
    /// A copy is of another entry.
    #[error("came in by entry {held}, not {found}")]
    Number {
        /// The entry by which it came in.
        held: EntryNumber,
        /// The one named.
        found: EntryNumber,
    },
    /// The hops do not go on.
    #[error("had taken {held} hops, and is said to have taken {found}")]
    Hops {
        /// What it had.
        held: u32,
        /// What the entry says.
        found: u32,
    },
    /// The attempts do not go on, or do not begin anew.
    #[error("had {held} attempts, and is said to have {found}")]
    Attempts {
        /// What it had.
        held: u16,
        /// What the entry says.
        found: u16,
    },
    /// The body is not the one it had, and no newer one.
    #[error("had body {held}, and is said to have body {found} ({})", body(*.is_new))]
    Body {
        /// What it had.
        held: u32,
        /// What the entry says.
        found: u32,
        /// Whether the entry carries it.
        is_new: bool,
    },
    /// The entry is not behind the last one.
    #[error("is told of behind entry {last}")]
    Passed {
        /// The last entry folded.
        last: EntryNumber,
    },
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => "is not open",
        Standing::Open => "is open already",
        Standing::Settled => "is settled already",
    }
}

fn body(is_new: bool) -> &'static str {
    if is_new { "with it" } else { "without it" }
}
