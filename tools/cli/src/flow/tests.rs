//! Flow files, right and wrong: what is read, and the exact text of what is reported.

use std::path::Path;

use super::model::{Action, Handler};
use super::{Flow, Problems, parse};

const QUAKES: &str = include_str!("../../../../examples/quakes/flow.toml");

fn flow(source: &str) -> (Flow, Problems) {
    match parse(source, Path::new("examples/quakes/flow.toml")) {
        Ok(read) => read,
        Err(problems) => panic!("{problems}"),
    }
}

#[test]
fn the_quakes_flow_is_read() {
    let (flow, problems) = flow(QUAKES);
    assert!(problems.is_empty(), "{problems}");
    assert_eq!(flow.name, "quakes");
    assert_eq!(flow.directory, Path::new("examples/quakes"));
    assert_eq!(flow.slip, ["parse", "classify", "tally", "archive"]);
    let names: Vec<&str> = flow.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["parse", "classify", "tally", "alerts", "blasts", "archive"]);
    let Handler::Route(rules) = &flow.stages[1].handler else {
        panic!("{:?}", flow.stages[1]);
    };
    assert_eq!(rules[0].action, Action::Instead(vec!["blasts".to_owned()]));
    assert_eq!(flow.stages[1].settings.attempts, 3);
    assert_eq!(flow.input.unique, Some(100_000));
}
