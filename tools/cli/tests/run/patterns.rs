//! The files that patterns mean, in `run` and `check`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use crate::support::{Said, Scratch};

/// A flow over these files.
fn over(pattern: &str) -> Scratch {
    let scratch = Scratch::with_lines("", "");
    let flow = scratch.read("flow.toml").replace("lines.ndjson", pattern);
    scratch.put("flow.toml", flow);
    std::fs::create_dir_all(scratch.path("g/.deep")).unwrap();
    scratch
}

#[test]
fn names_that_are_not_utf8_are_read() {
    let scratch = over("g/*.ndjson");
    let odd = scratch.path("g").join(OsStr::from_bytes(b"b\xFF.ndjson"));
    scratch.put("g/a.ndjson", "1\n");
    std::fs::write(&odd, "2\nbroken\n").unwrap();
    let said = scratch.run(&["check", "flow.toml"]);
    assert!(said.data.contains("2 files"), "{said:?}");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.talk.contains("dead: g/b\u{fffd}.ndjson:2: parse: "), "{}", said.talk);
    assert_eq!(scratch.read("out/all.ndjson"), "1\n2\n");

    let said = Said::of(scratch.command(&["run", "flow.toml"]).arg(&odd));
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(scratch.read("out/all.ndjson"), "2\n");
    // It is proposed so that a shell takes it again.
    assert!(said.talk.contains("/g/b\\377.ndjson' --json   #"), "{}", said.talk);
}

#[test]
fn loops_of_links_are_not_followed() {
    let scratch = over("**/*.ndjson");
    scratch.put("g/.deep/a.ndjson", "1\n");
    symlink("..", scratch.path("g/up")).unwrap();
    symlink(".", scratch.path("g/.deep/here")).unwrap();
    symlink(".deep/a.ndjson", scratch.path("g/link.ndjson")).unwrap();
    std::fs::remove_file(scratch.path("lines.ndjson")).unwrap();
    let said = scratch.run(&["check", "flow.toml"]);
    assert!(said.data.contains("2 files"), "{said:?}");
    let said = scratch.run(&["run", "flow.toml", "--out", "g"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(scratch.read("g/out/all.ndjson"), "1\n1\n");
}
