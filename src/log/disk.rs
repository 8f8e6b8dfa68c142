//! Where a log's files are: the door to storage, with two bodies behind it.
//!
//! [`Folder`](super::folder::Folder) is a directory of the operating system; the simulated disk of
//! the tests keeps every unflushed sector apart and crashes with any subset of them. The log does
//! all its input and output through these traits.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::region::Region;

/// A directory of segment files.
pub trait Disk: Send + Sync + fmt::Debug {
    /// The names of all files, in no order.
    ///
    /// # Errors
    /// What the storage says.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Makes a file of `size` bytes that begins with `start` and goes on in zeros, all of it
    /// durable, except for its name. Storage that runs full is an error here and never later.
    ///
    /// # Errors
    /// What the storage says; a file of that name is replaced.
    fn create(&self, name: &str, size: u64, start: &[u8]) -> io::Result<()>;

    /// Opens a file whose bytes below `stable` never change again, for reading them and for writing
    /// the rest.
    ///
    /// # Errors
    /// What the storage says; `UnexpectedEof` when the file is shorter than `stable`.
    fn open(&self, name: &str, stable: Stable) -> io::Result<Opened>;

    /// Opens a file for reading all its bytes while nobody writes.
    ///
    /// # Errors
    /// What the storage says.
    fn view(&self, name: &str) -> io::Result<Arc<Region>>;

    /// Opens a file for reading while others may write to it, or remove it.
    ///
    /// # Errors
    /// What the storage says; `IsADirectory` for what is no regular file.
    fn reader(&self, name: &str) -> io::Result<Box<dyn FileReader>>;

    /// Gives a file another name, replacing what had it.
    ///
    /// # Errors
    /// What the storage says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the storage says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable as they are.
    ///
    /// # Errors
    /// What the storage says.
    fn sync_names(&self) -> io::Result<()>;

    /// Lets others open the directory; this one is not used any more.
    fn release(&self) {}
}

/// The position below which a file's bytes never change.
pub type Stable = u64;

/// A file opened for writing.
#[derive(Debug)]
pub struct Opened {
    /// Adds to it.
    pub writer: Box<dyn FileWriter>,
    /// Makes what was written durable.
    pub flusher: Arc<dyn FileFlusher>,
}

/// Reads a file that may change meanwhile. It stays readable when its name is removed.
pub trait FileReader: Send + Sync + fmt::Debug {
    /// Bytes of the file now.
    ///
    /// # Errors
    /// What the storage says.
    fn size(&self) -> io::Result<u64>;

    /// Copies what stands at `offset`; fewer bytes only where the file ends.
    ///
    /// # Errors
    /// What the storage says.
    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// Adds bytes at the end of what a file holds. There is one for each opened file.
pub trait FileWriter: Send + fmt::Debug {
    /// Where the next bytes go.
    fn position(&self) -> u64;

    /// Writes `bytes` there; readers see them when it returns.
    ///
    /// # Errors
    /// What the storage says. How much was written is unknown then, and readers see none of it.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Makes what was written to a file durable.
pub trait FileFlusher: Send + Sync + fmt::Debug {
    /// Returns when everything written before the call is durable.
    ///
    /// # Errors
    /// What the storage says. What was written since the last good flush may be lost then, even if
    /// a later flush ends well.
    fn flush(&self) -> io::Result<()>;
}
