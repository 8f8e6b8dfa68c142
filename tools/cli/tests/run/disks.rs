//! Outputs on a disk that is full, or takes only some of what is written.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Said, Scratch, number, records};

/// The command where no file may have more than so many blocks.
fn small_disk(scratch: &Scratch, blocks: u32, arguments: &[&str]) -> Command {
    let program = scratch.command(&[]).get_program().to_owned();
    let mut command = scratch.wrapped("sh", &["-c"]);
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command.arg(script).arg(program).args(arguments);
    command
}

#[test]
fn an_output_that_breaks_is_a_failure() {
    let scratch = Scratch::with_lines(records(3), "");
    let said = Said::of(&mut small_disk(&scratch, 0, &["run", "flow.toml"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.talk.contains("error: output out/all.ndjson: "), "{}", said.talk);
    assert!(said.talk.contains("3 records that were done are not in it"), "{}", said.talk);
}

#[test]
fn a_disk_that_is_full_loses_nothing_unnamed() {
    let count = 20_000;
    let scratch = Scratch::with_lines(records(count), "");
    let said = Said::of(&mut small_disk(&scratch, 0, &["run", "flow.toml", "--json"]));
    assert_eq!(said.code, Some(1), "{}", said.talk);
    let document: Value = serde_json::from_str(&said.data).unwrap();
    assert_eq!(document["adds_up"], true);
    assert_eq!(document["dead_letters"][0]["stage"], "keep");
    let error = document["dead_letters"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("writing out/all.ndjson: "), "{error}");
    let (dead, done) = (number(&document, "/dead"), number(&document, "/completed"));
    assert_eq!(dead + number(&document, "/dropped") + done, count as u64);
    assert_eq!(number(&document, "/written/0/lines"), 0);
    let lost = document["errors"][0].as_str().unwrap();
    let words =
        format!("{} records that were done are not in it", waystage_cli::words::count(done));
    assert!(lost.contains(&words), "{lost}");
}

/// A full disk takes any part of a block; what is in the file then are whole lines.
#[test]
fn no_half_line_is_left_on_a_full_disk() {
    let line = |index: u32| format!("{}\n", json!({"id": index, "text": "x".repeat(77)}));
    let lines: String = (10..60).map(line).collect();
    let scratch = Scratch::with_lines(&lines, "");
    let said = Said::of(&mut small_disk(&scratch, 1, &["run", "flow.toml", "--json"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    let document: Value = serde_json::from_str(&said.data).unwrap();
    let written = scratch.read("out/all.ndjson");
    assert!(!written.is_empty(), "some of it was taken");
    assert!(written.ends_with('\n') && lines.starts_with(&written), "{written:?}");
    assert_eq!(number(&document, "/written/0/lines"), written.lines().count() as u64);
    let error = document["errors"][0].as_str().unwrap();
    for words in ["out/all.ndjson: ", "(os error ", "make room there", "--out DIR"] {
        assert!(error.contains(words), "{words} in {error}");
    }
}

/// A log that the disk has no room for is a failure of the disk, not of the flow.
#[test]
fn a_log_without_room_is_a_failure() {
    let scratch = Scratch::with_lines(records(3), "[durable]\ndir = \"log\"\n");
    let said = Said::of(&mut small_disk(&scratch, 100, &["run", "flow.toml", "--json"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    let document: Value = serde_json::from_str(&said.data).unwrap();
    assert_eq!(document["error"]["kind"], "failed");
    assert!(said.talk.contains("mend what the storage says"), "{said:?}");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!((said.code, number(&document, "/completed")), (Some(0), 3), "{said:?}");
}
