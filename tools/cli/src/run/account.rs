//! The account of the input: every line that was read is somewhere.

/// What became of the lines that were read; a row of CSV counts as one, however long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lines {
    /// All of them.
    pub read: u64,
    /// The bus took them.
    pub accepted: u64,
    /// It did not, or they were not fit for it.
    pub refused: u64,
    /// Their id was seen before.
    pub skipped: u64,
    /// They have no text.
    pub blank: u64,
    /// They are headers of CSV.
    pub headers: u64,
    /// A stop came before they were sent.
    pub unsent: u64,
}

impl Lines {
    /// Everything but `read`: equal to it once the input is at rest.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.accepted + self.ended()
    }

    /// Those that ended without the bus.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.refused + self.skipped + self.blank + self.headers + self.unsent
    }
}
