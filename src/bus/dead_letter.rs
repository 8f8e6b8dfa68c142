//! Dead letters in memory: bounded, listed, re-driven with a loop guard.

use std::collections::VecDeque;

use crate::envelope::envelope::Cause;
use crate::envelope::{Envelope, EnvelopeId};
use crate::stage::handler::guarded;

/// An envelope that was given up on, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeadLetter<P> {
    /// The envelope; its slip still holds the hops that were left.
    pub envelope: Envelope<P>,
    /// Why.
    pub cause: Cause,
    /// The stage where it was given up; empty when it never reached one.
    pub stage: String,
    /// Attempts at that stage.
    pub attempts: u16,
    /// The stages it visited, oldest first.
    pub trail: Vec<String>,
    /// Milliseconds since 1970 at which it was given up.
    pub at_ms: u64,
}

/// A dead letter without its payload, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterInfo {
    /// The envelope's id.
    pub id: EnvelopeId,
    /// Why it was given up.
    pub cause: Cause,
    /// Where.
    pub stage: String,
    /// Attempts there.
    pub attempts: u16,
    /// The stages it visited, oldest first.
    pub trail: Vec<String>,
    /// Milliseconds since 1970 at which it was given up.
    pub at_ms: u64,
    /// How often it was re-driven before.
    pub redrives: u16,
}

impl<P> DeadLetter<P> {
    /// What a list shows of it.
    #[must_use]
    pub fn info(&self) -> DeadLetterInfo {
        DeadLetterInfo {
            id: self.envelope.id(),
            cause: self.cause.clone(),
            stage: self.stage.clone(),
            attempts: self.attempts,
            trail: self.trail.clone(),
            at_ms: self.at_ms,
            redrives: self.envelope.redrives(),
        }
    }
}

/// Which dead letters to re-drive, and within which bounds.
///
/// ```
/// use waystage::Redrive;
/// let plan = Redrive { stage: Some("archive".into()), limit: 100, ..Redrive::default() };
/// assert_eq!(plan.redrives_max, 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// Only this one.
    pub id: Option<EnvelopeId>,
    /// Only those given up at this stage.
    pub stage: Option<String>,
    /// Only those with this cause, by [`Cause::name`].
    pub cause: Option<String>,
    /// Where they go: another stage than the one where they failed.
    pub to: Option<String>,
    /// At most this many. Default: no limit.
    pub limit: usize,
    /// Loop guard: one that was re-driven this often stays where it is. Default 3.
    pub redrives_max: u16,
}

impl Default for Redrive {
    fn default() -> Self {
        Self { id: None, stage: None, cause: None, to: None, limit: usize::MAX, redrives_max: 3 }
    }
}

impl Redrive {
    pub(crate) fn picks<P>(&self, letter: &DeadLetter<P>) -> bool {
        self.id.is_none_or(|id| id == letter.envelope.id())
            && self.stage.as_ref().is_none_or(|stage| *stage == letter.stage)
            && self.cause.as_ref().is_none_or(|cause| cause == letter.cause.name())
    }
}

/// What a re-drive did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redriven {
    /// Taken in again.
    pub redriven: usize,
    /// Left, because they were re-driven as often as allowed.
    pub guarded: usize,
    /// Left, because the stage did not take them.
    pub refused: usize,
}

/// The dead letters of one bus.
#[derive(Debug)]
pub(crate) struct DeadLetters<P> {
    pub(crate) letters: VecDeque<DeadLetter<P>>,
    limit: usize,
}

impl<P> Drop for DeadLetters<P> {
    /// One by one: two payloads that panic when dropped together would end the process.
    fn drop(&mut self) {
        while let Some(letter) = self.letters.pop_front() {
            // There is no bus left to count the panic.
            let _ = guarded(|| drop(letter));
        }
    }
}

impl<P> DeadLetters<P> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { letters: VecDeque::new(), limit }
    }

    /// Keeps one more; hands back the oldest when there are too many.
    #[must_use]
    pub(crate) fn keep(&mut self, letter: DeadLetter<P>) -> Option<DeadLetter<P>> {
        self.letters.push_back(letter);
        if self.letters.len() > self.limit { self.letters.pop_front() } else { None }
    }
}
