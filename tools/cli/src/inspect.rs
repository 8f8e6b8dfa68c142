//! `waystage check` as a command: the tick list for people, or one JSON document.

use std::io;

use serde_json::{Value, json};

use crate::arguments::{Check, Deny, Global};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::flow::Severity;
use crate::flow::check::{self, CheckOptions, Report};
use crate::run::{Console, unless_closed};

/// The schema's name and version.
const SCHEMA: &str = "waystage.check/1";

/// Checks a flow.
///
/// # Errors
/// Standard output took no more.
pub fn command(
    arguments: &Check,
    global: &Global,
    environment: &Environment,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    let deny_warnings = arguments.deny == Some(Deny::Warnings);
    let options = CheckOptions {
        path: arguments.flow.clone(),
        out: arguments.out.clone(),
        out_variable: Some(environment.name("--out").to_owned()).filter(|name| name != "--out"),
        no_files: arguments.no_files,
        deny_warnings,
        verbose: global.verbose,
    };
    if global.json {
        let report = check::check(&options);
        let fine = report.fine(deny_warnings);
        unless_closed(console.document(&document(&report, fine)))?;
        return Ok(if fine { Exit::Done } else { Exit::Usage });
    }
    let code = check::run_check(&options, console.data, console.talk);
    let known = [Exit::Done, Exit::Failed];
    Ok(known.into_iter().find(|exit| exit.code() == code).unwrap_or(Exit::Usage))
}

fn document(report: &Report, fine: bool) -> Value {
    let ticks = report
        .ticks
        .iter()
        .map(|tick| json!({"what": tick.what, "found": tick.found, "wrong": tick.wrong}));
    let source = report.problems.source();
    let problems = report.problems.iter().map(|problem| {
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let before = problem.span.as_ref().and_then(|span| source.get(..span.start));
        let line = before.map(|before| 1 + before.matches('\n').count());
        json!({"severity": severity, "message": problem.message, "line": line,
            "label": problem.label, "help": problem.help})
    });
    json!({
        "schema": SCHEMA,
        "file": report.problems.path().display().to_string(),
        "fine": fine,
        "ticks": ticks.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
    })
}
