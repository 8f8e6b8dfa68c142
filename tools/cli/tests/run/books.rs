//! The quakes: what the README promises, to the line.

use crate::support::{QUAKES, Scratch, number};

const COUNTS: [(&str, usize); 3] =
    [("out/blasts.ndjson", 28), ("out/alerts.ndjson", 85), ("out/archive.ndjson", 1679)];
const TALLY: &str = "ml 1,039   md 494   mb 105   mww 19   mb_lg 15   mwr 6   mw 1";

fn flow() -> String {
    format!("{QUAKES}/flow.toml")
}

fn feed() -> String {
    format!("{QUAKES}/quakes.ndjson")
}

#[test]
fn quakes_go_where_they_belong() {
    let scratch = Scratch::new();
    let said = scratch.run(&["run", &flow(), "--out", "."]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for (file, lines) in COUNTS {
        assert_eq!(scratch.lines(file), lines, "{file}");
    }
    assert!(said.data.contains(TALLY), "{}", said.data);
    let books = "1,707 accepted = 1,707 completed + 0 dead + 0 expired + 0 undelivered  ";
    assert!(said.data.contains(books), "{}", said.data);
    assert!(said.data.contains("out/archive.ndjson 1,679"), "{}", said.data);
    assert!(said.talk.contains("next: "), "{}", said.talk);
}

#[test]
fn values_come_out_as_they_went_in() {
    let scratch = Scratch::new();
    scratch.run(&["run", &flow(), "--out", "."]);
    let input = std::fs::read_to_string(feed()).unwrap();
    let archive = scratch.read("out/archive.ndjson");
    let kept: std::collections::HashSet<_> = input.lines().collect();
    assert!(archive.lines().all(|line| kept.contains(line)), "numbers and key order are kept");
}

#[test]
fn fed_twice_the_same_with_unique_and_double_without() {
    let scratch = Scratch::new();
    let (file, flow) = (feed(), flow());
    let (document, said) = scratch.json(&["run", &flow, &file, &file, "--out", "."]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(number(&document, "/skipped"), 1707);
    for (file, lines) in COUNTS {
        assert_eq!(scratch.lines(file), lines, "{file}");
    }
    let text = std::fs::read_to_string(&flow).unwrap();
    let without: String =
        text.lines().filter(|line| !line.starts_with("unique")).map(|l| format!("{l}\n")).collect();
    scratch.put("flow.toml", without);
    let (document, _) = scratch.json(&["run", "flow.toml", &file, &file]);
    assert_eq!(number(&document, "/skipped"), 0);
    assert_eq!(number(&document, "/accepted"), 2 * 1707);
    for (file, lines) in COUNTS {
        assert_eq!(scratch.lines(file), 2 * lines, "{file}");
    }
}

#[test]
fn relative_paths_start_at_the_flow_file() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("deep")).unwrap();
    std::fs::copy(flow(), scratch.path("deep/flow.toml")).unwrap();
    std::fs::copy(feed(), scratch.path("deep/quakes.ndjson")).unwrap();
    assert_eq!(scratch.run(&["run", "deep/flow.toml", "--limit", "100"]).code, Some(0));
    assert!(scratch.path("deep/out/archive.ndjson").exists());
    assert_eq!(scratch.run(&["-C", "deep", "run", "flow.toml", "--out", "../moved"]).code, Some(0));
    assert_eq!(scratch.lines("moved/out/archive.ndjson"), 1679);
}
