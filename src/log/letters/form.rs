//! What the log has of an envelope: its latest wire form, and the payload that goes with it.

use std::sync::Arc;

use super::super::disk::Disk;
use super::super::entry::{Entry, EntryNumber, entries};
use super::super::error::LogError;
use super::super::frame::Record;
use super::super::read::lookup;
use super::super::segment;
use super::super::state::{Held, Place};
use super::super::store::Log;
use crate::envelope::codec::{self, DecodeError, EnvelopeView};

/// An envelope as it stands in the log.
#[derive(Debug)]
pub(crate) struct Form {
    form: Vec<u8>,
    /// The form with the payload, where that is another one.
    body: Option<Vec<u8>>,
}

impl Form {
    /// Reads it from an open log.
    ///
    /// # Errors
    /// When it does not stand there, and what the storage says.
    pub(crate) fn of(log: &Log, held: &Held) -> Result<Self, LogError> {
        Self::read(held, |place| log.read(place.location, |record| wire_form(place, &record)))
    }

    /// Reads it from a disk.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(in crate::log) fn on(disk: &Arc<dyn Disk>, held: &Held) -> Result<Self, LogError> {
        Self::read(held, |place| lookup(disk, place.location, |record| wire_form(place, &record)))
    }

    fn read(
        held: &Held,
        read: impl Fn(Place) -> Result<Option<Vec<u8>>, LogError>,
    ) -> Result<Self, LogError> {
        let there = |place: Place| {
            read(place)?.ok_or_else(|| {
                let name = segment::name(place.location.segment);
                LogError::storage("find an envelope in", &name)(std::io::ErrorKind::NotFound.into())
            })
        };
        let form = there(held.form)?;
        let body = if held.body == held.form { None } else { Some(there(held.body)?) };
        Ok(Self { form, body })
    }

    /// The wire form.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn view(&self) -> Result<EnvelopeView<'_>, DecodeError> {
        EnvelopeView::parse(&self.form)
    }

    /// The wire form that has the payload.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn body(&self) -> Result<EnvelopeView<'_>, DecodeError> {
        EnvelopeView::parse(self.body.as_ref().unwrap_or(&self.form))
    }
}

/// The wire form in the entry that stands there.
fn wire_form(place: Place, record: &Record<'_>) -> Option<Vec<u8>> {
    let EntryNumber { sequence, index } = place.number;
    if record.stamp.sequence != sequence {
        return None;
    }
    let body = record.body();
    let entry = entries(&body).nth(usize::try_from(index).ok()?)?.ok()?;
    let (Entry::Accept { envelope, .. }
    | Entry::Hop { envelope }
    | Entry::Redriven { envelope, .. }
    | Entry::Copy { envelope, .. }) = entry
    else {
        return None;
    };
    let mut form = Vec::new();
    codec::encode(&envelope, &mut form).ok()?;
    Some(form)
}
