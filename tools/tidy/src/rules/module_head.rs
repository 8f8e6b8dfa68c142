//! Every source file starts with `//!`: what it is, and what it does not do.

use crate::{Tree, Violation};

/// The folders whose files need a head.
const FOLDERS: &[&str] = &["src/", "tools/", "loom-tests/", "benches/"];

/// Reports each file that does not start with a module comment.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.rust(FOLDERS) {
        if !file.text.starts_with("//! ") {
            report.push(Violation {
                path: file.path.clone(),
                line: 1,
                rule: "module-head",
                problem: "the file does not start with `//!`".into(),
                remedy: "say in its first lines what it is and what it relies on",
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    #[test]
    fn finds_files_without_head() {
        let files = [
            ("src/a.rs", "use std::fmt;\n//! Late.\n"),
            ("src/b.rs", "//! A head.\n"),
            ("tools/x/src/main.rs", ""),
            ("loom-tests/tests/c.rs", "//!\n"),
            ("benches/d.rs", "// Not a module comment.\n"),
            ("fuzz/fuzz_targets/e.rs", "#![no_main]\n"),
        ];
        let want =
            ["benches/d.rs:1", "loom-tests/tests/c.rs:1", "src/a.rs:1", "tools/x/src/main.rs:1"];
        assert_eq!(found(check, &files), want);
    }
}
