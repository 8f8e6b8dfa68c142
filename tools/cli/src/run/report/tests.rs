//! Every number of the table is in the JSON document of the same run.

use serde_json::Value;
use waystage::Conservation;

use super::{Report, add_up, json, table, text};
use crate::flow;
use crate::run::Console;
use crate::run::account::Lines;
use crate::run::options::Options;
use crate::run::prepare::prepare;
use crate::run::signals::Interrupt;
use crate::run::watch::watch;
use crate::words::{self, count, microseconds};

const FLOW: &str = r#"
slip = ["parse", "slow", "sort", "keep"]
[input]
files = ["lines.ndjson"]
format = "ndjson"
[stage.parse]
parse = { format = "ndjson" }
[stage.slow]
work = { busy = "50us" }
[stage.keep]
tally = { by = "/a" }
[stage.sort]
route = [ { when = { "/a" = 7 }, first = ["never"] } ]
[stage.never]
tally = { by = "/a" }
"#;

fn report() -> Report {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..1100).map(|index| format!("{{\"a\":{}}}\n", index % 3)).collect();
    std::fs::write(folder.path().join("lines.ndjson"), lines + "broken\n").unwrap();
    let path = folder.path().join("flow.toml");
    let (flow, _) = flow::parse(FLOW, &path).unwrap();
    let options = Options::new(&path);
    let prepared = prepare(&flow, &options, &mut |_| false).unwrap();
    let (mut data, mut talk) = (Vec::new(), Vec::new());
    let mut console = Console { data: &mut data, talk: &mut talk };
    let watched = watch(prepared, &options, &Interrupt::never(), &mut console);
    Report::new(&flow, &options, watched)
}

const NONE: Lines =
    Lines { read: 0, accepted: 0, refused: 0, skipped: 0, blank: 0, headers: 0, unsent: 0 };

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn the_document_holds_what_the_table_holds() {
    let report = report();
    let document = json::document(&report);
    let stages = document["stages"].as_array().unwrap();
    assert_eq!(stages.len(), report.stages.len());
    for (stage, row) in report.stages.iter().zip(stages) {
        let mut want = vec![row["name"].as_str().unwrap().to_owned()];
        want.extend(["in", "done", "retried", "dead"].map(|name| count(number(row, name))));
        for meter in ["wait", "service"] {
            let none = number(row, &format!("{meter}_count")) == 0;
            want.extend(["p50", "p99", "p999"].map(|quantile| {
                let nanoseconds = number(row, &format!("{meter}_{quantile}_ns"));
                if none { "-".to_owned() } else { microseconds(nanoseconds) }
            }));
        }
        let rate = row["rate_per_second"].as_f64().unwrap();
        let none = number(row, "in") == 0;
        want.push(if none { "-".to_owned() } else { words::rate(rate) });
        assert_eq!(table::cells(&report, stage), want);
    }
}

#[test]
fn the_document_holds_the_lines_below_the_table() {
    let report = report();
    let document = json::document(&report);
    let mut data = Vec::new();
    text::print(&report, None, &mut data).unwrap();
    let text = anstream::adapter::strip_bytes(&data).into_vec();
    let text = String::from_utf8(text).unwrap();
    let books = format!(
        "{} accepted = {} completed + {} dead + {} expired + {} undelivered",
        count(number(&document, "accepted")),
        count(number(&document, "completed")),
        count(number(&document, "dead")),
        count(number(&document, "expired")),
        count(number(&document, "undelivered")),
    );
    assert!(text.contains(&books), "{books} in {text}");
    assert!(text.contains("1,101 accepted = 1,100 completed + 1 dead"), "{text}");
    let input = "input            1,101 lines = 1,101 accepted + 0 refused + 0 skipped + 0 blank\n";
    assert!(text.contains(input), "{text}");
    assert!(text.contains("tally /a         0 367   1 367   2 366"), "{text}");
    let counts = &document["tallies"][0]["counts"];
    assert_eq!(counts[2], serde_json::json!({"value": "2", "count": 366}));
    assert_eq!(document["dead_letters"][0]["line"], 1101);
}

#[test]
fn books_that_do_not_add_up_are_red_and_say_so() {
    let mut report = report();
    report.adds_up = false;
    let mut data = Vec::new();
    text::print(&report, None, &mut data).unwrap();
    let text = String::from_utf8(data).unwrap();
    assert!(text.contains("\u{1b}[31m") || text.contains("31m1,101 accepted"), "{text}");
    assert!(text.contains("do not add up"), "{text}");
}

#[test]
fn books_are_compared_with_what_others_say() {
    let books = Conservation { accepted: 5, completed: 3, dead: 2, ..Conservation::default() };
    let sent = |accepted| Lines { read: accepted + 3, accepted, blank: 2, headers: 1, ..NONE };
    assert!(add_up(&books, Some(&sent(5)), 5));
    assert!(add_up(&books, None, 5), "an input that was left behind says nothing");
    assert!(!add_up(&books, Some(&sent(6)), 5), "one that was sent is not in the books");
    let lost = Lines { read: 9, ..sent(5) };
    assert!(!add_up(&books, Some(&lost), 5), "a line was read, and nobody knows where it is");
    assert!(!add_up(&books, Some(&sent(5)), 4), "one was settled and never told");
    assert!(!add_up(&books, Some(&sent(5)), 6), "one was told twice");
    let torn = Conservation { completed: 4, ..books };
    assert!(!add_up(&torn, Some(&sent(5)), 6), "more came out than went in");
    let running = Conservation { completed: 2, in_flight: 1, ..books };
    assert!(add_up(&running, Some(&sent(5)), 4));
    assert!(add_up(&running, Some(&sent(5)), 5), "told, and counted a moment later");
    assert!(!add_up(&running, Some(&sent(5)), 3));
}

/// The report in this many columns, without colours.
fn shown(report: &Report, width: Option<usize>) -> String {
    let mut data = Vec::new();
    text::print(report, width, &mut data).unwrap();
    String::from_utf8(anstream::adapter::strip_bytes(&data).into_vec()).unwrap()
}

#[test]
fn the_report_is_no_wider_than_the_terminal() {
    let report = report();
    for width in 40..120 {
        let text = shown(&report, Some(width));
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width} columns: {line}\n{text}");
        }
        assert!(text.contains("keep") && text.contains("1,100"), "{text}");
    }
    assert!(shown(&report, Some(80)).contains("columns do not fit; --json has them)"));
    assert!(shown(&report, Some(80)).contains("p99"));
    assert_eq!(shown(&report, None), shown(&report, Some(200)));
    assert!(!shown(&report, None).contains("do not fit"));
}

#[test]
fn long_names_are_cut_before_columns_are_left_out() {
    let mut report = report();
    report.stages[0].name = "a stage with quite a long name".to_owned();
    let wide = shown(&report, None).lines().next().map_or(0, |line| line.chars().count());
    let text = shown(&report, Some(wide - 1));
    assert!(text.contains('\u{2026}') && !text.contains("do not fit"), "{text}");
}
