//! Flows damaged at random: reading and drawing never panic, and what is accepted holds together.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::{QUAKES, small};
use crate::flow::model::{Action, Handler};
use crate::flow::{Flow, parse};

const ROUNDS: u64 = 5_000;

/// Pieces that are put where they do not belong.
const PIECES: &[&str] = &[
    "",
    "\n",
    "'",
    "\"",
    "\"\"\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "-1",
    "0",
    "1e999",
    "nan",
    "\u{feff}",
    "\u{1f30b}",
    "\r\n",
    "\\u0041",
    "2026-11-30",
    "true",
    "[stage.x]",
    "stage.a.b = 1",
    "\"/a~\"",
    "'..'",
    "\"1..\"",
    "\"block \"",
    "[[stage]]",
    "99999999999999999999",
    "\0",
    "*",
];

/// A small generator (xorshift), so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit.max(1) as u64)).expect("below a usize")
    }
}

/// Replaces a random range, mostly short, by a piece or by another part of the flow.
fn damaged(source: &str, random: &mut Random) -> String {
    let mut text = source.to_owned();
    for _ in 0..=random.below(4) {
        let place = |text: &str, at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at));
        let start = random.below(text.len() + 1);
        let longest = if random.below(8) == 0 { 400 } else { 6 };
        let end = (start + random.below(longest)).min(text.len());
        let range = place(&text, start).unwrap_or(0)..place(&text, end).unwrap_or(0);
        let piece = if random.below(3) == 0 {
            let from = random.below(source.len());
            let to = (from + random.below(80)).min(source.len());
            source.get(from..to).unwrap_or_default()
        } else {
            PIECES[random.below(PIECES.len())]
        };
        text.replace_range(range, piece);
    }
    text
}

fn holds_together(flow: &Flow) {
    let known: HashSet<&str> = flow.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(known.len(), flow.stages.len());
    assert!(!flow.slip.is_empty());
    assert!(flow.slip.iter().all(|name| known.contains(name.as_str())));
    assert_eq!(flow.bus.validate(), Ok(()));
    for stage in &flow.stages {
        assert_eq!(stage.settings.validate(), Ok(()));
        assert!(stage.settings.dead_letter.iter().all(|name| known.contains(name.as_str())));
        if let Handler::Route(rules) = &stage.handler {
            for rule in rules {
                let (Action::First(names) | Action::Then(names) | Action::Instead(names)) =
                    &rule.action;
                assert!(names.iter().all(|name| known.contains(name.as_str())));
            }
        }
    }
}

#[test]
fn damaged_flows_never_panic_and_accepted_ones_hold_together() {
    let full = small(&[
        ("#INPUT", "id = \"/a\"\nunique = { window = 5 }\nmax-line = \"1MiB\""),
        ("#BUS", "pin = [0]\nidle = \"yield\"\nhop-limit = 100"),
        ("#DEFAULTS", "on-full = \"block 5s\"\nretry = { attempts = 3, backoff = \"1ms..1s\" }"),
        ("#PARSE", "dead-letter = \"archive\"\nexpiry = '1h 30m'\nhop-timeout = \"5s\""),
    ]);
    let (mut accepted, mut refused) = (0, 0);
    for seed in 1..=ROUNDS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let source = damaged(if seed % 2 == 0 { QUAKES } else { &full }, &mut random);
        let outcome =
            catch_unwind(AssertUnwindSafe(|| match parse(&source, Path::new("f.toml")) {
                Ok((flow, warnings)) => {
                    holds_together(&flow);
                    warnings.render(true);
                    true
                }
                Err(problems) => {
                    assert!(problems.errors() > 0);
                    assert!(!problems.to_string().is_empty());
                    false
                }
            }));
        match outcome {
            Ok(true) => accepted += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("seed {seed}: this flow panics:\n{source}"),
        }
    }
    // Both paths are exercised, or the damage is of the wrong size.
    assert!(accepted > ROUNDS / 20 && refused > ROUNDS / 20, "{accepted} {refused}");
}

#[test]
fn deep_and_large_flows_are_refused_in_bounded_time_and_stack() {
    let stages = |count: usize| (0..count).map(|at| format!("[stage.s{at}]\nroute = 1\n"));
    let table = [
        format!("slip = {}", "[".repeat(100_000)),
        format!("slip = {}", "{a=".repeat(100_000)),
        format!("a{} = 1", ".a".repeat(100_000)),
        "= [\n".repeat(100_000),
        (0..50_000).map(|at| format!("k{at} = 1\n")).collect(),
        stages(20_000).collect(),
        format!("slip = ['{}']\n{}", "x".repeat(1 << 20), stages(2_000).collect::<String>()),
    ];
    for source in table {
        let problems = parse(&source, Path::new("f.toml")).expect_err("wrong");
        let text = problems.to_string();
        assert!(text.len() < 50_000, "{} bytes: {}", text.len(), &text[..1000]);
    }
}
