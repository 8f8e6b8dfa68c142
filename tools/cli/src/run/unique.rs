//! Whether an id was seen lately, in bounded memory.

use std::collections::{HashSet, VecDeque};

use waystage::EnvelopeId;

/// The last ids that were let through.
#[derive(Debug)]
pub struct Window {
    size: usize,
    order: VecDeque<EnvelopeId>,
    seen: HashSet<EnvelopeId>,
}

impl Window {
    /// A window over the last `size` ids.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { size, order: VecDeque::new(), seen: HashSet::new() }
    }

    /// Whether it was let through lately.
    #[must_use]
    pub fn has(&self, id: EnvelopeId) -> bool {
        self.seen.contains(&id)
    }

    /// Takes a new id in.
    pub fn add(&mut self, id: EnvelopeId) {
        if self.size == 0 || self.has(id) {
            return;
        }
        if self.order.len() >= self.size
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.order.push_back(id);
        self.seen.insert(id);
    }
}

#[cfg(test)]
mod tests {
    use waystage::EnvelopeId;

    use super::Window;

    #[test]
    fn forgets_what_is_older_than_the_window() {
        let mut window = Window::new(2);
        let answers = ["a", "b", "a", "c", "b", "a"].map(|key| {
            let id = EnvelopeId::from_key(key.as_bytes());
            let seen = window.has(id);
            window.add(id);
            seen
        });
        assert_eq!(answers, [false, false, true, false, true, false]);
    }
}
