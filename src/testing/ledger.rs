//! The books of the simulator, kept apart from those of the bus.

use crate::envelope::Settled;
use crate::metrics::Conservation;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Made, not taken in: refused, with its producer, or in a future.
    Outside,
    /// Taken in.
    Accepted,
}

#[derive(Debug, Clone)]
struct Entry {
    fate: Fate,
    /// Whether it has a callback.
    told: bool,
    ends: Vec<Settled>,
    /// Whether the callback got the envelope.
    came_back: bool,
}

/// Everything that was published and what became of it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Mutex<Vec<Entry>>,
    /// Payloads with a destructor that exist.
    alive: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Ledger {
    pub(super) fn make(&self, told: bool) -> usize {
        let mut entries = lock(&self.entries);
        entries.push(Entry { fate: Fate::Outside, told, ends: Vec::new(), came_back: false });
        entries.len() - 1
    }

    pub(super) fn accept(&self, uid: usize) {
        let mut entries = lock(&self.entries);
        if entries[uid].fate == Fate::Accepted {
            drop(entries);
            return self.fail(format!("envelope {uid} was accepted twice"));
        }
        entries[uid].fate = Fate::Accepted;
    }

    pub(super) fn end(&self, uid: usize, end: Settled, came_back: bool) {
        let mut entries = lock(&self.entries);
        entries[uid].ends.push(end);
        entries[uid].came_back = came_back;
    }

    /// Says of a tracked envelope whether it came back: its own callback never gets it.
    pub(super) fn came_back(&self, uid: usize, came_back: bool) {
        lock(&self.entries)[uid].came_back = came_back;
    }

    pub(super) fn packed(&self) {
        // ORDERING: Relaxed: one thread.
        self.alive.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unpacked(&self) {
        // ORDERING: Relaxed: one thread.
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn alive(&self) -> usize {
        // ORDERING: Relaxed: one thread.
        self.alive.load(Ordering::Relaxed)
    }

    /// Notes what must not be. Not a panic: that might be caught as a handler's.
    pub(super) fn fail(&self, problem: impl Into<String>) {
        lock(&self.failures).push(problem.into());
    }

    pub(super) fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    pub(super) fn has_failed(&self) -> bool {
        !lock(&self.failures).is_empty()
    }

    /// Compares with the books of the bus, at rest. `redriven`: as the calls reported;
    /// `letters`: dead letters in the store, and taken out of it for good.
    pub(super) fn compare(&self, books: Conservation, redriven: u64, letters: u64) {
        let mut mine = Conservation { redriven, ..Conservation::default() };
        let (mut untold, mut buried) = (0_u64, 0_u64);
        for (uid, entry) in lock(&self.entries).clone().iter().enumerate() {
            let is_accepted = entry.fate == Fate::Accepted;
            mine.accepted += u64::from(is_accepted);
            let want = usize::from(is_accepted && entry.told);
            if entry.ends.len() != want {
                self.fail(format!("envelope {uid}: told {} times, {entry:?}", entry.ends.len()));
            }
            untold += u64::from(is_accepted && !entry.told);
            match entry.ends.first() {
                None => {}
                Some(Settled::Completed) => mine.completed += 1,
                Some(Settled::Dead(_)) => {
                    mine.dead += 1;
                    buried += u64::from(!entry.came_back);
                }
                Some(Settled::Expired) => mine.expired += 1,
                Some(Settled::Dropped) => mine.dropped += 1,
                Some(Settled::Undelivered) => mine.undelivered += 1,
            }
        }
        if (books.accepted, books.redriven) != (mine.accepted, mine.redriven) {
            self.fail(format!("taken in: the bus says {books:?}, the ledger {mine:?}"));
        }
        if books.settled() != mine.settled() + untold + redriven {
            self.fail(format!("settled, {untold} untold: {books:?}, the ledger {mine:?}"));
        }
        // Each outcome is told, or belongs to one of those without a callback. What the store
        // evicted is dead in the ledger, dropped in the books.
        let evicted = books.dropped.saturating_sub(mine.dropped);
        let extra = i128::from(untold + redriven);
        for (name, theirs, ours) in [
            ("completed", books.completed, mine.completed),
            ("expired", books.expired, mine.expired),
            ("dropped", books.dropped, mine.dropped),
            ("undelivered", books.undelivered, mine.undelivered),
            ("dead", books.dead + evicted, mine.dead),
        ] {
            let more = i128::from(theirs) - i128::from(ours);
            if more < 0 || (more > extra && !matches!(name, "dropped")) {
                self.fail(format!("{name}: {books:?}, the ledger {mine:?}"));
            }
        }
        if untold + redriven == 0 && buried != letters + evicted {
            self.fail(format!("{buried} buried, {letters} kept, {evicted} evicted"));
        }
    }
}
