//! Adding to sinks: written behind the known end first, counted when the record has its place (S1).

use std::sync::Arc;

use super::{SinkFile, checksum};
use crate::log::entry::{Entry, Sink};
use crate::sync::{Ordering, lock, wait_on};

/// What an attempt adds to sinks if it succeeds.
#[derive(Debug, Default)]
pub(crate) struct Writes(Vec<(Arc<SinkFile>, Vec<u8>)>);

impl Writes {
    /// Adds to what is added to a sink.
    pub(crate) fn add(&mut self, sink: &Arc<SinkFile>, bytes: &[u8]) {
        match self.0.iter_mut().find(|(known, _)| Arc::ptr_eq(known, sink)) {
            Some((_, before)) => before.extend_from_slice(bytes),
            None => self.0.push((Arc::clone(sink), bytes.to_vec())),
        }
    }

    /// Bytes of all.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Writes what is added behind the ends of the files, which nobody else adds to until the
    /// record that says so has its place.
    ///
    /// # Errors
    /// What the storage says, in words; then nothing counts as written.
    pub(crate) fn begin(&mut self) -> Result<Written<'_>, String> {
        // In this order, since others may wait for several as well.
        self.0.sort_by_key(|(sink, _)| sink.number);
        let mut written = Written(Vec::with_capacity(self.0.len()));
        for (sink, bytes) in &self.0 {
            let before = sink.take_turn().ok_or_else(|| format!("{} is closed", sink.name))?;
            // From here on the turn is given back when this goes.
            written.0.push((sink, before));
            let stored = sink.storage.write(bytes, before.length);
            // ORDERING: Release, pairs with the swap in `flush`. A flush that comes before it
            // covers no record of this, since that is appended later.
            sink.is_dirty.store(true, Ordering::Release);
            stored.map_err(|error| {
                format!("cannot write {} bytes to {}: {error}", bytes.len(), sink.path.display())
            })?;
            let added = bytes.len() as u64;
            let (length, checksum) = (before.length + added, checksum(bytes));
            if let Some((_, after)) = written.0.last_mut() {
                *after = Sink { length, added, checksum, ..before };
            }
        }
        Ok(written)
    }
}

/// Sinks with what was written behind their ends, whose turns are ours.
#[derive(Debug, Default)]
pub(crate) struct Written<'a>(Vec<(&'a SinkFile, Sink)>);

impl Written<'_> {
    /// What the record says of them (S2).
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.0.iter().map(|(sink, after)| sink.entry(*after))
    }

    /// The record has its place: what was written counts.
    pub(crate) fn commit(mut self) {
        for (sink, after) in std::mem::take(&mut self.0) {
            // ORDERING: Relaxed: it is a count.
            sink.additions.fetch_add(1, Ordering::Relaxed);
            sink.give_turn(Some(after));
        }
    }
}

impl Drop for Written<'_> {
    /// What was written does not count.
    fn drop(&mut self) {
        for (sink, _) in self.0.drain(..) {
            // Half a line is not to be seen; if it stays, it goes at the next opening.
            drop(sink.trim());
            let end = lock(&sink.known).end;
            sink.give_turn(end);
        }
    }
}

impl SinkFile {
    /// Waits until nobody adds to it, and keeps others from it; where it ends. `None`: it is
    /// closed.
    fn take_turn(&self) -> Option<Sink> {
        let mut known = lock(&self.known);
        while known.is_taken {
            known = wait_on(&self.given, known, None);
        }
        let end = known.end.filter(|_| !known.is_closed);
        known.is_taken = end.is_some();
        end
    }

    fn give_turn(&self, end: Option<Sink>) {
        let mut known = lock(&self.known);
        (known.end, known.is_taken) = (end, false);
        drop(known);
        self.given.notify_all();
    }

    /// Lets nobody add to it any more.
    pub(crate) fn close(&self) {
        let end = self.take_turn();
        // What attempts without a settlement left; else it goes at the next opening.
        drop(self.trim());
        lock(&self.known).is_closed = true;
        if end.is_some() {
            self.give_turn(end);
        }
        self.storage.release();
    }
}
