//! Checks the repository against the rules that no compiler lint covers.
//!
//! `cargo run -p waystage-tidy` prints each violation as `path:line: rule: what is wrong; what to
//! do`; `cargo test --workspace` runs the same check. Each rule is one file in `rules/` and has a
//! test that shows it failing. There is no Rust parser here: a small lexer (`lexer.rs`) tells code
//! from comments and strings, and a path reader (`paths.rs`) flattens `use` groups. That is enough
//! because rustfmt has laid the code out before.

mod lexer;
mod modules;
mod paths;
mod report;
mod rules;
mod tree;

use std::io;
use std::path::{Path, PathBuf};

pub use report::Violation;
pub use tree::{SourceFile, Tree};

/// The repository that a tool in `tools/` is run for: cargo says where the package lies.
///
/// Asked when the tool runs, not when it is built: checkouts may share a target directory, and the
/// binary of one must not check the other. Without cargo it is the current directory.
#[must_use]
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.map_or_else(|| PathBuf::from("."), |package| package.join("../.."))
}

/// Checks the repository at `root` and returns what is wrong, ordered by path and line.
///
/// # Errors
/// When a file cannot be read or `.gitignore` has a pattern that [`Tree::read`] does not know.
pub fn check(root: &Path) -> io::Result<Vec<Violation>> {
    let tree = Tree::read(root)?;
    let mut report = Vec::new();
    for rule in rules::ALL {
        rule(&tree, &mut report);
    }
    report.sort();
    Ok(report)
}
