//! A small source of random numbers that a seed repeats.

use crate::sync::{AtomicU64, Ordering};

/// Splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
pub(super) struct Random(AtomicU64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let random = Self(AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        random.next();
        random
    }

    pub(super) fn next(&self) -> u64 {
        // ORDERING: Relaxed: one thread.
        let mut z = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub(super) fn below(&self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("the remainder is below a usize")
    }

    /// A number from `first` to `last`, both included.
    pub(super) fn between(&self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// True once in `times`; never for zero.
    pub(super) fn one_in(&self, times: usize) -> bool {
        times != 0 && self.below(times) == 0
    }

    /// One of `choices`.
    pub(super) fn pick<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
