//! The readable records of a damaged log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::replay::Replay;
use super::{Hole, Salvaged};
use crate::log::checkpoint::{self, Complete, Reading, Seen};
use crate::log::disk::{Disk, FileReader};
use crate::log::entry::entries;
use crate::log::error::LogError;
use crate::log::frame::{self, Found, HEADER_BYTES as HEAD_BYTES, Kind, Record};
use crate::log::judge::Flaw;
use crate::log::read::numbers;
use crate::log::segment::{self, HEADER_BYTES, Location, SegmentHeader};
use crate::log::state::State;
use crate::log::survey::Run;
use crate::log::verify::{Depth, Stretch, Verified, load, stretches, verify_on};

/// A segment of which something can be read.
#[derive(Debug)]
struct Known {
    /// The number in the name of its file.
    file: u64,
    size: u64,
    identity: u64,
    stretches: Vec<Stretch>,
    seen: Seen,
}

/// The damaged log.
#[derive(Debug)]
pub(super) struct Source {
    disk: Arc<dyn Disk>,
    /// By the number in the header.
    segments: BTreeMap<u64, Known>,
    /// Runs of records in the order of their sequences, each with its segment and place there.
    runs: Vec<(Run, u64, u64)>,
    verified: Verified,
    /// Whether bodies were found that are entries, and such that are not.
    bodies: (bool, bool),
    /// The file that was read last.
    file: Option<(u64, Box<dyn FileReader>)>,
}

impl Source {
    /// Surveys everything.
    ///
    /// # Errors
    /// When there is no segment, when one is of a newer version, when no record can be read, and
    /// what the storage says.
    pub(super) fn open(disk: &Arc<dyn Disk>, shown: &str) -> Result<Self, LogError> {
        let verified = verify_on(disk, Depth::Records)?;
        let files = numbers(&**disk)?;
        if files.is_empty() {
            return Err(LogError::NoLog(shown.to_owned()));
        }
        let (mut found, mut bodies) = (Vec::new(), (false, false));
        for file in files {
            let Some(loaded) = load(&**disk, file)? else { continue };
            let is_whole = loaded.header.is_ok();
            let header = match loaded.header {
                Ok(header) => header,
                Err(error @ LogError::Version { .. }) => return Err(error),
                Err(error) => match guess(&loaded.bytes, file, &error) {
                    Some(header) => header,
                    None => continue,
                },
            };
            let stretches = stretches(&loaded.bytes, header.identity);
            let mut seen = Seen::default();
            for stretch in &stretches {
                visit(&loaded.bytes, stretch, header.identity, |_, record| {
                    seen.note(record);
                    look_at(record, &mut bodies);
                });
            }
            let size = loaded.bytes.len() as u64;
            let identity = header.identity;
            // One that was guessed is taken for one of this log.
            let log = is_whole.then_some(header.log);
            let known = Known { file, size, identity, stretches, seen };
            found.push((header.number, log, known));
        }
        let segments = of_one_log(found);
        let mut source = Self {
            disk: Arc::clone(disk),
            segments,
            runs: Vec::new(),
            verified,
            bodies,
            file: None,
        };
        source.runs = source.readable_runs();
        if source.runs.is_empty() {
            return Err(LogError::NothingLeft(shown.to_owned()));
        }
        Ok(source)
    }

    /// The runs of all segments, up to where the log was torn.
    fn readable_runs(&self) -> Vec<(Run, u64, u64)> {
        let torn = self.verified.findings.iter().find(|finding| finding.is_torn);
        let torn = torn.map(|finding| (finding.location.segment, finding.location.offset));
        let mut runs: Vec<_> =
            self.segments
                .iter()
                .flat_map(|(&number, known)| {
                    known.stretches.iter().filter_map(move |stretch| {
                        stretch.run.map(|run| (run, number, stretch.start))
                    })
                })
                .filter(|&(_, number, start)| torn.is_none_or(|torn| (number, start) < torn))
                .collect();
        runs.sort_by_key(|&(run, number, start)| (run.first, number, start));
        runs
    }

    /// Whether no record holds entries, though there are some with bodies.
    pub(super) fn is_raw(&self) -> bool {
        self.bodies == (false, true)
    }

    /// The highest sequence that was given to a record, as far as it is known.
    pub(super) fn last(&self) -> u64 {
        let runs = self.runs.iter().map(|(run, ..)| run.last).max();
        runs.unwrap_or(0).max(self.verified.watermark)
    }

