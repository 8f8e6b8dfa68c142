//! When records are sent.

use super::options::Rate;

/// When records are due: a late one moves no other.
#[derive(Debug)]
pub struct Schedule {
    begin_ns: u64,
    /// The next record's number.
    index: u64,
}

impl Schedule {
    /// The first record is due at this time.
    #[must_use]
    pub fn from(begin_ns: u64) -> Self {
        Self { begin_ns, index: 0 }
    }

    /// When the next record is due.
    pub fn next(&mut self, rate: Rate) -> u64 {
        let due_ns = self.begin_ns.saturating_add(rate.due_ns(self.index));
        self.index += 1;
        due_ns
    }
}
