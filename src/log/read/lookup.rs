//! One record by its place.

use std::io;
use std::sync::Arc;

use super::cursor::read_header;
use crate::log::disk::Disk;
use crate::log::error::LogError;
use crate::log::frame::{self, Found, Record};
use crate::log::segment::{self, Location};

/// Calls `read` with the record that stands there.
///
/// # Errors
/// When none does, and what the storage says.
pub(in crate::log) fn lookup<T>(
    disk: &Arc<dyn Disk>,
    place: Location,
    read: impl FnOnce(Record<'_>) -> T,
) -> Result<T, LogError> {
    let name = segment::name(place.segment);
    let missing = || LogError::storage("find a record in", &name)(io::ErrorKind::NotFound.into());
    let file = disk.reader(&name).map_err(LogError::storage("read", &name))?;
    let header = read_header(&*file, place.segment)?;
    let mut head = [0; frame::HEADER_BYTES];
    file.read(&mut head, place.offset).map_err(LogError::storage("read", &name))?;
    let (_, size) = frame::head(&head, header.identity).ok_or_else(missing)?;
    let mut bytes = vec![0; size];
    file.read(&mut bytes, place.offset).map_err(LogError::storage("read", &name))?;
    match frame::read(&bytes, 0, header.identity) {
        Found::Record(record) => Ok(read(record)),
        Found::End | Found::Bad(_) => Err(missing()),
    }
}
