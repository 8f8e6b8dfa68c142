//! How a run ends that is not left to end by itself: signals, closed pipes, broken outputs.

use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Said, Scratch, number, records, signal, until};

/// A flow whose stage is busy for `time` with each record of standard input, after it was written.
fn busy(time: &str) -> Scratch {
    Scratch::with_flow(&format!(
        "slip = [\"keep\", \"slow\"]\n[input]\nfiles = [\"-\"]\nformat = \"lines\"\n\
         [stage.keep]\nwrite = {{ path = \"kept.txt\" }}\n\
         [stage.slow]\nwork = {{ busy = \"{time}\" }}\n"
    ))
}

/// Waits until the run goes on: outputs are written out as far as they are.
#[cfg(target_os = "linux")]
fn until_ready(scratch: &Scratch) {
    let kept = scratch.path("kept.txt");
    until("records are written", || std::fs::metadata(&kept).is_ok_and(|file| file.len() > 0));
}

#[cfg(target_os = "linux")]
#[test]
fn the_first_interrupt_drains() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let scratch = busy("10us");
        let child = scratch.start(&["run", "flow.toml", "--json"], &records(20));
        until_ready(&scratch);
        signal(&child, name);
        let said = end(child);
        assert_eq!(said.code, Some(4), "{said:?}");
        let document: Value = serde_json::from_str(&said.data).unwrap();
        assert_eq!(document["stopped_by"], "interrupt");
        assert_eq!(document["leftovers"], Value::Array(vec![]));
        assert_eq!(number(&document, "/accepted"), number(&document, "/completed"));
        assert!(said.talk.contains("interrupted: "), "{}", said.talk);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_left_after_the_drain_is_named() {
    let scratch = busy("1h");
    let arguments = ["run", "flow.toml", "--drain", "10ms", "--workers", "2"];
    let mut child = scratch.start(&arguments, &records(5));
    until_ready(&scratch);
    until_busy(&mut child);
    signal(&child, "-INT");
    let said = end(child);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.talk.contains("left: slow: "), "{}", said.talk);
    assert!(said.talk.contains("1 still in its handler"), "{}", said.talk);
    assert!(said.talk.contains("stdin:"), "{}", said.talk);
    assert!(said.data.contains("undelivered + 1 in flight"), "{}", said.data);
}

/// Also those that a worker had taken up when the bus ended.
#[cfg(target_os = "linux")]
#[test]
fn leftovers_are_as_many_as_the_books_say() {
    let scratch = busy("1ms");
    let arguments = ["run", "flow.toml", "--drain", "20ms", "--json", "--drain", "10ms"];
    let mut child = scratch.start(&arguments, &records(2500));
    until_ready(&scratch);
    until_busy(&mut child);
    signal(&child, "-INT");
    let said = end(child);
    assert_eq!(said.code, Some(4), "{said:?}");
    let document: Value = serde_json::from_str(&said.data).unwrap();
    assert_eq!(document["adds_up"], true);
    let leftovers = document["leftovers"].as_array().unwrap();
    let waiting: u64 = leftovers.iter().map(|left| number(left, "/waiting")).sum();
    assert!(waiting > 0, "{document}");
    assert_eq!(waiting, number(&document, "/undelivered"), "{document}");
}

/// What `nohup` is for.
#[cfg(target_os = "linux")]
#[test]
fn a_hangup_that_is_ignored_stays_so() {
    let scratch = busy("10us");
    let program = scratch.command(&[]).get_program().to_owned();
    let mut command = scratch.wrapped("sh", &["-c", "trap '' HUP; exec \"$0\" run flow.toml"]);
    command.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.as_mut().expect("it was piped");
    std::io::Write::write_all(stdin, records(20).as_bytes()).unwrap();
    until_ready(&scratch);
    signal(&child, "-HUP");
    // The end of its input, and nothing else, ends it.
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.data.contains("20 accepted = 20 completed"), "{}", said.data);
}

