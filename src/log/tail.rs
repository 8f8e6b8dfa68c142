//! The end of the log, where records are added: one thread's view, without locks.
//!
//! Gives sequences and times, fits records into segments, and keeps the order of writes (W1-W3) of
//! `README.md`. Records are gathered in a buffer and written with one call.

use std::collections::VecDeque;
use std::sync::Arc;

use super::disk::{Disk, FileWriter};
use super::error::LogError;
use super::flusher::Flusher;
use super::frame::{self, Kind, Stamp};
use super::prepare::{Preparer, mix};
use super::recover::Recovered;
use super::segment::{self, HEADER_BYTES, Location, SegmentHeader};

/// Segments that may be left behind without a flush before the oldest is flushed.
const SEALED_MAX: usize = 8;
/// A buffer larger than this is not kept.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// What a tail is made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailSettings {
    /// Bytes of a new segment.
    pub segment_bytes: u64,
    /// Whether a segment is flushed before the next one is used (W3).
    pub is_safe: bool,
    /// Where identities and the id of a new log come from; has to differ from start to start.
    pub seed: u64,
}

/// What comes before the first record of a log that does not begin at the beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning {
    /// The number of its first segment.
    pub segment: u64,
    /// The sequence before that of its first record.
    pub sequence: u64,
    /// The time before which no record may be.
    pub time: u64,
}

/// The end of a log.
#[derive(Debug)]
pub(crate) struct Tail {
    disk: Arc<dyn Disk>,
    preparer: Arc<Preparer>,
    is_safe: bool,
    header: SegmentHeader,
    active: Active,
    /// Output files that are flushed first.
    sinks: Vec<Arc<Flusher>>,
    /// Segments left behind without a flush; nothing where the log is safe.
    sealed: VecDeque<Arc<Flusher>>,
    /// The last sequence given.
    sequence: u64,
    /// The last time given.
    time: u64,
    /// The highest sequence known to be durable.
    watermark: u64,
    /// Records that are not written yet.
    buffer: Vec<u8>,
    /// The segment was begun under another policy, which its header says: leave it.
    is_foreign: bool,
}

impl Tail {
    /// Goes on behind what was recovered; makes the first segment of a new log.
    ///
    /// # Errors
    /// When a segment cannot be made or opened.
    pub fn open(
        disk: Arc<dyn Disk>,
        recovered: Option<&Recovered>,
        settings: TailSettings,
    ) -> Result<Self, LogError> {
        let TailSettings { segment_bytes, is_safe, seed } = settings;
        let log = recovered.map_or_else(|| new_log(seed), Recovered::log);
        let last = recovered.map_or(0, Recovered::last_segment);
        let preparer = Preparer::new(Arc::clone(&disk), segment_bytes, log, seed, !is_safe, last);
        let (header, end) = match recovered {
            Some(recovered) => (recovered.active(), recovered.verdict.end),
            None => {
                preparer.ensure(1)?;
                (read_header(&*disk, 1)?, HEADER_BYTES as u64)
            }
        };
        let verdict = recovered.map(|recovered| recovered.verdict);
        Ok(Self {
            active: Active::open(&*disk, header.number, end)?,
            sinks: Vec::new(),
            sealed: VecDeque::new(),
            disk,
            preparer: Arc::new(preparer),
            is_safe,
            header,
            sequence: verdict.map_or(0, |verdict| verdict.last),
            time: verdict.map_or(0, |verdict| verdict.time),
            watermark: verdict.map_or(0, |verdict| verdict.watermark),
            buffer: Vec::new(),
            is_foreign: header.is_os == is_safe,
        })
    }

    /// Begins a log whose first record is not the first of all: what was before went, and a
    /// checkpoint takes its place.
    ///
    /// # Errors
    /// When the segment cannot be made or opened.
    pub(crate) fn begin(
        disk: Arc<dyn Disk>,
        beginning: Beginning,
        settings: TailSettings,
    ) -> Result<Self, LogError> {
        let Beginning { segment, sequence, time } = beginning;
        let TailSettings { segment_bytes, is_safe, seed } = settings;
        let log = new_log(seed);
        let (owner, before) = (Arc::clone(&disk), segment.saturating_sub(1));
        let preparer = Preparer::new(owner, segment_bytes, log, seed, !is_safe, before);
        preparer.ensure(segment)?;
        Ok(Self {
            active: Active::open(&*disk, segment, HEADER_BYTES as u64)?,
            sinks: Vec::new(),
            sealed: VecDeque::new(),
            header: read_header(&*disk, segment)?,
            disk,
            preparer: Arc::new(preparer),
            is_safe,
            sequence,
            time,
            watermark: sequence,
            buffer: Vec::new(),
            is_foreign: false,
        })
    }

    /// Makes segments ahead of need.
    pub(crate) fn preparer(&self) -> &Arc<Preparer> {
        &self.preparer
    }

    /// Whether the next segment will be needed before long.
    pub(crate) fn is_half_full(&self) -> bool {
        self.active.writer.position() > self.header.size / 2
    }

    /// The last sequence given, 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The highest sequence known to be durable.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// The number of the segment that is written to.
    pub fn segment(&self) -> u64 {
        self.header.number
    }