    /// The time of the last record.
    pub(super) fn time(&self) -> u64 {
        self.runs.iter().map(|(run, ..)| run.last_time).max().unwrap_or(0)
    }

    /// The number of the last segment.
    pub(super) fn last_segment(&self) -> u64 {
        let files = self.verified.segments.iter().map(|segment| segment.number);
        files.chain(self.segments.keys().copied()).max().unwrap_or(1)
    }

    /// The size of its largest segment.
    pub(super) fn segment_bytes(&self) -> u64 {
        self.segments.values().map(|known| known.size).max().unwrap_or(0)
    }

    /// The number of the newest checkpoint, whether it counts or not.
    pub(super) fn checkpoint_number(&self) -> u64 {
        self.complete().first().map_or(0, |found| found.end.number)
    }

    /// The complete checkpoints, the newest first.
    fn complete(&self) -> Vec<Complete> {
        checkpoint::complete(&self.segments.values().map(|known| &known.seen))
    }

    /// The newest checkpoint that can be read, and the state that it holds.
    pub(super) fn checkpoint(&self) -> Result<Option<(Complete, State)>, LogError> {
        for found in self.complete() {
            let is_there =
                self.runs.iter().any(|(run, ..)| (run.first..=run.last).contains(&found.sequence));
            if !is_there {
                continue;
            }
            let mut reading = Ok(Reading::new(found.end));
            self.visit_from(
                found.end.first_part,
                &mut |_, record| {
                    let is_part = record.stamp.kind == Kind::CheckpointPart;
                    if is_part
                        && record.stamp.sequence < found.sequence
                        && let Ok(parts) = &mut reading
                        && let Err(error) = parts.part(&record.body())
                    {
                        reading = Err(error);
                    }
                },
                &mut |_| {},
            )?;
            if let Ok(state) = reading.and_then(Reading::finish) {
                return Ok(Some((found, state)));
            }
        }
        Ok(None)
    }

    /// Plays all records, and tells of the holes between them.
    ///
    /// # Errors
    /// What the storage says.
    pub(super) fn replay(&mut self, replay: &mut Replay) -> Result<(), LogError> {
        let base = self.checkpoint()?;
        let mut first = 1;
        if let Some((found, state)) = base {
            first = found.end.at + 1;
            replay.begin(state);
        }
        let replay = std::cell::RefCell::new(replay);
        self.visit_from(
            first,
            &mut |location, record| replay.borrow_mut().record(location, record),
            &mut |hole| replay.borrow_mut().hole(hole),
        )?;
        let replay = replay.into_inner();
        if let Some(hole) = self.hole_at_the_end() {
            replay.hole(hole);
        }
        Ok(())
    }

    /// Whether records are missing behind the last one that can be read.
    pub(super) fn hole_at_the_end(&self) -> Option<Hole> {
        let (run, number, start) = *self.runs.iter().max_by_key(|(run, ..)| run.last)?;
        let end = self
            .segments
            .get(&number)
            .and_then(|known| known.stretches.iter().find(|stretch| stretch.start == start));
        let place = (number, end.map_or(start, |stretch| stretch.end));
        let is_behind = self.verified.findings.iter().any(|finding| {
            let location = finding.location;
            !finding.is_torn && (location.segment, location.offset) >= place
        });
        let (first, watermark) = (run.last + 1, self.verified.watermark);
        if run.last >= watermark && !is_behind {
            return None;
        }
        let location = Location { segment: place.0, offset: place.1 };
        let last = (watermark >= first && !is_behind).then_some(watermark);
        Some(Hole { location, first, last })
    }

