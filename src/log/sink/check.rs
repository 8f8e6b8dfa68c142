//! The sinks when a log is opened: what the log says of them is there, or the log ends before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PIECE_BYTES, SinkFault, SinkFile, checksum, checksum_on};
use crate::log::disk::Disk;
use crate::log::entry::{Entry, Sink, entries};
use crate::log::error::LogError;
use crate::log::frame::Kind;
use crate::log::recover::{Recovered, inspect_before};
use crate::log::segment::Location;
use crate::log::state::State;
use crate::sync::lock;

/// Looks whether what the log says of these sinks is there, and cuts the log where it is not (S4).
/// Writes again and makes durable what it found in them, since the log is made durable next.
///
/// # Errors
/// [`LogError::Sink`] for what is known to have been durable, [`LogError::SinkNotGiven`] when it is
/// not known whether what was added elsewhere is there, and what the storage says. Then nothing was
/// changed.
pub(crate) fn agree(
    disk: &dyn Disk,
    recovered: Recovered,
    files: &[Arc<SinkFile>],
) -> Result<Recovered, LogError> {
    let mut recovered = with_all_additions(disk, recovered);
    let watermark = recovered.verdict.watermark;
    let before = recovered
        .checkpoint
        .map_or_else(|| Ok(State::default()), |checkpoint| recovered.state_at(checkpoint))?;
    let known = |file: &&Arc<SinkFile>| before.sink(file.name.as_bytes());
    let mut safe: BTreeMap<usize, Sink> =
        files.iter().filter_map(|file| Some((file.number, known(&file)?))).collect();
    let mut later: Vec<(u64, Location, usize, Sink)> = Vec::new();
    recovered.visit_from(before.sequence() + 1, |location, record| {
        if record.stamp.kind != Kind::Entries {
            return Ok(());
        }
        // What is no entry is told when the records are folded.
        for entry in entries(&record.body()).map_while(Result::ok) {
            let Entry::Sink { name, sink } = entry else { continue };
            let sequence = record.stamp.sequence;
            let Some(file) = files.iter().find(|file| file.name.as_bytes() == name) else {
                if sequence > watermark && sink.added > 0 {
                    let name = String::from_utf8_lossy(name).into_owned();
                    return Err(LogError::SinkNotGiven(name));
                }
                continue;
            };
            if sequence <= watermark {
                safe.insert(file.number, sink);
            } else {
                later.push((sequence, location, file.number, sink));
            }
        }
        Ok(())
    })?;
    for (&number, &sink) in &safe {
        let file = &files[number];
        if let Some(fault) = file.differs(sink)? {
            let (name, path) = (file.name.to_string(), file.path.display().to_string());
            return Err(LogError::Sink { name, path, fault });
        }
    }
    for (sequence, location, number, sink) in later {
        if files[number].differs(sink)?.is_some() {
            recovered.cut_before(sequence, location);
            break;
        }
        files[number].write_again(sink)?;
    }
    for file in files {
        file.storage.sync().map_err(file.storage_error("flush"))?;
    }
    Ok(recovered)
}

/// The log from a checkpoint that was durable, if there still is one: then all that was added to
/// sinks since the last flush is in the records behind it.
pub(crate) fn with_all_additions(disk: &dyn Disk, recovered: Recovered) -> Recovered {
    match recovered.checkpoint {
        Some(checkpoint) if checkpoint.sequence > recovered.verdict.watermark => {
            match inspect_before(disk, checkpoint.sequence) {
                Ok(Some(older)) => older,
                // The segments before it went, so it was flushed, and the sinks before it.
                Ok(None) | Err(_) => recovered,
            }
        }
        _ => recovered,
    }
}

/// Brings the files to what the log says now (S5); what the log does not know yet is handed back
/// as it begins, and its name is durable.
///
/// # Errors
/// What the storage says.
pub(crate) fn settle<'a>(
    state: &State,
    files: &'a [Arc<SinkFile>],
) -> Result<Vec<(&'a SinkFile, Sink)>, LogError> {
    let mut new = Vec::new();
    for file in files {
        if let Some(sink) = state.sink(file.name.as_bytes()) {
            lock(&file.known).end = Some(sink);
            file.trim()?;
            continue;
        }
        if file.empties {
            file.storage.set_size(0).map_err(file.storage_error("empty"))?;
        }
        file.storage.sync().map_err(file.storage_error("flush"))?;
        file.storage.sync_name().map_err(file.storage_error("flush the directory of"))?;
        let (device, inode) = file.storage.identity().map_err(file.storage_error("look at"))?;
        let length = file.storage.size().map_err(file.storage_error("look at"))?;
        let sink = Sink { device, inode, length, added: 0, checksum: checksum(&[]) };
        lock(&file.known).end = Some(sink);
        new.push((&**file, sink));
    }
    Ok(new)
}

impl SinkFile {
    /// Writes once more what was added. A flush that failed in another process may have left it in
    /// memory only, where the next flush takes it for written.
    ///
    /// # Errors
    /// What the storage says.
    fn write_again(&self, sink: Sink) -> Result<(), LogError> {
        let mut offset = sink.length.saturating_sub(sink.added);
        let mut piece = vec![0; PIECE_BYTES];
        while offset < sink.length {
            let left = usize::try_from(sink.length - offset).unwrap_or(PIECE_BYTES);
            let piece = &mut piece[..left.min(PIECE_BYTES)];
            self.storage.read(piece, offset).map_err(self.storage_error("read"))?;
            self.storage.write(piece, offset).map_err(self.storage_error("write again"))?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// How the file differs from what a record says of it.
    ///
    /// # Errors
    /// What the storage says.
    fn differs(&self, sink: Sink) -> Result<Option<SinkFault>, LogError> {
        let (_, inode) = self.storage.identity().map_err(self.storage_error("look at"))?;
        if inode != sink.inode {
            return Ok(Some(SinkFault::Replaced));
        }
        let found = self.storage.size().map_err(self.storage_error("look at"))?;
        if found < sink.length {
            return Ok(Some(SinkFault::Shorter { expected: sink.length, found }));
        }
        let mut offset = sink.length.saturating_sub(sink.added);
        let fault = SinkFault::Changed { offset };
        let mut checksum = 0;
        let mut piece = vec![0; PIECE_BYTES];
        while offset < sink.length {
            let left = usize::try_from(sink.length - offset).unwrap_or(PIECE_BYTES);
            let piece = &mut piece[..left.min(PIECE_BYTES)];
            self.storage.read(piece, offset).map_err(self.storage_error("read"))?;
            checksum = checksum_on(checksum, piece);
            offset += piece.len() as u64;
        }
        Ok((checksum != sink.checksum).then_some(fault))
    }
}
