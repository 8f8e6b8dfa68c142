//! Where an output would be, asked of the system without making or changing anything.

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::files::{Identity, Taken};
use crate::words::plain;

/// The file that a path leads to, whatever links are on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    /// It is there.
    Found(Identity),
    /// It can be made: its path without links.
    New(PathBuf),
}

impl Destination {
    /// Whether a file would be where the other one needs a folder.
    pub(super) fn is_in_the_way_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::New(one), Self::New(other)) => one != other && other.starts_with(one),
            _ => false,
        }
    }
}

/// The file that can be written at this path.
///
/// # Errors
/// In words, why none can.
pub(super) fn destination(path: &Path, taken: &Taken) -> Result<Destination, String> {
    named(path)?;
    match fs::metadata(path) {
        Ok(metadata) => found(path, &metadata, taken),
        Err(error) if is_missing(&error) && fs::symlink_metadata(path).is_ok() => linked(path),
        Err(error) if is_missing(&error) => new(path),
        Err(error) => Err(plain(&error)),
    }
}

/// Nothing is there, or what should be a folder is none: which, is looked for.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses what can only be a folder.
fn named(path: &Path) -> Result<(), String> {
    let bytes = path.as_os_str().as_bytes();
    match path.file_name() {
        Some(_) if !bytes.ends_with(b"/") && !bytes.ends_with(b"/.") => Ok(()),
        _ => Err("this names a folder".to_owned()),
    }
}

fn found(path: &Path, metadata: &Metadata, taken: &Taken) -> Result<Destination, String> {
    if metadata.is_dir() {
        return Err("this is a folder".to_owned());
    }
    taken.check(metadata).map_err(str::to_owned)?;
    OpenOptions::new().write(true).open(path).map_err(|error| plain(&error))?;
    Ok(Destination::Found(Identity::from(metadata)))
}

/// The file that a link which leads nowhere would make; no folder is made for it.
fn linked(link: &Path) -> Result<Destination, String> {
    let target = fs::read_link(link).map_err(|error| plain(&error))?;
    let path = folder_of(link).join(&target);
    let no_folder = || format!("it is a link to {}, and there is no such folder", target.display());
    named(&path)?;
    match fs::symlink_metadata(&path) {
        Ok(_) => linked(&path),
        Err(error) if is_missing(&error) => {
            let folder = fs::canonicalize(folder_of(&path)).map_err(|_error| no_folder())?;
            writable(&folder)?;
            Ok(Destination::New(folder.join(path.file_name().unwrap_or_default())))
        }
        Err(error) => Err(plain(&error)),
    }
}

/// A file that can be made, with the folders above it.
fn new(path: &Path) -> Result<Destination, String> {
    // Links that lead nowhere are in the way.
    let mut folders = path.ancestors().skip(1);
    let is_there = |folder: &&Path| fs::symlink_metadata(or_here(folder)).is_ok();
    let Some(folder) = folders.find(is_there) else {
        return Err("no such folder".to_owned());
    };
    let rest = path.strip_prefix(folder).unwrap_or(path);
    let folder = or_here(folder);
    if !folder.is_dir() {
        return Err(format!("{} is not a folder", folder.display()));
    }
    writable(folder)?;
    let mut whole = fs::canonicalize(folder).map_err(|error| plain(&error))?;
    for part in rest.components() {
        if let Component::ParentDir = part {
            whole.pop();
            continue;
        }
        // What is too long for a name is so whether or not it is there.
        let known = fs::symlink_metadata(folder.join(part));
        if let Err(error) = known
            && !is_missing(&error)
        {
            return Err(plain(&error));
        }
        whole.push(part);
    }
    Ok(Destination::New(whole))
}

fn folder_of(path: &Path) -> &Path {
    or_here(path.parent().unwrap_or(path))
}

fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// The system knows what permissions do not tell: who asks, and what is mounted read-only.
fn writable(folder: &Path) -> Result<(), String> {
    accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|error| format!("{}: {}", folder.display(), plain(&error.into())))
}

/// Where a folder is, or the nearest one above it that is there and can be written.
///
/// # Errors
/// In words.
pub(super) fn folder(path: &Path) -> Result<PathBuf, String> {
    let is_there = |folder: &&Path| fs::symlink_metadata(or_here(folder)).is_ok();
    let folder = path.ancestors().find(is_there).map_or_else(|| Path::new("."), or_here);
    if !folder.is_dir() {
        return Err(format!("{} is not a folder", folder.display()));
    }
    writable(folder)?;
    Ok(folder.to_owned())
}
