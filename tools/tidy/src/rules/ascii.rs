//! Rust source is ASCII: what looks like a quote or a dash is one, in every editor and diff.

use crate::{Tree, Violation};

/// Reports each line of Rust source with a character outside ASCII.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.rust(&[""]) {
        for (index, line) in file.text.lines().enumerate() {
            let Some(other) = line.chars().find(|c| !c.is_ascii()) else {
                continue;
            };
            report.push(Violation {
                path: file.path.clone(),
                line: index + 1,
                rule: "ascii",
                problem: format!("the character U+{:04X} is not ASCII", u32::from(other)),
                remedy: "spell it in ASCII, or as an escape inside a literal",
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    #[test]
    fn finds_other_characters_in_rust_only() {
        let bad = "let a = 1;\n// an em dash \u{2014}\n";
        assert_eq!(found(check, &[("src/a.rs", bad)]), ["src/a.rs:2"]);
        let clean = "let a = '\\u{2014}'; // a dash - here\n";
        assert!(found(check, &[("src/a.rs", clean), ("README.md", bad)]).is_empty());
    }
}
