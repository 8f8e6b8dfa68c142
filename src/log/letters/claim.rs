//! Whether a dead letter may come in again: a re-drive claims its id like a publish.

use super::super::entry::EntryNumber;
use super::super::state::State;

/// What may become of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It comes in.
    Free,
    /// It was re-driven as often as it may be, and stays.
    Guarded,
    /// Its id is on its way, and it stays.
    InFlight,
    /// Its id is remembered as completed, and it goes.
    Duplicate,
}

/// What may become of this letter; `None` when it is there no more.
pub(crate) fn claim(state: &State, letter: EntryNumber, redrives_max: u16) -> Option<Claim> {
    let letter = state.letter(letter)?;
    Some(if letter.held.redrives >= redrives_max {
        Claim::Guarded
    } else if state.open(letter.id).is_some() {
        Claim::InFlight
    } else if state.settled().contains(letter.id) {
        Claim::Duplicate
    } else {
        Claim::Free
    })
}
