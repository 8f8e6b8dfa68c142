//! Any text as a flow file: reading and drawing never panic, what is refused has an error, and in
//! what is accepted every stage name resolves and every setting is in its range.

#![no_main]

use std::collections::HashSet;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use waystage_cli::flow::model::{Action, Handler};
use waystage_cli::flow::{Flow, parse};

fn holds_together(flow: &Flow) {
    let known: HashSet<&str> = flow.stages.iter().map(|stage| stage.name.as_str()).collect();
    let resolve = |names: &[String]| names.iter().all(|name| known.contains(name.as_str()));
    assert_eq!(known.len(), flow.stages.len());
    assert!(!flow.slip.is_empty() && resolve(&flow.slip));
    assert_eq!(flow.bus.validate(), Ok(()));
    for stage in &flow.stages {
        assert_eq!(stage.settings.validate(), Ok(()));
        assert!(stage.settings.dead_letter.iter().all(|name| known.contains(name.as_str())));
        let Handler::Route(rules) = &stage.handler else {
            continue;
        };
        for rule in rules {
            let (Action::First(names) | Action::Then(names) | Action::Instead(names)) =
                &rule.action;
            assert!(resolve(names));
        }
    }
}

fuzz_target!(|source: &str| {
    match parse(source, Path::new("flow.toml")) {
        Ok((flow, warnings)) => {
            assert_eq!(warnings.errors(), 0);
            warnings.render(true);
            holds_together(&flow);
        }
        Err(problems) => {
            assert!(problems.errors() > 0);
            problems.render(true);
        }
    }
});
