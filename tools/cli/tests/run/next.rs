//! The command that is proposed at the end can be typed as it stands.

use crate::support::{Said, Scratch, records};

/// The line that says what to do next.
fn next(said: &Said) -> &str {
    let found = said.talk.lines().find_map(|line| line.strip_prefix("next: "));
    found.unwrap_or_else(|| panic!("no next in {said:?}"))
}

#[test]
fn a_flag_that_was_given_is_not_given_again() {
    let scratch = Scratch::with_lines("broken\n", "");
    let said = scratch.run(&["run", "--fail-on", "dead", "flow.toml"]);
    let want = "waystage run --fail-on dead flow.toml --json   # every dead letter with its cause, \
                stage and place";
    assert_eq!(next(&said), want);
    let said = scratch.run(&["run", "flow.toml", "--json"]);
    let want = "read `dead_letters` of the document   # every dead letter with its cause, stage \
                and place";
    assert_eq!(next(&said), want);
}

#[test]
fn time_to_drain_is_named_once() {
    let flow = "slip = [\"slow\"]\n[input]\nfiles = [\"lines\"]\nformat = \"lines\"\n\
                [stage.slow]\nwork = { busy = \"1h\" }\n";
    let scratch = Scratch::with_flow(flow);
    scratch.put("lines", records(3));
    let arguments = ["run", "--drain=1ms", "--duration", "50ms", "--drain", "2ms", "flow.toml"];
    let said = scratch.run(&[&arguments[..], &["--", "lines"]].concat());
    assert_eq!(said.code, Some(4), "{said:?}");
    let want = "waystage run --duration 50ms flow.toml --drain 5m -- lines   # more time for what \
                is in flight";
    assert_eq!(next(&said), want);
}

#[test]
fn names_that_a_shell_or_a_command_would_read_otherwise() {
    let scratch = Scratch::with_lines(records(1), "");
    let flow = scratch.read("flow.toml");
    for (name, shown) in [("-all.ndjson", "./-all.ndjson"), ("~all.ndjson", "'~all.ndjson'")] {
        scratch.put("-f.toml", flow.replace("out/all.ndjson", name));
        let said = scratch.run(&["run", "--", "-f.toml"]);
        let want = format!("head -n 3 {shown}, or change `slip` in ./-f.toml and run again");
        assert_eq!(next(&said), want);
    }
    scratch.put("it's", flow);
    scratch.put("lines.ndjson", "");
    let said = scratch.run(&["run", "it's"]);
    assert_eq!(next(&said), "change `slip` in 'it'\\''s', then waystage check 'it'\\''s'");
}
