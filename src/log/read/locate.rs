//! Where reading begins: which segments are there, and a binary search over what they begin with.

use crate::log::disk::Disk;
use crate::log::error::LogError;
use crate::log::frame::{self, HEADER_BYTES as HEAD_BYTES, Stamp};
use crate::log::segment::{self, HEADER_BYTES, SegmentHeader};

/// The numbers of all segments, rising.
///
/// # Errors
/// What the storage says.
pub(in crate::log) fn numbers(disk: &dyn Disk) -> Result<Vec<u64>, LogError> {
    let names = disk.names().map_err(LogError::storage("list", "the log's directory"))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment::number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// What the first record of a segment says; `None` when there is none, or none that can be read.
pub(super) fn first_stamp(disk: &dyn Disk, number: u64) -> Option<Stamp> {
    let file = disk.reader(&segment::name(number)).ok()?;
    let mut bytes = [0; HEADER_BYTES + HEAD_BYTES];
    if file.read(&mut bytes, 0).ok()? < bytes.len() {
        return None;
    }
    let (header, head) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let header = SegmentHeader::from_bytes(header).ok().filter(|header| header.number == number)?;
    frame::head(head.first_chunk()?, header.identity).map(|(stamp, _)| stamp)
}

/// The last of these segments whose first record stands before what is looked for; the first one
/// when none does. Looks at the first records of a few only.
pub(super) fn last_before(
    disk: &dyn Disk,
    numbers: &[u64],
    is_before: impl Fn(&Stamp) -> bool,
) -> usize {
    let (mut low, mut high, mut best) = (0, numbers.len(), 0);
    while low < high {
        let middle = low + (high - low) / 2;
        // What holds nothing says nothing: the one before it decides.
        let told = (low..=middle)
            .rev()
            .find_map(|index| first_stamp(disk, numbers[index]).map(|stamp| (index, stamp)));
        match told {
            Some((index, stamp)) if is_before(&stamp) => {
                best = index;
                low = middle + 1;
            }
            Some((index, _)) => high = index,
            None => low = middle + 1,
        }
    }
    best
}
