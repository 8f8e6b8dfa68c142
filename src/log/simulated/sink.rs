//! An output file of the simulated disk: it grows, and can be cut.

use std::io;

use super::{SimulatedDisk, SimulatedFlusher, State};
use crate::log::disk::FileFlusher;
use crate::log::sink::SinkStorage;

/// A file that is added to and cut.
#[derive(Debug)]
pub(crate) struct SimulatedSink {
    pub(super) disk: SimulatedDisk,
    pub(super) file: usize,
}

impl SinkStorage for SimulatedSink {
    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok((1, self.file as u64))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.with(|state| state.files[self.file].cache.len()) as u64)
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.disk.with(|state| {
            let held = state.files[self.file].cache.get(offset..offset + bytes.len());
            bytes.copy_from_slice(held.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.disk.with(|state| {
            let failed = state.operate();
            let file = &mut state.files[self.file];
            let written = if failed.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
            let end = file.cache.len().max(offset + written.len());
            file.cache.resize(end, 0);
            file.write(offset, written);
            failed
        })
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(io::Error::other)?;
        self.disk.with(|state| {
            state.operate()?;
            // Until it is flushed a power cut brings back what was cut off.
            state.files[self.file].cache.resize(size, 0);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        SimulatedFlusher { disk: self.disk.clone(), file: self.file }.flush()
    }

    fn sync_name(&self) -> io::Result<()> {
        self.disk.with(State::operate)
    }
}
