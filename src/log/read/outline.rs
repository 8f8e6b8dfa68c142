//! What a log's directory holds, at a glance: headers, first records, and the last segment.

use std::path::Path;
use std::sync::Arc;

use super::cursor::{Cursor, Peek, header_of};
use super::locate::{first_stamp, numbers};
use crate::log::disk::Disk;
use crate::log::error::LogError;
use crate::log::folder::Folder;
use crate::log::segment::{self, HEADER_BYTES, Location, SegmentHeader};

/// One segment at a glance.
#[derive(Debug)]
pub struct SegmentOutline {
    /// Its number.
    pub number: u64,
    /// What its header says, or why it is no segment.
    pub header: Result<SegmentHeader, LogError>,
    /// The first record: its sequence and time; `None` where nothing was written, or nothing can
    /// be read.
    pub first: Option<(u64, u64)>,
}

/// A log at a glance.
#[derive(Debug)]
pub struct Outline {
    /// Its segments, by their numbers.
    pub segments: Vec<SegmentOutline>,
    /// The last record that was found: its sequence and time. It may not be durable.
    pub last: Option<(u64, u64)>,
    /// Where that ends.
    pub end: Location,
    /// Whether something that is no record stands there, or behind it.
    pub is_cut_short: bool,
    /// Everything up to this sequence is known to be durable.
    pub durable: u64,
    /// Names of files that are no segments.
    pub others: Vec<String>,
}

/// Looks at a log without reading all of it, whether somebody writes to it or not.
///
/// ```
/// use waystage::log::{Log, LogSettings, outline};
/// let directory = tempfile::tempdir()?;
/// let (log, _) = Log::open(directory.path(), LogSettings::default())?;
/// log.append(b"a body")?.wait()?;
/// log.close()?;
/// let outline = outline(directory.path())?;
/// assert_eq!(outline.segments[0].first.map(|first| first.0), Some(1));
/// assert_eq!((outline.last.map(|last| last.0), outline.durable), (Some(2), 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the directory is not there, and what the storage says.
pub fn outline(path: &Path) -> Result<Outline, LogError> {
    let shown = path.display().to_string();
    let folder = Folder::unlocked(path).map_err(LogError::storage("open", &shown))?;
    outline_on(&(Arc::new(folder) as Arc<dyn Disk>))
}

/// Whether nothing is written behind this place; what is wrong with a file there stands in its own
/// line.
fn is_rest_zero(cursor: &Cursor) -> Result<bool, LogError> {
    match cursor.is_rest_zero() {
        Err(error @ LogError::Storage { .. }) => Err(error),
        Err(_) => Ok(false),
        Ok(is_zero) => Ok(is_zero),
    }
}

/// Looks at a log on any disk.
pub(crate) fn outline_on(disk: &Arc<dyn Disk>) -> Result<Outline, LogError> {
    let mut segments = Vec::new();
    for number in numbers(&**disk)? {
        let Some(header) = header_of(&**disk, number) else { continue };
        let first = first_stamp(&**disk, number).map(|stamp| (stamp.sequence, stamp.time));
        segments.push(SegmentOutline { number, header, first });
    }
    let names = disk.names().map_err(LogError::storage("list", "the log's directory"))?;
    let mut others: Vec<_> =
        names.into_iter().filter(|name| segment::number(name).is_none()).collect();
    others.sort_unstable();
    let mut outline = Outline {
        end: Location { segment: 1, offset: HEADER_BYTES as u64 },
        segments,
        last: None,
        is_cut_short: false,
        durable: 0,
        others,
    };
    let holds_some = |segment: &&SegmentOutline| segment.first.is_some() && segment.header.is_ok();
    let begin = outline.segments.iter().rev().find(holds_some).or_else(|| outline.segments.first());
    let begin = begin.filter(|segment| segment.header.is_ok());
    if let Some(number) = begin.map(|segment| segment.number)
        && let Some(mut cursor) = Cursor::open(disk, number)?
    {
        let ending = loop {
            match cursor.peek() {
                Ok(Peek::Record(stamp)) => {
                    outline.last = Some((stamp.sequence, stamp.time));
                    outline.durable = outline.durable.max(stamp.watermark);
                    cursor.pass();
                }
                // Zeros, and yet something behind them: unless it was written just now.
                Ok(Peek::End) if !is_rest_zero(&cursor)? => match cursor.peek() {
                    Ok(Peek::Record(_)) => {}
                    _ => break Peek::Invalid,
                },
                Ok(ending) => break ending,
                Err(error @ LogError::Storage { .. }) => return Err(error),
                // What is wrong with the next file stands in its own line.
                Err(_) => break Peek::Invalid,
            }
        };
        outline.is_cut_short = matches!(ending, Peek::Invalid);
        outline.end = cursor.location();
    }
    Ok(outline)
}
