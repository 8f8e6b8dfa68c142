//! Files stay under 600 lines (aim at 100 to 300), lines under 100 columns.
//!
//! Functions of at most 70 lines are clippy's business. Test files may be longer.

use crate::{Tree, Violation};

const FILE_LINES_MAX: usize = 600;
const LINE_COLUMNS_MAX: usize = 100;

/// Reports files and lines of Rust source that are too long.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.rust(&[""]) {
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > LINE_COLUMNS_MAX {
                report.push(Violation {
                    path: file.path.clone(),
                    line: index + 1,
                    rule: "line-length",
                    problem: format!("{columns} columns are more than {LINE_COLUMNS_MAX}"),
                    remedy: "break the line",
                });
            }
        }
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX && !file.is_test() {
            report.push(Violation {
                path: file.path.clone(),
                line: FILE_LINES_MAX + 1,
                rule: "file-length",
                problem: format!("{lines} lines are more than {FILE_LINES_MAX}"),
                remedy: "split the file by what its parts are about",
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    #[test]
    fn finds_long_files_but_not_long_tests() {
        let (full, long) = ("a\n".repeat(600), "a\n".repeat(601));
        let files = [
            ("src/full.rs", full.as_str()),
            ("src/long.rs", long.as_str()),
            ("src/log/tests.rs", long.as_str()),
            ("tests/it/main.rs", long.as_str()),
            ("data.ndjson", long.as_str()),
        ];
        assert_eq!(found(check, &files), ["src/long.rs:601"]);
    }

    #[test]
    fn finds_long_lines() {
        let text = format!("{}\n{}\n", "a".repeat(100), "b".repeat(101));
        assert_eq!(found(check, &[("src/a.rs", &text)]), ["src/a.rs:2"]);
    }
}
