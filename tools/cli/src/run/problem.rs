//! What is wrong before a run starts, all of it at once, each with what to do.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What, naming the file or flag.
    pub what: String,
    /// What to do.
    pub help: String,
}

impl Problem {
    /// A problem with its remedy.
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, help) = (crate::style::BAD, crate::style::STRONG);
        writeln!(f, "{error}error{error:#}: {}", self.what)?;
        write!(f, "  {help}help{help:#}: {}", self.help)
    }
}
