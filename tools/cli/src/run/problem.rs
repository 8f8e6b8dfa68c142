//! What is wrong before a run starts, all of it at once, each with what to do.

use std::fmt;
use std::io::{self, ErrorKind};

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

/// Whether the machine failed or has no more of something, where nothing is wrong with a name or
/// with rights.
#[must_use]
pub fn is_failure(error: &io::Error) -> bool {
    // Those that have no kind: EIO, ENFILE, EMFILE.
    const WITHOUT_KIND: [i32; 3] = [5, 23, 24];
    let is_kind = matches!(
        error.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::FileTooLarge
            | ErrorKind::OutOfMemory
            | ErrorKind::WouldBlock
    );
    is_kind || error.raw_os_error().is_some_and(|code| WITHOUT_KIND.contains(&code))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, help) = (crate::style::BAD, crate::style::STRONG);
        writeln!(f, "{error}error{error:#}: {}", self.what)?;
        write!(f, "  {help}help{help:#}: {}", self.help)
    }
}
