//! Walks the records of a log in order, as they stand in the files at that moment.
//!
//! Holds one window of one file: a few KiB at first, more while records follow each other, and as
//! much as the longest record. What is found has passed both checks and follows the record before.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::log::disk::{Disk, FileReader};
use crate::log::error::LogError;
use crate::log::frame::{self, Found, RECORD_BYTES_MIN, Record, Stamp};
use crate::log::recover::check_header;
use crate::log::segment::{self, HEADER_BYTES, Location, SegmentHeader};
use crate::log::survey::{Run, follow};

/// Bytes read at once: so many at first, and behind a place where nothing was.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Bytes read at once while records follow each other.
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// What stands where the next record would begin.
#[derive(Debug, Clone, Copy)]
pub(in crate::log) enum Peek {
    /// It does.
    Record(Stamp),
    /// Nothing yet.
    End,
    /// Something else, or the log goes on elsewhere with another record.
    Invalid,
}

/// A segment that is read.
#[derive(Debug)]
struct Segment {
    number: u64,
    header: SegmentHeader,
    file: Box<dyn FileReader>,
}

/// A place in a log.
#[derive(Debug)]
pub(in crate::log) struct Cursor {
    disk: Arc<dyn Disk>,
    segment: Segment,
    /// Where the next record begins.
    offset: u64,
    /// What is known of the records before.
    run: Option<Run>,
    /// The record at `offset`, when it was looked at: what it says, and its size.
    found: Option<(Stamp, usize)>,
    window: Vec<u8>,
    window_at: u64,
    chunk: usize,
}

