//! Values from the environment: the line wins, and messages name the variable.

use crate::support::{Said, Scratch, records};

fn run(scratch: &Scratch, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
    Said::of(scratch.command(arguments).envs(variables.iter().copied()))
}

#[test]
fn a_wrong_value_names_its_variable() {
    let scratch = Scratch::with_lines(records(3), "");
    for (variable, value, words) in [
        ("WAYSTAGE_RATE", "often", "write a rate"),
        ("WAYSTAGE_LIMIT", "0", "at least 1"),
        ("WAYSTAGE_WORKERS", "65", "1..=64"),
        ("WAYSTAGE_COLOR", "blue", "possible values"),
        ("WAYSTAGE_FAIL_ON", "x", "possible values"),
        ("WAYSTAGE_OUT", "lines.ndjson", "output out/all.ndjson"),
        ("WAYSTAGE_INPUT", "gone", "no such file"),
        ("WAYSTAGE_DIRECTORY", "gone", "No such file"),
    ] {
        let said = run(&scratch, &["run", "flow.toml"], &[(variable, value)]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.talk.contains(variable) && said.talk.contains(words), "{}", said.talk);
        let flag = variable.replace("WAYSTAGE_", "--").replace('_', "-").to_lowercase();
        assert!(!said.talk.contains(&format!("'{flag}")), "{}", said.talk);
    }
    let said = run(&scratch, &["run", "flow.toml", "--rate", "often"], &[("WAYSTAGE_LIMIT", "2")]);
    assert!(said.talk.contains("'--rate <RATE>'"), "{}", said.talk);
    let said = run(&scratch, &["check", "flow.toml"], &[("WAYSTAGE_OUT", "lines.ndjson")]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.data.contains("WAYSTAGE_OUT"), "{}", said.data);
}

#[test]
fn a_conflict_names_the_variable_that_has_it() {
    let scratch = Scratch::with_lines(records(3), "");
    let said = run(&scratch, &["run", "flow.toml", "-v"], &[("WAYSTAGE_QUIET", "1")]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("WAYSTAGE_QUIET of the environment"), "{}", said.talk);
    assert!(said.talk.contains("'--verbose'"), "{}", said.talk);
}

/// What `run` calls an id and a limit is no envelope and no number of entries.
#[test]
fn flags_that_mean_other_things_have_other_variables() {
    let scratch = Scratch::with_lines(records(3), "");
    let of_run = [("WAYSTAGE_ID", "/id"), ("WAYSTAGE_LIMIT", "2"), ("WAYSTAGE_TO", "new")];
    assert_eq!(run(&scratch, &["run", "flow.toml"], &of_run).code, Some(0));
    assert_eq!(scratch.lines("out/all.ndjson"), 2);
    let said = run(&scratch, &["log", "dump", "gone"], &of_run);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("gone") && !said.talk.contains("WAYSTAGE"), "{}", said.talk);
    let said = run(&scratch, &["log", "salvage", "gone"], &of_run);
    assert!(said.talk.contains("--to <DIR>"), "{}", said.talk);
    let said = run(&scratch, &["log", "dump", "gone"], &[("WAYSTAGE_DUMP_ID", "/id")]);
    assert!(said.talk.contains("WAYSTAGE_DUMP_ID of the environment"), "{}", said.talk);
    let said = run(&scratch, &["log", "salvage", "gone"], &[("WAYSTAGE_SALVAGE_TO", "new")]);
    assert!(!said.talk.contains("--to"), "{}", said.talk);
}

#[test]
fn an_input_on_the_line_wins() {
    let scratch = Scratch::with_lines(records(3), "");
    scratch.put("one", "1\n");
    scratch.put("two", "2\n");
    let environment = [("WAYSTAGE_INPUT", "two")];
    for (arguments, want) in [
        (&["run", "flow.toml"][..], "2\n"),
        (&["run", "flow.toml", "one"], "1\n"),
        (&["run", "flow.toml", "--input", "one"], "1\n"),
    ] {
        let said = run(&scratch, arguments, &environment);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(scratch.read("out/all.ndjson"), want, "{arguments:?}");
    }
}
