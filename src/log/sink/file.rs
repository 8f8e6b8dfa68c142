//! Where the bytes of a sink are: a regular file, and in tests a file of the simulated disk.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file that is added to, and cut at its end.
pub(crate) trait SinkStorage: Send + Sync + fmt::Debug {
    /// Device and inode.
    fn identity(&self) -> io::Result<(u64, u64)>;
    /// Bytes it has.
    fn size(&self) -> io::Result<u64>;
    /// Fills `bytes` with what stands at `offset`.
    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes there; the file grows if it has to.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts it, or lets it grow by zeros.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Returns when all that was written is durable, its size included.
    fn sync(&self) -> io::Result<()>;
    /// Returns when its name is durable.
    fn sync_name(&self) -> io::Result<()>;
    /// Lets other logs have it.
    fn release(&self) {}
}

/// A regular file of the operating system.
#[derive(Debug)]
pub(crate) struct RegularFile {
    file: File,
    /// Where it is, links followed.
    path: PathBuf,
}

impl RegularFile {
    /// Opens it, and makes it and the directories above it if they are not there.
    ///
    /// # Errors
    /// What the system says; `InvalidInput` for what is no regular file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // Before it is opened: a named pipe would wait for its other end.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let words = "it is no regular file, in which nothing could stand exactly once";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        crate::log::folder::make(parent)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file, path: std::fs::canonicalize(path)? })
    }
}

impl RegularFile {
    /// Keeps other logs from it for as long as it is open; false when one has it already.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl SinkStorage for RegularFile {
    fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
    }

    fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn release(&self) {
        // It would go with the file too.
        let _ = self.file.unlock();
    }

    fn sync_name(&self) -> io::Result<()> {
        // Who made the directories above it may not have flushed them.
        for directory in self.path.ancestors().skip(1) {
            match File::open(directory).and_then(|directory| directory.sync_all()) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                synced => synced?,
            }
        }
        Ok(())
    }
}
