//! The valid records of a segment, those behind a bad place too.

use crate::log::frame::{self, ALIGNMENT, Found};
use crate::log::segment::HEADER_BYTES;
use crate::log::survey::{Ending, Run, follow};

/// Records that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::log) struct Stretch {
    /// Where the first one begins.
    pub(in crate::log) start: u64,
    /// Where the last one ends.
    pub(in crate::log) end: u64,
    /// The first and the last; `None` where a bad place comes before any.
    pub(in crate::log) run: Option<Run>,
    /// What ends them; `None`: zeros up to the end of the segment.
    pub(in crate::log) ending: Option<Ending>,
}

/// All stretches of a segment's bytes. The first is what recovery's survey finds.
pub(in crate::log) fn stretches(bytes: &[u8], identity: u64) -> Vec<Stretch> {
    let mut all = Vec::new();
    let mut start = HEADER_BYTES;
    loop {
        let stretch = stretch(bytes, start, identity);
        let end = usize::try_from(stretch.end).unwrap_or(bytes.len());
        all.push(stretch);
        let next = match stretch.ending {
            None => return all,
            // A record that does not follow begins another stretch, unless it fits nowhere.
            Some(Ending::Order(_)) if end > start => Some(end),
            Some(_) => frame::find(bytes, end + ALIGNMENT, identity).map(|(place, _)| place),
        };
        match next {
            Some(next) => start = next,
            None => return all,
        }
    }
}

fn stretch(bytes: &[u8], start: usize, identity: u64) -> Stretch {
    let mut offset = start;
    let mut run: Option<Run> = None;
    let ending = loop {
        match frame::read(bytes, offset, identity) {
            Found::End => break None,
            Found::Bad(bad) => break Some(Ending::Bad(bad)),
            Found::Record(record) => match follow(run, &record.stamp) {
                Ok(next) => {
                    run = Some(next);
                    offset += record.size();
                }
                Err(order) => break Some(Ending::Order(order)),
            },
        }
    };
    Stretch { start: start as u64, end: offset as u64, run, ending }
}
