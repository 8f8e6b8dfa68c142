//! Each source file of a package belongs to it through `mod`, and `mod tests;` is test-only.
//!
//! The compiler does not warn of a file that no module declares; such a file rots unseen.

use std::collections::BTreeSet;

use crate::tree::SourceFile;
use crate::{Tree, Violation, modules};

/// Reports files in a package's `src` that no `mod` reaches from its crate roots.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for manifest in tree.files() {
        let Some(package) = manifest.path.strip_suffix("Cargo.toml") else {
            continue;
        };
        let src = format!("{package}src/");
        let mut reached = BTreeSet::new();
        for root in tree.rust(&[&src]).filter(|file| is_root(&file.path, &src)) {
            visit(tree, root, &mut reached, report);
        }
        for file in tree.rust(&[&src]) {
            if !reached.contains(file.path.as_str()) {
                report.push(Violation {
                    path: file.path.clone(),
                    line: 1,
                    rule: "dead-file",
                    problem: "no `mod` declares this file".into(),
                    remedy: "declare it in its parent module, or delete it",
                });
            }
        }
    }
}

fn is_root(path: &str, src: &str) -> bool {
    let name = &path[src.len()..];
    name == "lib.rs" || name == "main.rs" || name.starts_with("bin/")
}

fn visit<'a>(
    tree: &'a Tree,
    file: &'a SourceFile,
    reached: &mut BTreeSet<&'a str>,
    report: &mut Vec<Violation>,
) {
    if !reached.insert(&file.path) {
        return;
    }
    let items = modules::read(&file.views.code);
    for item in items.iter().filter(|item| item.body.is_none()) {
        if item.name == "tests" && !item.test_only {
            report.push(Violation {
                path: file.path.clone(),
                line: file.line_at(item.offset),
                rule: "dead-file",
                problem: "`mod tests;` is built outside tests".into(),
                remedy: "put `#[cfg(test)]` above it",
            });
        }
        let mut folder = folder_of(&file.path);
        // Modules with a body around the item are folders too.
        let around = |m: &&modules::Module<'_>| {
            m.body.as_ref().is_some_and(|body| body.contains(&item.offset))
        };
        for outer in items.iter().filter(around) {
            folder += outer.name;
            folder.push('/');
        }
        for path in [format!("{folder}{}.rs", item.name), format!("{folder}{}/mod.rs", item.name)] {
            if let Some(child) = tree.get(&path) {
                visit(tree, child, reached, report);
            }
        }
    }
}

/// The folder in which the child modules of the file at `path` stand.
fn folder_of(path: &str) -> String {
    let (parent, name) = path.rsplit_once('/').map_or(("", path), |(p, n)| (p, n));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{parent}/"),
        _ => format!("{}/", path.trim_end_matches(".rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    #[test]
    fn finds_undeclared_files() {
        let files = [
            ("Cargo.toml", ""),
            ("src/lib.rs", "mod a;\npub mod b;\n// mod e;\nmod inner { mod deep; }\n"),
            ("src/a.rs", "mod c;\n"),
            ("src/a/c.rs", ""),
            ("src/b/mod.rs", "#[cfg(test)]\nmod tests;\n"),
            ("src/b/tests.rs", ""),
            ("src/b/d.rs", ""),
            ("src/e.rs", ""),
            ("src/inner/deep.rs", ""),
            ("tools/x/Cargo.toml", ""),
            ("tools/x/src/main.rs", ""),
            ("tools/x/src/y.rs", ""),
            ("examples/z.rs", ""),
        ];
        assert_eq!(found(check, &files), ["src/b/d.rs:1", "src/e.rs:1", "tools/x/src/y.rs:1"]);
    }

    #[test]
    fn finds_tests_that_are_always_built() {
        let files = [
            ("Cargo.toml", ""),
            ("src/lib.rs", "#[cfg(unix)]\nmod tests;\n"),
            ("src/tests.rs", ""),
        ];
        assert_eq!(found(check, &files), ["src/lib.rs:2"]);
        let gated = "#[cfg(all(test, not(loom)))]\nmod tests;\n";
        let files = [("Cargo.toml", ""), ("src/lib.rs", gated), ("src/tests.rs", "")];
        assert!(found(check, &files).is_empty());
    }
}
