//! Each memory ordering stronger than `Relaxed` says with what it pairs.
//!
//! The comment holds the word `ORDERING` and stands on the same line or in the six lines above.
//! Orderings are written as `Ordering::Acquire` and so on, so that this rule and readers see them.

use crate::paths;
use crate::tree::SourceFile;
use crate::{Tree, Violation};

const STRONG: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];
const LINES_ABOVE: usize = 6;

/// Reports uncommented orderings in `src`, outside tests and the sync door.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.rust(&["src/"]) {
        if file.is_test() || file.path == "src/sync.rs" {
            continue;
        }
        for path in paths::read(&file.views.code) {
            let Some(at) = path.parts.iter().rposition(|part| *part == "Ordering") else {
                continue;
            };
            let from_door = matches!(path.parts[0], "crate" | "std" | "core" | "super")
                && !path.parts.contains(&"cmp");
            let line = file.line_at(path.offset);
            let (problem, remedy) = match path.parts.get(at + 1) {
                Some(_) if at > 0 && from_door && in_use(file, path.offset) => (
                    "an ordering is imported without its type".to_owned(),
                    "import `Ordering` and write `Ordering::Acquire` where it is used",
                ),
                None if from_door && path.alias.is_some() => (
                    "`Ordering` is imported under another name".to_owned(),
                    "import it as `Ordering`",
                ),
                Some(name) if STRONG.contains(name) && !is_explained(file, line) => (
                    format!("`Ordering::{name}` without an `ORDERING` comment"),
                    "say with which operation it pairs: `// ORDERING: Acquire, pairs with ...`",
                ),
                _ => continue,
            };
            let path = file.path.clone();
            report.push(Violation { path, line, rule: "ordering", problem, remedy });
        }
    }
}

/// Whether the statement around `offset` is a `use`.
fn in_use(file: &SourceFile, offset: usize) -> bool {
    let start = file.views.code[..offset].rfind([';', '}']).map_or(0, |at| at + 1);
    let statement = &file.views.code[start..offset];
    paths::words(statement, "use").next().is_some()
}

fn is_explained(file: &SourceFile, line: usize) -> bool {
    let first = line.saturating_sub(1 + LINES_ABOVE);
    let mut lines = file.views.comments.lines().take(line).skip(first);
    lines.any(|comment| comment.contains("ORDERING"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    fn lines(text: &str) -> Vec<String> {
        found(check, &[("src/a.rs", text)])
    }

    #[test]
    fn finds_uncommented_orderings() {
        assert_eq!(lines("\na.load(Ordering::Acquire);\n"), ["src/a.rs:2"]);
        assert_eq!(lines("fence(crate::sync::Ordering::SeqCst);\n"), ["src/a.rs:1"]);
        let far = format!("// ORDERING: x\n{}a.load(Ordering::Acquire);\n", "\n".repeat(6));
        assert_eq!(lines(&far), ["src/a.rs:8"]);
        assert_eq!(lines("a(\"ORDERING\", Ordering::Release);\n"), ["src/a.rs:1"]);
    }

    #[test]
    fn finds_imports_that_hide_orderings() {
        assert_eq!(lines("use crate::sync::Ordering::{Acquire, Relaxed};\n").len(), 2);
        assert_eq!(lines("use crate::sync::Ordering::*;\n"), ["src/a.rs:1"]);
        assert_eq!(lines("use crate::sync::{AtomicU64, Ordering as O};\n"), ["src/a.rs:1"]);
    }

    #[test]
    fn leaves_explained_relaxed_and_comparisons_alone() {
        assert!(
            lines("// ORDERING: Acquire, pairs with b\na.load(Ordering::Acquire);\n").is_empty()
        );
        assert!(lines("a.load(Ordering::SeqCst); // ORDERING: total order\n").is_empty());
        let far = format!("// ORDERING: x\n{}a.load(Ordering::Acquire);\n", "\n".repeat(5));
        assert!(lines(&far).is_empty());
        assert!(lines("a.load(Ordering::Relaxed); // Acquire\n").is_empty());
        assert!(lines("use std::cmp::Ordering as O; Ordering::Less\n").is_empty());
        assert!(lines("use crate::sync::{AtomicU64, Ordering};\n").is_empty());
        let text = "a.load(Ordering::Acquire);\n";
        assert!(found(check, &[("src/a/tests.rs", text), ("src/sync.rs", text)]).is_empty());
    }
}
