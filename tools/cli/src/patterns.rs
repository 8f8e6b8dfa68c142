//! The files that a pattern means.
//!
//! `*`, `?` and `[...]` match within a name, names that begin with a dot as well. `**` as a whole
//! name is any number of folders, links to folders not among them, so that it ends on a tree with
//! loops. Names that are not UTF-8 match as they are shown, each wrong part as one character.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use glob::{Pattern, PatternError};
use thiserror::Error;

/// Why the files are not known.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The pattern is none.
    #[error("not a pattern: {0}")]
    Pattern(#[from] PatternError),
    /// A folder cannot be read.
    #[error("{}: {}", .0.display(), crate::words::plain(.1))]
    Folder(PathBuf, io::Error),
}

/// Whether a name holds wildcards.
#[must_use]
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The files that match `pattern`, sorted; folders are left out. A relative pattern starts at
/// `base`, whose own name is no pattern.
///
/// # Errors
/// The pattern is wrong, or a folder in its way cannot be read.
pub fn files(pattern: &str, base: &Path) -> Result<Vec<PathBuf>, Trouble> {
    let mut paths = vec![base.to_owned()];
    let mut components = Path::new(pattern).components().peekable();
    while let Some(component) = components.next() {
        paths = match component {
            Component::Normal(name) if name == "**" => {
                let mut folders = Vec::new();
                for path in paths {
                    below(path, &mut folders)?;
                }
                folders
            }
            Component::Normal(name) if is_pattern(&name.to_string_lossy()) => {
                let pattern = Pattern::new(&name.to_string_lossy())?;
                let mut matched = Vec::new();
                for path in &paths {
                    entries(path, &pattern, &mut matched)?;
                }
                if components.peek().is_some() {
                    matched.retain(|path| path.is_dir());
                }
                matched
            }
            plain => paths.into_iter().map(|path| path.join(plain)).collect(),
        };
    }
    paths.retain(|path| fs::symlink_metadata(path).is_ok() && !path.is_dir());
    paths.sort();
    // `**/**` leads to one file in several ways.
    paths.dedup();
    Ok(paths)
}

/// What matches in one folder.
fn entries(folder: &Path, pattern: &Pattern, matched: &mut Vec<PathBuf>) -> Result<(), Trouble> {
    for name in names(folder)? {
        if pattern.matches(&name.to_string_lossy()) {
            matched.push(folder.join(name));
        }
    }
    Ok(())
}

/// The folder and all below it.
fn below(folder: PathBuf, folders: &mut Vec<PathBuf>) -> Result<(), Trouble> {
    let mut open = vec![folder];
    while let Some(folder) = open.pop() {
        for name in names(&folder)? {
            let path = folder.join(name);
            if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                open.push(path);
            }
        }
        folders.push(folder);
    }
    Ok(())
}

/// The names in a folder; none in what is no folder.
fn names(folder: &Path) -> Result<Vec<OsString>, Trouble> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |error| Trouble::Folder(here.to_owned(), error);
    let read = match fs::read_dir(here) {
        Err(error) if is_none(&error) => return Ok(Vec::new()),
        read => read.map_err(failed)?,
    };
    read.map(|entry| Ok(entry.map_err(failed)?.file_name())).collect()
}

fn is_none(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::files;

    #[test]
    fn what_patterns_mean() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("[a]*");
        fs::create_dir_all(base.join("g/.deep/er")).unwrap();
        let odd = OsStr::from_bytes(b"g/b\xFF.x");
        let all = ["a.x", "g/.h.x", "g/c.x", "g/.deep/er/d.x", "g/.deep/e.y"].map(OsStr::new);
        for name in all.into_iter().chain([odd]) {
            fs::write(base.join(name), "").unwrap();
        }
        symlink(&base, base.join("g/loop")).unwrap();
        symlink("c.x", base.join("g/link.x")).unwrap();
        symlink("nowhere", base.join("g/z.x")).unwrap();
        let found = |pattern| -> Vec<PathBuf> {
            let paths = files(pattern, &base).unwrap().into_iter();
            paths.map(|path| path.strip_prefix(&base).unwrap().to_owned()).collect()
        };
        let names = |all: &[&OsStr]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let of = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let mut in_g = ["g/.h.x", "", "g/c.x", "g/link.x", "g/z.x"].map(OsStr::new);
        in_g[1] = odd;
        assert_eq!(found("g/*.x"), names(&in_g));
        let deep = OsStr::new("g/.deep/er/d.x");
        let tree = [&[OsStr::new("a.x"), deep][..], &in_g].concat();
        assert_eq!(found("**/*.x"), names(&tree));
        assert_eq!(found("./**/**/*.x"), names(&tree));
        assert_eq!(found("g/b?.x"), names(&[odd]));
        assert_eq!(found("*/.d*/e.[xy]"), of(&["g/.deep/e.y"]));
        assert_eq!(found("g/../[a]*.x"), of(&["g/../a.x"]));
        assert_eq!(found("g/loop/a*"), of(&["g/loop/a.x"]));
        assert_eq!(found("*/loop/a.x"), of(&["g/loop/a.x"]));
        assert_eq!(found("**"), of(&[]));
        assert_eq!(found("a.x/*"), of(&[]));
        let absolute = folder.path().join("*/a.x");
        assert_eq!(files(absolute.to_str().unwrap(), "elsewhere".as_ref()).unwrap().len(), 1);
        assert!(files("[", &base).is_err());
    }
}
