//! Reads patch files: header lines, then a diff as `git diff` prints it.
//!
//! ```text
//! # test: cargo test -p waystage --lib coord::permits
//! # in: loom-tests
//! # why: without the re-check a message pushed during release is stranded
//! --- a/src/coord/permits.rs
//! ...
//! ```
//!
//! `in` is the directory to run in, the root without it. A `why` may go on in further `why` lines.

use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One fault and the test that must notice it.
#[derive(Debug)]
pub(crate) struct Patch {
    /// The file's name without `.patch`.
    pub(crate) name: String,
    /// The file, as an absolute path.
    pub(crate) path: PathBuf,
    /// What must fail.
    pub(crate) test: TestCommand,
    /// What the fault is and why it matters.
    pub(crate) why: String,
}

/// A `cargo test` command and the directory it runs in.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestCommand {
    /// Relative to the root; empty for the root.
    pub(crate) dir: String,
    /// The words behind `cargo`.
    pub(crate) arguments: Vec<String>,
}

impl TestCommand {
    /// The arguments that build the same tests and run none.
    pub(crate) fn build_arguments(&self) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        if let Some(at) = arguments.iter().position(|word| word == "test") {
            arguments.insert(at + 1, "--no-run".to_owned());
        }
        arguments
    }
}

impl fmt::Display for TestCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.dir.is_empty() {
            write!(f, "(in {}) ", self.dir)?;
        }
        write!(f, "cargo {}", self.arguments.join(" "))
    }
}

/// All patches in `dir`, by name.
///
/// # Errors
/// When the directory or a file cannot be read, or a header is wrong.
pub(crate) fn read_all(dir: &Path) -> io::Result<Vec<Patch>> {
    let describe = |path: &Path, problem: &dyn fmt::Display| {
        io::Error::other(format!("{}: {problem}", path.display()))
    };
    let mut patches = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| describe(dir, &error))? {
        let path = fs::canonicalize(entry?.path())?;
        if path.extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| describe(&path, &error))?;
        let (test, why) = parse_header(&text).map_err(|problem| describe(&path, &problem))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        patches.push(Patch { name, path, test, why });
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

/// The test and the reason that the leading `#` lines of `text` give.
fn parse_header(text: &str) -> Result<(TestCommand, String), String> {
    let (mut test, mut dir, mut why) = (None, String::new(), Vec::new());
    for line in text.lines().map_while(|line| line.strip_prefix('#')) {
        let (key, value) = line.split_once(':').ok_or("a header line is `# key: value`")?;
        let value = value.trim();
        match key.trim() {
            "test" if test.is_some() => return Err("`test` stands twice".to_owned()),
            "test" => test = Some(parse_command(value)?),
            "in" => value.trim_end_matches('/').clone_into(&mut dir),
            "why" => why.push(value),
            other => return Err(format!("the header `{other}` is none of test, in, why")),
        }
    }
    let arguments = test.ok_or("the header `# test: cargo test ...` is missing")?;
    if why.is_empty() {
        return Err("the header `# why: ...` is missing".to_owned());
    }
    Ok((TestCommand { dir, arguments }, why.join(" ")))
}

fn parse_command(command: &str) -> Result<Vec<String>, String> {
    // There is no shell, so nothing that would need one may pass for an argument.
    if let Some(other) = command.chars().find(|c| "'\"\\|&;<>$`(){}*?~#".contains(*c)) {
        return Err(format!("the test holds `{other}`, but runs without a shell"));
    }
    let mut words = command.split_whitespace().map(str::to_owned);
    let is_cargo = words.next().is_some_and(|word| word == "cargo");
    let arguments: Vec<String> = words.collect();
    let verb = arguments.iter().find(|word| !word.starts_with('+'));
    if !is_cargo || verb.is_none_or(|word| word != "test") {
        return Err("the test is not a `cargo test` command".to_owned());
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::parse_header;

    #[test]
    fn reads_headers() {
        let text = "# test: cargo +nightly test --test sleep -- --exact lost\n# in: loom-tests/\n\
                    # why: the fence orders the push\n# why: before the load\n--- a/b\n# why: no\n";
        let (test, why) = parse_header(text).expect("the header is right");
        assert_eq!(
            test.to_string(),
            "(in loom-tests) cargo +nightly test --test sleep -- --exact lost"
        );
        assert_eq!(
            test.build_arguments().join(" "),
            "+nightly test --no-run --test sleep -- --exact lost"
        );
        assert_eq!(why, "the fence orders the push before the load");
    }

    #[test]
    fn refuses_wrong_headers() {
        for (text, want) in [
            ("--- a/b\n", "`# test: cargo test ...` is missing"),
            ("# test: cargo test\n", "`# why: ...` is missing"),
            ("# test: cargo test\n# test: cargo test\n# why: x\n", "stands twice"),
            ("# test: cargo build\n# why: x\n", "not a `cargo test`"),
            ("# test: make test\n# why: x\n", "not a `cargo test`"),
            ("# test: cargo test; ls\n# why: x\n", "without a shell"),
            ("# tset: cargo test\n# why: x\n", "none of test, in, why"),
            ("# just words\n", "key: value"),
        ] {
            let error = parse_header(text).expect_err(text);
            assert!(error.contains(want), "{text:?} gives {error:?}");
        }
    }
}