    /// Calls `visit` with the records from `first` on, and `hole` where some are missing.
    pub(super) fn visit_from(
        &self,
        first: u64,
        visit: &mut dyn FnMut(Location, &Record<'_>),
        hole: &mut dyn FnMut(Hole),
    ) -> Result<(), LogError> {
        let mut next = first;
        let mut end = Location { segment: 1, offset: HEADER_BYTES as u64 };
        let mut bytes: Option<(u64, Vec<u8>)> = None;
        for &(run, number, start) in self.runs.iter().filter(|(run, ..)| run.last >= first) {
            let Some(known) = self.segments.get(&number) else { continue };
            let stretch = known.stretches.iter().find(|stretch| stretch.start == start);
            let Some(stretch) = stretch.filter(|_| run.last >= next) else { continue };
            if run.first > next {
                hole(Hole { location: end, first: next, last: Some(run.first - 1) });
            }
            if bytes.as_ref().is_none_or(|(loaded, _)| *loaded != number) {
                let loaded = load(&*self.disk, known.file)?;
                bytes = loaded.map(|loaded| (number, loaded.bytes));
            }
            let Some((_, held)) = &bytes else { continue };
            super::source::visit(held, stretch, known.identity, |offset, record| {
                if record.stamp.sequence >= next {
                    visit(Location { segment: number, offset }, record);
                }
            });
            next = next.max(run.last + 1);
            end = Location { segment: number, offset: stretch.end };
        }
        Ok(())
    }

    /// The bytes of the record at a place, with the identity they are checked with; `None` when
    /// there is no valid one.
    ///
    /// # Errors
    /// What the storage says.
    pub(super) fn record_at(
        &mut self,
        place: Location,
    ) -> Result<Option<(Vec<u8>, u64)>, LogError> {
        let Some(known) = self.segments.get(&place.segment) else { return Ok(None) };
        let name = segment::name(known.file);
        if self.file.as_ref().is_none_or(|(file, _)| *file != known.file) {
            let file = self.disk.reader(&name).map_err(LogError::storage("read", &name))?;
            self.file = Some((known.file, file));
        }
        let Some((_, file)) = &self.file else { return Ok(None) };
        let mut head = [0; HEAD_BYTES];
        let read = file.read(&mut head, place.offset).map_err(LogError::storage("read", &name))?;
        let size = frame::head(&head, known.identity).filter(|_| read == HEAD_BYTES);
        let Some((_, size)) = size.filter(|(_, size)| *size as u64 <= known.size) else {
            return Ok(None);
        };
        let mut record = vec![0; size];
        file.read(&mut record, place.offset).map_err(LogError::storage("read", &name))?;
        let is_valid = matches!(frame::read(&record, 0, known.identity), Found::Record(_));
        Ok(is_valid.then_some((record, known.identity)))
    }

    /// What can be said before anything is played.
    pub(super) fn report(&self) -> Salvaged {
        let records = self.runs.iter().map(|(run, ..)| run.last - run.first + 1).sum();
        Salvaged { records, ..Salvaged::default() }
    }
}

/// Calls `visit` with each record of a stretch.
fn visit(bytes: &[u8], stretch: &Stretch, identity: u64, mut visit: impl FnMut(u64, &Record<'_>)) {
    let Ok(mut offset) = usize::try_from(stretch.start) else { return };
    while (offset as u64) < stretch.end
        && let Found::Record(record) = frame::read(bytes, offset, identity)
    {
        visit(offset as u64, &record);
        offset += record.size();
    }
}

/// A header that does not check, as far as it matters: its identity makes records valid.
fn guess(bytes: &[u8], file: u64, error: &LogError) -> Option<SegmentHeader> {
    let head = bytes.first_chunk::<HEADER_BYTES>()?;
    let identity = u64::from_le_bytes(head[48..56].try_into().ok()?);
    let log = head[24..40].try_into().ok()?;
    frame::find(bytes, HEADER_BYTES, identity)?;
    // Where the header is whole, only the file's name or size is wrong.
    let number = match error {
        LogError::Damaged(damage) => match damage.flaw {
            Flaw::Number(number) => number,
            _ => file,
        },
        _ => file,
    };
    Some(SegmentHeader { size: bytes.len() as u64, log, number, identity, is_os: false })
}

/// Notes whether the body of a record is entries.
fn look_at(record: &Record<'_>, (some, others): &mut (bool, bool)) {
    if record.stamp.kind == Kind::Entries {
        match entries(&record.body()).next() {
            Some(Ok(_)) => *some = true,
            Some(Err(_)) => *others = true,
            None => {}
        }
    }
}

/// The segments of the log that has the most of them; of two with one number, that in whose name it
/// stands.
fn of_one_log(found: Vec<(u64, Option<[u8; 16]>, Known)>) -> BTreeMap<u64, Known> {
    let mut counts: HashMap<[u8; 16], usize> = HashMap::new();
    for log in found.iter().filter_map(|(_, log, _)| *log) {
        *counts.entry(log).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|&(log, count)| (count, log)).map(|(log, _)| log);
    let mut segments = BTreeMap::new();
    for (number, log, known) in found {
        let is_own = log.is_none() || log == most;
        if is_own && (known.file == number || !segments.contains_key(&number)) {
            segments.insert(number, known);
        }
    }
    segments
}
