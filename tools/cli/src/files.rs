//! Which file is meant, whatever it is called: names and links may lead to one place.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// A file as the system knows it: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(u64, u64);

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// Files that must not be written, each with what it is.
#[derive(Debug, Default)]
pub struct Taken(Vec<(Identity, &'static str)>);

impl Taken {
    /// Adds a file by its path; one that is not there is nobody's.
    pub fn path(&mut self, path: &Path, what: &'static str) {
        self.0.extend(fs::metadata(path).ok().map(|metadata| (Identity::from(&metadata), what)));
    }

    /// Adds the file that standard input is read from.
    pub fn standard_input(&mut self, what: &'static str) {
        self.open(io::stdin().as_fd(), what);
    }

    /// Adds the files that standard output and standard error go to.
    pub fn standard_outputs(&mut self) {
        self.open(io::stdout().as_fd(), "standard output goes to the same file");
        self.open(io::stderr().as_fd(), "standard error goes to the same file");
    }

    fn open(&mut self, descriptor: BorrowedFd<'_>, what: &'static str) {
        let owned = descriptor.try_clone_to_owned();
        let metadata = owned.and_then(|owned| File::from(owned).metadata());
        self.0.extend(metadata.ok().map(|metadata| (Identity::from(&metadata), what)));
    }

    /// Whether records may be written there, as far as this tells; it opens nothing.
    ///
    /// # Errors
    /// In words: it is taken, or no regular file.
    pub fn check(&self, metadata: &Metadata) -> Result<(), &'static str> {
        if let Some(kind) = irregular(metadata) {
            return Err(kind);
        }
        let identity = Identity::from(metadata);
        self.0.iter().find(|(taken, _)| *taken == identity).map_or(Ok(()), |(_, what)| Err(what))
    }
}

/// What a file is that is neither a regular file nor a folder.
fn irregular(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_dir() {
        return None;
    }
    Some(if kind.is_fifo() {
        "it is a named pipe or a pipe, not a regular file"
    } else if kind.is_socket() {
        "it is a socket, not a regular file"
    } else {
        "it is a device, not a regular file"
    })
}
