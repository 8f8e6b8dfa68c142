//! What is seen before the start: exit code 2, a message that names the thing, nothing touched.

use crate::support::{Said, Scratch, records};

fn refused(scratch: &Scratch, said: &Said, words: &[&str]) {
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(said.data, "");
    for word in words {
        assert!(said.talk.contains(word), "{word} in {}", said.talk);
    }
    assert!(!scratch.path("out").exists(), "nothing was touched");
}

#[test]
fn a_missing_input() {
    let scratch = Scratch::with_lines("", "");
    std::fs::remove_file(scratch.path("lines.ndjson")).unwrap();
    let said = scratch.run(&["run", "flow.toml"]);
    refused(
        &scratch,
        &said,
        &["error: input lines.ndjson", "no such file", "help: ", "nothing was"],
    );
    let said = scratch.run(&["run", "flow.toml", "gone*.ndjson"]);
    refused(&scratch, &said, &["gone*.ndjson", "no file matches"]);
}

#[test]
fn an_unwritable_output() {
    let scratch = Scratch::with_lines(records(3), "");
    scratch.put("blocked", "a file where a folder should be");
    let said = scratch.run(&["run", "flow.toml", "--out", "blocked"]);
    refused(&scratch, &said, &["error: output out/all.ndjson", "blocked", "help: "]);
    assert_eq!(scratch.read("blocked"), "a file where a folder should be");
}

#[test]
fn an_output_that_is_an_input() {
    let scratch = Scratch::with_lines(records(3), "");
    let flow = scratch.read("flow.toml").replace("out/all.ndjson", "lines.ndjson");
    scratch.put("flow.toml", flow);
    let said = scratch.run(&["run", "flow.toml"]);
    refused(&scratch, &said, &["lines.ndjson", "is an input of this run"]);
    assert_eq!(scratch.lines("lines.ndjson"), 3);
}

#[test]
fn an_output_that_is_an_input_by_another_name() {
    let scratch = Scratch::with_lines(records(3), "");
    let flow = scratch.read("flow.toml").replace("out/all.ndjson", "other.ndjson");
    scratch.put("flow.toml", flow);
    std::fs::hard_link(scratch.path("lines.ndjson"), scratch.path("other.ndjson")).unwrap();
    let said = scratch.run(&["run", "flow.toml"]);
    refused(&scratch, &said, &["other.ndjson", "is an input of this run"]);
    assert_eq!(scratch.run(&["check", "flow.toml"]).code, Some(2));
    let mut command = scratch.command(&["run", "flow.toml", "-"]);
    let input = std::fs::File::open(scratch.path("lines.ndjson")).unwrap();
    let said = Said::of(command.stdin(input));
    refused(&scratch, &said, &["other.ndjson", "is an input of this run"]);
    assert_eq!(scratch.lines("lines.ndjson"), 3);
}

#[test]
fn an_output_that_is_the_flow_file() {
    let scratch = Scratch::with_lines(records(3), "");
    let flow = scratch.read("flow.toml").replace("out/all.ndjson", "flow.toml");
    scratch.put("flow.toml", &flow);
    let said = scratch.run(&["run", "flow.toml"]);
    refused(&scratch, &said, &["output flow.toml", "is the flow file"]);
    assert_eq!(scratch.run(&["check", "flow.toml"]).code, Some(2));
    assert_eq!(scratch.read("flow.toml"), flow);
}

/// None of them is opened: that would wait for the other end.
#[test]
fn an_output_that_is_no_regular_file() {
    let scratch = Scratch::with_lines(records(3), "");
    let pipe = scratch.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let flow = scratch.read("flow.toml");
    for (path, words) in
        [("pipe", "named pipe"), ("/dev/stdout", "pipe"), ("/dev/null", "a device")]
    {
        scratch.put("flow.toml", flow.replace("out/all.ndjson", path));
        let said = scratch.run(&["run", "flow.toml"]);
        refused(&scratch, &said, &[path, words, "not a regular file"]);
        assert_eq!(scratch.run(&["check", "flow.toml"]).code, Some(2), "{path}");
    }
    scratch.put("flow.toml", flow.replace("lines.ndjson", "pipe"));
    assert_eq!(scratch.run(&["check", "flow.toml"]).code, Some(0));
}

#[test]
fn a_refusal_is_a_document_too() {
    let scratch = Scratch::with_lines("", "");
    let (document, said) = scratch.json(&["run", "flow.toml", "gone.ndjson"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(document["schema"], "waystage.run/1");
    assert_eq!(document["error"]["kind"], "usage");
    assert_eq!(document["error"]["messages"][0], "input gone.ndjson: no such file");
    assert!(said.talk.contains("no such file"), "{}", said.talk);
}

#[test]
fn a_wrong_flag() {
    let scratch = Scratch::with_lines(records(3), "");
    for (arguments, words) in [
        (["--rate", "fast"], "500/s"),
        (["--rate", "0/s"], "above zero"),
        (["--duration", "30"], "unit"),
        (["--duration", "-3s"], "unit"),
        (["--workers", "65"], "1..=64"),
        (["--workers", "0"], "1..=64"),
        (["--id", "id"], "/id"),
        (["--limit", "few"], "--limit"),
        (["--colour", "no"], "--color"),
    ] {
        let said = scratch.run(&[&["run", "flow.toml"][..], &arguments].concat());
        refused(&scratch, &said, &[words]);
    }
    let said = Said::of(scratch.command(&["run", "flow.toml"]).env("WAYSTAGE_RATE", "often"));
    refused(&scratch, &said, &["500/s"]);
}

#[test]
fn a_wrong_flow() {
    let scratch = Scratch::with_flow("slip = [\"a\"]\n[stage.a]\nwork = { bussy = \"1ms\" }\n");
    let said = scratch.run(&["run", "flow.toml"]);
    refused(&scratch, &said, &["bussy", "flow.toml:3", "nothing was started"]);
    let said = scratch.run(&["run", "gone.toml"]);
    refused(&scratch, &said, &["gone.toml"]);
}
