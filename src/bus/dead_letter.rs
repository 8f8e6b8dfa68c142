//! Dead letters in memory: bounded, listed, re-driven with a loop guard. What is re-driven, and
//! how far, is said as for those of a log.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::envelope::envelope::Cause;
use crate::envelope::{Envelope, EnvelopeId};
use crate::log::entry::CauseCode;
use crate::log::letters::{LetterFilter, Looks, Redrive};
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
    /// Whether the log has it, so that it is there after the end of this bus.
    pub is_in_log: bool,
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
            is_in_log: false,
        }
    }

    pub(crate) fn fits(&self, filter: &LetterFilter) -> bool {
        filter.fits(&Looks {
            letter: None,
            id: self.envelope.id(),
            stage: &self.stage,
            cause: self.cause.name(),
            reason: CauseCode::of(&self.cause).1,
            at_ms: self.at_ms,
        })
    }
}

/// The dead letters of one bus, by the number of their coming: one that was taken out and put back
/// stands where it stood, whatever came and went meanwhile.
#[derive(Debug)]
pub(crate) struct DeadLetters<P> {
    letters: BTreeMap<u64, DeadLetter<P>>,
    /// The number of the next one.
    next: u64,
    limit: usize,
}

impl<P> Drop for DeadLetters<P> {
    /// One by one: two payloads that panic when dropped together would end the process.
    fn drop(&mut self) {
        while let Some(letter) = self.letters.pop_first() {
            // There is no bus left to count the panic.
            let _ = guarded(|| drop(letter));
        }
    }
}

impl<P> DeadLetters<P> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { letters: BTreeMap::new(), next: 0, limit }
    }

    /// Keeps one more; hands back the oldest when there are too many.
    #[must_use]
    pub(crate) fn keep(&mut self, letter: DeadLetter<P>) -> Option<DeadLetter<P>> {
        let number = self.next;
        self.next += 1;
        self.put_back(number, letter)
    }

    /// Keeps one that was taken out, in its place; hands back the oldest when there are too many.
    #[must_use]
    pub(crate) fn put_back(&mut self, number: u64, letter: DeadLetter<P>) -> Option<DeadLetter<P>> {
        self.letters.insert(number, letter);
        let oldest = (self.letters.len() > self.limit).then(|| self.letters.pop_first());
        oldest.flatten().map(|(_, letter)| letter)
    }

    /// The numbers of all that came so far.
    pub(crate) fn numbers(&self) -> Range<u64> {
        0..self.next
    }

    /// Takes out the oldest within `numbers` that `plan` picks, and begins `numbers` behind it.
    /// Those that were re-driven too often are left, and counted.
    pub(crate) fn take_next(
        &mut self,
        numbers: &mut Range<u64>,
        plan: &Redrive,
        too_often: &mut usize,
    ) -> Option<(u64, DeadLetter<P>)> {
        for (&number, letter) in self.letters.range(numbers.clone()) {
            if !letter.fits(&plan.filter) {
                continue;
            }
            if letter.envelope.redrives() >= plan.redrives_max {
                *too_often += 1;
                continue;
            }
            numbers.start = number + 1;
            return Some((number, self.letters.remove(&number)?));
        }
        None
    }

    /// Takes out all that fit.
    pub(crate) fn take_all(&mut self, filter: &LetterFilter) -> Vec<DeadLetter<P>> {
        let fits = self.letters.iter().filter(|(_, letter)| letter.fits(filter));
        let numbers: Vec<u64> = fits.map(|(&number, _)| number).collect();
        numbers.iter().filter_map(|number| self.letters.remove(number)).collect()
    }

    /// Takes out the oldest one with this id.
    pub(crate) fn take(&mut self, id: EnvelopeId) -> Option<DeadLetter<P>> {
        let (&number, _) = self.iter().find(|(_, letter)| letter.envelope.id() == id)?;
        self.letters.remove(&number)
    }

    /// All of them, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&u64, &DeadLetter<P>)> {
        self.letters.iter()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.letters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, DeadLetter, DeadLetters, Redrive};
    use crate::envelope::{Envelope, Slip};

    fn letter(payload: u64) -> DeadLetter<u64> {
        DeadLetter {
            envelope: Envelope::new(payload, Slip::new()),
            cause: Cause::NoRoute,
            stage: String::new(),
            attempts: 0,
            trail: Vec::new(),
            at_ms: 0,
        }
    }

    fn payloads(dead: &DeadLetters<u64>) -> Vec<u64> {
        dead.iter().map(|(_, letter)| *letter.envelope.payload()).collect()
    }

    #[test]
    fn one_that_is_put_back_stands_where_it_stood_and_the_bound_holds() {
        let mut dead = DeadLetters::new(3);
        for payload in 0..3 {
            assert!(dead.keep(letter(payload)).is_none());
        }
        let (mut numbers, plan, mut guarded) = (dead.numbers(), Redrive::default(), 0);
        let mut next = |dead: &mut DeadLetters<u64>| {
            dead.take_next(&mut numbers, &plan, &mut guarded).map(|(number, _)| number)
        };
        assert_eq!((next(&mut dead), next(&mut dead)), (Some(0), Some(1)));
        // Two more come while the first two are out.
        assert!(dead.keep(letter(3)).is_none() && dead.keep(letter(4)).is_none());
        let evicted = dead.put_back(1, letter(1)).map(|letter| letter.envelope.into_payload());
        assert_eq!((evicted, payloads(&dead)), (Some(1), vec![2, 3, 4]), "it is the oldest");
        assert_eq!(next(&mut dead), Some(2), "an eviction shifts nothing");
        assert!(dead.put_back(2, letter(2)).is_none());
        assert_eq!(payloads(&dead), [2, 3, 4]);
        assert_eq!(next(&mut dead), None, "what came later is not taken");
    }
}
