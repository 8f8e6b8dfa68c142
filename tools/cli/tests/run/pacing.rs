//! `--rate`, `--limit`, `--duration`: what they do, not how exactly in time.

use crate::support::{Scratch, number, records};

#[test]
fn a_rate_sends_everything() {
    let scratch = Scratch::with_lines(records(50), "");
    let (document, said) = scratch.json(&["run", "flow.toml", "--rate", "5k/s"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(number(&document, "/completed"), 50);
    assert_eq!(document["latency"]["from"], "intended_time");
    // The last of 50 is due 9.8 ms after the first: a run cannot be shorter.
    assert!(number(&document, "/duration_ns") >= 9_800_000, "{document}");
}

#[test]
fn a_limit_is_a_normal_end() {
    let scratch = Scratch::with_lines(records(50), "");
    let (document, said) = scratch.json(&["run", "flow.toml", "--limit", "7"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(number(&document, "/accepted"), 7);
    assert_eq!(scratch.lines("out/all.ndjson"), 7);
}

#[test]
fn a_duration_stops_only_what_is_not_at_its_end() {
    let scratch = Scratch::with_lines(records(50), "");
    let said = scratch.run(&["run", "flow.toml", "--duration", "10m"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    // At one record an hour the second one is not sent within the duration, which is long enough
    // for the first on a machine that is busy.
    let (document, said) = scratch.json(&["run", "flow.toml", "--rate", "1/h", "--duration", "3s"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert_eq!(document["stopped_by"], "duration");
    assert_eq!(number(&document, "/accepted"), 1);
    assert_eq!(number(&document, "/completed"), 1);
}

#[test]
fn flags_have_environment_names() {
    let scratch = Scratch::with_lines(records(50), "");
    let mut command = scratch.command(&["run", "flow.toml"]);
    command.envs([("WAYSTAGE_LIMIT", "5"), ("WAYSTAGE_JSON", "1"), ("WAYSTAGE_OUT", "there")]);
    let said = crate::support::Said::of(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.data.contains("\"accepted\": 5"), "{}", said.data);
    assert_eq!(scratch.lines("there/out/all.ndjson"), 5);
}
