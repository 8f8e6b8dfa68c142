//! Explores a model completely within its bound, and says how much that was.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Runs `body` in every order that at most `bound` preemptions allow, and prints how many runs that
/// took. A `LOOM_MAX_PREEMPTIONS` below `bound` lowers it.
///
/// # Panics
/// When a run fails, or when loom was told to stop early: then nothing is shown.
pub fn explore(name: &str, bound: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    assert!(
        builder.max_duration.is_none() && builder.max_permutations.is_none(),
        "LOOM_MAX_DURATION and LOOM_MAX_PERMUTATIONS end a search early and let it pass"
    );
    assert!(builder.checkpoint_file.is_none(), "LOOM_CHECKPOINT_FILE begins a search in its midst");
    let bound = builder.preemption_bound.map_or(bound, |ceiling| bound.min(ceiling));
    builder.preemption_bound = Some(bound);
    let iterations = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&iterations);
    let begin = now();
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        body();
    });
    let iterations = iterations.load(Relaxed);
    assert!(iterations > 0, "{name}: no run at all");
    // Not `println`: that is shown for failing tests only.
    let seconds = begin.elapsed().as_secs_f64();
    let line = format!("model {name}: bound {bound}, {iterations} iterations, {seconds:.1} s\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[expect(clippy::disallowed_methods, reason = "how long a model takes is for people to read")]
fn now() -> Instant {
    Instant::now()
}

/// Counts in how many runs something was seen, so that a model can demand that its race happens.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<AtomicUsize>);

impl Seen {
    /// Not seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Seen in this run if `it` is true.
    pub fn note(&self, it: bool) {
        self.0.fetch_add(usize::from(it), Relaxed);
    }

    /// In how many runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.0.load(Relaxed)
    }
}
