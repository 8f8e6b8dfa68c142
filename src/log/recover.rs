//! Recovery: surveys the segments, has them judged, cuts a torn tail, and hands out the records.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::checkpoint::{self, Complete};
use super::disk::{Disk, FileWriter};
use super::error::LogError;
use super::frame::{self, Found, Record};
use super::judge::{Damage, Flaw, Verdict, judge};
use super::read::numbers;
use super::region::Region;
pub use super::segment::Location;
use super::segment::{self, HEADER_BYTES, HeaderFault, SegmentHeader};
use super::sink::{self, SinkFile};
use super::state::State;
use super::survey::{Survey, survey};

/// Zeros are written in pieces of this size when a tail is cut.
const ZEROS_BYTES: usize = 1 << 16;

/// A log as recovery found it, in the order of its segments.
#[derive(Debug)]
pub struct Recovered {
    /// The segments needed, which were surveyed.
    pub(crate) segments: Vec<Segment>,
    /// Where the log ends.
    pub verdict: Verdict,
    /// The newest complete checkpoint; `None`: everything begins with record 1.
    pub checkpoint: Option<Complete>,
    /// The numbers of older segments that are still there, which nothing needs.
    pub unneeded: Vec<u64>,
    /// What is true after it, if that was looked at already.
    pub(super) state: Option<State>,
}

/// One segment of a recovered log.
#[derive(Debug)]
pub(crate) struct Segment {
    /// What it holds.
    pub survey: Survey,
    region: Arc<Region>,
}

impl Segment {
    /// Calls `visit` with each record, until it says that it has seen enough.
    fn walk(&self, mut visit: impl FnMut(u64, Record<'_>) -> ControlFlow<()>) {
        let bytes = self.region.bytes(0..self.survey.end).unwrap_or_default();
        let mut offset = HEADER_BYTES;
        while let Found::Record(record) = frame::read(bytes, offset, self.survey.header.identity) {
            if visit(offset as u64, record).is_break() {
                return;
            }
            offset += record.size();
        }
    }

    /// Where the first record above `watermark` begins, or where the records end.
    fn first_above(&self, watermark: u64) -> u64 {
        let mut first = self.survey.end;
        if self.survey.run.is_none_or(|run| run.last <= watermark) {
            return first;
        }
        self.walk(|offset, record| {
            if record.stamp.sequence <= watermark {
                return ControlFlow::Continue(());
            }
            first = offset;
            ControlFlow::Break(())
        });
        first
    }
}

impl Recovered {
    /// The log's id.
    pub fn log(&self) -> [u8; 16] {
        self.active().log
    }

    /// The header of the segment in which the log ends.
    pub fn active(&self) -> SegmentHeader {
        self.segments[self.verdict.active].survey.header
    }

    /// The number of the last segment that is there.
    pub fn last_segment(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.survey.header.number)
    }

    /// Ends the log before this record, which stands there.
    pub(crate) fn cut_before(&mut self, sequence: u64, location: Location) {
        let is_there = |segment: &Segment| segment.survey.header.number == location.segment;
        let Some(active) = self.segments.iter().position(is_there) else { return };
        let survey = &mut self.segments[active].survey;
        survey.end = location.offset;
        survey.run = survey.run.filter(|run| run.first < sequence);
        if let Some(run) = &mut survey.run {
            run.last = sequence - 1;
        }
        let verdict = &mut self.verdict;
        (verdict.active, verdict.end, verdict.last) = (active, location.offset, sequence - 1);
        verdict.is_cut = true;
    }

