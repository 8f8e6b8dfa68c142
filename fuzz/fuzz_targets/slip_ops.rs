//! Any operations on a slip: it behaves as two lists, of hops to visit and of stages visited.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use waystage::envelope::slip::{INLINE_HOPS, Route, Slip, SlipError};

#[derive(Debug, Arbitrary)]
enum Step {
    Push(u16),
    PushMany(u8),
    PushForeign,
    Append(u16),
    Ratchet,
    RatchetMany(u8),
    Clear,
}

#[derive(Default)]
struct Model {
    slip: Slip,
    /// The next hop last.
    remaining: Vec<Route>,
    /// All ever visited, the newest last.
    visited: Vec<Route>,
    at_stage: bool,
    /// The most hops and visits there ever were at once.
    peak: usize,
}

fn route(index: u16) -> Route {
    Route::for_fuzzing(1, index)
}

impl Model {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Push(index) => self.push(index),
            Step::PushMany(count) => (0..count).for_each(|index| self.push(index.into())),
            Step::PushForeign => {
                let foreign = Route::for_fuzzing(2, 0);
                if !self.remaining.is_empty() {
                    assert_eq!(self.slip.push(foreign), Err(SlipError::ForeignRoute));
                    assert_eq!(self.slip.append(foreign), Err(SlipError::ForeignRoute));
                }
            }
            Step::Append(index) => {
                self.slip.append(route(index)).expect("far from full");
                self.remaining.insert(0, route(index));
            }
            Step::Ratchet => self.ratchet(),
            Step::RatchetMany(count) => (0..count).for_each(|_| self.ratchet()),
            Step::Clear => {
                self.slip.clear();
                self.remaining.clear();
            }
        }
        self.check();
    }

    fn push(&mut self, index: u16) {
        self.slip.push(route(index)).expect("far from full");
        self.remaining.push(route(index));
    }

    fn ratchet(&mut self) {
        let next = self.remaining.pop();
        assert_eq!(self.slip.ratchet(), next);
        self.at_stage = next.is_some();
        self.visited.extend(next);
    }

    fn check(&mut self) {
        self.peak = self.peak.max(self.remaining.len() + self.visited.len());
        let current = self.visited.last().copied().filter(|_| self.at_stage);
        assert_eq!(self.slip.current(), current);
        assert_eq!(self.slip.peek_next(), self.remaining.last().copied());
        assert_eq!(self.slip.remaining(), self.remaining.len());
        assert!(self.slip.routes().eq(self.remaining.iter().rev().copied()));
        let trail: Vec<Route> = self.slip.trail().collect();
        assert!(self.visited.ends_with(&trail));
        assert!(!self.at_stage || !trail.is_empty());
        assert!(self.peak > INLINE_HOPS || trail == self.visited);
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut model = Model::default();
    for step in steps.iter().take(200) {
        model.step(step);
    }
});
