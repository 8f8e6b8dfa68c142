//! The copy of the repository in which patches are tried.
//!
//! One copy serves all patches: cargo then rebuilds only what a patch touches. Each patch is taken
//! out by applying it in reverse, which has to succeed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::patch::{Patch, TestCommand};

/// Seconds that a build may take.
const BUILD_SECONDS_MAX: u64 = 1_200;
/// What `timeout` exits with when time is up, and when it then had to kill.
const TIMED_OUT: [i32; 2] = [124, 137];

/// The copy and how to run in it.
#[derive(Debug)]
pub(crate) struct Ground {
    dir: tempfile::TempDir,
    target: PathBuf,
    timeout_s: u64,
}

/// How a command ended; the texts are its outputs.
#[derive(Debug)]
pub(crate) enum Run {
    Passed,
    Failed(String),
    TimedOut(String),
}

impl Ground {
    /// Copies the files that belong to the repository at `root`.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(crate) fn new(root: &Path, target: &Path, timeout_s: u64) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("waystage-sabotage-").tempdir()?;
        for file in waystage_tidy::Tree::read(root)?.files() {
            let to = dir.path().join(&file.path);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::copy(root.join(&file.path), to)?;
        }
        let target = std::path::absolute(target)?;
        Ok(Self { dir, target, timeout_s })
    }

    /// Puts a patch in; `Err` holds what git says when it does not fit.
    pub(crate) fn apply(&self, patch: &Patch) -> io::Result<Result<(), String>> {
        self.git_apply(patch, &[])
    }

    /// Takes a patch out.
    ///
    /// # Errors
    /// When it does not come out; the copy is then unusable.
    pub(crate) fn revert(&self, patch: &Patch) -> io::Result<()> {
        self.git_apply(patch, &["--reverse"])?.map_err(|output| {
            io::Error::other(format!("{} does not come out again: {output}", patch.name))
        })
    }

    fn git_apply(&self, patch: &Patch, options: &[&str]) -> io::Result<Result<(), String>> {
        let mut command = Command::new("git");
        command.arg("apply").arg("--whitespace=nowarn").args(options).arg(&patch.path);
        // The copy is no git repository, and must not count as a part of one around it.
        let above = self.dir.path().parent().unwrap_or_else(|| self.dir.path());
        command.env("GIT_CEILING_DIRECTORIES", above.canonicalize()?);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(variable);
        }
        let (is_ok, _, output) = self.finish(command, "")?;
        Ok(if is_ok { Ok(()) } else { Err(output) })
    }

    /// Builds what `test` runs.
    pub(crate) fn build(&self, test: &TestCommand) -> io::Result<Run> {
        self.cargo(&test.build_arguments(), &test.dir, BUILD_SECONDS_MAX)
    }

    /// Runs `test`.
    pub(crate) fn test(&self, test: &TestCommand) -> io::Result<Run> {
        self.cargo(&test.arguments, &test.dir, self.timeout_s)
    }

    fn cargo(&self, arguments: &[String], dir: &str, seconds: u64) -> io::Result<Run> {
        // `timeout` ends the test binaries together with cargo.
        let mut command = Command::new("timeout");
        command.arg("--kill-after=10").arg(seconds.to_string()).arg("cargo").args(arguments);
        command.env("CARGO_TARGET_DIR", &self.target);
        let (is_ok, code, output) = self.finish(command, dir)?;
        Ok(match code {
            _ if is_ok => Run::Passed,
            Some(code) if TIMED_OUT.contains(&code) => Run::TimedOut(output),
            _ => Run::Failed(output),
        })
    }

    /// Runs `command` in `dir` of the copy: whether it passed, its exit code, and what it printed.
    fn finish(&self, mut command: Command, dir: &str) -> io::Result<(bool, Option<i32>, String)> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.current_dir(self.dir.path().join(dir)).stdin(Stdio::null());
        let output = command
            .output()
            .map_err(|error| io::Error::other(format!("`{name}` does not start: {error}")))?;
        let text = [output.stderr, output.stdout].map(|t| String::from_utf8_lossy(&t).into_owned());
        Ok((output.status.success(), output.status.code(), text.concat()))
    }
}
