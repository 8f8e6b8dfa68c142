//! Kinds of entries as stable numbers.

use super::Entry;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants are those of `Entry`")]
pub enum EntryKind {
    Accept = 1,
    Hop,
    Attempt,
    Completed,
    Expired,
    Dead,
    Redriven,
    Purged,
    Duplicate,
    State,
    Source,
    Sink,
    Copy,
    Window,
    Handled,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::Accept,
        Self::Hop,
        Self::Attempt,
        Self::Completed,
        Self::Expired,
        Self::Dead,
        Self::Redriven,
        Self::Purged,
        Self::Duplicate,
        Self::State,
        Self::Source,
        Self::Sink,
        Self::Copy,
        Self::Window,
        Self::Handled,
    ];

    /// The number on the medium.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Hop => "hop",
            Self::Attempt => "attempt",
            Self::Completed => "completed",
            Self::Expired => "expired",
            Self::Dead => "dead",
            Self::Redriven => "redriven",
            Self::Purged => "purged",
            Self::Duplicate => "duplicate",
            Self::State => "state",
            Self::Source => "source",
            Self::Sink => "sink",
            Self::Copy => "copy",
            Self::Window => "window",
            Self::Handled => "handled",
        }
    }
}

impl Entry<'_> {
    /// Its kind.
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Accept { .. } => EntryKind::Accept,
            Self::Hop { .. } => EntryKind::Hop,
            Self::Attempt { .. } => EntryKind::Attempt,
            Self::Completed { .. } => EntryKind::Completed,
            Self::Expired { .. } => EntryKind::Expired,
            Self::Dead { .. } => EntryKind::Dead,
            Self::Redriven { .. } => EntryKind::Redriven,
            Self::Purged { .. } => EntryKind::Purged,
            Self::Duplicate { .. } => EntryKind::Duplicate,
            Self::State { .. } => EntryKind::State,
            Self::Source { .. } => EntryKind::Source,
            Self::Sink { .. } => EntryKind::Sink,
            Self::Copy { .. } => EntryKind::Copy,
            Self::Window { .. } => EntryKind::Window,
            Self::Handled { .. } => EntryKind::Handled,
        }
    }
}
