//! A cursor that finds its first segment itself, and passes over what is not wanted.

use std::sync::Arc;

use super::cursor::{Cursor, Peek};
use super::locate;
use crate::log::disk::Disk;
use crate::log::error::LogError;
use crate::log::frame::{Record, Stamp};
use crate::log::segment::Location;

/// How often the first segment is looked for, while others remove segments.
const PLACINGS_MAX: usize = 16;

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Start {
    /// At the oldest record that is there.
    #[default]
    Oldest,
    /// At the record with this sequence; 0 is the oldest. It may still have to be written.
    Sequence(u64),
    /// At the first record of this time or later, in unix nanoseconds.
    Time(u64),
}

/// A record as it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// Where it stands.
    pub location: Location,
    /// The record.
    pub record: Record<'a>,
    /// Whether it is known to survive a power cut. The others belong to a log whose policy is `Os`.
    pub is_durable: bool,
}

/// A place in a log, found when it is needed.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) disk: Arc<dyn Disk>,
    start: Start,
    pub(super) cursor: Option<Cursor>,
    /// Whether the record at the cursor was shown already.
    is_shown: bool,
    /// The last sequence shown.
    last_shown: Option<u64>,
}

impl Walk {
    pub(super) fn new(disk: Arc<dyn Disk>, start: Start) -> Self {
        Self { disk, start, cursor: None, is_shown: false, last_shown: None }
    }

    /// Where another reader would have to begin to go on from here.
    pub(super) fn position(&self) -> Start {
        self.last_shown.map_or(self.start, |last| Start::Sequence(last + 1))
    }

    /// The lowest sequence that may be shown next.
    pub(super) fn next(&self) -> u64 {
        let wanted = match self.position() {
            Start::Sequence(sequence) => sequence,
            Start::Oldest | Start::Time(_) => 1,
        };
        let passed = self.cursor.as_ref().and_then(Cursor::passed);
        let passed = passed.map_or(0, |passed| passed + u64::from(!self.is_shown));
        wanted.max(passed)
    }

    /// What comes next, behind what was shown and what is not wanted.
    pub(super) fn peek(&mut self) -> Result<Peek, LogError> {
        loop {
            if self.cursor.is_none() && !self.place()? {
                return Ok(Peek::End);
            }
            let Some(cursor) = &mut self.cursor else { return Ok(Peek::End) };
            if std::mem::take(&mut self.is_shown) {
                cursor.pass();
            }
            match cursor.peek()? {
                Peek::Record(stamp) if self.is_wanted(&stamp)? => return Ok(Peek::Record(stamp)),
                Peek::Record(_) => {
                    if let Some(cursor) = &mut self.cursor {
                        cursor.pass();
                    }
                }
                Peek::End => return self.end(),
                Peek::Invalid => return Ok(Peek::Invalid),
            }
        }
    }

    /// The record that comes next, which counts as shown from now on.
    pub(super) fn show(&mut self, is_durable: bool) -> Option<Shown<'_>> {
        let cursor = self.cursor.as_ref()?;
        let record = cursor.record()?;
        self.is_shown = true;
        self.last_shown = Some(record.stamp.sequence);
        Some(Shown { location: cursor.location(), record, is_durable })
    }

    /// Whether reading is to begin at this record or before.
    ///
    /// # Errors
    /// When the one that was asked for is gone.
    fn is_wanted(&self, stamp: &Stamp) -> Result<bool, LogError> {
        if self.last_shown.is_some() {
            return Ok(true);
        }
        match self.start {
            Start::Oldest => Ok(true),
            Start::Time(time) => Ok(stamp.time >= time),
            Start::Sequence(0) => Ok(true),
            Start::Sequence(sequence) if stamp.sequence < sequence => Ok(false),
            Start::Sequence(sequence) if stamp.sequence == sequence => Ok(true),
            Start::Sequence(_) => Err(LogError::Gone { first: stamp.sequence }),
        }
    }

    /// Finds the segment to begin in; false when there is none yet.
    fn place(&mut self) -> Result<bool, LogError> {
        for _ in 0..PLACINGS_MAX {
            let numbers = locate::numbers(&*self.disk)?;
            let index = match self.start {
                Start::Oldest | Start::Sequence(0) => 0,
                Start::Sequence(sequence) => {
                    locate::last_before(&*self.disk, &numbers, |first| first.sequence <= sequence)
                }
                // Records of the same time may end the segment before.
                Start::Time(time) => {
                    locate::last_before(&*self.disk, &numbers, |first| first.time < time)
                }
            };
            let Some(&number) = numbers.get(index) else { return Ok(false) };
            self.cursor = Cursor::open(&self.disk, number)?;
            if self.cursor.is_some() {
                return Ok(true);
            }
            // It was removed since it was listed.
        }
        Err(LogError::storage("find", "a segment")(std::io::ErrorKind::NotFound.into()))
    }

    /// Nothing comes next: because nothing does yet, or because it was removed.
    fn end(&self) -> Result<Peek, LogError> {
        let Some(cursor) = &self.cursor else { return Ok(Peek::End) };
        let number = cursor.location().segment;
        let numbers = locate::numbers(&*self.disk)?;
        if numbers.iter().all(|&other| other <= number) || numbers.contains(&(number + 1)) {
            return Ok(Peek::End);
        }
        if numbers.contains(&number) {
            // Segments go from the oldest on, so this one would be gone too.
            return Ok(Peek::Invalid);
        }
        let first = numbers.iter().find_map(|&number| locate::first_stamp(&*self.disk, number));
        Err(LogError::Gone { first: first.map_or(0, |stamp| stamp.sequence) })
    }
}
