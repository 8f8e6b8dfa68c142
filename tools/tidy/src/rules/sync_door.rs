//! Atomics, locks, threads and queues come through `src/sync.rs` only.
//!
//! A type taken past the door is not loom's in the models, so a model would check other code than
//! runs. No lint can see this, since what the door exports are the same types.

use crate::paths;
use crate::{Tree, Violation};

/// Crates that only the door may name.
const CRATES: &[&str] =
    &["crossbeam_queue", "crossbeam_utils", "crossbeam", "loom", "concurrent_queue", "parking_lot"];
/// What of `std::sync` carries no synchronisation that a model must see.
const PLAIN: &[&str] = &["Arc", "Weak", "PoisonError", "OnceLock"];

/// Reports paths in `src` that go past the door. Test files may use `std::sync` and `std::thread`.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.rust(&["src/"]) {
        if file.path == "src/sync.rs" {
            continue;
        }
        let mut add = |offset: usize, what: &str| {
            report.push(Violation {
                path: file.path.clone(),
                line: file.line_at(offset),
                rule: "sync-door",
                problem: format!("`{what}` is used past the door"),
                remedy: "import it from `crate::sync`, and add it there in both bodies if missing",
            });
        };
        for path in paths::read(&file.views.code) {
            let is_std = matches!(path.parts[0], "std" | "core" | "alloc");
            if CRATES.contains(&path.parts[0])
                || is_std && !file.is_test() && is_guarded(&path.parts)
            {
                add(path.offset, &path.parts.join("::"));
            }
        }
        // `use loom;` and `extern crate loom;` are no paths with parts. `feature = "loom"` is a
        // string, and `cfg(loom)` stands inside an attribute.
        for name in CRATES {
            for offset in paths::words(&file.views.code, name) {
                let before = file.views.code[..offset].trim_end();
                if before.ends_with("use") || before.ends_with("extern crate") {
                    let rest = file.views.code[offset + name.len()..].trim_start();
                    if !rest.starts_with("::") {
                        add(offset, name);
                    }
                }
            }
        }
    }
}

/// Whether a path into the standard library must go through the door.
fn is_guarded(parts: &[&str]) -> bool {
    match parts[1] {
        "thread" => true,
        "sync" => parts.get(2).is_none_or(|name| !PLAIN.contains(name)),
        _ => parts[1] == "*",
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::report::found;

    fn lines(text: &str) -> usize {
        found(check, &[("src/stage/mod.rs", text)]).len()
    }

    #[test]
    fn finds_what_goes_past_the_door() {
        for text in [
            "use std::sync::atomic::AtomicU64;",
            "use std::sync::{Arc, Mutex};",
            "use std::{fmt, thread};",
            "use std::sync;",
            "use std::sync::{self, Arc};",
            "use std::sync::*;",
            "let a = core::sync::atomic::fence(o);",
            "std::thread::current()",
            "fn f(ring: &crossbeam_queue::ArrayQueue<u8>) {}",
            "use ::crossbeam_utils::CachePadded;",
            "use loom as l;",
            "extern crate concurrent_queue;",
        ] {
            assert_eq!(lines(text), 1, "{text}");
        }
        assert_eq!(lines("use std::sync::{Once, Condvar, RwLock, mpsc, Arc};"), 4);
    }

    #[test]
    fn leaves_plain_names_and_text_alone() {
        for text in [
            "use std::sync::{Arc, Weak, PoisonError, OnceLock};",
            "std::sync::Arc::new(1)",
            "use crate::sync::{Mutex, AtomicU64};",
            "//! ```\n//! std::thread::yield_now();\n//! ```",
            "/// Not `std::sync::Mutex`.",
            "let a = \"std::sync::Mutex\";",
            "#[cfg(all(loom, feature = \"loom\"))]\nmod a;",
            "use std::fmt;",
        ] {
            assert_eq!(lines(text), 0, "{text}");
        }
        assert!(found(check, &[("src/sync.rs", "use std::sync::Mutex;")]).is_empty());
    }

    #[test]
    fn tests_may_use_threads_but_no_queue() {
        let text = "use std::{thread, sync::Mutex};\nuse crossbeam_queue::ArrayQueue;\n";
        let files = [("src/stage/tests.rs", text), ("src/stage/tests/full.rs", text)];
        assert_eq!(found(check, &files), ["src/stage/tests.rs:2", "src/stage/tests/full.rs:2"]);
    }
}
