//! The ids that were completed exactly once, as far back as they are remembered.

use std::collections::{HashSet, VecDeque};

use crate::envelope::EnvelopeId;

/// The last N ids, in the order of their completions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    window: u32,
    /// The oldest first; no id is there twice.
    order: VecDeque<EnvelopeId>,
    ids: HashSet<EnvelopeId>,
}

impl Settled {
    /// How many are remembered.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether this one is among them.
    pub fn contains(&self, id: EnvelopeId) -> bool {
        self.ids.contains(&id)
    }

    /// The ids, that of the oldest completion first.
    pub fn iter(&self) -> std::collections::vec_deque::Iter<'_, EnvelopeId> {
        self.order.iter()
    }

    /// Adds one that is not there; hands back what is forgotten for it.
    pub(super) fn push(&mut self, id: EnvelopeId) -> Vec<EnvelopeId> {
        self.order.push_back(id);
        self.ids.insert(id);
        self.shrink()
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, id: EnvelopeId) {
        if self.ids.remove(&id) {
            self.order.retain(|known| *known != id);
        }
    }

    /// Takes the newest back, and what was forgotten for it.
    pub(super) fn undo_push(&mut self, forgotten: &[EnvelopeId]) {
        self.restore(forgotten);
        if let Some(id) = self.order.pop_back() {
            self.ids.remove(&id);
        }
    }

    /// Changes how many are remembered; hands back what is forgotten for it.
    pub(super) fn set_window(&mut self, window: u32) -> Vec<EnvelopeId> {
        self.window = window;
        self.shrink()
    }

    /// Takes a change of the window back.
    pub(super) fn undo_window(&mut self, window: u32, forgotten: &[EnvelopeId]) {
        self.window = window;
        self.restore(forgotten);
    }

    fn shrink(&mut self) -> Vec<EnvelopeId> {
        let window = usize::try_from(self.window).unwrap_or(usize::MAX);
        let forgotten: Vec<_> = self.order.drain(..self.len().saturating_sub(window)).collect();
        for id in &forgotten {
            self.ids.remove(id);
        }
        forgotten
    }

    fn restore(&mut self, forgotten: &[EnvelopeId]) {
        for &id in forgotten.iter().rev() {
            self.order.push_front(id);
            self.ids.insert(id);
        }
    }
}
