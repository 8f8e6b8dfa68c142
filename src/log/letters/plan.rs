//! What becomes of dead letters, and what became of them.

use super::LetterFilter;

/// Which dead letters to re-drive, and within which bounds.
///
/// ```
/// use waystage::{LetterFilter, Redrive};
/// let filter = LetterFilter { stage: Some("archive".into()), ..LetterFilter::default() };
/// let plan = Redrive { filter, limit: 100, ..Redrive::default() };
/// assert_eq!(plan.redrives_max, 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// Which ones.
    pub filter: LetterFilter,
    /// Where they go: another stage than the one where they failed.
    pub to: Option<String>,
    /// At most this many come in. Default: no limit.
    pub limit: usize,
    /// Loop guard: one that was re-driven this often stays where it is. Default 3.
    pub redrives_max: u16,
    /// Only say what would be done.
    pub dry_run: bool,
}

impl Default for Redrive {
    fn default() -> Self {
        let filter = LetterFilter::default();
        Self { filter, to: None, limit: usize::MAX, redrives_max: 3, dry_run: false }
    }
}

/// What a re-drive did, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redriven {
    /// Taken in again.
    pub redriven: usize,
    /// Left, because they were re-driven as often as allowed.
    pub guarded: usize,
    /// Left, because their id is on its way, because their stage is not open or did not take them,
    /// or because they cannot be read; or dropped, if newer ones had filled the store meanwhile.
    pub refused: usize,
    /// Removed, because an envelope with their id has completed since.
    pub duplicates: usize,
}
