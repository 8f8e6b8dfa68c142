//! Each dependency has a comment directly above it that says what it is for.

use crate::{Tree, Violation};

/// Reports dependencies without a reason, in every manifest of the repository.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    let is_manifest = |path: &str| path == "Cargo.toml" || path.ends_with("/Cargo.toml");
    for file in tree.files().iter().filter(|file| is_manifest(&file.path)) {
        for (line, name) in unexplained(&file.text) {
            report.push(Violation {
                path: file.path.clone(),
                line,
                rule: "dependencies",
                problem: format!("`{name}` is a dependency without a reason"),
                remedy: "say in a comment directly above what it is for",
            });
        }
    }
}

/// The line and name of each dependency in `manifest` that has no comment directly above.
fn unexplained(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut in_dependencies, mut open_brackets, mut above) = (false, 0_usize, "");
    for (index, line) in manifest.lines().map(str::trim).enumerate() {
        let has_reason = above.len() > 1 && above.starts_with('#');
        above = line;
        if open_brackets == 0 {
            if let Some(header) = line.strip_prefix('[') {
                let table = header.split(']').next().unwrap_or_default();
                let last = table.rsplit('.').next().unwrap_or_default();
                in_dependencies = last.ends_with("dependencies");
                if !in_dependencies && table.contains("dependencies.") && !has_reason {
                    found.push((index + 1, last));
                }
                continue;
            }
            let is_bare = in_dependencies && !has_reason && !line.starts_with('#');
            if let Some((name, _)) = line.split_once('=').filter(|_| is_bare) {
                found.push((index + 1, name.trim()));
            }
        }
        // A value may go on over lines until its brackets close.
        if !line.starts_with('#') {
            open_brackets += line.matches(['[', '{']).count();
            open_brackets = open_brackets.saturating_sub(line.matches([']', '}']).count());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{check, unexplained};
    use crate::report::found;

    #[test]
    fn finds_dependencies_without_reason() {
        let manifest = "\
[package]
name = \"a\"
[dependencies]
# Reads b.
b = \"1\"
c = \"1\"
[target.'cfg(loom)'.dependencies]
d = { version = \"1\" }
[dev-dependencies.e]
version = \"1\"
[build-dependencies]

# Late.

f.workspace = true
";
        assert_eq!(unexplained(manifest), [(6, "c"), (8, "d"), (9, "e"), (15, "f.workspace")]);
        let files = [("tools/a/Cargo.toml", manifest), ("not-Cargo.toml", manifest)];
        assert_eq!(found(check, &files).len(), 4);
    }

    #[test]
    fn leaves_explained_and_other_tables_alone() {
        let manifest = "\
[features]
a = [\"dep:b\"]
[workspace.dependencies]
# Reads b,
# in two lines.
b = { version = \"1\", features = [
    \"c = d\",
] }
# Reads e.
[dependencies.e]
version = \"1\"
[lints]
workspace = true
";
        assert!(unexplained(manifest).is_empty());
    }
}