    /// Where the next record goes in that segment, once the buffer is written.
    pub fn position(&self) -> u64 {
        self.active.writer.position()
    }

    /// Has these files flushed before any segment is.
    pub(crate) fn set_sinks(&mut self, sinks: Vec<Arc<Flusher>>) {
        self.sinks = sinks;
    }

    /// What makes durable what was written: sinks, segments left behind without a flush, then this
    /// one.
    pub(crate) fn flushers(&self) -> Vec<Arc<Flusher>> {
        let segments = self.sealed.iter().chain([&self.active.flusher]);
        self.sinks.iter().chain(segments).map(Arc::clone).collect()
    }

    /// Says that everything up to `sequence` is durable.
    pub fn set_watermark(&mut self, sequence: u64) {
        self.watermark = self.watermark.max(sequence.min(self.sequence));
    }

    /// The longest body of a record.
    pub fn body_bytes_max(&self) -> usize {
        segment::body_bytes_max(self.preparer.segment_bytes()).min(frame::BODY_BYTES_MAX)
    }

    /// Adds a record to the buffer, and returns its sequence. Its time is `now`, or that of the
    /// record before if the clock went back. Where the segment is full, the buffer is written, the
    /// segment flushed, and the next one used.
    ///
    /// # Errors
    /// When it is too long, or what the storage says; then it has no sequence.
    pub fn push(&mut self, kind: Kind, body: &[u8], now: u64) -> Result<u64, LogError> {
        let (sequence, _) = self.prepare(body.len())?;
        let time = self.time.max(now);
        let stamp = Stamp { kind, sequence, time, watermark: self.watermark };
        frame::append(&mut self.buffer, self.header.identity, stamp, body);
        (self.sequence, self.time) = (sequence, time);
        Ok(sequence)
    }

    /// Makes room for a record with such a body; its sequence, and where it will stand.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn prepare(&mut self, body_bytes: usize) -> Result<(u64, Location), LogError> {
        let limit = self.body_bytes_max();
        if body_bytes > limit {
            return Err(LogError::TooLarge { size: body_bytes, limit });
        }
        if self.is_foreign || self.end() + frame::size(body_bytes) as u64 > self.header.size {
            self.roll()?;
        }
        Ok((self.sequence + 1, Location { segment: self.segment(), offset: self.end() }))
    }

    /// Where the next record goes, should it fit.
    fn end(&self) -> u64 {
        self.active.writer.position() + self.buffer.len() as u64
    }

    /// Bytes of records that are not written yet.
    pub(crate) fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Writes what the buffer holds.
    ///
    /// # Errors
    /// What the storage says. The tail must not be used any more then: how much was written is
    /// not known.
    pub fn write(&mut self) -> Result<(), LogError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.active.writer.append(&self.buffer);
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_MAX);
        written.map_err(LogError::storage("write", &segment::name(self.header.number)))
    }

    /// Writes and flushes everything.
    ///
    /// # Errors
    /// What the storage says. The tail must not be used any more then.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.write()?;
        for flusher in self.flushers() {
            let flushed = flusher.flush();
            flushed.map_err(LogError::storage("flush", flusher.name()))?;
        }
        self.sealed.clear();
        self.watermark = self.sequence;
        Ok(())
    }

    /// Goes on in the next segment.
    fn roll(&mut self) -> Result<(), LogError> {
        if self.is_safe {
            self.flush()?;
        } else {
            self.write()?;
            if self.sealed.len() == SEALED_MAX
                && let Some(oldest) = self.sealed.pop_front()
            {
                oldest.flush().map_err(LogError::storage("flush", "an earlier segment"))?;
            }
        }
        let number = self.header.number + 1;
        self.preparer.ensure(number)?;
        let header = read_header(&*self.disk, number)?;
        let next = Active::open(&*self.disk, number, HEADER_BYTES as u64)?;
        let before = std::mem::replace(&mut self.active, next);
        if !self.is_safe {
            self.sealed.push_back(before.flusher);
        }
        self.header = header;
        self.is_foreign = false;
        Ok(())
    }
}

/// The id of a new log.
fn new_log(seed: u64) -> [u8; 16] {
    (u128::from(mix(seed, 0)) << 64 | u128::from(mix(!seed, 0))).to_le_bytes()
}

/// The header of a segment without records.
fn read_header(disk: &dyn Disk, number: u64) -> Result<SegmentHeader, LogError> {
    let name = segment::name(number);
    let region = disk.view(&name).map_err(LogError::storage("read", &name))?;
    super::recover::read_header(&region, number, &name)
}

/// The segment that is written to.
#[derive(Debug)]
struct Active {
    writer: Box<dyn FileWriter>,
    flusher: Arc<Flusher>,
}

impl Active {
    fn open(disk: &dyn Disk, number: u64, end: u64) -> Result<Self, LogError> {
        let name = segment::name(number);
        let opened = disk.open(&name, end).map_err(LogError::storage("open", &name))?;
        Ok(Self { writer: opened.writer, flusher: Arc::new(Flusher::new(&name, opened.flusher)) })
    }
}
