//! What travels through a flow: one line of input and, once read, its value.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::flow::model::Format;

/// The payload of a flow's envelopes.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The text as it came, without its line end.
    pub text: String,
    /// Its value, once it was read.
    pub value: Option<Value>,
    /// How it was read.
    pub read_as: Option<Format>,
    /// The header of the CSV file it came from.
    pub columns: Option<Arc<[String]>>,
    /// Where it came from.
    pub place: Place,
}

/// A line of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The input, as it was named.
    pub file: Arc<str>,
    /// The line, from one.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
