//! Reads an open log as it grows, and waits for more.
//!
//! Nobody sleeps for ever. Who waits puts its waker on the list (G1), passes a `SeqCst` fence (G2)
//! and looks how far the log may be shown (G3). Who raises that position does so first (H1), passes
//! a `SeqCst` fence (H2) and looks whether somebody waits (H3). If G2 is before H2, H3 sees the
//! waker; if H2 is before G2, G3 sees the position.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::cursor::{Cursor, Peek};
use super::walk::{Shown, Start, Walk};
use crate::coord::parker::Parker;
use crate::log::disk::Disk;
use crate::log::error::LogError;
use crate::log::judge::{Damage, Flaw};
use crate::log::writer::Writer;
use crate::sync::{AtomicUsize, Mutex, Ordering, fence, lock};

/// Who waits for a log to go on.
#[derive(Debug)]
pub(in crate::log) struct Followers {
    /// How many there are, for those who find none.
    count: AtomicUsize,
    waiting: Mutex<Vec<(u64, Waker)>>,
}

impl Followers {
    pub(in crate::log) fn new() -> Self {
        Self { count: AtomicUsize::new(0), waiting: Mutex::new(Vec::new()) }
    }

    /// Has `waker` woken when `sequence` may be shown or the log has ended; false when that is so
    /// already.
    fn register(&self, writer: &Writer, sequence: u64, waker: &Waker) -> bool {
        // G1
        let mut waiting = lock(&self.waiting);
        match waiting.iter_mut().find(|(_, known)| known.will_wake(waker)) {
            Some(known) => known.0 = known.0.min(sequence),
            None => waiting.push((sequence, waker.clone())),
        }
        self.count.store(waiting.len(), Ordering::Relaxed);
        drop(waiting);
        // ORDERING: SeqCst (G2): between our entry and the look at the position; pairs with `wake`.
        fence(Ordering::SeqCst);
        // G3
        writer.visible() < sequence && writer.poison.check().is_ok()
    }

    /// Wakes those whose records may be shown, after the position was raised or the log has ended.
    pub(in crate::log) fn wake(&self, writer: &Writer) {
        // ORDERING: SeqCst (H2): between the position, or the end, and the look whether somebody
        // waits; pairs with `register`.
        fence(Ordering::SeqCst);
        // H3
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let (visible, has_ended) = (writer.visible(), writer.poison.check().is_err());
        let mut waiting = lock(&self.waiting);
        let is_due = |waiter: &mut (u64, Waker)| has_ended || waiter.0 <= visible;
        let due: Vec<_> = waiting.extract_if(.., is_due).collect();
        self.count.store(waiting.len(), Ordering::Relaxed);
        drop(waiting);
        for (_, waker) in due {
            waker.wake();
        }
    }
}

/// Reads an open log in order, and waits for more; from [`Log::follow`](crate::log::Log::follow).
///
/// It shows what is durable, so what it has shown never goes away. Where the policy is
/// [`Sync::Os`](crate::log::Sync::Os), which acknowledges what is written, it shows that. It never
/// has anything flushed: a record that nobody waits for is shown with the next flush.
#[derive(Debug)]
pub struct Follower {
    walk: Walk,
    writer: Arc<Writer>,
}

impl Follower {
    pub(in crate::log) fn new(disk: Arc<dyn Disk>, writer: Arc<Writer>, start: Start) -> Self {
        Self { walk: Walk::new(disk, start), writer }
    }

    /// The next record that may be shown; `None` when there is none now.
    ///
    /// # Errors
    /// When what comes next is gone or damaged, and what the storage says.
    #[expect(clippy::should_implement_trait, reason = "records borrow the reader's window")]
    pub fn next(&mut self) -> Result<Option<Shown<'_>>, LogError> {
        let visible = self.writer.visible();
        if self.walk.next() > visible {
            return Ok(None);
        }
        match self.walk.peek()? {
            Peek::Record(stamp) if stamp.sequence <= visible => {
                let is_durable = stamp.sequence <= self.writer.progress.durable();
                Ok(self.walk.show(is_durable))
            }
            Peek::Record(_) => Ok(None),
            Peek::End | Peek::Invalid => {
                let next = self.walk.next();
                if next > visible {
                    // Everything was passed over.
                    return Ok(None);
                }
                let place = self.walk.cursor.as_ref().map(Cursor::location).unwrap_or_default();
                Err(LogError::Damaged(Damage {
                    segment: place.segment,
                    offset: place.offset,
                    flaw: Flaw::Missing { first: next, last: visible },
                    watermark: self.writer.progress.durable(),
                }))
            }
        }
    }

    /// Where another reader has to begin to go on from here.
    pub fn position(&self) -> Start {
        self.walk.position()
    }

    /// Waits until there may be a next record. One that is older than the time to begin at may be
    /// passed over, so [`next`](Self::next) may still give nothing.
    ///
    /// # Errors
    /// When the log has ended, and everything of it was shown.
    pub fn wait(&mut self) -> Result<(), LogError> {
        let parker = Arc::new(Unpark(Parker::new()));
        let waker = Waker::from(Arc::clone(&parker));
        while self.poll_wait(&mut Context::from_waker(&waker))?.is_pending() {
            parker.0.park(None);
        }
        Ok(())
    }

    /// Waits like [`wait`](Self::wait), without the thread.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn ready(&mut self) -> Result<(), LogError> {
        std::future::poll_fn(|context| self.poll_wait(context)).await
    }

    /// Ready when there may be a next record; otherwise the task is woken then.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LogError>> {
        let next = self.walk.next();
        if self.writer.visible() >= next {
            return Poll::Ready(Ok(()));
        }
        if let Err(ended) = self.writer.poison.check() {
            // What was raised before the end is still shown.
            let is_there = self.writer.visible() >= next;
            return Poll::Ready(if is_there { Ok(()) } else { Err(ended) });
        }
        if self.writer.followers.register(&self.writer, next, context.waker()) {
            return Poll::Pending;
        }
        let is_there = self.writer.visible() >= next;
        Poll::Ready(if is_there { Ok(()) } else { self.writer.poison.check() })
    }
}

/// A thread that waits, as a waker.
struct Unpark(Parker);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
