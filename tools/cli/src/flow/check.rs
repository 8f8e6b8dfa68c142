//! `waystage check`: everything that can be known about a flow before it starts, as a tick list.
//!
//! Files are opened and closed, nothing is created or changed. Problems of the flow file go to
//! the error stream, the tick list is data.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};

use super::model::{Flow, Handler};
use super::origins::{self, Origin};
use super::{Problems, read};
use crate::files::Taken;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Exit code of a flow that can be run.
const FINE: u8 = 0;
/// Exit code when the report could not be written.
const FAILED: u8 = 1;
/// Exit code of a flow that is wrong; nothing was touched.
const WRONG: u8 = 2;

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// The flow file.
    pub path: PathBuf,
    /// Leave out the files that the flow names.
    pub no_files: bool,
    /// A warning is as bad as an error.
    pub deny_warnings: bool,
    /// Also print every setting and where it comes from.
    pub verbose: bool,
}

/// One line of the tick list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// What was looked at.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What is wrong with it, a line each; empty when all is well.
    pub wrong: Vec<String>,
}

/// What a check found.
#[derive(Debug)]
pub struct Report {
    /// The flow, if the file is right.
    pub flow: Option<Flow>,
    /// What is wrong with or odd about the file.
    pub problems: Problems,
    /// The tick list, as far as it goes.
    pub ticks: Vec<Tick>,
}

impl Report {
    /// Whether the flow can be run.
    pub fn fine(&self, deny_warnings: bool) -> bool {
        let problems =
            if deny_warnings { self.problems.iter().len() } else { self.problems.errors() };
        problems == 0 && self.ticks.iter().all(|tick| tick.wrong.is_empty())
    }
}

/// Checks the flow file and, unless told otherwise, the files it names.
pub fn check(path: &Path, no_files: bool) -> Report {
    let (flow, problems) = match read(path) {
        Ok(read) => read,
        Err(problems) => return Report { flow: None, problems, ticks: Vec::new() },
    };
    let tables = counted(origins::tables(problems.source()), "table");
    let stages = counted(flow.stages.len(), "stage");
    let hops = counted(flow.slip.len(), "hop");
    let mut ticks =
        vec![right("syntax and keys", tables), right("slip", format!("{hops}, {stages}"))];
    if !no_files {
        ticks.push(input(&flow));
        ticks.push(outputs(&flow, path));
    }
    Report { flow: Some(flow), problems, ticks }
}

/// Checks and prints: the tick list to `out`, problems to `err`, both coloured. Gives the exit
/// code: 0 when the flow can be run, 2 when not.
pub fn run_check(options: &CheckOptions, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let report = check(&options.path, options.no_files);
    let fine = report.fine(options.deny_warnings);
    match print(&report, options, fine, out, err) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => FAILED,
        _ if fine => FINE,
        _ => WRONG,
    }
}

fn print(
    report: &Report,
    options: &CheckOptions,
    fine: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    let denied = options.deny_warnings && report.problems.warnings() > 0;
    let outcome = match report.problems.errors() {
        0 if denied => "warnings are denied",
        0 => "the flow can be run",
        _ => "nothing was started",
    };
    report.problems.write(err, outcome)?;
    for tick in &report.ticks {
        let (mark, style) =
            if tick.wrong.is_empty() { ('\u{2713}', GOOD) } else { ('\u{2717}', BAD) };
        writeln!(out, "{style}{mark}{style:#} {:<24} {}", tick.what, tick.found)?;
        for wrong in &tick.wrong {
            writeln!(out, "    {wrong}")?;
        }
    }
    let Some(flow) = &report.flow else {
        return Ok(());
    };
    if options.verbose {
        settings(flow, report.problems.source(), out)?;
    }
    if fine {
        return writeln!(out, "{GOOD}ok{GOOD:#}");
    }
    writeln!(out, "{BAD}not ok{BAD:#}")
}

/// Every setting, its value and where that comes from.
fn settings(flow: &Flow, source: &str, out: &mut dyn Write) -> io::Result<()> {
    for setting in origins::settings(flow, source) {
        let origin = match setting.origin {
            Origin::Default => "default".to_owned(),
            Origin::Line(line) => format!("line {line}"),
            Origin::Defaults(line) => format!("line {line}, [defaults]"),
        };
        writeln!(out, "  {:<32} {:<24} {origin}", setting.key, setting.value)?;
    }
    Ok(())
}

