//! A log without entries: its records one by one, with marks for those that are lost.

use std::sync::Arc;

use super::source::Source;
use super::{Hole, Salvaged};
use crate::log::disk::Disk;
use crate::log::error::LogError;
use crate::log::frame::Kind;
use crate::log::segment::SEGMENT_BYTES_MIN;
use crate::log::tail::{Tail, TailSettings};

/// Writes the new log. Marks are no longer than what they stand for, so it is not longer than the
/// old one was.
///
/// # Errors
/// What the storage says.
pub(super) fn write(source: &Source, disk: Arc<dyn Disk>, seed: u64) -> Result<Salvaged, LogError> {
    let segment_bytes = source.segment_bytes().next_multiple_of(SEGMENT_BYTES_MIN);
    let settings = TailSettings { segment_bytes, is_safe: true, seed };
    let mut tail = Tail::open(disk, None, settings)?;
    let mut report = Salvaged { is_raw: true, first: 1, ..source.report() };
    let mut written = Ok(());
    let (mut holes, mut next) = (Vec::<Hole>::new(), 1);
    source.visit_from(
        1,
        &mut |_, record| {
            let stamp = record.stamp;
            while written.is_ok() && next < stamp.sequence {
                written = tail.push(Kind::Mark, &[], 0).and_then(|_| tail.write());
                next += 1;
            }
            // Without entries a checkpoint says nothing.
            let is_body = stamp.kind == Kind::Entries;
            let kind = if is_body { Kind::Entries } else { Kind::Mark };
            let body = if is_body { record.body() } else { Default::default() };
            if written.is_ok() {
                written = tail.push(kind, &body, stamp.time).and_then(|_| tail.write());
                next += 1;
            }
        },
        &mut |hole| holes.push(hole),
    )?;
    written?;
    holes.extend(source.hole_at_the_end());
    for hole in holes {
        report.note(hole);
    }
    tail.flush()?;
    tail.push(Kind::Mark, &[], 0)?;
    tail.flush()?;
    Ok(report)
}
