//! The log of a durable flow: whether it can be opened, as far as that shows without opening it.

use rustix::fs::statvfs;
use waystage::log::{LogError, LogSettings, outline};

use super::destination::folder;
use super::{Tick, bytes_text, counted};
use crate::flow::Flow;
use crate::flow::model::Durable;

/// Segments that are made before the first is full.
const SEGMENTS_AHEAD: u64 = 2;

/// Looks at the directory of the log; nothing is made or changed.
pub(super) fn log(flow: &Flow, durable: &Durable) -> Tick {
    let directory = flow.directory.join(&durable.directory);
    let mut wrong = Vec::new();
    let place = match folder(&directory) {
        Ok(place) => Some(place),
        Err(error) => {
            wrong.push(error);
            None
        }
    };
    let mut found = match outline(&directory) {
        Ok(outline) if outline.segments.is_empty() => "empty".to_owned(),
        Ok(outline) => {
            let segments = counted(outline.segments.len(), "segment");
            let records = outline.last.map_or(0, |(sequence, _)| sequence);
            format!("{segments}, up to record {records}")
        }
        Err(LogError::NoLog(_)) => "empty".to_owned(),
        Err(_) if !directory.exists() => "new".to_owned(),
        Err(error) => {
            wrong.push(error.to_string());
            "not readable".to_owned()
        }
    };
    if let Some(room) = place.and_then(|place| statvfs(&place).ok()) {
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        found.push_str(&format!(", {} free", bytes_text(free)));
        let needed = SEGMENTS_AHEAD * LogSettings::default().segment_bytes;
        if free < needed && found.starts_with(['e', 'n']) {
            wrong.push(format!("a new log takes {} at once", bytes_text(needed)));
        }
    }
    Tick { what: "log directory", found, wrong }
}
