//! Which inputs a run reads: patterns resolved, sorted, and seen to be there before the start.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use waystage::EnvelopeId;

use super::problem::Problem;
use super::resume::Position;
use crate::patterns::{self, Trouble};
use crate::words::plain;

/// One input.
#[derive(Debug, Clone)]
pub struct Source {
    /// As it is named in messages.
    pub name: Arc<str>,
    /// Its name among all inputs of the run: a file read twice has two.
    pub key: String,
    /// Where it is; `None` is standard input.
    pub path: Option<PathBuf>,
    /// Its size, when that is known.
    pub bytes: Option<u64>,
    /// What tells its records from those of other runs: nothing where it can be gone on with.
    pub run: String,
    /// Where an earlier run of a durable flow ended.
    pub position: Option<Position>,
}

impl Source {
    fn new(name: String, path: Option<PathBuf>, bytes: Option<u64>) -> Self {
        Self {
            key: name.clone(),
            name: Arc::from(name),
            path,
            bytes,
            run: String::new(),
            position: None,
        }
    }

    /// Whether it is a regular file, whose end no writer makes.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        match &self.path {
            Some(_) => self.bytes.is_some(),
            None => rustix::fs::fstat(io::stdin())
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file()),
        }
    }

    /// The id of a record that has none of its own, by where it stands. What is read from a pipe
    /// has other ids in every run of a durable flow, as it is not the same again.
    #[must_use]
    pub fn id_of_place(&self, line: u64) -> EnvelopeId {
        let (key, run) = (&self.key, &self.run);
        EnvelopeId::from_key(format!("{key}:{line}{run}").as_bytes())
    }

    /// Opens it, where an earlier run ended.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(match &self.path {
            None => Box::new(io::stdin().lock()),
            Some(path) => {
                let mut file = File::open(path)?;
                if let Some(position) = self.position {
                    file.seek(SeekFrom::Start(position.end))?;
                }
                Box::new(file)
            }
        })
    }
}

/// The inputs meant by `patterns`, in order; those of one pattern sorted by name. Relative ones
/// start at `base`.
///
/// # Errors
/// Everything that is missing or cannot be read.
pub fn resolve(patterns: &[impl AsRef<OsStr>], base: &Path) -> Result<Vec<Source>, Vec<Problem>> {
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    if patterns.is_empty() {
        problems.push(Problem::new(
            "the flow names no input",
            "set `files` in its [input], or name files after the flow, or `-` for standard input",
        ));
    }
    for pattern in patterns {
        match one(pattern.as_ref(), base) {
            Ok(found) => sources.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    if sources.iter().filter(|source| source.path.is_none()).count() > 1 {
        let help = "name `-` once";
        problems.push(Problem::new("standard input is named more than once", help));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut times = HashMap::<Arc<str>, u32>::new();
    for source in &mut sources {
        let count = times.entry(Arc::clone(&source.name)).or_default();
        *count += 1;
        if *count > 1 {
            source.key = format!("{}#{count}", source.name);
        }
    }
    Ok(sources)
}

fn one(pattern: &OsStr, base: &Path) -> Result<Vec<Source>, Problem> {
    if pattern == "-" {
        return Ok(vec![Source::new("stdin".into(), None, None)]);
    }
    let path = base.join(pattern);
    let shown_name = pattern.to_string_lossy();
    if !patterns::is_pattern(&shown_name) || fs::symlink_metadata(&path).is_ok() {
        return Ok(vec![file(shown_name.into_owned(), path)?]);
    }
    let paths = patterns::files(&shown_name, base).map_err(|trouble| {
        let help = match &trouble {
            Trouble::Pattern(_) => {
                "write * for any part of a name, ? for one character, [ab] for one of these"
            }
            Trouble::Folder(..) => "make the folder readable, or narrow the pattern",
        };
        Problem::new(format!("input {shown_name}: {trouble}"), help)
    })?;
    let mut found = Vec::new();
    for path in paths {
        let name = path.strip_prefix(base).unwrap_or(&path).display().to_string();
        found.push(file(name, path)?);
    }
    if found.is_empty() {
        return Err(Problem::new(
            format!("input {shown_name}: no file matches in {}", shown(base)),
            "correct the pattern; put it in quotes if the shell should not expand it",
        ));
    }
    Ok(found)
}

fn file(name: String, path: PathBuf) -> Result<Source, Problem> {
    let help = "correct `files` in [input], or name another input after the flow";
    let wrong = |error: &dyn std::fmt::Display| {
        let place =
            if Path::new(&name) == path { String::new() } else { format!(" ({})", path.display()) };
        Problem::new(format!("input {name}{place}: {error}"), help)
    };
    let metadata = fs::metadata(&path).map_err(|error| wrong(&plain(&error)))?;
    if metadata.is_dir() {
        return Err(wrong(&format!("is a folder; write {name}/*.ndjson for the files in it")));
    }
    if !metadata.is_file() {
        // Opening a named pipe and leaving it again would end its writer.
        return Ok(Source::new(name, Some(path), None));
    }
    File::open(&path).map_err(|error| wrong(&plain(&error)))?;
    Ok(Source::new(name, Some(path), Some(metadata.len())))
}

fn shown(folder: &Path) -> String {
    if folder.as_os_str().is_empty() { ".".to_owned() } else { folder.display().to_string() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::resolve;

    #[test]
    fn patterns_are_sorted_and_doubles_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.ndjson", "a.ndjson", "c.txt"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::create_dir(folder.path().join("d.ndjson")).unwrap();
        let patterns = ["*.ndjson", "c.txt", "a.ndjson", "-"];
        let sources = resolve(&patterns, folder.path()).unwrap();
        let keys: Vec<_> = sources.iter().map(|source| source.key.as_str()).collect();
        assert_eq!(keys, ["a.ndjson", "b.ndjson", "c.txt", "a.ndjson#2", "stdin"]);
        assert_eq!(sources[0].bytes, Some(1));
    }

    #[test]
    fn everything_missing_is_named_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let patterns = ["gone.ndjson", "*.csv", ".", "-", "-"];
        let problems = resolve(&patterns, folder.path()).unwrap_err();
        let words: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), 4, "{words:?}");
        assert!(words[0].contains("gone.ndjson") && words[0].contains("no such file"));
        assert!(words[1].contains("*.csv") && words[1].contains("no file matches"));
        assert!(words[2].contains("is a folder"));
        assert!(words[3].contains("standard input"));
    }
}
