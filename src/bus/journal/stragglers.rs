//! Stragglers: what is still open, or dead, in segments that are otherwise done is written once
//! more, so that those segments go.
//!
//! A copy keeps the number of its original, so it stands where it stood in the order of replay. It
//! is looked up, written and folded under the one lock (J1): what settled meanwhile is not copied,
//! and what is copied settles afterwards. Who reads a wire form does so under a lock that the
//! removal of segments takes too.

use super::Journal;
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;
use crate::log::LogError;
use crate::log::entry::{Entry, EntryNumber, Original};
use crate::log::letters::Form;
use crate::log::state::{Held, State};
use crate::sync::lock;

/// At each checkpoint copies take up to this part of a segment.
const SHARE: u64 = 2;

/// One that stands in an old segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Straggler {
    /// The lowest segment that it needs.
    segment: u64,
    number: EntryNumber,
    /// `None`: a dead letter.
    open: Option<EnvelopeId>,
}

impl<P: Send + 'static> Journal<P> {
    /// What the log has of one that is found in the state, which stays there until it is read.
    ///
    /// # Errors
    /// What the log says.
    pub(super) fn form_of(
        &self,
        find: impl FnOnce(&State) -> Option<Held>,
    ) -> Result<Option<(Held, Form)>, LogError> {
        let files = lock(&self.files);
        let Some(held) = self.with_state(find) else { return Ok(None) };
        let form = Form::of(&self.log, &held)?;
        drop(files);
        Ok(Some((held, form)))
    }

    /// Removes the segments before this one, once nobody reads there.
    ///
    /// # Errors
    /// What the storage says.
    pub(super) fn remove_before(&self, lowest: u64) -> Result<usize, LogError> {
        let _files = lock(&self.files);
        self.log.remove_before(lowest)
    }

    /// Copies the oldest of those that stand in old segments, as far as the share allows.
    ///
    /// # Errors
    /// What the log says.
    pub(crate) fn copy_stragglers(&self) -> Result<(), LogError> {
        let before = self.log.segment().saturating_sub(self.settings.checkpoint_segments);
        let mut stragglers = self.with_state(|state| old(state, before));
        stragglers.sort_unstable();
        let mut left = self.settings.log.segment_bytes / SHARE;
        for straggler in stragglers {
            let Some(body) = self.copy(straggler)? else { continue };
            left = left.saturating_sub(body);
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Copies one; how many bytes that took, or `None` when it was not there any more.
    fn copy(&self, straggler: Straggler) -> Result<Option<u64>, LogError> {
        let Straggler { number, open, .. } = straggler;
        let state = lock(&self.state);
        let (held, of) = match open {
            Some(id) => {
                let open = state.open(id).filter(|open| open.number == number);
                (open.map(|open| open.held.clone()), Original::Open(number))
            }
            None => {
                let letter = state.letter(number);
                (letter.map(|letter| letter.held.clone()), Original::Dead(number))
            }
        };
        let Some(held) = held else { return Ok(None) };
        let form = Form::of(&self.log, &held)?;
        // What cannot be read as an envelope any more stays where it is, and is told when it is
        // taken up.
        let (Ok(view), Ok(with_body)) = (form.view(), form.body()) else { return Ok(None) };
        let envelope = Parts {
            attempts: held.attempts,
            body_version: held.body_version,
            content_type: with_body.parts().content_type,
            payload: Some(with_body.payload().unwrap_or_default()),
            ..*view.parts()
        };
        let mut body = Vec::new();
        let copy = Entry::Copy { of, envelope };
        if copy.encode(&mut body).is_err() {
            return Ok(None);
        }
        let size = body.len() as u64;
        self.append(state, &body).map(|_| Some(size))
    }
}

/// Those that need a segment before this one.
fn old(state: &State, before: u64) -> Vec<Straggler> {
    let segment = |held: &Held| held.body.location.segment.min(held.form.location.segment);
    let open = state.open_in_order().into_iter().map(|(id, open)| Straggler {
        segment: segment(&open.held),
        number: open.number,
        open: Some(id),
    });
    let letters = state.letters().map(|(number, letter)| Straggler {
        segment: segment(&letter.held),
        number,
        open: None,
    });
    open.chain(letters).filter(|straggler| straggler.segment < before).collect()
}