impl Cursor {
    /// Stands before the first record of a segment; `None` when that is not there.
    ///
    /// # Errors
    /// When it is no segment, and what the storage says.
    pub(in crate::log) fn open(
        disk: &Arc<dyn Disk>,
        number: u64,
    ) -> Result<Option<Self>, LogError> {
        let name = segment::name(number);
        let file = match disk.reader(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::storage("read", &name)(error)),
        };
        let header = read_header(&*file, number)?;
        // The first record of all has number 1; what another segment begins with, it says itself.
        let before_all = Run {
            first: 0,
            first_watermark: 0,
            first_time: 0,
            last: 0,
            last_time: 0,
            last_watermark: 0,
        };
        Ok(Some(Self {
            disk: Arc::clone(disk),
            segment: Segment { number, header, file },
            offset: HEADER_BYTES as u64,
            run: (number == 1).then_some(before_all),
            found: None,
            window: Vec::new(),
            window_at: 0,
            chunk: CHUNK_BYTES_MIN,
        }))
    }

    /// The header of the segment it stands in.
    pub(in crate::log) fn header(&self) -> &SegmentHeader {
        &self.segment.header
    }

    /// Where the next record begins, or would.
    pub(in crate::log) fn location(&self) -> Location {
        Location { segment: self.segment.number, offset: self.offset }
    }

    /// The sequence of the record behind; `None` before the first one is known.
    pub(in crate::log) fn passed(&self) -> Option<u64> {
        self.run.map(|run| run.last)
    }

    /// What stands here, looked at anew where nothing stood before.
    ///
    /// # Errors
    /// When the next file is no segment of this log, and what the storage says.
    pub(in crate::log) fn peek(&mut self) -> Result<Peek, LogError> {
        if let Some((stamp, _)) = self.found {
            return Ok(Peek::Record(stamp));
        }
        if !self.look()? {
            // The window may be older than what was written since.
            self.window.clear();
            self.chunk = CHUNK_BYTES_MIN;
            if !self.look()? && !self.enter_next()? {
                let is_end = self.is_zero()? && !self.is_followed()?;
                return Ok(if is_end { Peek::End } else { Peek::Invalid });
            }
        }
        Ok(self.found.map_or(Peek::End, |(stamp, _)| Peek::Record(stamp)))
    }

    /// The record that was found here.
    pub(in crate::log) fn record(&self) -> Option<Record<'_>> {
        let (_, size) = self.found?;
        let start = usize::try_from(self.offset.checked_sub(self.window_at)?).ok()?;
        frame::again(self.window.get(start..)?.get(..size)?, self.segment.header.identity)
    }

    /// Goes behind the record that was found here.
    pub(in crate::log) fn pass(&mut self) {
        if let Some((stamp, size)) = self.found.take() {
            self.run = follow(self.run, &stamp).ok().or(self.run);
            self.offset += size as u64;
        }
    }

    /// Whether a valid record that may come next stands here.
    fn look(&mut self) -> Result<bool, LogError> {
        let identity = self.segment.header.identity;
        let Some(head) = self.bytes(RECORD_BYTES_MIN)? else { return Ok(false) };
        let head = head.first_chunk().and_then(|head| frame::head(head, identity));
        let Some((stamp, size)) = head else { return Ok(false) };
        if follow(self.run, &stamp).is_err() {
            return Ok(false);
        }
        let Some(record) = self.bytes(size)? else { return Ok(false) };
        let is_record = matches!(frame::read(record, 0, identity), Found::Record(_));
        self.found = is_record.then_some((stamp, size));
        Ok(is_record)
    }

    /// Goes to the first record of a later segment, if that is the next one.
    fn enter_next(&mut self) -> Result<bool, LogError> {
        if self.run.is_none() && !self.is_zero()? {
            // Which record comes next is not known, so none may be passed over.
            return Ok(false);
        }
        let Some(mut next) = self.next_segment(self.segment.number + 1)? else { return Ok(false) };
        loop {
            next.run = self.run;
            if next.look()? {
                *self = next;
                return Ok(true);
            }
            if !next.is_zero()? {
                return Ok(false);
            }
            // It holds nothing (yet): one was left at once for another policy.
            match self.next_segment(next.segment.number + 1)? {
                Some(further) => next = further,
                None => return Ok(false),
            }
        }
    }

    /// Whether any record stands in a later segment.
    fn is_followed(&self) -> Result<bool, LogError> {
        let mut number = self.segment.number + 1;
        while let Some(mut next) = self.next_segment(number)? {
            next.run = None;
            if next.look()? || !next.is_zero()? {
                return Ok(true);
            }
            number += 1;
        }
        Ok(false)
    }

    /// Whether nothing at all is written from here on, in this segment and those behind it.
    pub(super) fn is_rest_zero(&self) -> Result<bool, LogError> {
        let Segment { number, header, file } = &self.segment;
        if !is_file_zero(&**file, *number, self.offset..header.size)? {
            return Ok(false);
        }
        let mut number = number + 1;
        while let Some(next) = self.next_segment(number)? {
            let range = next.offset..next.segment.header.size;
            if !is_file_zero(&*next.segment.file, number, range)? {
                return Ok(false);
            }
            number += 1;
        }
        Ok(true)
    }

    fn next_segment(&self, number: u64) -> Result<Option<Self>, LogError> {
        let next = Self::open(&self.disk, number)?;
        match &next {
            Some(next) if next.segment.header.log != self.segment.header.log => {
                Err(LogError::OtherLog(segment::name(number)))
            }
            _ => Ok(next),
        }
    }

    /// Whether nothing was written here.
    fn is_zero(&mut self) -> Result<bool, LogError> {
        let left = self.segment.header.size - self.offset;
        let length =
            usize::try_from(left).map_or(RECORD_BYTES_MIN, |left| left.min(RECORD_BYTES_MIN));
        let bytes = self.bytes(length)?;
        Ok(bytes.is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0)))
    }

    /// So many bytes from here on; `None` when the file has no more.
    fn bytes(&mut self, length: usize) -> Result<Option<&[u8]>, LogError> {
        let left = self.segment.header.size - self.offset;
        if length as u64 > left {
            return Ok(None);
        }
        let start = self.offset.checked_sub(self.window_at).and_then(|start| start.try_into().ok());
        let is_there = start.is_some_and(|start: usize| start + length <= self.window.len());
        if !is_there {
            self.fill(length, left)?;
        }
        let start = usize::try_from(self.offset - self.window_at).unwrap_or(usize::MAX);
        Ok(self.window.get(start..).and_then(|window| window.get(..length)))
    }

    /// Reads a window that begins here.
    fn fill(&mut self, length: usize, left: u64) -> Result<(), LogError> {
        let wanted = length.max(self.chunk);
        let wanted = usize::try_from(left).map_or(wanted, |left| wanted.min(left));
        self.chunk = (self.chunk * 2).min(CHUNK_BYTES_MAX);
        self.window.resize(wanted, 0);
        self.window.shrink_to(CHUNK_BYTES_MAX);
        self.window_at = self.offset;
        let read = self.segment.file.read(&mut self.window, self.offset);
        let read = read.inspect_err(|_| self.window.clear());
        let name = segment::name(self.segment.number);
        self.window.truncate(read.map_err(LogError::storage("read", &name))?);
        Ok(())
    }
}

/// Whether these bytes of a segment are zeros, as far as they are there.
fn is_file_zero(file: &dyn FileReader, number: u64, range: Range<u64>) -> Result<bool, LogError> {
    let mut bytes = vec![0; CHUNK_BYTES_MAX];
    for offset in range.clone().step_by(CHUNK_BYTES_MAX) {
        let left = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
        let wanted = left.min(CHUNK_BYTES_MAX);
        let read = file.read(&mut bytes[..wanted], offset);
        let read = read.map_err(LogError::storage("read", &segment::name(number)))?;
        if bytes[..read].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the header of a segment says, or why it is none; `None` when the file is not there.
pub(super) fn header_of(disk: &dyn Disk, number: u64) -> Option<Result<SegmentHeader, LogError>> {
    let name = segment::name(number);
    match disk.reader(&name) {
        Ok(file) => Some(read_header(&*file, number)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(LogError::storage("read", &name)(error))),
    }
}

/// The header of a segment that may be written to.
///
/// # Errors
/// When it is no segment of that number, and what the storage says.
pub(super) fn read_header(file: &dyn FileReader, number: u64) -> Result<SegmentHeader, LogError> {
    let name = segment::name(number);
    let mut bytes = [0; HEADER_BYTES];
    let read = file.read(&mut bytes, 0).map_err(LogError::storage("read", &name))?;
    let size = file.size().map_err(LogError::storage("read", &name))?;
    check_header(&bytes[..read], size, number, &name)
}