fn input(flow: &Flow) -> Tick {
    let mut wrong = Vec::new();
    let (mut files, mut bytes, mut standard) = (0, 0, false);
    for pattern in &flow.input.files {
        if pattern == "-" {
            standard = true;
            continue;
        }
        let found = matches(&flow.directory, pattern).unwrap_or_else(|error| {
            let (folder, error) = (error.path().display(), error.error());
            wrong.push(format!("`{pattern}`: {folder}: {error}"));
            Vec::new()
        });
        if found.is_empty() && wrong.is_empty() {
            wrong.push(format!("`{pattern}`: no such file in {}", shown(&flow.directory)));
        }
        for path in found {
            match size(&path) {
                Ok(size) => bytes += size,
                Err(error) => wrong.push(format!("`{}`: {error}", path.display())),
            }
            files += 1;
        }
    }
    let mut found = match files {
        0 if standard => "standard input".to_owned(),
        0 => "none in the flow; give `waystage run` some".to_owned(),
        _ => format!("{}, {}", counted(files, "file"), bytes_text(bytes)),
    };
    if files > 0 && standard {
        found.push_str(" and standard input");
    }
    if files == 0 && !wrong.is_empty() {
        "not found".clone_into(&mut found);
    }
    Tick { what: "input", found, wrong }
}

/// The file of this name, or else the files that match it as a pattern.
fn matches(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, glob::GlobError> {
    let path = directory.join(pattern);
    if path.exists() {
        return Ok(vec![path]);
    }
    // The folder is not a pattern, whatever characters it is written with.
    let folder = glob::Pattern::escape(&directory.to_string_lossy());
    let pattern = Path::new(&folder).join(pattern);
    match glob::glob(&pattern.to_string_lossy()) {
        Ok(paths) => {
            let is_file = |path: &PathBuf| !path.is_dir();
            paths.filter(|path| path.as_ref().map_or(true, is_file)).collect()
        }
        Err(_not_a_pattern) => Ok(Vec::new()),
    }
}

/// The size of a file that can be read.
fn size(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::Error::other("this is a folder"));
    }
    if metadata.is_file() {
        // Opening a named pipe would wait for its writer.
        File::open(path)?;
    }
    Ok(metadata.len())
}

fn outputs(flow: &Flow, flow_file: &Path) -> Tick {
    let mut wrong = Vec::new();
    let mut taken = Taken::default();
    for pattern in flow.input.files.iter().filter(|pattern| *pattern != "-") {
        // What cannot be read is told with the input.
        for path in matches(&flow.directory, pattern).unwrap_or_default() {
            taken.path(&path, "the same file is an input");
        }
    }
    taken.path(flow_file, "the same file is the flow file");
    let mut files = 0;
    for stage in flow.opened() {
        if let Handler::Write(path) = &stage.handler {
            files += 1;
            if let Err(error) = writable(&flow.directory.join(path), &taken) {
                wrong.push(format!("`{}`: `{}`: {error}", stage.name, path.display()));
            }
        }
    }
    Tick { what: "outputs writable", found: counted(files, "file"), wrong }
}

/// Whether a file can be written, as far as can be said without making it.
fn writable(path: &Path, taken: &Taken) -> io::Result<()> {
    if let Ok(metadata) = fs::metadata(path) {
        if metadata.is_dir() {
            return Err(io::Error::other("this is a folder"));
        }
        taken.check(&metadata).map_err(io::Error::other)?;
        OpenOptions::new().append(true).open(path)?;
        return Ok(());
    }
    let here = Path::new(".");
    let folder = path
        .ancestors()
        .skip(1)
        .map(|folder| if folder.as_os_str().is_empty() { here } else { folder });
    let Some(folder) = folder.into_iter().find(|folder| folder.exists()) else {
        return Err(io::Error::other("no such folder"));
    };
    let metadata = fs::metadata(folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::other(format!("{} is not a folder", folder.display())));
    }
    if metadata.permissions().readonly() {
        return Err(io::Error::other(format!("{} cannot be written", shown(folder))));
    }
    Ok(())
}

fn right(what: &'static str, found: String) -> Tick {
    Tick { what, found, wrong: Vec::new() }
}

fn shown(directory: &Path) -> String {
    if directory.as_os_str().is_empty() {
        return "this folder".to_owned();
    }
    directory.display().to_string()
}

/// `1 file`, `3 files`, `1,679 files`.
fn counted(number: usize, what: &str) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text} {what}{}", if number == 1 { "" } else { "s" })
}

/// A size for people: `812 B`, `0.8 MB`.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    // From a tenth of a unit on, so that a file just short of a megabyte is 0.8 MB.
    match UNITS.iter().find(|(unit, _)| bytes >= unit / 10 && bytes >= 1_000) {
        Some((unit, name)) => {
            let tenths = (bytes + unit / 20) / (unit / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests;
