//! A file imports from lower floors and from its own folder only.
//!
//! Reads every `crate::` path in `src`, in `use` items and inside expressions, and `super::` chains
//! that climb to the crate's root. Never a sibling folder on the same floor, never up.

use crate::tree::SourceFile;
use crate::{Tree, Violation, modules, paths};

/// The floor of each folder or file directly in `src`. Everything in a folder shares its floor.
const FLOORS: &[(&str, u32)] = &[
    (DOOR, 0),
    ("clock", 0),
    ("envelope", 1),
    ("metrics", 1),
    ("coord", 2),
    ("log", 3),
    ("stage", 4),
    ("worker", 5),
    ("control", 6),
    ("bus", 7),
    ("actor", 8),
    ("topic", 8),
    ("delivery", 8),
    ("rest", 9),
    ("error", 10),
    // Compiled for tests only.
    ("testing", 10),
    // Doors for the models of `loom-tests`, in loom builds only.
    ("model", 10),
    (ROOT, 10),
];
/// The door to atomics and locks; its own floor may import it too.
const DOOR: &str = "sync";
/// The front door; it may import everything.
const ROOT: &str = "lib";

/// Reports imports against the table, and folders that the table does not know.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.rust(&["src/"]) {
        let own = top_of(&file.path);
        if own == ROOT {
            continue;
        }
        let Some(own_floor) = floor_of(own) else {
            report.push(Violation {
                path: file.path.clone(),
                line: 1,
                rule: "floors",
                problem: format!("`{own}` stands on no floor"),
                remedy: "give it one in tools/tidy/src/rules/floors.rs and in ARCHITECTURE.md",
            });
            continue;
        };
        for (offset, target) in imports(file) {
            // A name that is no folder is re-exported by the front door.
            let (name, floor) = floor_of(target).map_or((ROOT, 10), |floor| (target, floor));
            if name != own && name != DOOR && floor >= own_floor {
                report.push(Violation {
                    path: file.path.clone(),
                    line: file.line_at(offset),
                    rule: "floors",
                    problem: format!("`{own}` ({own_floor}) imports `{target}` ({floor})"),
                    remedy: "import from lower floors only: move what both need down or pass it in",
                });
            }
        }
    }
}

fn floor_of(name: &str) -> Option<u32> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// `log` for `src/log/frame.rs`, `clock` for `src/clock.rs`.
fn top_of(path: &str) -> &str {
    let inner = path.trim_start_matches("src/");
    inner.split('/').next().unwrap_or(inner).trim_end_matches(".rs")
}

/// The first part below the crate's root of each path that starts there.
fn imports(file: &SourceFile) -> Vec<(usize, &str)> {
    let inner = file.path.trim_start_matches("src/").trim_end_matches(".rs");
    let depth = inner.split('/').filter(|part| *part != "mod").count();
    let modules = modules::read(&file.views.code);
    let mut found = Vec::new();
    for path in paths::read(&file.views.code) {
        let skipped = match path.parts[0] {
            "crate" => 1,
            "super" | "self" => {
                let climbed = path.parts.iter().take_while(|part| **part == "super").count();
                let steps =
                    path.parts.iter().take_while(|p| matches!(**p, "super" | "self")).count();
                if climbed < depth + modules::depth_at(&modules, path.offset) {
                    continue;
                }
                steps
            }
            _ => continue,
        };
        found.push((path.offset, path.parts.get(skipped).copied().unwrap_or(ROOT)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    fn lines(path: &str, text: &str) -> usize {
        found(check, &[(path, text)]).len()
    }

    #[test]
    fn finds_imports_up_and_sideways() {
        for (path, text) in [
            ("src/log/frame.rs", "use crate::stage::Stage;"),
            ("src/log/mod.rs", "pub(crate) use crate::{sync::Ring, worker::{step, pool}};"),
            ("src/envelope/id.rs", "use crate::metrics::Counter;"),
            ("src/topic/mod.rs", "fn f() { crate::actor::spawn(); }"),
            ("src/sync.rs", "use crate::clock::Clock;"),
            ("src/coord/parker.rs", "use crate::error::Error;"),
            ("src/coord/parker.rs", "use crate::Envelope;"),
            ("src/coord/parker.rs", "use crate::*;"),
            ("src/stage/mod.rs", "use super::bus::Bus;"),
            ("src/stage/full.rs", "use super::super::bus::Bus;"),
            ("src/stage/full.rs", "mod a { use super::super::super::bus; }"),
            ("src/stage/tests.rs", "use crate::bus::Bus;"),
        ] {
            let want = if text.contains("pool") { 2 } else { 1 };
            assert_eq!(lines(path, text), want, "{path}: {text}");
        }
    }

    #[test]
    fn finds_folders_without_floor() {
        assert_eq!(found(check, &[("src/misc/mod.rs", "")]), ["src/misc/mod.rs:1"]);
    }

    #[test]
    fn leaves_imports_down_and_inside_alone() {
        for (path, text) in [
            ("src/log/frame.rs", "use crate::{log::segment, coord::Parker, envelope};"),
            (
                "src/stage/mod.rs",
                "//! See crate::bus::Bus.\n/// `crate::bus`\nuse self::full::Full;",
            ),
            ("src/stage/full.rs", "use super::Stage;\nmod tests { use super::super::Stage; }"),
            ("src/clock.rs", "use crate::sync::Ordering;\nmod tests { use super::*; }"),
            ("src/lib.rs", "pub use crate::rest::serve;\nmod bus;"),
            ("src/stage/full.rs", "use std::fmt; use other::crate_x::bus;"),
            ("tools/x/src/a.rs", "use crate::bus::Bus;"),
        ] {
            assert_eq!(lines(path, text), 0, "{path}: {text}");
        }
    }
}
