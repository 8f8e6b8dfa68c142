//! The JSON document: its schema, its sums, and that the table says nothing it does not.

use serde_json::Value;
use waystage_cli::words::{count, microseconds};

use crate::support::{QUAKES, Scratch, number};

fn quakes(arguments: &[&str]) -> (Value, crate::support::Said) {
    let scratch = Scratch::new();
    let flow = format!("{QUAKES}/flow.toml");
    scratch.json(&[&["run", flow.as_str(), "--out", "."], arguments].concat())
}

#[test]
fn it_has_a_schema_and_adds_up() {
    let (document, said) = quakes(&[]);
    assert_eq!(said.code, Some(0));
    assert_eq!(document["schema"], "waystage.run/1");
    let sum = |names: &[&str]| names.iter().map(|name| number(&document, name)).sum::<u64>();
    let left = sum(&["/accepted", "/recovered", "/redriven"]);
    let right = ["/completed", "/dead", "/expired", "/dropped", "/undelivered", "/in_flight"];
    assert_eq!(left, 1707);
    assert_eq!(left, sum(&right));
    assert_eq!(document["adds_up"], true);
    assert_eq!(document["workers"], 2);
    let stages = document["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 6);
    for stage in stages {
        let done = number(stage, "/done");
        assert_eq!(number(stage, "/in"), done, "{stage}");
        assert_eq!(number(stage, "/wait_count"), done, "in a run every record is timed");
        assert_eq!(number(stage, "/service_count"), done, "in a run every record is timed");
    }
    assert_eq!(number(&document, "/latency/count"), 1707);
}

/// That durations agree is shown on one report, beside the table's source; here two runs.
#[test]
fn it_holds_what_the_table_holds() {
    let scratch = Scratch::new();
    let flow = format!("{QUAKES}/flow.toml");
    let table = scratch.run(&["run", &flow, "--out", "."]).data;
    let (document, _) = scratch.json(&["run", &flow, "--out", "."]);
    let mut lines = table.lines();
    let header: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    let want = "STAGE IN DONE RETRIED DEAD WAIT \u{b5}s p50 p99 p99.9 \
                SERVICE \u{b5}s p50 p99 p99.9 RATE/s";
    assert_eq!(header.join(" "), want);
    for stage in document["stages"].as_array().unwrap() {
        let cells: Vec<_> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(cells[0], stage["name"]);
        for (cell, name) in cells[1..5].iter().zip(["/in", "/done", "/retried", "/dead"]) {
            assert_eq!(*cell, count(number(stage, name)), "{name}");
        }
        assert_eq!(cells.len(), 12);
        for name in ["wait", "service"] {
            let at = |quantile: &str| number(stage, &format!("/{name}_{quantile}_ns"));
            assert!(at("p50") <= at("p99") && at("p99") <= at("p999") && at("p999") <= at("max"));
            assert!(!microseconds(at("p50")).is_empty());
        }
        assert!(stage["rate_per_second"].as_f64().unwrap() > 0.0);
    }
    let text = document.to_string();
    for fact in ["archive.ndjson", "\"lines\":1679", "\"value\":\"ml\",\"count\":1039"] {
        assert!(text.contains(fact), "{fact}");
    }
}

#[test]
fn it_is_all_of_standard_output() {
    let (_, said) = quakes(&["--limit", "10"]);
    assert!(said.data.starts_with('{') && said.data.ends_with("}\n"));
    let (_, quiet) = quakes(&["--limit", "10", "-q"]);
    assert_eq!(quiet.talk, "");
}

#[test]
fn check_has_a_document_too() {
    let scratch = Scratch::with_lines("", "");
    let (document, said) = scratch.json(&["check", "flow.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(
        (&document["schema"], &document["fine"]),
        (&"waystage.check/1".into(), &true.into())
    );
    assert_eq!(scratch.run(&["check", "flow.toml"]).code, Some(0));
    scratch.put("flow.toml", "slip = [\"a\"]\n[stage.a]\nworks = 1\n");
    let (document, said) = scratch.json(&["check", "flow.toml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(document["fine"], false);
    assert_eq!(document["problems"][0]["severity"], "error");
    assert_eq!(scratch.run(&["check", "flow.toml", "-q"]).code, Some(2));
}
