//! The files a check looks at: those that git would track.
//!
//! Reads the directory itself, so that an unpacked archive can be checked too and a new file counts
//! before it is added. What `.gitignore` at the root names is left out.

use std::path::Path;
use std::{fs, io};

use crate::lexer::{self, Views};

/// The files of the repository, ordered by path.
#[derive(Debug)]
pub struct Tree {
    files: Vec<SourceFile>,
}

/// A file; its text is empty where it is not text.
#[derive(Debug)]
pub struct SourceFile {
    /// The path relative to the root, with forward slashes.
    pub path: String,
    /// The content.
    pub text: String,
    /// Code and comments apart; empty unless it is Rust source.
    pub(crate) views: Views,
}

impl SourceFile {
    fn new(path: String, text: String) -> Self {
        let is_rust = Path::new(&path).extension().is_some_and(|e| e == "rs");
        let views = if is_rust { lexer::split(&text) } else { Views::default() };
        Self { path, text, views }
    }

    /// The line, from 1, in which `offset` stands.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset].iter().filter(|&&b| b == b'\n').count()
    }

    /// Whether the file holds tests only: `tests.rs`, or anything in a folder `tests`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|part| part == "tests")
    }
}

impl Tree {
    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// When a file cannot be read, or `.gitignore` has a pattern other than `name`, `name/`,
    /// `/path`, `dir/path/` and `*.suffix`.
    pub fn read(root: &Path) -> io::Result<Self> {
        let ignored = match fs::read_to_string(root.join(".gitignore")) {
            Ok(text) => Ignored::parse(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ignored::default(),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        walk(root, "", &ignored, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// All files.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The file at `path`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files under one of `folders` (each with its slash; an empty name is everything).
    pub(crate) fn rust<'a, 'b>(
        &'a self,
        folders: &'b [&'b str],
    ) -> impl Iterator<Item = &'a SourceFile> + use<'a, 'b> {
        self.files.iter().filter(move |file| {
            file.path.ends_with(".rs") && folders.iter().any(|f| file.path.starts_with(f))
        })
    }

    /// A tree of `files` (path, text).
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| SourceFile::new(path.into(), text.into());
        Self { files: files.iter().map(file).collect() }
    }
}

fn walk(dir: &Path, prefix: &str, ignored: &Ignored, out: &mut Vec<SourceFile>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if name == ".git" || ignored.matches(&path, &name) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), ignored, out)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path())?;
            let is_text = !bytes.contains(&0);
            let text = String::from_utf8(bytes).ok().filter(|_| is_text).unwrap_or_default();
            out.push(SourceFile::new(path, text));
        }
    }
    Ok(())
}

/// The patterns of `.gitignore`, as far as this repository needs them.
#[derive(Debug, Default)]
struct Ignored {
    names: Vec<String>,
    paths: Vec<String>,
    suffixes: Vec<String>,
}

impl Ignored {
    fn parse(text: &str) -> io::Result<Self> {
        let mut ignored = Self::default();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let pattern = line.trim_end_matches('/');
            let (list, rest) = if let Some(suffix) = pattern.strip_prefix("*.") {
                (&mut ignored.suffixes, suffix)
            } else if pattern.contains('/') {
                (&mut ignored.paths, pattern.trim_start_matches('/'))
            } else {
                (&mut ignored.names, pattern)
            };
            if rest.contains(['*', '?', '[', '!', '\\']) {
                let message = format!(".gitignore: tidy does not know the pattern `{line}`");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            list.push(rest.to_owned());
        }
        Ok(ignored)
    }

    fn matches(&self, path: &str, name: &str) -> bool {
        let ends = |suffix: &String| {
            name.strip_suffix(suffix.as_str()).is_some_and(|stem| stem.ends_with('.'))
        };
        self.names.iter().any(|n| n == name)
            || self.paths.iter().any(|p| p == path)
            || self.suffixes.iter().any(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ignored, Tree};

    #[test]
    fn ignores_names_paths_and_suffixes() {
        let ignored = Ignored::parse("# built\ntarget/\n/a/out/\nfuzz/corpus/\n*.log\n")
            .expect("all patterns are known");
        for (path, name) in [
            ("x/target", "target"),
            ("a/out", "out"),
            ("fuzz/corpus", "corpus"),
            ("b/c.log", "c.log"),
        ] {
            assert!(ignored.matches(path, name), "{path}");
        }
        for (path, name) in [("b/out", "out"), ("a/target.rs", "target.rs"), ("blog", "blog")] {
            assert!(!ignored.matches(path, name), "{path}");
        }
        assert!(Ignored::parse("!keep").is_err());
        assert!(Ignored::parse("a/**/b").is_err());
    }

    #[test]
    fn lines_and_test_files() {
        let tree = Tree::of(&[("src/a/tests.rs", "a\nb\n"), ("src/a/mod.rs", "")]);
        let tests = tree.get("src/a/tests.rs").expect("it was put there");
        assert_eq!((tests.line_at(0), tests.line_at(2)), (1, 2));
        assert!(tests.is_test());
        assert!(!tree.get("src/a/mod.rs").expect("it was put there").is_test());
    }
}
