//! Flow files, right and wrong: what is read, and what is reported.

mod drawn;
mod messages;
mod mutations;
mod odd;
mod reading;

use std::path::Path;

use super::{Flow, Problem, Problems, parse};

const QUAKES: &str = include_str!("../../../../../examples/quakes/flow.toml");

/// A flow of two stages with a place for a line in each table.
const SMALL: &str = r#"flow = "small"
slip = ["parse", "archive"]
[input]
files = "data.ndjson"
#INPUT
[bus]
workers = 2
#BUS
[defaults]
#DEFAULTS
[stage.parse]
parse = {}
#PARSE
[stage.archive]
write = { path = "out/a.ndjson" }
#ARCHIVE
"#;

/// Lines of the small flow that tests replace.
const SLIP: &str = "slip = [\"parse\", \"archive\"]";
const FILES: &str = "files = \"data.ndjson\"";
const HANDLER: &str = "parse = {}";

/// The small flow with these lines at these places.
fn small(lines: &[(&str, &str)]) -> String {
    let replace = |source: String, (place, line): &(&str, &str)| source.replace(place, line);
    lines.iter().fold(SMALL.to_owned(), replace)
}

/// A flow that must be right, warnings aside.
fn flow(source: &str) -> Flow {
    match parse(source, Path::new("examples/quakes/flow.toml")) {
        Ok((flow, _)) => flow,
        Err(problems) => panic!("{problems}"),
    }
}

/// All problems of a flow that may be right.
fn problems(source: &str) -> Problems {
    match parse(source, Path::new("flow.toml")) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    }
}

/// Each problem as `error 5:12 message`.
fn headlines(source: &str) -> Vec<String> {
    let headline = |problem: &Problem| {
        let before = &source[..problem.span.as_ref().map_or(0, |span| span.start)];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        let severity = format!("{:?}", problem.severity).to_lowercase();
        format!("{severity} {line}:{column} {}", problem.message)
    };
    problems(source).iter().map(headline).collect()
}
