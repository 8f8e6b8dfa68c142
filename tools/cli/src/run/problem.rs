//! What is wrong before a run starts, all of it at once, each with what to do.

use std::fmt;

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

    /// A failure of the machine, with what to do.
    pub fn failure(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { is_failure: true, ..Self::new(what, help) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, help) = (crate::style::BAD, crate::style::STRONG);
        writeln!(f, "{error}error{error:#}: {}", self.what)?;
        write!(f, "  {help}help{help:#}: {}", self.help)
    }
}
