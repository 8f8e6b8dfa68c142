//! Whether a log that seems to end too early is torn there or damaged: what `verify` says of its
//! records.

use std::path::Path;

use waystage::log::verify::{Depth, Finding, verify};
use waystage::log::{LogError, Outline, outline};

use crate::words::{count, harmless};

/// What is wrong with the records of a log, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Whole,
    /// A crash cut its last records short: opening it cuts them.
    Torn(String),
    /// Something else, which opening it refuses or passes over.
    Damaged(String),
}

impl Condition {
    /// Looks at the log's end, and at all of it where that is not as a clean one is.
    ///
    /// # Errors
    /// What the storage says.
    pub fn at_the_end(log: &Path) -> Result<Self, LogError> {
        let outline = outline(log)?;
        if is_odd(&outline) { Self::of(log) } else { Ok(Self::Whole) }
    }

    /// Reads the whole log.
    ///
    /// # Errors
    /// What the storage says.
    pub fn of(log: &Path) -> Result<Self, LogError> {
        let findings = verify(log, Depth::Records)?.findings;
        let damage = findings.iter().find(|finding| !finding.is_torn);
        Ok(match (damage, findings.first()) {
            (Some(damage), _) => Self::Damaged(words(damage, "this is damage")),
            (None, Some(torn)) => {
                Self::Torn(words(torn, "a torn tail, which opening the log cuts"))
            }
            (None, None) => Self::Whole,
        })
    }

    /// The damage, if it is one.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        match self {
            Self::Damaged(words) => Some(words),
            Self::Whole | Self::Torn(_) => None,
        }
    }
}

/// Whether something is there that is no record, or a segment is not.
#[must_use]
pub fn is_odd(outline: &Outline) -> bool {
    let mut pairs = outline.segments.iter().zip(outline.segments.iter().skip(1));
    outline.is_cut_short || pairs.any(|(one, next)| one.number + 1 != next.number)
}

fn words(finding: &Finding, verdict: &str) -> String {
    let (segment, offset) = (finding.location.segment, count(finding.location.offset));
    let what = harmless(&finding.what.to_string());
    format!("no record stands in segment {segment} at offset {offset}: {what}; {verdict}")
}
