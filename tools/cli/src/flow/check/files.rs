//! The files that a flow names: inputs that must be there, outputs that must be writable.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::destination::{Destination, destination};
use super::{CheckOptions, Flow, Tick, bytes_text, counted};
use crate::files::Taken;
use crate::flow::model::Handler;
use crate::patterns::{self, Trouble};
use crate::words::plain;

pub(super) fn input(flow: &Flow) -> Tick {
    let mut wrong = Vec::new();
    let (mut files, mut bytes, mut standard) = (0, 0, false);
    for pattern in &flow.input.files {
        if pattern == "-" {
            standard = true;
            continue;
        }
        let found = match matches(&flow.directory, pattern) {
            Ok(found) => found,
            Err(trouble) => {
                wrong.push(format!("`{pattern}`: {trouble}"));
                continue;
            }
        };
        if found.is_empty() {
            wrong.push(format!("`{pattern}`: no such file in {}", shown(&flow.directory)));
        }
        for path in found {
            match size(&path) {
                Ok(size) => bytes += size,
                Err(error) => wrong.push(format!("`{}`: {}", path.display(), plain(&error))),
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
fn matches(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, Trouble> {
    let path = directory.join(pattern);
    if path.exists() {
        return Ok(vec![path]);
    }
    patterns::files(pattern, directory)
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

pub(super) fn outputs(flow: &Flow, options: &CheckOptions) -> Tick {
    let mut wrong = Vec::new();
    let mut taken = Taken::default();
    for pattern in flow.input.files.iter().filter(|pattern| *pattern != "-") {
        // What cannot be read is told with the input.
        for path in matches(&flow.directory, pattern).unwrap_or_default() {
            taken.path(&path, "the same file is an input");
        }
    }
    taken.path(&options.path, "the same file is the flow file");
    let of = options.out_variable.as_ref();
    let of = of.map_or_else(String::new, |name| format!(" (from {name} of the environment)"));
    let root = options.out.as_deref().unwrap_or(&flow.directory);
    let mut files = 0;
    let mut known: Vec<(&str, &Path, Destination)> = Vec::new();
    for stage in flow.opened() {
        let Handler::Write(path) = &stage.handler else { continue };
        files += 1;
        let found = destination(&root.join(path), &taken).and_then(|found| {
            known.iter().try_for_each(|other| beside(&found, other))?;
            Ok(found)
        });
        match found {
            Ok(found) => known.push((&stage.name, path, found)),
            Err(error) => {
                wrong.push(format!("`{}`: `{}`: {error}{of}", stage.name, path.display()));
            }
        }
    }
    Tick { what: "outputs writable", found: counted(files, "file"), wrong }
}

/// Whether an output can be there beside that of another stage.
fn beside(found: &Destination, other: &(&str, &Path, Destination)) -> Result<(), String> {
    let (stage, path, other) = other;
    let shown = path.display();
    if found == other {
        return Err(format!(
            "the same file as `{shown}` of `{stage}`; send both to one stage, or give each its own"
        ));
    }
    if found.is_in_the_way_of(other) || other.is_in_the_way_of(found) {
        return Err(format!("one of this and `{shown}` of `{stage}` is a folder to the other"));
    }
    Ok(())
}

fn shown(directory: &Path) -> String {
    if directory.as_os_str().is_empty() {
        return "this folder".to_owned();
    }
    directory.display().to_string()
}
