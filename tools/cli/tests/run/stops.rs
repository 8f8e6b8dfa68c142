//! A stop that was asked for is how a run ends, whatever its input does afterwards.
//!
//! The child stands still while the stop and the end of its input come, as they do when Ctrl-C goes
//! to both ends of a pipe.

use std::process::Child;

use serde_json::Value;
use waystage::clock::{Clock as _, SystemClock};

use crate::support::{Said, Scratch, number, records, signal, until};

/// A flow that writes the lines of standard input to `kept.txt`.
fn keeping() -> Scratch {
    Scratch::with_flow(
        "slip = [\"keep\"]\n[input]\nfiles = [\"-\"]\nformat = \"lines\"\n\
         [stage.keep]\nwrite = { path = \"kept.txt\" }\n",
    )
}

/// Waits until the run has begun: from then on the first signal asks it to stop.
fn until_begun(child: &Child) {
    let tasks = format!("/proc/{}/task", child.id());
    until("the input is read", || {
        let tasks = std::fs::read_dir(&tasks).unwrap();
        let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
        names.into_iter().any(|name| name == b"waystage-input\n")
    });
}

/// Asks the child to stop, and ends its input.
fn interrupt_and_close(mut child: Child) -> Said {
    signal(&child, "-STOP");
    signal(&child, "-INT");
    drop(child.stdin.take());
    signal(&child, "-CONT");
    Said::from(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupt_wins_over_the_end_of_the_input() {
    let scratch = keeping();
    let child = scratch.start(&["run", "flow.toml", "--json"], "whole\nhalf of the ne");
    until("the whole line is written", || {
        std::fs::read_to_string(scratch.path("kept.txt")).is_ok_and(|text| !text.is_empty())
    });
    let said = interrupt_and_close(child);
    assert_eq!(said.code, Some(4), "{said:?}");
    let document: Value = serde_json::from_str(&said.data).unwrap();
    assert_eq!(document["stopped_by"], "interrupt");
    let account = ["read", "accepted", "unsent"].map(|name| &document["input"][name]);
    assert_eq!(account, [2, 1, 1]);
    assert_eq!((number(&document, "/completed"), number(&document, "/dead")), (1, 0));
    assert_eq!(scratch.read("kept.txt"), "whole\n");
}

#[test]
fn an_interrupt_before_the_first_record_costs_nothing() {
    for text in ["", "half of a li"] {
        let scratch = keeping();
        scratch.put("kept.txt", "earlier\n");
        let child = scratch.start(&["run", "flow.toml"], text);
        until_begun(&child);
        let said = interrupt_and_close(child);
        assert_eq!(said.code, Some(4), "{said:?}");
        assert_eq!(scratch.read("kept.txt"), "earlier\n");
        assert!(said.data.contains("kept.txt as it was"), "{}", said.data);
    }
}

#[test]
fn the_time_that_is_over_wins_too() {
    let scratch = keeping();
    scratch.put("kept.txt", "earlier\n");
    let arguments = ["run", "flow.toml", "--duration", "1s", "--json"];
    let mut child = scratch.start(&arguments, "half of a li");
    until_begun(&child);
    signal(&child, "-STOP");
    // The child's time has begun.
    let clock = SystemClock::new();
    let begun_ns = clock.monotonic_ns();
    until("its time is over", || clock.monotonic_ns() - begun_ns > 1_000_000_000);
    drop(child.stdin.take());
    signal(&child, "-CONT");
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(4), "{said:?}");
    let document: Value = serde_json::from_str(&said.data).unwrap();
    assert_eq!(document["stopped_by"], "duration");
    assert_eq!(document["written"][0]["kept"], true);
    assert_eq!(scratch.read("kept.txt"), "earlier\n");
}

/// The end of the input is an end when nobody asked for one.
#[test]
fn a_last_line_without_its_end_is_a_record() {
    let scratch = keeping();
    let child = scratch.start(&["run", "flow.toml"], &format!("{}last", records(2)));
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(scratch.lines("kept.txt"), 3);
}
