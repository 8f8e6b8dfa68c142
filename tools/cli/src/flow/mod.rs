//! The flow file: what it says, as plain data, and everything that is wrong with it at once.
//!
//! 1. `toml` gives the tables with the place of every key and value, and all syntax errors.
//! 2. `reader`, `document`, `settings`, `handlers` and `when` walk the tables by hand, one
//!    function per table, and go on after a problem. No serde: it stops at the first error and
//!    loses places.
//! 3. `whole` checks what no single table shows: names, reach, paths; `circles` the ways back,
//!    `durable` what a log asks of stages,
//!    `never` the conditions that no record meets.
//! 4. `render` draws the problems.
//! 5. [`check`] looks at the files that the flow names, and prints the tick list.
//!
//! Reading touches no file but the flow file itself; checking opens the others and changes none.

pub mod check;
mod circles;
mod document;
mod draft;
mod durable;
mod handlers;
pub mod model;
mod names;
mod never;
mod origins;
pub mod problem;
mod reader;
mod render;
mod retry;
mod settings;
mod syntax;
#[cfg(test)]
mod tests;
mod values;
mod when;
mod whole;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::de::DeTable;

use draft::Draft;
use reader::Reader;

pub use model::Flow;
pub use problem::{Problem, Problems, Severity};

/// A longer flow file is refused.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Reads a flow file: the flow and what is odd about it, or everything that is wrong.
///
/// # Errors
/// [`Problems`] with at least one error; warnings are among them.
pub fn read(path: &Path) -> Result<(Flow, Problems), Problems> {
    let unreadable = |reason: String| {
        let problem = Problem::of_file(format!("cannot read the flow file: {reason}"));
        Problems::new(path, "", vec![problem])
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut file = file.take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    match String::from_utf8(bytes) {
        Ok(source) => parse(&source, path),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
            Err(unreadable(format!("line {line} is not UTF-8")))
        }
    }
}

/// Reads a flow from text; `path` is only for messages, for [`Flow::directory`] and for the name
/// of a flow without one.
///
/// # Errors
/// As [`read`].
pub fn parse(source: &str, path: &Path) -> Result<(Flow, Problems), Problems> {
    let (table, errors) = DeTable::parse_recoverable(source);
    let mut reader = Reader::new(source);
    let mut draft = reader.document(table.get_ref());
    if errors.is_empty() {
        reader.whole(&mut draft);
    } else {
        reader.syntax(&errors);
    }
    let problems = Problems::new(path, source, reader.problems);
    match finish(draft, path) {
        Some(flow) if problems.errors() == 0 => Ok((flow, problems)),
        _ => Err(problems),
    }
}

/// The flow, if every part of it could be read.
fn finish(draft: Draft, path: &Path) -> Option<Flow> {
    let mut bus = draft.bus;
    let permits = draft.stages.iter().map(|stage| stage.settings.permits as usize);
    bus.tickets = bus.tickets.max(permits.sum());
    let durable = draft.durable.clone();
    let stages = draft.stages.into_iter().map(|stage| {
        let (name, mut settings, reached) = (stage.name.name, stage.settings, stage.reached);
        if let Some(durable) = &durable {
            settings.level = durable.level;
            let is_tally = matches!(stage.handler, Some(model::Handler::Tally(_)));
            settings.saves = if is_tally { durable::TALLY_BYTES } else { 0 };
        }
        Some(model::Stage { name, settings, handler: stage.handler?, reached })
    });
    let stem = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Some(Flow {
        name: draft.name.or_else(stem).unwrap_or_else(|| "flow".to_owned()),
        directory: path.parent().map_or_else(Default::default, Path::to_owned),
        slip: draft.slip?.into_iter().map(|named| named.name).collect(),
        input: draft.input,
        bus,
        durable: draft.durable,
        stages: stages.collect::<Option<_>>()?,
    })
}
