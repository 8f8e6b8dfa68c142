//! Whether this thread is inside a turn: there, waiting for the bus would be waiting for itself.

use crate::sync::thread_cell;

thread_cell!(INSIDE: bool = false);

/// Marks this thread as inside a turn until dropped.
#[derive(Debug)]
pub struct InTurn {
    before: bool,
}

impl InTurn {
    /// Begins a turn on this thread.
    pub fn begin() -> Self {
        Self { before: INSIDE.with(|inside| inside.replace(true)) }
    }
}

#[cfg(test)]
impl InTurn {
    /// Plays another thread, outside of any turn, until dropped.
    pub fn end() -> Self {
        Self { before: INSIDE.replace(false) }
    }
}

impl Drop for InTurn {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(self.before));
    }
}

/// Whether this thread is inside a turn.
pub fn is_in_turn() -> bool {
    INSIDE.with(std::cell::Cell::get)
}
