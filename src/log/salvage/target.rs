//! The new log: everything that lives, copied whole, and a checkpoint.

use std::sync::Arc;

use super::Salvaged;
use super::replay::Replay;
use super::source::Source;
use crate::envelope::EnvelopeId;
use crate::envelope::codec::Parts;
use crate::log::checkpoint::Writing;
use crate::log::disk::Disk;
use crate::log::entry::{
    CauseCode, Entry, EntryEncodeError, EntryNumber, Original, REASON_BYTES_MAX, entries,
};
use crate::log::error::LogError;
use crate::log::fold::fold_record;
use crate::log::frame::{self, Kind};
use crate::log::segment::{HEADER_BYTES, Location, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::log::state::{Held, Place};
use crate::log::tail::{Beginning, Tail, TailSettings};

const NS_PER_MS: u64 = 1_000_000;
/// Why an uncertain envelope is dead, in words.
const REASON: &str = "it may have ended in records that are lost";

/// Writes the new log.
///
/// # Errors
/// What the storage says.
pub(super) fn write(
    source: &mut Source,
    mut replay: Replay,
    disk: Arc<dyn Disk>,
    seed: u64,
) -> Result<Salvaged, LogError> {
    let (living, longest) = living(source, &mut replay)?;
    replay.balance();
    let needed = (HEADER_BYTES + frame::size(longest)) as u64;
    let bytes = source.segment_bytes().max(needed).next_multiple_of(SEGMENT_BYTES_MIN);
    let settings =
        TailSettings { segment_bytes: bytes.min(SEGMENT_BYTES_MAX), is_safe: true, seed };
    let (sequence, segment) = (source.last(), source.last_segment() + 1);
    let beginning = Beginning { segment, sequence, time: source.time() };
    // What stands before the first copy is everything of the old log.
    let number = EntryNumber { sequence, index: u32::MAX };
    let location = Location { segment, offset: HEADER_BYTES as u64 };
    replay.state.last = Some(Place { number, location });
    let mut target = Target { tail: Tail::begin(disk, beginning, settings)?, replay };
    for (of, id, held) in living {
        // It was found once already.
        if let Some((copy, _)) = copy(source, of, id, &held)? {
            target.entries(&copy)?;
        }
    }
    target.bury(source.time() / NS_PER_MS)?;
    target.doubt_letters();
    target.checkpoint(source.checkpoint_number() + 1)?;
    let Target { mut tail, replay } = target;
    tail.flush()?;
    tail.push(Kind::Mark, &[], 0)?;
    tail.flush()?;
    Ok(Salvaged {
        open: replay.state.open_len(),
        letters: replay.state.letters().len(),
        lost: replay.lost.keys().copied().collect(),
        first: sequence + 1,
        ..replay.report
    })
}

struct Target {
    tail: Tail,
    replay: Replay,
}

impl Target {
    /// Writes a record of entries, and folds it.
    fn entries(&mut self, body: &[u8]) -> Result<(), LogError> {
        let sequence = self.tail.push(Kind::Entries, body, 0)?;
        self.tail.write()?;
        let offset = self.tail.position() - frame::size(body.len()) as u64;
        let location = Location { segment: self.tail.segment(), offset };
        let folded = fold_record(&mut self.replay.state, sequence, location, body);
        folded.map_err(|source| {
            let name = crate::log::segment::name(location.segment);
            LogError::Record { name, offset, source }
        })
    }

    /// Open envelopes that may have ended in a hole become dead letters.
    fn bury(&mut self, at_ms: u64) -> Result<(), LogError> {
        let open = self.replay.state.open_in_order().into_iter();
        let uncertain = open.filter(|(id, _)| self.replay.uncertain.contains(id));
        let uncertain: Vec<_> = uncertain.map(|(id, open)| (id, open.held.attempts)).collect();
        for &(id, attempts) in &uncertain {
            let cause = CauseCode::Uncertain;
            let entry = Entry::Dead { id, at_ms, attempts, cause, reason: REASON };
            self.entries(&encoded(&entry)?)?;
        }
        self.replay.report.uncertain = uncertain.into_iter().map(|(id, _)| id).collect();
        Ok(())
    }

    /// Dead letters that may have been dealt with in a hole say so.
    fn doubt_letters(&mut self) {
        for number in &self.replay.uncertain_letters {
            let Some(letter) = self.replay.state.letters.get_mut(number) else { continue };
            let before = letter.cause.cause(&letter.reason).to_string();
            let mut reason = format!("it may have been dealt with in lost records; {before}");
            let end = (0..=REASON_BYTES_MAX).rev().find(|&end| reason.is_char_boundary(end));
            reason.truncate(end.unwrap_or(0));
            (letter.cause, letter.reason) = (CauseCode::Uncertain, reason.into());
            self.replay.report.uncertain_letters += 1;
        }
    }

    fn checkpoint(&mut self, number: u64) -> Result<(), LogError> {
        let limit = self.tail.body_bytes_max();
        let mut writing = Writing::new(&self.replay.state, number, limit);
        let mut first = None;
        for part in writing.by_ref() {
            let sequence = self.tail.push(Kind::CheckpointPart, &part.map_err(refused)?, 0)?;
            self.tail.write()?;
            first = first.or_else(|| Some((sequence, self.tail.segment())));
        }
        let (first_part, segment) = first.unwrap_or_default();
        let end = writing.end(first_part, segment);
        // All that it needs is safe before it counts.
        self.tail.flush()?;
        self.tail.push(Kind::CheckpointEnd, &end.to_body(), 0)?;
        self.tail.flush()
    }
}

/// What lives, by which entry, and what is remembered of it.
type Living = Vec<(Original, EnvelopeId, Held)>;

/// Everything that lives and can be copied, with the bytes of the longest copy; the rest is lost.
fn living(source: &mut Source, replay: &mut Replay) -> Result<(Living, usize), LogError> {
    let open = replay.state.open_in_order().into_iter();
    let open = open.map(|(id, open)| (Original::Open(open.number), id, open.held.clone()));
    let letters = replay
        .state
        .letters()
        .map(|(number, letter)| (Original::Dead(number), letter.id, letter.held.clone()));
    let mut all: Living = open.chain(letters).collect();
    let mut longest = 0;
    let mut failed = Ok(());
    all.retain(|(of, id, held)| {
        let found = copy(source, *of, *id, held).unwrap_or_else(|error| {
            failed = Err(error);
            None
        });
        let (is_there, is_whole) = (found.is_some(), found.as_ref().is_some_and(|found| found.1));
        longest = longest.max(found.map_or(0, |found| found.0.len()));
        match of {
            // Without its newest form, what it was to visit next may be otherwise.
            Original::Open(_) if !is_there => drop(replay.state.open.remove(id)),
            Original::Open(_) if !is_whole => drop(replay.uncertain.insert(*id)),
            Original::Dead(number) if !is_there => drop(replay.state.letters.remove(number)),
            Original::Dead(number) if !is_whole => drop(replay.uncertain_letters.insert(*number)),
            Original::Open(_) | Original::Dead(_) => {}
        }
        if !is_there {
            replay.lost.insert(*id, EntryNumber::default());
        }
        is_there
    });
    failed?;
    Ok((all, longest))
}

/// One envelope whole, and whether its newest form was found; `None` without its body.
fn copy(
    source: &mut Source,
    of: Original,
    id: EnvelopeId,
    held: &Held,
) -> Result<Option<(Vec<u8>, bool)>, LogError> {
    let Some(body) = body_at(source, held.body)? else { return Ok(None) };
    let form = if held.form == held.body { None } else { body_at(source, held.form)? };
    let Some(with_payload) = parts_at(&body, held.body.number.index) else { return Ok(None) };
    let newest = form.as_deref().and_then(|form| parts_at(form, held.form.number.index));
    let is_whole = held.form == held.body || newest.is_some();
    let form = newest.unwrap_or(with_payload);
    if with_payload.payload.is_none() || with_payload.id != id || form.id != id {
        return Ok(None);
    }
    let envelope = Parts {
        hops: held.hops,
        attempts: held.attempts,
        current: Some(&held.stage),
        body_version: held.body_version,
        payload: with_payload.payload,
        ..form
    };
    Ok(Some((encoded(&Entry::Copy { of, envelope })?, is_whole)))
}

/// The body of the record in which a place is; `None` when it cannot be read.
fn body_at(source: &mut Source, place: Place) -> Result<Option<Vec<u8>>, LogError> {
    let Some((bytes, identity)) = source.record_at(place.location)? else { return Ok(None) };
    let record = frame::again(&bytes, identity);
    let record = record.filter(|record| record.stamp.sequence == place.number.sequence);
    Ok(record.map(|record| record.body().into_owned()))
}

/// The wire form in the entry of this index.
fn parts_at(body: &[u8], index: u32) -> Option<Parts<'_>> {
    match entries(body).nth(usize::try_from(index).ok()?)?.ok()? {
        Entry::Accept { envelope, .. }
        | Entry::Hop { envelope }
        | Entry::Redriven { envelope, .. }
        | Entry::Copy { envelope, .. } => Some(envelope),
        _ => None,
    }
}

fn encoded(entry: &Entry<'_>) -> Result<Vec<u8>, LogError> {
    let mut body = Vec::new();
    entry.encode(&mut body).map_err(refused)?;
    Ok(body)
}

/// What was read cannot be written again: it is longer than any record.
fn refused(error: EntryEncodeError) -> LogError {
    LogError::storage("copy", "an envelope")(std::io::Error::other(error))
}
