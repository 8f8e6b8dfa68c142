//! What became of a patch, and how a test's output is read.

use std::fmt;

/// What became of a patch; the texts are the commands' outputs.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// These tests failed.
    Caught(String),
    /// The test passed with the fault in.
    NotCaught,
    /// The test ran into the time-out.
    Hangs(String),
    /// The patch does not fit the code any more.
    DoesNotApply(String),
    /// The damaged code does not compile: no test said anything.
    DoesNotBuild(String),
}

impl Verdict {
    /// The end of the output that explains it.
    pub(crate) fn output(&self) -> String {
        match self {
            Self::Caught(_) | Self::NotCaught => String::new(),
            Self::Hangs(output) | Self::DoesNotApply(output) | Self::DoesNotBuild(output) => {
                tail(output)
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(by) => f.write_str(by),
            Self::NotCaught => f.write_str("NOT CAUGHT: the test passes"),
            Self::Hangs(_) => f.write_str("NOT CAUGHT: the test hangs instead of failing"),
            Self::DoesNotApply(_) => f.write_str("ERROR: the patch does not apply"),
            Self::DoesNotBuild(_) => f.write_str("ERROR: the damaged code does not build"),
        }
    }
}

/// The names of the failed tests in the output of `cargo test`: the first, and how many more.
pub(crate) fn failed_tests(output: &str) -> String {
    let name = |line: &str| {
        let line = line.trim().strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(line.trim_end_matches(" - should panic").to_owned())
    };
    let mut names = output.lines().filter_map(name);
    let Some(first) = names.next() else {
        let signal = output.lines().find_map(|line| line.split_once("(signal: "));
        return signal.map_or_else(
            || "a failed test binary".to_owned(),
            |(_, rest)| format!("a crash, signal {}", rest.trim_end_matches(')')),
        );
    };
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The last lines of `output`.
pub(crate) fn tail(output: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::{failed_tests, tail};

    #[test]
    fn names_failed_tests() {
        let output = "test a::b ... ok\ntest a::c ... FAILED\ntest a::d ... FAILED\n";
        assert_eq!(failed_tests(output), "a::c and 1 more");
        assert_eq!(failed_tests("test a::c - should panic ... FAILED\n"), "a::c");
        let crash = "process didn't exit successfully: `x` (signal: 6, SIGABRT: abort)";
        assert_eq!(failed_tests(crash), "a crash, signal 6, SIGABRT: abort");
        assert_eq!(failed_tests("no lines"), "a failed test binary");
    }

    #[test]
    fn keeps_the_end() {
        let output: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert!(tail(&output).starts_with("60\n"));
        assert_eq!(tail("a"), "a");
    }
}
