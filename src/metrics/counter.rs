//! Counters that rise: one for a single writer, one for many, and stripes of both.
//!
//! A relaxed load and store costs a ninth of a locked addition, so whoever is the only writer (a
//! worker of its own stripe, the holder of a stage's only permit) uses `add_alone`.

use crate::sync::{CachePadded, MeterU64, Ordering};

/// A rising number.
#[derive(Debug, Default)]
pub struct Counter(MeterU64);

impl Counter {
    /// Adds when other threads may add at the same time.
    #[inline]
    pub fn add(&self, count: u64) {
        // ORDERING: Release, pairs with `get`: who sees this count sees those made before it.
        self.0.fetch_add(count, Ordering::Release);
    }

    /// Adds when the caller is the only writer.
    #[inline]
    pub fn add_alone(&self, count: u64) {
        // ORDERING: Release, as in `add`; the load is of the writer's own value.
        self.0.store(self.0.load(Ordering::Relaxed) + count, Ordering::Release);
    }

    /// Adds, by the cheaper way if `alone`.
    #[inline]
    pub fn add_as(&self, alone: bool, count: u64) {
        if alone { self.add_alone(count) } else { self.add(count) }
    }

    /// Takes back what was added too early.
    pub fn subtract(&self, count: u64) {
        // ORDERING: Relaxed: who reads it may see it later than what follows.
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        // ORDERING: Acquire, pairs with `add`: what was settled was accepted before.
        self.0.load(Ordering::Acquire)
    }

    /// Overwrites the number: for the few meters that are a last value and not a count.
    pub fn set(&self, value: u64) {
        // ORDERING: Relaxed: a reading for reports.
        self.0.store(value, Ordering::Relaxed);
    }
}

/// The counter of one way in, and whether its user is the only writer.
#[derive(Debug, Clone, Copy)]
pub struct Tally<'a> {
    counter: &'a Counter,
    alone: bool,
}

impl<'a> Tally<'a> {
    /// A counter that others write, too.
    pub fn shared(counter: &'a Counter) -> Self {
        Self { counter, alone: false }
    }

    /// A counter that only its user writes.
    pub fn alone(counter: &'a Counter) -> Self {
        Self { counter, alone: true }
    }

    /// Counts before a push, so that nothing is settled before it is counted.
    #[inline]
    pub fn add(self, count: usize) {
        self.counter.add_as(self.alone, count as u64);
    }

    /// Takes back what was not pushed after all.
    pub fn subtract(self, count: usize) {
        self.counter.subtract(count as u64);
    }
}

/// One stripe per worker with a single writer each, and a last one shared by all other threads.
#[derive(Debug)]
pub struct Striped<T>(Box<[CachePadded<T>]>);

impl<T: Default> Striped<T> {
    /// Stripes for `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self((0..=workers).map(|_| CachePadded::new(T::default())).collect())
    }

    /// The stripe of `worker`, and whether it is that thread's alone.
    #[inline]
    pub fn of(&self, worker: usize) -> (&T, bool) {
        let last = self.0.len() - 1;
        (&self.0[worker.min(last)], worker < last)
    }

    /// The sum of one number over all stripes.
    pub fn sum(&self, number: impl Fn(&T) -> u64) -> u64 {
        self.0.iter().map(|stripe| number(stripe)).sum()
    }

    /// All stripes, the shared one last.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|stripe| &**stripe)
    }
}
