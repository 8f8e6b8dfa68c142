//! What is wrong before a run starts, all of it at once, each with what to do.

use std::fmt;
use std::io::{self, ErrorKind};

use rustix::io::Errno;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What, naming the file or flag.
    pub what: String,
    /// What to do.
    pub help: String,
    /// Whether the machine failed, and nothing is wrong with what was asked for.
    pub is_failure: bool,
}

impl Problem {
    /// A problem with its remedy.
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into(), is_failure: false }
    }

    /// The same where the machine may have failed.
    #[must_use]
    pub fn failed(self, is_failure: bool) -> Self {
        Self { is_failure, ..self }
    }
}

/// Whether the storage failed, where nothing is wrong with a name or with rights.
#[must_use]
pub fn is_failure(error: &io::Error) -> bool {
    // Links that lead around have no kind of their own yet.
    let is_loop = Errno::from_io_error(error) == Some(Errno::LOOP);
    let is_of_name = matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
    );
    !is_of_name && !is_loop
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, help) = (crate::style::BAD, crate::style::STRONG);
        writeln!(f, "{error}error{error:#}: {}", self.what)?;
        write!(f, "  {help}help{help:#}: {}", self.help)
    }
}
