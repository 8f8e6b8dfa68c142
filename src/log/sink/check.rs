//! The sinks when a log is opened: what the log says of them is there, or the log ends before it.

use std::sync::Arc;

use super::{PIECE_BYTES, SinkFault, SinkFile, checksum, checksum_on};
use crate::log::disk::Disk;
use crate::log::entry::{Entry, Sink, entries};
use crate::log::error::LogError;
use crate::log::frame::Kind;
use crate::log::recover::{Recovered, inspect_before};
use crate::log::restore::fold_at;
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
    let mut state = recovered.state_before()?;
    let (mut is_checked, mut end) = (false, None);
    recovered.visit_from(state.sequence() + 1, |location, record| {
        if end.is_some() || record.stamp.kind != Kind::Entries {
            return Ok(());
        }
        let (sequence, body) = (record.stamp.sequence, record.body());
        if sequence > watermark {
            if !std::mem::replace(&mut is_checked, true) {
                check_safe(&state, files)?;
            }
            if !is_there(&body, files)? {
                end = Some((sequence, location));
                return Ok(());
            }
        }
        fold_at(&mut state, sequence, location, &body)
    })?;
    if !is_checked {
        check_safe(&state, files)?;
    }
    if let Some((sequence, location)) = end {
        recovered.cut_before(sequence, location);
    }
    for file in files {
        file.storage.sync().map_err(file.storage_error("flush"))?;
    }
    recovered.state = Some(state);
    Ok(recovered)
}

/// Whether the files hold what is known to have been durable.
fn check_safe(state: &State, files: &[Arc<SinkFile>]) -> Result<(), LogError> {
    for file in files {
        if let Some(sink) = state.sink(file.name.as_bytes())
            && let Some(fault) = file.differs(sink)?
        {
            let (name, path) = (file.name.to_string(), file.path.display().to_string());
            return Err(LogError::Sink { name, path, fault });
        }
    }
    Ok(())
}

/// Whether what a record added to sinks is there; then it is written again.
fn is_there(body: &[u8], files: &[Arc<SinkFile>]) -> Result<bool, LogError> {
    // What is no entry is told when the record is folded.
    for entry in entries(body).map_while(Result::ok) {
        let Entry::Sink { name, sink } = entry else { continue };
        let file = files.iter().find(|file| file.name.as_bytes() == name);
        let Some(file) = file else {
            if sink.added == 0 {
                continue;
            }
            return Err(LogError::SinkNotGiven(String::from_utf8_lossy(name).into_owned()));
        };
        if file.differs(sink)?.is_some() {
            return Ok(false);
        }
        file.write_again(sink)?;
    }
    Ok(true)
}

/// The log from a checkpoint that was durable, if there still is one: then all that was added to
/// sinks since the last flush is in the records behind it.
fn with_all_additions(disk: &dyn Disk, recovered: Recovered) -> Recovered {
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
        if lock(&file.known).is_closed {
            return Err(LogError::Closed);
        }
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
    /// Calls `visit` with what was added, in pieces, and where each stands.
    ///
    /// # Errors
    /// What the storage says, and the first one of `visit`.
    fn added(
        &self,
        sink: Sink,
        mut visit: impl FnMut(&[u8], u64) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let mut offset = sink.length - sink.added;
        let mut piece = vec![0; PIECE_BYTES];
        while offset < sink.length {
            let left = usize::try_from(sink.length - offset).unwrap_or(PIECE_BYTES);
            let piece = &mut piece[..left.min(PIECE_BYTES)];
            self.storage.read(piece, offset).map_err(self.storage_error("read"))?;
            visit(piece, offset)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// Writes once more what was added. A flush that failed in another process may have left it in
    /// memory only, where the next flush takes it for written.
    ///
    /// # Errors
    /// What the storage says.
    fn write_again(&self, sink: Sink) -> Result<(), LogError> {
        self.added(sink, |piece, offset| {
            self.storage.write(piece, offset).map_err(self.storage_error("write again"))
        })
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
        let mut checksum = 0;
        self.added(sink, |piece, _| {
            checksum = checksum_on(checksum, piece);
            Ok(())
        })?;
        let fault = SinkFault::Changed { offset: sink.length - sink.added };
        Ok((checksum != sink.checksum).then_some(fault))
    }
}
