//! Which dead letters.

use super::super::entry::EntryNumber;
use super::super::state::{Letter, State};
use crate::envelope::EnvelopeId;

/// Which dead letters: those that fit everything that is said. By default all.
///
/// ```
/// use waystage::LetterFilter;
/// let filter = LetterFilter { stage: Some("archive".into()), ..LetterFilter::default() };
/// assert!(!filter.is_all());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LetterFilter {
    /// Only those with one of these ids, unless there are none.
    pub ids: Vec<EnvelopeId>,
    /// Only these letters of the log, by the entries that made them, unless there are none.
    pub letters: Vec<EntryNumber>,
    /// Only those given up at this stage.
    pub stage: Option<String>,
    /// Only those with this cause, by [`Cause::name`](crate::Cause::name).
    pub cause: Option<String>,
    /// Only those whose reason has this text in it.
    pub error: Option<String>,
    /// Only those given up at this time, in unix milliseconds, or later.
    pub since_ms: Option<u64>,
}

/// What a filter looks at.
pub(crate) struct Looks<'a> {
    /// `None` in memory.
    pub(crate) letter: Option<EntryNumber>,
    pub(crate) id: EnvelopeId,
    pub(crate) stage: &'a str,
    pub(crate) cause: &'static str,
    pub(crate) reason: &'a str,
    pub(crate) at_ms: u64,
}

impl LetterFilter {
    /// Whether nothing is said, so that every letter fits.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a letter of a log fits.
    #[must_use]
    pub fn picks(&self, number: EntryNumber, letter: &Letter) -> bool {
        self.fits(&Looks {
            letter: Some(number),
            id: letter.id,
            stage: &letter.held.stage,
            cause: letter.cause.name(),
            reason: &letter.reason,
            at_ms: letter.at_ms,
        })
    }

    /// The letters of a state that fit, the oldest first.
    #[must_use]
    pub fn picked(&self, state: &State) -> Vec<EntryNumber> {
        let fits = |(number, letter): &(EntryNumber, &Letter)| self.picks(*number, letter);
        state.letters().filter(fits).map(|(number, _)| number).collect()
    }

    pub(crate) fn fits(&self, letter: &Looks<'_>) -> bool {
        let is_named = self.letters.is_empty() && self.ids.is_empty()
            || self.ids.contains(&letter.id)
            || letter.letter.is_some_and(|number| self.letters.contains(&number));
        is_named
            && self.stage.as_ref().is_none_or(|stage| stage == letter.stage)
            && self.cause.as_ref().is_none_or(|cause| cause == letter.cause)
            && self.error.as_ref().is_none_or(|error| letter.reason.contains(error.as_str()))
            && self.since_ms.is_none_or(|since| letter.at_ms >= since)
    }
}
