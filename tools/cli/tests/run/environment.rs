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
