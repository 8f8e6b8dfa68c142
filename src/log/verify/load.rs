//! The bytes of a segment that somebody may be writing to.

use std::io;

use super::stretch::stretches;
use crate::log::disk::{Disk, FileReader};
use crate::log::error::LogError;
use crate::log::recover::check_header;
use crate::log::segment::{self, HEADER_BYTES, SEGMENT_BYTES_MAX, SegmentHeader};

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;
/// How often bytes that are no record are read again, as long as they change.
const READINGS_MAX: usize = 16;

/// A segment in memory.
#[derive(Debug)]
pub(in crate::log) struct Loaded {
    /// Its header, or why it has none.
    pub(in crate::log) header: Result<SegmentHeader, LogError>,
    /// Its bytes, at most as many as a segment has.
    pub(in crate::log) bytes: Vec<u8>,
    /// Bytes of the file.
    pub(in crate::log) size: u64,
}

/// Reads a segment; `None` when it is not there any more.
///
/// What a writer adds meanwhile is a prefix of it: the file is read from its end to its beginning.
/// A record may still be there in part; so where one is bad, the file is read again until it says
/// the same twice.
///
/// # Errors
/// What the storage says. Where it is no segment, its header says that.
pub(in crate::log) fn load(disk: &dyn Disk, number: u64) -> Result<Option<Loaded>, LogError> {
    let name = segment::name(number);
    let file = match disk.reader(&name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            let header = Err(LogError::storage("read", &name)(error));
            return Ok(Some(Loaded { header, bytes: Vec::new(), size: 0 }));
        }
        Err(error) => return Err(LogError::storage("read", &name)(error)),
    };
    let size = file.size().map_err(LogError::storage("read", &name))?;
    let mut bytes = read(&*file, size, &name)?;
    let head = &bytes[..bytes.len().min(HEADER_BYTES)];
    let header = check_header(head, size, number, &name);
    if let Ok(header) = &header {
        for _ in 0..READINGS_MAX {
            if stretches(&bytes, header.identity).iter().all(|stretch| stretch.ending.is_none()) {
                break;
            }
            let again = read(&*file, size, &name)?;
            if again == bytes {
                break;
            }
            bytes = again;
        }
    }
    Ok(Some(Loaded { header, bytes, size }))
}

fn read(file: &dyn FileReader, size: u64, name: &str) -> Result<Vec<u8>, LogError> {
    let size = usize::try_from(size.min(SEGMENT_BYTES_MAX)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size];
    let mut end = size;
    while end > 0 {
        let start = (end - 1) / CHUNK_BYTES * CHUNK_BYTES;
        let count = file.read(&mut bytes[start..end], start as u64);
        let count = count.map_err(LogError::storage("read", name))?;
        if start + count < end {
            // It was shortened since.
            bytes.truncate(start + count);
        }
        end = start;
    }
    Ok(bytes)
}