    /// Calls `visit` with each record in order, from the beginning of the first segment needed.
    ///
    /// # Errors
    /// The first one of `visit`.
    pub fn visit<E>(
        &self,
        visit: impl FnMut(Location, Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit_from(0, visit)
    }

    /// The same from record `first` on.
    ///
    /// # Errors
    /// The first one of `visit`.
    pub fn visit_from<E>(
        &self,
        first: u64,
        mut visit: impl FnMut(Location, Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        for segment in self.segments.iter().take(self.verdict.active + 1) {
            if segment.survey.run.is_none_or(|run| run.last < first) {
                continue;
            }
            let number = segment.survey.header.number;
            segment.walk(|offset, record| {
                if record.stamp.sequence >= first {
                    result = visit(Location { segment: number, offset }, record);
                }
                if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if result.is_err() {
                break;
            }
        }
        result
    }
}

/// Reads a log without changing anything, from the newest segment back to the oldest needed.
///
/// # Errors
/// Damage, files that are no segments, and what the storage says.
pub(crate) fn inspect(disk: &dyn Disk) -> Result<Option<Recovered>, LogError> {
    inspect_before(disk, u64::MAX)
}

/// The same from a checkpoint that stands before record `bound`.
///
/// # Errors
/// As [`inspect`].
pub(crate) fn inspect_before(
    disk: &dyn Disk,
    mut bound: u64,
) -> Result<Option<Recovered>, LogError> {
    let numbers = numbers(disk)?;
    let mut segments: VecDeque<Segment> = VecDeque::with_capacity(numbers.len());
    for (index, &number) in numbers.iter().enumerate().rev() {
        let segment = open_segment(disk, number)?;
        if let Some(next) = segments.front()
            && next.survey.header.log != segment.survey.header.log
        {
            return Err(LogError::OtherLog(segment::name(next.survey.header.number)));
        }
        segments.push_front(segment);
        let surveys: Vec<&Survey> = segments.iter().map(|segment| &segment.survey).collect();
        if let Some((start, checkpoint, verdict)) = newest_checkpoint(&surveys, &mut bound)? {
            let unneeded = numbers[..index + start].to_vec();
            let segments = segments.into_iter().skip(start).collect();
            let checkpoint = Some(checkpoint);
            return Ok(Some(Recovered { segments, verdict, checkpoint, unneeded, state: None }));
        }
    }
    let surveys: Vec<&Survey> = segments.iter().map(|segment| &segment.survey).collect();
    let Some(verdict) = from_the_beginning(&surveys)? else { return Ok(None) };
    let (segments, unneeded) = (segments.into(), Vec::new());
    Ok(Some(Recovered { segments, verdict, checkpoint: None, unneeded, state: None }))
}

/// The verdict over all segments of a log without a checkpoint; `None` where there is no segment.
///
/// # Errors
/// Damage, among it that older segments are missing.
pub(super) fn from_the_beginning(surveys: &[&Survey]) -> Result<Option<Verdict>, LogError> {
    let Some(first) = surveys.first() else { return Ok(None) };
    let verdict = judged(surveys, 1)?;
    let number = first.header.number;
    if number > 1 {
        // Older ones went when a checkpoint was whole, and there is none.
        let watermark = verdict.watermark;
        let damage = Damage { segment: number - 1, offset: 0, flaw: Flaw::Segment, watermark };
        return Err(LogError::Damaged(damage));
    }
    Ok(Some(verdict))
}

/// The newest complete checkpoint before record `bound` that needs none but these segments and
/// stands before the end of the log; with the first segment that it needs, and the verdict over
/// what follows. One that stands behind the end becomes the bound.
///
/// # Errors
/// Damage of what follows.
pub(super) fn newest_checkpoint(
    surveys: &[&Survey],
    bound: &mut u64,
) -> Result<Option<(usize, Complete, Verdict)>, LogError> {
    let seen = surveys.iter().map(|survey| &survey.checkpoints);
    for found in checkpoint::complete(&seen) {
        if found.sequence >= *bound {
            continue;
        }
        let is_lowest = |survey: &&Survey| survey.header.number == found.end.lowest;
        let Some(start) = surveys.iter().position(is_lowest) else {
            // What it needs is further back.
            return Ok(None);
        };
        let verdict = judged(&surveys[start..], found.end.at + 1)?;
        if verdict.last >= found.sequence {
            return Ok(Some((start, found, verdict)));
        }
        *bound = found.sequence;
    }
    Ok(None)
}

fn judged(surveys: &[&Survey], first: u64) -> Result<Verdict, LogError> {
    let surveys: Vec<Survey> = surveys.iter().map(|&survey| survey.clone()).collect();
    judge(&surveys, first).map_err(LogError::Damaged)
}

/// Reads a log, cuts what was torn, makes durable what is left, and removes files in the making.
///
/// # Errors
/// As [`inspect`], and then nothing was changed; or what the storage says.
pub(crate) fn recover(
    disk: &dyn Disk,
    sinks: Option<&[Arc<SinkFile>]>,
) -> Result<Option<Recovered>, LogError> {
    let recovered = inspect(disk)?;
    let recovered = match (recovered, sinks) {
        (Some(found), Some(sinks)) => Some(sink::agree(disk, found, sinks)?),
        (recovered, _) => recovered,
    };
    remove_unfinished(disk)?;
    // A name that is there may be one that a killed process gave and never flushed.
    disk.sync_names().map_err(LogError::storage("flush", "the log's directory"))?;
    let Some(mut recovered) = recovered else { return Ok(None) };
    settle(disk, &mut recovered)?;
    recovered.verdict.watermark = recovered.verdict.last;
    Ok(Some(recovered))
}

fn open_segment(disk: &dyn Disk, number: u64) -> Result<Segment, LogError> {
    let name = segment::name(number);
    let region = disk.view(&name).map_err(LogError::storage("read", &name))?;
    let header = read_header(&region, number, &name)?;
    let bytes = region.bytes(0..region.stable()).unwrap_or_default();
    let survey = survey(bytes, header);
    Ok(Segment { survey, region })
}

pub(super) fn read_header(
    region: &Region,
    number: u64,
    name: &str,
) -> Result<SegmentHeader, LogError> {
    let bytes = region.bytes(0..region.stable().min(HEADER_BYTES as u64)).unwrap_or_default();
    check_header(bytes, region.stable(), number, name)
}

/// The header that a file of `size` bytes begins with.
///
/// # Errors
/// When it is no segment of that number.
pub(super) fn check_header(
    bytes: &[u8],
    size: u64,
    number: u64,
    name: &str,
) -> Result<SegmentHeader, LogError> {
    let damaged =
        |flaw| LogError::Damaged(Damage { segment: number, offset: 0, flaw, watermark: 0 });
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(damaged(Flaw::Size { expected: HEADER_BYTES as u64, found: size }));
    };
    let header = SegmentHeader::from_bytes(bytes).map_err(|fault| match fault {
        HeaderFault::Foreign if bytes.iter().any(|&byte| byte != 0) => {
            LogError::Foreign(name.to_owned())
        }
        HeaderFault::Version(version) => LogError::Version { name: name.to_owned(), version },
        HeaderFault::Foreign | HeaderFault::Damaged => damaged(Flaw::Header),
    })?;
    if header.size != size {
        return Err(damaged(Flaw::Size { expected: header.size, found: size }));
    }
    if header.number != number {
        return Err(damaged(Flaw::Number(header.number)));
    }
    Ok(header)
}

fn remove_unfinished(disk: &dyn Disk) -> Result<(), LogError> {
    let names = disk.names().map_err(LogError::storage("list", "the log's directory"))?;
    for name in names.iter().filter(|name| segment::is_unfinished(name)) {
        disk.remove(name).map_err(LogError::storage("remove", name))?;
    }
    Ok(())
}

/// Removes the segments behind the end, writes again what is not known to be durable and zeros up
/// to the end of the segment, and flushes it (W6).
fn settle(disk: &dyn Disk, recovered: &mut Recovered) -> Result<(), LogError> {
    let verdict = recovered.verdict;
    while recovered.segments.len() > verdict.active + 1
        && let Some(segment) = recovered.segments.pop()
    {
        let name = segment::name(segment.survey.header.number);
        disk.remove(&name).map_err(LogError::storage("remove", &name))?;
        disk.sync_names().map_err(LogError::storage("flush", "the log's directory"))?;
    }
    for (index, segment) in recovered.segments[..=verdict.active].iter().enumerate().rev() {
        let is_active = index == verdict.active;
        let end = if is_active { verdict.end } else { segment.survey.end };
        let from = segment.first_above(verdict.watermark).min(end);
        if !is_active && from == end {
            break;
        }
        let name = segment::name(segment.survey.header.number);
        let mut opened = disk.open(&name, from).map_err(LogError::storage("open", &name))?;
        let again = segment.region.bytes(from..end).unwrap_or_default();
        opened.writer.append(again).map_err(LogError::storage("write again", &name))?;
        write_zeros(&mut *opened.writer, segment.survey.header.size - end)
            .map_err(LogError::storage("cut", &name))?;
        opened.flusher.flush().map_err(LogError::storage("flush", &name))?;
    }
    Ok(())
}

fn write_zeros(writer: &mut dyn FileWriter, mut left: u64) -> io::Result<()> {
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(ZEROS_BYTES).min(ZEROS_BYTES);
        writer.append(&[0; ZEROS_BYTES][..piece])?;
        left -= piece as u64;
    }
    Ok(())
}
