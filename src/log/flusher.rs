//! Flushing one file, where a failure is final: the kernel reports a failed flush once and calls
//! the next one good, though the bytes are gone.

use std::io;
use std::sync::Arc;

use super::disk::FileFlusher;
use crate::sync::{Mutex, lock};

/// The flusher of an opened file, shared by all who flush it.
#[derive(Debug)]
pub(crate) struct Flusher {
    /// Of the file, for messages.
    name: Box<str>,
    file: Arc<dyn FileFlusher>,
    has_failed: Mutex<bool>,
}

impl Flusher {
    /// A flusher that has not failed.
    pub(crate) fn new(name: &str, file: Arc<dyn FileFlusher>) -> Self {
        Self { name: name.into(), file, has_failed: Mutex::new(false) }
    }

    /// The name of its file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns when everything written before the call is durable.
    ///
    /// # Errors
    /// What the storage says, and from then on always.
    pub(crate) fn flush(&self) -> io::Result<()> {
        let mut has_failed = lock(&self.has_failed);
        if *has_failed {
            return Err(io::Error::other("an earlier flush of this file failed"));
        }
        let flushed = self.file.flush();
        *has_failed = flushed.is_err();
        flushed
    }
}
