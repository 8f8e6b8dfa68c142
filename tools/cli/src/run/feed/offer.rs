//! Records into the bus: what it takes, what it has, what it does not take and why.

use std::io;
use std::sync::atomic::Ordering;

use waystage::{Envelope, EnvelopeId, Refused};

use super::{Feed, Input};
use crate::run::ending::{End, Halt};
use crate::run::ledger::RefusalKind;
use crate::run::record::{Place, Record};

impl Input<'_> {
    /// Gives a record to the bus, and notes what became of that; an id that was taken in, if it is
    /// one to be remembered.
    pub(super) fn offer(
        &mut self,
        mut envelope: Envelope<Record>,
        place: Place,
        id: Option<EnvelopeId>,
    ) -> Result<(), Halt> {
        let Feed { publisher, ledger, window, waits_for_room, .. } = &mut *self.feed;
        let published = loop {
            match publisher.publish(envelope) {
                Err(error)
                    if error.reason == Refused::Full && *waits_for_room && !ledger.is_stopped() =>
                {
                    // The position of the next one would pass over it for good.
                    envelope = *error.envelope;
                }
                done => break done,
            }
        };
        match published {
            Ok(()) => {
                ledger.sent.fetch_add(1, Ordering::Relaxed);
                // One that was refused may come again.
                if let (Some(window), Some(id)) = (window.as_mut(), id) {
                    window.add(id);
                }
                Ok(())
            }
            Err(error) if error.reason == Refused::Full && *waits_for_room => {
                ledger.unsent.fetch_add(1, Ordering::Relaxed);
                Err(Halt::At(End::Stopped))
            }
            Err(error) if error.reason == Refused::Full => {
                let stage = error.stage.as_deref().unwrap_or_default();
                let words = format!("stage `{stage}` is full, and its on-full says to refuse");
                self.refuse(place, RefusalKind::Full, words);
                Ok(())
            }
            Err(error) if matches!(error.reason, Refused::Duplicate | Refused::InFlight) => {
                ledger.skipped.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.reason == Refused::NoWireForm => {
                let words = "the record is too large for the log".to_owned();
                self.refuse(place, RefusalKind::TooLong, words);
                Ok(())
            }
            Err(error) if is_of_log(error.reason) => {
                ledger.unsent.fetch_add(1, Ordering::Relaxed);
                let what = format!("record {place}");
                Err(Halt::Io(what, io::Error::other(error.reason.to_string())))
            }
            Err(_) => {
                ledger.unsent.fetch_add(1, Ordering::Relaxed);
                Err(Halt::At(End::Stopped))
            }
        }
    }
}

/// Whether the log takes nothing more.
fn is_of_log(reason: Refused) -> bool {
    matches!(reason, Refused::LogFull | Refused::LogFailed | Refused::TooManyDeadLetters)
}
