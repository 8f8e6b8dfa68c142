//! Where envelopes wait: the ring, and the side list for the rest of an opened block.
//!
//! Bounds: single envelopes by the ring's slots, with no counter; envelopes in blocks by credits
//! (`capacity` of them), touched on the batch path alone; the side list by one block per permit,
//! and where `DropOldest` moves slots to it by `capacity`.
//! Order: the side list is older than the ring, so it is taken first.

use std::collections::VecDeque;

use crate::envelope::Envelope;
use crate::sync::{AtomicUsize, Mutex, Ordering, Ring, lock, pause_point};

/// Envelopes that travel together in one slot.
pub(crate) type Block<P> = VecDeque<Envelope<P>>;

/// What one slot of the ring holds.
pub(crate) enum Slot<P> {
    One(Envelope<P>),
    Block(Block<P>),
}

/// The waiting envelopes of one stage.
pub(crate) struct Queue<P> {
    ring: Ring<Slot<P>>,
    side: Mutex<VecDeque<Envelope<P>>>,
    /// Length of the side list; written under its lock, read by takers and reports.
    side_len: AtomicUsize,
    /// Envelopes that may still enter in blocks.
    credits: AtomicUsize,
    /// Blocks in the ring.
    blocks: AtomicUsize,
}

impl<P> Queue<P> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            ring: Ring::new(capacity),
            side: Mutex::new(VecDeque::new()),
            side_len: AtomicUsize::new(0),
            credits: AtomicUsize::new(capacity),
            blocks: AtomicUsize::new(0),
        }
    }

    /// P2: pushes one envelope, or gives it back when the ring is full.
    #[inline]
    pub(crate) fn push(&self, envelope: Envelope<P>) -> Result<(), Envelope<P>> {
        match self.ring.push(Slot::One(envelope)) {
            Ok(()) => Ok(()),
            Err(Slot::One(envelope)) => Err(envelope),
            Err(Slot::Block(_)) => unreachable!("the ring gives back what was pushed"),
        }
    }

    /// P2 for a block: pushes all of it, or gives it back.
    pub(crate) fn push_block(&self, block: Block<P>) -> Result<(), Block<P>> {
        let count = block.len();
        if !self.take_credits(count) {
            return Err(block);
        }
        pause_point();
        // ORDERING: Relaxed on both: counts for reports; the ring orders the envelopes.
        self.blocks.fetch_add(1, Ordering::Relaxed);
        match self.ring.push(Slot::Block(block)) {
            Ok(()) => Ok(()),
            Err(Slot::Block(block)) => {
                self.blocks.fetch_sub(1, Ordering::Relaxed);
                self.credits.fetch_add(count, Ordering::Relaxed);
                Err(block)
            }
            Err(Slot::One(_)) => unreachable!("the ring gives back what was pushed"),
        }
    }

    /// Takes the oldest slot, or the oldest envelope of the side list.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Slot<P>> {
        if self.has_side()
            && let Some(envelope) = self.pop_side()
        {
            return Some(Slot::One(envelope));
        }
        let slot = self.pop_ring()?;
        if self.has_side() {
            // Someone took an older slot and put it on the side list meanwhile.
            return self.queue_behind_side(slot);
        }
        Some(slot)
    }

    #[inline(always)]
    fn pop_ring(&self) -> Option<Slot<P>> {
        let slot = self.ring.pop()?;
        pause_point();
        if let Slot::Block(block) = &slot {
            // ORDERING: Relaxed: a count for reports.
            self.blocks.fetch_sub(1, Ordering::Relaxed);
            // ORDERING: SeqCst, before the look at the state word that follows a pop; pairs with
            // `take_credits`: a publisher that registered and found no credits is seen there.
            self.credits.fetch_add(block.len(), Ordering::SeqCst);
        }
        Some(slot)
    }

    /// Puts a slot behind the side list and takes the front of that.
    #[cold]
    fn queue_behind_side(&self, slot: Slot<P>) -> Option<Slot<P>> {
        let mut side = lock(&self.side);
        extend(&mut side, slot);
        let first = side.pop_front();
        self.note_side(&side);
        first.map(Slot::One)
    }

    /// Makes room: the envelopes of the oldest slot join the side list, and the oldest of all is
    /// taken out; more of them while the side list is longer than the ring.
    pub(crate) fn displace(&self) -> Vec<Envelope<P>> {
        let mut side = lock(&self.side);
        // ORDERING: SeqCst, before the pop; pairs with the second look in `pop`: who takes a
        // younger slot after this waits for us and queues behind.
        self.side_len.store(side.len().max(1), Ordering::SeqCst);
        if let Some(slot) = self.pop_ring() {
            extend(&mut side, slot);
        }
        let mut victims: Vec<_> = side.pop_front().into_iter().collect();
        while side.len() > self.ring.capacity() {
            victims.extend(side.pop_front());
        }
        self.note_side(&side);
        victims
    }

    /// Takes the oldest single envelope; the rest of an opened block goes to the side list.
    pub(crate) fn pop_one(&self) -> Option<Envelope<P>> {
        match self.pop()? {
            Slot::One(envelope) => Some(envelope),
            Slot::Block(mut block) => {
                let first = block.pop_front();
                self.stash(&mut block);
                first
            }
        }
    }

    /// Puts the rest of a block where any permit holder takes it first, before what is there.
    pub(crate) fn stash(&self, rest: &mut Block<P>) {
        if rest.is_empty() {
            return;
        }
        let mut side = lock(&self.side);
        pause_point();
        while let Some(envelope) = rest.pop_back() {
            side.push_front(envelope);
        }
        self.note_side(&side);
    }

    fn note_side(&self, side: &VecDeque<Envelope<P>>) {
        // ORDERING: SeqCst, pairs with `has_side`: a releaser that looks after this sees it.
        self.side_len.store(side.len(), Ordering::SeqCst);
    }

    #[inline]
    fn has_side(&self) -> bool {
        // ORDERING: SeqCst, pairs with the stores under the lock.
        self.side_len.load(Ordering::SeqCst) != 0
    }

    #[cold]
    fn pop_side(&self) -> Option<Envelope<P>> {
        let mut side = lock(&self.side);
        let envelope = side.pop_front();
        self.note_side(&side);
        envelope
    }

    /// R3: whether anything waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty() && !self.has_side()
    }

    /// Whether no slot is free.
    pub(crate) fn is_full(&self) -> bool {
        self.ring.is_full()
    }

    /// Whether at least half of the slots are free.
    pub(crate) fn is_half_empty(&self) -> bool {
        self.ring.len() <= self.ring.capacity() / 2
    }

    /// Envelopes that wait.
    pub(crate) fn depth(&self) -> usize {
        // ORDERING: Relaxed on all: a reading for reports.
        let in_blocks = self.ring.capacity().saturating_sub(self.credits.load(Ordering::Relaxed));
        let blocks = self.blocks.load(Ordering::Relaxed);
        let singles = self.ring.len().saturating_sub(blocks);
        singles + in_blocks + self.side_len.load(Ordering::Relaxed)
    }

    fn take_credits(&self, count: usize) -> bool {
        // ORDERING: SeqCst, after a waiting publisher's registration; pairs with `pop`.
        self.credits
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(count))
            .is_ok()
    }
}

/// Adds the envelopes of a slot, in order.
fn extend<P>(side: &mut VecDeque<Envelope<P>>, slot: Slot<P>) {
    match slot {
        Slot::One(envelope) => side.push_back(envelope),
        Slot::Block(block) => side.extend(block),
    }
}

#[cfg(test)]
mod tests;
