//! What an earlier run wrote stays until there is something to put in its place.

use std::process::Stdio;

use crate::support::{Said, Scratch, number, records};

/// A flow that ran once.
fn earlier() -> Scratch {
    let scratch = Scratch::with_lines(records(3), "");
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    assert_eq!(scratch.lines("out/all.ndjson"), 3);
    scratch
}

#[test]
fn a_run_of_nothing_is_refused() {
    let scratch = earlier();
    for (arguments, words) in [
        (["--limit", "0"], "at least 1"),
        (["--duration", "0s"], "above zero"),
        (["--rate", "1e99/s"], "out of range"),
    ] {
        let said = scratch.run(&[&["run", "flow.toml"][..], &arguments].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.talk.contains(words) && said.talk.contains(arguments[0]), "{}", said.talk);
        assert_eq!(scratch.lines("out/all.ndjson"), 3, "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_input_that_cannot_be_read_costs_nothing() {
    let scratch = earlier();
    let said = scratch.run(&["run", "flow.toml", "/proc/self/mem"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.data.contains("out/all.ndjson as it was"), "{}", said.data);
    assert_eq!(scratch.lines("out/all.ndjson"), 3);
}

#[test]
fn a_header_that_is_wrong_costs_nothing() {
    let scratch = earlier();
    let flow = scratch.read("flow.toml").replace("\"ndjson\"", "\"csv\"");
    scratch.put("flow.toml", flow);
    scratch.put("lines.ndjson", "a,a\n1,2\n");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!((number(&document, "/input/read"), number(&document, "/input/headers")), (1, 1));
    assert_eq!(document["written"][0]["kept"], true);
    assert_eq!(scratch.lines("out/all.ndjson"), 3);
}

#[test]
fn a_stop_before_the_first_record_costs_nothing() {
    let scratch = earlier();
    let mut command = scratch.command(&["run", "flow.toml", "-", "--duration", "1ms"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let said = Said::from(child.wait_with_output().unwrap());
    drop(stdin);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert_eq!(scratch.lines("out/all.ndjson"), 3);
}

#[test]
fn an_input_without_records_replaces_them() {
    let scratch = earlier();
    scratch.put("lines.ndjson", "\n");
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    assert_eq!(scratch.read("out/all.ndjson"), "");
}

/// It is warned of; nothing is opened for it.
#[test]
fn the_file_of_a_stage_that_none_reaches_is_not_touched() {
    let scratch = earlier();
    scratch.put("out/other", "kept\n");
    let flow = scratch.read("flow.toml") + "[stage.other]\nwrite = { path = \"out/other\" }\n";
    scratch.put("flow.toml", flow);
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.talk.contains("no record ever reaches `other`"), "{}", said.talk);
    assert_eq!(document["stages"].as_array().unwrap().len(), 2);
    assert_eq!(scratch.read("out/other"), "kept\n");
}
