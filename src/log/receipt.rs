//! What an append gives back: a way to learn when the record is safe.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::error::LogError;
use super::settings::Sync;
use super::writer::{Appended, Writer};

/// Tells when an appended record is acknowledged, by the log's [`Sync`].
///
/// Dropping it changes nothing: the record is written and flushed all the same. As a future it is
/// ready when the record is acknowledged, and gives its sequence.
#[must_use = "a record is acknowledged only when its receipt says so"]
pub struct Receipt {
    writer: Arc<Writer>,
    sync: Sync,
    appended: Appended,
}

impl Receipt {
    pub(super) fn new(writer: Arc<Writer>, sync: Sync, appended: Appended) -> Self {
        Self { writer, sync, appended }
    }

    /// Whether the record is acknowledged, without waiting.
    ///
    /// # Errors
    /// When it found no room, or the log was poisoned before the record was acknowledged.
    pub fn is_acknowledged(&self) -> Result<bool, LogError> {
        let Some(sequence) = self.sequence()? else {
            self.writer.poison.check()?;
            return Ok(false);
        };
        if self.sync != Sync::Each || self.writer.progress.durable() >= sequence {
            return Ok(true);
        }
        self.writer.poison.check()?;
        Ok(false)
    }

    /// Waits until the record is acknowledged, and returns its sequence. Where a flush is needed
    /// and nobody does it, this call does, for all that wait.
    ///
    /// # Errors
    /// When it found no room, or the log was poisoned before the record was acknowledged.
    pub fn wait(&self) -> Result<u64, LogError> {
        let flush = &self.writer.flush;
        let sequence = match &self.appended {
            Appended::Written(sequence) => *sequence,
            Appended::Queued(place) => flush.wait_for_place(&self.writer, place)?,
        };
        if self.sync == Sync::Each {
            flush.wait(&self.writer, sequence)?;
        }
        Ok(sequence)
    }

    /// Waits until the record would survive a power cut, whatever the log's policy.
    ///
    /// # Errors
    /// When it found no room, or the log was poisoned before.
    pub fn wait_durable(&self) -> Result<u64, LogError> {
        let sequence = self.wait()?;
        self.writer.flush.wait(&self.writer, sequence)?;
        Ok(sequence)
    }

    fn sequence(&self) -> Result<Option<u64>, LogError> {
        match &self.appended {
            Appended::Written(sequence) => Ok(Some(*sequence)),
            Appended::Queued(place) => place.sequence(),
        }
    }
}

impl Future for Receipt {
    type Output = Result<u64, LogError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let receipt = self.get_mut();
        let writer = &receipt.writer;
        loop {
            match (receipt.is_acknowledged(), receipt.sequence()) {
                (Err(error), _) | (_, Err(error)) => return Poll::Ready(Err(error)),
                (Ok(true), Ok(Some(sequence))) => return Poll::Ready(Ok(sequence)),
                (Ok(_), Ok(Some(sequence))) => {
                    // A task never flushes itself: it would block those beside it.
                    if writer.flush.register(writer, sequence, context.waker()) {
                        writer.background.flush_by(0);
                        return Poll::Pending;
                    }
                }
                (Ok(_), Ok(None)) => {
                    let Appended::Queued(place) = &receipt.appended else { continue };
                    if writer.flush.register_place(writer, place, context.waker()) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt").field("appended", &self.appended).finish_non_exhaustive()
    }
}