#[cfg(target_os = "linux")]
#[test]
fn two_signals_in_one_breath_count_once() {
    let scratch = busy("10us");
    let child = scratch.start(&["run", "flow.toml", "--json"], &records(20));
    until_ready(&scratch);
    // While it stands still both wait to be delivered, so neither can be noticed before the other.
    for name in ["-STOP", "-INT", "-TERM", "-CONT"] {
        signal(&child, name);
    }
    let said = end(child);
    assert_eq!(said.code, Some(4), "{said:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_second_interrupt_ends_at_once() {
    let scratch = busy("1h");
    let mut child = scratch.start(&["run", "flow.toml", "--drain", "1h"], &records(5));
    until_ready(&scratch);
    until_busy(&mut child);
    signal(&child, "-INT");
    let mut first = String::new();
    let talk = child.stderr.take().expect("it was piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(talk), &mut first).unwrap();
    assert!(first.starts_with("interrupted: "), "{first}");
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Waits until the child has used some processor time: its stage is in its handler, and as the
/// stage before takes next to nothing, what waits waits behind it.
#[cfg(target_os = "linux")]
fn until_busy(child: &mut Child) {
    let stat = format!("/proc/{}/stat", child.id());
    until("the stage is busy", || {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        let ticks = text.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11));
        ticks.and_then(|ticks| ticks.parse::<u64>().ok()).is_some_and(|ticks| ticks >= 10)
    });
}

fn end(child: Child) -> Said {
    // Standard input stays open until the child has ended.
    let mut child = child;
    let stdin = child.stdin.take();
    let said = Said::from(child.wait_with_output().unwrap());
    drop(stdin);
    said
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let scratch = Scratch::with_lines(records(3), "");
    for arguments in [&["run", "flow.toml", "-q"][..], &["run", "flow.toml", "-q", "--json"]] {
        let mut command = scratch.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!((said.code, said.talk.as_str()), (Some(0), ""), "{arguments:?}");
        assert_eq!(scratch.lines("out/all.ndjson"), 3, "the run was finished");
    }
}

#[test]
fn a_closed_pipe_changes_no_outcome() {
    let scratch = Scratch::with_lines("{\"a\":1}\nbroken\n", "");
    for arguments in [&["run", "flow.toml"][..], &["run", "flow.toml", "--json"]] {
        let mut command = scratch.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(3), "{said:?}");
        assert!(said.talk.contains("dead: lines.ndjson:2: "), "{}", said.talk);
    }
}

#[test]
fn what_expired_or_was_dropped_is_not_all_done() {
    let scratch = busy("2ms");
    let flow = scratch.read("flow.toml").replace("\"-\"", "\"lines.ndjson\"");
    scratch.put("lines.ndjson", records(50));
    scratch.put("flow.toml", flow.replace("[stage.keep]", "[stage.keep]\nexpiry = \"5ms\""));
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.talk.contains("not handled in time, as expiry 5 ms"), "{}", said.talk);
    assert!(said.talk.contains("next: change the settings named above"), "{}", said.talk);
    assert_eq!(scratch.run(&["run", "flow.toml", "--fail-on", "never"]).code, Some(0));
    let flow = flow.replace("[\"keep\", \"slow\"]", "[\"slow\", \"keep\"]");
    let policy = "[stage.slow]\ncapacity = 2\non-full = \"drop-oldest\"";
    scratch.put("flow.toml", flow.replace("[stage.slow]", policy));
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.talk.contains("dropped: slow: "), "{}", said.talk);
}

#[test]
fn dead_letters_beyond_the_bound_are_named() {
    let scratch = Scratch::with_lines("broken\n".repeat(5), "[bus]\ndead-letters = 2");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let words = "3 more dead letters were dropped at the bound of 2; raise dead-letters in [bus]";
    assert!(said.talk.contains(words), "{}", said.talk);
    let words = "--json   # 2 of 5 dead letters are kept; the others were dropped\n";
    assert!(said.talk.contains(words), "{}", said.talk);
}

#[cfg(target_os = "linux")]
#[test]
fn an_input_that_breaks_is_a_failure() {
    let scratch = Scratch::with_lines(records(3), "");
    let said = scratch.run(&["run", "flow.toml", "lines.ndjson", "/proc/self/mem"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.talk.contains("error: input /proc/self/mem: "), "{}", said.talk);
    assert!(said.data.contains("3 accepted = 3 completed"), "{}", said.data);
    assert_eq!(scratch.lines("out/all.ndjson"), 3);
}

#[test]
fn a_verbose_run_says_what_it_is_made_of() {
    let scratch = Scratch::with_lines(records(3), "");
    let said = scratch.run(&["run", "flow.toml", "-v", "--workers", "1", "--color", "never"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for words in ["input lines.ndjson (27 bytes)", "bus: workers 1", "stage keep: permits 1"] {
        assert!(said.talk.contains(words), "{words} in {}", said.talk);
    }
    assert!(said.data.contains("1 worker\n"), "{}", said.data);
    assert!(!said.data.contains('\u{1b}'));
    let said = scratch.run(&["run", "flow.toml", "--color", "always"]);
    assert!(said.data.contains('\u{1b}'), "{}", said.data);
}
