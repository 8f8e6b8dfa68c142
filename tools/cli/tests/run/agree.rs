//! What `check` lets pass `run` can start, and what it refuses `run` refuses, with nothing touched.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{Scratch, records};

/// A flow whose two stages write to these files, beside a folder of an earlier run.
fn scratch(one: &str, other: &str) -> Scratch {
    let scratch = Scratch::with_flow(&format!(
        "slip = [\"first\", \"second\"]\n[input]\nfiles = [\"lines.ndjson\"]\n\
         [stage.first]\nwrite = {{ path = \"{one}\" }}\n\
         [stage.second]\nwrite = {{ path = \"{other}\" }}\n"
    ));
    scratch.put("lines.ndjson", records(3));
    std::fs::create_dir(scratch.path("real")).unwrap();
    scratch.put("real/old.ndjson", "kept\n");
    for (target, link) in [
        ("gone/file", "into-nothing"),
        ("loop-b", "loop-a"),
        ("loop-a", "loop-b"),
        ("real/new.ndjson", "to-new"),
        ("to-new", "to-to-new"),
        ("real/old.ndjson", "to-old"),
        ("real", "linked"),
        ("gone", "linked-to-nothing"),
        ("real/newer/", "to-folder"),
    ] {
        symlink(target, scratch.path(link)).unwrap();
    }
    std::fs::hard_link(scratch.path("real/old.ndjson"), scratch.path("hard")).unwrap();
    scratch
}

/// All names below a folder, and what the files hold.
fn tree(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_folder = path.symlink_metadata().unwrap().is_dir();
        if is_folder {
            all.extend(tree(&path));
        }
        let text = if is_folder {
            String::new()
        } else {
            std::fs::read_to_string(&path).unwrap_or_default()
        };
        all.push((path, text));
    }
    all.sort();
    all
}

/// Both take it, and the first makes nothing.
fn fine(scratch: &Scratch) {
    let before = tree(&scratch.path(""));
    let said = scratch.run(&["check", "flow.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(tree(&scratch.path("")), before, "check touches nothing");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// Both refuse, and nothing is made or emptied.
fn refused(scratch: &Scratch, of_check: &[&str], of_run: &[&str]) {
    let before = tree(&scratch.path(""));
    for (command, words) in [("check", of_check), ("run", of_run)] {
        let said = scratch.run(&[command, "flow.toml"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        for word in words {
            assert!(said.data.contains(word) || said.talk.contains(word), "{word} in {said:?}");
        }
        assert_eq!(tree(&scratch.path("")), before, "{command} touches nothing");
    }
}

#[test]
fn links_and_names_that_no_file_can_have() {
    let (long, deep) = ("x".repeat(300), "deep/".repeat(1_000));
    for (path, words) in [
        ("into-nothing", "gone/file"),
        ("loop-a", "ymbolic link"),
        ("loop-a/file", "ymbolic link"),
        ("linked-to-nothing/file", "linked-to-nothing"),
        ("to-folder", "folder"),
        ("real/old.ndjson/file", "old.ndjson is not a folder"),
        (&long, "too long"),
        (&format!("new/{long}"), "too long"),
        (&format!("new/{long}/file"), "too long"),
        (&format!("{deep}file"), "too long"),
    ] {
        // The first one can be made, and must not be.
        refused(&scratch("made/first", path), &["`second`", words], &["output "]);
    }
}

#[test]
fn two_stages_with_one_file() {
    for (one, other) in [
        ("real/old.ndjson", "to-old"),
        ("real/old.ndjson", "hard"),
        ("real/old.ndjson", "linked/old.ndjson"),
        ("real/new.ndjson", "to-to-new"),
        ("linked/made/new", "real/made/new"),
    ] {
        let words = ["same file as", "first", "second"];
        refused(&scratch(one, other), &words, &words);
    }
    refused(&scratch("made", "made/file"), &["`first`", "`second`", "a folder"], &["made/file"]);
    refused(&scratch("made/file", "made"), &["`first`", "`second`", "a folder"], &["output made"]);
}

#[test]
fn what_links_lead_to_can_be_written() {
    for (one, other) in [
        ("to-to-new", "linked/other.ndjson"),
        ("to-old", "linked/../made/file"),
        ("made/../made/file", "made/deep/file"),
    ] {
        let scratch = scratch(one, other);
        fine(&scratch);
        assert_eq!((scratch.lines(one), scratch.lines(other)), (3, 3));
    }
}

#[test]
fn a_core_that_is_not_there() {
    let scratch = scratch("made/one", "made/other");
    let flow = scratch.read("flow.toml");
    scratch.put("flow.toml", format!("{flow}[bus]\npin = [0, 1000]\nworkers = 1\n"));
    refused(&scratch, &["core 1000 is not among"], &["core 1000 is not among"]);
}

#[test]
fn a_durable_flow_and_no_log_is_made() {
    let scratch = scratch("made/one", "made/other");
    let flow = scratch.read("flow.toml");
    scratch.put("flow.toml", format!("{flow}[durable]\ndir = \"log\"\n"));
    fine(&scratch);
}
