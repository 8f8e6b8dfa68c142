//! Which checkpoints are complete, among the records of surveyed segments.

use super::{End, part_head};
use crate::log::frame::{Kind, Record};

/// The records of checkpoints in one segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    parts: Vec<Part>,
    ends: Vec<Complete>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    sequence: u64,
    number: u64,
    index: u32,
}

/// A checkpoint whose end is there with all its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete {
    /// The sequence of its end.
    pub sequence: u64,
    /// What its end says.
    pub end: End,
}

impl Seen {
    /// Notes a record if it is of a checkpoint. One that cannot be read makes none complete.
    pub(in crate::log) fn note(&mut self, record: &Record<'_>) {
        let sequence = record.stamp.sequence;
        match record.stamp.kind {
            Kind::CheckpointPart => {
                if let Ok((number, index, _)) = part_head(&record.body()) {
                    self.parts.push(Part { sequence, number, index });
                }
            }
            Kind::CheckpointEnd => {
                if let Ok(end) = End::from_body(&record.body()) {
                    self.ends.push(Complete { sequence, end });
                }
            }
            Kind::Entries | Kind::Mark => {}
        }
    }
}

/// The complete checkpoints in these segments, given in the order of their numbers; newest first.
pub(in crate::log) fn complete<'a>(
    segments: &(impl DoubleEndedIterator<Item = &'a Seen> + Clone),
) -> Vec<Complete> {
    let ends = segments.clone().rev().flat_map(|seen| seen.ends.iter().rev());
    let is_complete = |found: &&Complete| {
        let Complete { sequence, end } = **found;
        let parts = segments.clone().flat_map(|seen| &seen.parts).filter(|part| {
            part.number == end.number && (end.first_part..sequence).contains(&part.sequence)
        });
        end.at < end.first_part && end.parts > 0 && parts.map(|part| part.index).eq(0..end.parts)
    };
    ends.filter(is_complete).copied().collect()
}
