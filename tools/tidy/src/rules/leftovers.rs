//! No marker of unfinished work stays in the tree: it is done, or it is an issue.

use crate::paths::words;
use crate::{Tree, Violation};

// Written in two parts, so that this file may be checked too.
const MARKERS: &[&str] = &[concat!("FIX", "ME"), concat!("TO", "DO"), concat!("X", "XX")];
const MACROS: &[&str] = &[concat!("to", "do"), concat!("unimple", "mented")];

/// Reports markers in comments and code (strings may hold them) and unfinished-work macros.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    let mut add = |path: &str, line: usize, what: &str| {
        report.push(Violation {
            path: path.into(),
            line,
            rule: "leftovers",
            problem: format!("`{what}` marks unfinished work"),
            remedy: "finish it, or open an issue and drop the marker",
        });
    };
    for file in tree.files() {
        let is_rust = file.path.ends_with(".rs");
        let is_script = file.path.ends_with(".toml")
            || file.path.ends_with(".sh")
            || file.path.starts_with(".ci/");
        let views = match (is_rust, is_script) {
            (true, _) => [file.views.code.as_str(), file.views.comments.as_str()],
            (false, true) => [file.text.as_str(), ""],
            (false, false) => continue,
        };
        for view in views {
            for marker in MARKERS {
                words(view, marker).for_each(|at| add(&file.path, file.line_at(at), marker));
            }
        }
        for name in MACROS {
            let is_call = |at: &usize| file.views.code[at + name.len()..].starts_with('!');
            words(&file.views.code, name)
                .filter(is_call)
                .for_each(|at| add(&file.path, file.line_at(at), name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    #[test]
    fn finds_markers_and_macros() {
        let rust = "// FIXME: later\nfn f() {\n    todo!()\n}\n/* XXX */\n//! TODO\n";
        let files = [("src/a.rs", rust), ("Cargo.toml", "# TODO: version\n")];
        let want = ["Cargo.toml:1", "src/a.rs:1", "src/a.rs:3", "src/a.rs:5", "src/a.rs:6"];
        assert_eq!(found(check, &files), want);
        assert_eq!(found(check, &[("a.rs", "fn f() { unimplemented!() }")]), ["a.rs:1"]);
    }

    #[test]
    fn leaves_strings_words_and_texts_alone() {
        let rust = "let todo = \"TODO XXX\"; // METHOD, TODOS\n";
        assert!(found(check, &[("src/a.rs", rust), ("NOTES.md", "TODO\n")]).is_empty());
    }
}
