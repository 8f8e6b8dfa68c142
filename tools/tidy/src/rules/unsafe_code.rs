//! `unsafe` stands in listed files only, each block under a `// SAFETY:` comment.

use crate::paths::words;
use crate::tree::SourceFile;
use crate::{Tree, Violation};

/// The files that may hold `unsafe`, one per need.
const ALLOWED: &[&str] = &["src/log/region.rs", "tests/allocations/main.rs"];
/// How far above a block its comment may start.
const LINES_ABOVE: usize = 20;

/// Reports `unsafe` outside the listed files, and blocks and impls without their reason.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.rust(&[""]) {
        for offset in words(&file.views.code, "unsafe") {
            let line = file.line_at(offset);
            let rest = file.views.code[offset + "unsafe".len()..].trim_start();
            let needs_reason = rest.starts_with('{') || rest.starts_with("impl");
            let (problem, remedy) = if !ALLOWED.contains(&file.path.as_str()) {
                (
                    "`unsafe` outside the files listed for it",
                    "use the safe interface of `log/region.rs`, or list the file with its need",
                )
            } else if needs_reason && !is_explained(file, line) {
                (
                    "`unsafe` without a `// SAFETY:` comment",
                    "name the invariant and who upholds it, directly above",
                )
            } else {
                continue;
            };
            let (path, problem) = (file.path.clone(), problem.to_owned());
            report.push(Violation { path, line, rule: "unsafe", problem, remedy });
        }
    }
}

/// Whether the reason stands above the statement that `line` belongs to.
fn is_explained(file: &SourceFile, line: usize) -> bool {
    let (code, comments): (Vec<_>, Vec<_>) =
        (file.views.code.lines().collect(), file.views.comments.lines().collect());
    for index in (0..line).rev().take(LINES_ABOVE) {
        if comments[index].contains("// SAFETY:") {
            return true;
        }
        let code_above = code[index].trim_end();
        let is_boundary = code_above.ends_with([';', '{', '}']);
        let is_blank = code_above.is_empty() && comments[index].trim().is_empty();
        if index + 1 < line && (is_boundary || is_blank) {
            return false;
        }
    }
    false
}

#[cfg(test)]
#[expect(clippy::unnecessary_safety_comment, reason = "the snippets look like such comments")]
mod tests {
    use super::check;
    use crate::report::found;

    fn region(text: &str) -> Vec<String> {
        found(check, &[("src/log/region.rs", text)])
    }

    #[test]
    fn finds_unsafe_elsewhere() {
        let text = "// SAFETY: no matter\nunsafe { f() }\n";
        let files = [("src/stage/mod.rs", text), ("tools/x/src/main.rs", "unsafe fn f() {}")];
        assert_eq!(found(check, &files), ["src/stage/mod.rs:2", "tools/x/src/main.rs:1"]);
    }

    #[test]
    fn finds_blocks_without_reason() {
        assert_eq!(region("let a = unsafe { f() };\n"), ["src/log/region.rs:1"]);
        assert_eq!(region("unsafe impl Send for R {}\n"), ["src/log/region.rs:1"]);
        let shared = "// SAFETY: f\nunsafe { f() };\nunsafe { g() };\n";
        assert_eq!(region(shared), ["src/log/region.rs:3"]);
        assert_eq!(region("// SAFETY: f\n\nunsafe { f() };\n"), ["src/log/region.rs:3"]);
    }

    #[test]
    fn leaves_explained_blocks_and_other_words_alone() {
        assert!(region("// SAFETY: two\n// lines\nlet a =\n    unsafe { f() };\n").is_empty());
        assert!(region("/// # Safety\npub unsafe fn f() {}\n").is_empty());
        let text = "#![expect(unsafe_code)]\n// unsafe\nlet a = \"unsafe\";\n";
        assert!(found(check, &[("src/a.rs", text)]).is_empty());
    }
}
