//! What right flows say.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use waystage::{BusSettings, Idle, OnFull, Pin, Retry, StageSettings};

use super::{HANDLER, QUAKES, flow, headlines, small};
use crate::flow::model::{Action, Comparison, Format, Handler, Input, Test};
use crate::flow::read;

#[test]
fn the_quakes_flow_is_read() {
    assert_eq!(headlines(QUAKES), [""; 0]);
    let flow = flow(QUAKES);
    assert_eq!(flow.name, "quakes");
    assert_eq!(flow.directory, Path::new("examples/quakes"));
    assert_eq!(flow.slip, ["parse", "classify", "tally", "archive"]);
    let names: Vec<&str> = flow.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["parse", "classify", "tally", "alerts", "blasts", "archive"]);
    let Handler::Route(rules) = &flow.stages[1].handler else {
        panic!("{:?}", flow.stages[1]);
    };
    assert_eq!(rules[0].action, Action::Instead(vec!["blasts".to_owned()]));
    assert_eq!(rules[1].action, Action::First(vec!["alerts".to_owned()]));
    assert_eq!(flow.input.id.as_ref().map(|id| id.as_str()), Some("/id"));
    assert_eq!(flow.input.unique, Some(100_000));
    let lines = QUAKES.lines().filter(|line| !line.is_empty()).count();
    assert!((30..=45).contains(&lines), "{lines}");
}

#[test]
fn what_is_left_out_has_the_default_of_the_library() {
    let flow = flow("slip = ['a']\nstage.a.parse = {}");
    assert_eq!(flow.name, "flow");
    assert_eq!(flow.stages[0].settings, StageSettings::default());
    assert_eq!(flow.bus, BusSettings::default());
    let Input { files, format, id, unique, max_line } = flow.input;
    assert_eq!((files, format, id, unique), (Vec::new(), Format::Ndjson, None, None));
    assert_eq!(max_line, 1 << 20);
}

#[test]
fn every_setting_is_read() {
    let flow = flow(&small(&[
        ("#INPUT", "id = '/a~1b'\nunique = true\nmax-line = '64KiB'\nformat = 'csv'"),
        ("#BUS", "pin = [1, 0]\nidle = 'spin'\nhop-limit = 7\ndead-letters = 9"),
        ("#DEFAULTS", "capacity = 8\nbatch = 4\nretry = { attempts = 2 }"),
        (
            "#PARSE",
            "permits = 2\nbatch = 5\non-full = 'block 1m 30s'\nhop-timeout = '20ms'\n\
             dead-letter = 'archive'\nexpiry = '1h'\nemits = 0\n\
             retry = { attempts = 3, backoff = '50ms..5s', place = 'delayed' }",
        ),
    ]));
    assert_eq!(flow.input.id.as_ref().map(|id| id.as_str()), Some("/a~1b"));
    assert_eq!((flow.input.unique, flow.input.max_line), (Some(100_000), 64 << 10));
    assert_eq!(flow.bus.pin, Pin::Cores(vec![1, 0]));
    assert_eq!((flow.bus.idle, flow.bus.hop_limit, flow.bus.dead_letters), (Idle::Spin, 7, 9));
    let first = Duration::from_millis(50);
    let retry = Retry::Delayed { first, max: Duration::from_secs(5), jitter: 0.2 };
    let want = StageSettings {
        capacity: 8,
        permits: 2,
        batch: 5,
        on_full: OnFull::Block(Duration::from_secs(90)),
        attempts: 3,
        retry,
        dead_letter: Some("archive".to_owned()),
        hop_timeout: Duration::from_millis(20),
        expiry: Some(Duration::from_secs(3600)),
        emits: 0,
        ..StageSettings::default()
    };
    assert_eq!(flow.stages[0].settings, want);
    let want = StageSettings { capacity: 8, batch: 4, attempts: 2, ..StageSettings::default() };
    assert_eq!(flow.stages[1].settings, want);
}

#[test]
fn parse_reads_the_format_of_the_input_unless_told_otherwise() {
    let csv = ("#INPUT", "format = 'csv'");
    let handler = |source: &str| flow(source).stages.swap_remove(0).handler;
    assert!(matches!(handler(&small(&[csv])), Handler::Parse(Format::Csv)));
    let told = small(&[csv, (HANDLER, "parse = { format = 'lines' }")]);
    assert!(matches!(handler(&told), Handler::Parse(Format::Lines)));
}

#[test]
fn a_default_dead_letter_stage_keeps_its_own() {
    let flow = flow(&small(&[("#DEFAULTS", "dead-letter = 'archive'")]));
    assert_eq!(flow.stages[0].settings.dead_letter.as_deref(), Some("archive"));
    assert_eq!(flow.stages[1].settings.dead_letter, None);
}

#[test]
fn handlers_are_read() {
    let handler = |line: &str| flow(&small(&[(HANDLER, line)])).stages.swap_remove(0).handler;
    let tally = handler("tally = { by = '/magType' }");
    assert!(matches!(tally, Handler::Tally(pointer) if pointer.as_str() == "/magType"));
    let write = handler("write = { path = 'x.ndjson' }");
    assert!(matches!(write, Handler::Write(path) if path == Path::new("x.ndjson")));
    let work = handler("work = { busy = '20us' }");
    assert!(matches!(work, Handler::Work(busy) if busy == Duration::from_micros(20)));
}

#[test]
fn conditions_keep_their_order_and_their_types() {
    let line = "filter = { when = { '/z' = 'x', '/a' = [1, 2.5, true], '' = { exists = true }, \
                '/m' = { lt = 9, matches = 'y', eq = 0x10, ne = -1 } } }";
    let Handler::Filter(when) = flow(&small(&[(HANDLER, line)])).stages.swap_remove(0).handler
    else {
        panic!("not a filter");
    };
    let pointers: Vec<&str> = when.0.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/z", "/a", "", "/m"]);
    assert!(matches!(&when.0[0].1, Test::Equals(value) if *value == json!("x")));
    let list = [json!(1), json!(2.5), json!(true)];
    assert!(matches!(&when.0[1].1, Test::OneOf(values) if *values == list));
    let Test::All(all) = &when.0[3].1 else {
        panic!("{:?}", when.0[3]);
    };
    assert!(matches!(&all[0], Comparison::Lt(value) if *value == json!(9)));
    assert!(matches!(&all[1], Comparison::Matches(text) if text == "y"));
    assert!(matches!(&all[2], Comparison::Eq(value) if *value == json!(16)));
    assert!(matches!(&all[3], Comparison::Ne(value) if *value == json!(-1)));
}

#[test]
fn permits_of_all_stages_together_raise_the_tickets_of_the_bus() {
    let flow = flow(&small(&[("#DEFAULTS", "permits = 4096")]));
    assert_eq!(flow.bus.tickets, 8192);
    assert!(flow.bus.validate().is_ok());
}

#[test]
fn a_slip_may_visit_a_stage_twice_and_have_many_hops_but_not_too_many() {
    let slip = |hops: usize| format!("slip = [{}]\nstage.a.parse = {{}}", "'a',".repeat(hops));
    assert_eq!(flow(&slip(1000)).slip.len(), 1000);
    let want = "error 1:8 `slip` has 100000 hops, and the limit is 1000";
    assert_eq!(headlines(&slip(100_000)), [want]);
}

#[test]
fn what_cannot_be_read_is_said_without_a_place() {
    let folder = tempfile::TempDir::new().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("latin.toml"), b"flow = 'a'\n# caf\xe9\n").expect("written");
    std::fs::write(path("huge.toml"), "#".repeat((4 << 20) + 1)).expect("written");
    let table = [
        (path("none.toml"), "No such file or directory (os error 2)"),
        (folder.path().to_owned(), "Is a directory (os error 21)"),
        (path("latin.toml"), "line 2 is not UTF-8"),
        (path("huge.toml"), "it has more than 4194304 bytes"),
    ];
    for (path, want) in table {
        let problems = read(&path).expect_err("unreadable");
        let messages: Vec<&str> = problems.iter().map(|found| found.message.as_str()).collect();
        let first = messages[0].strip_prefix("cannot read the flow file: ");
        // The words of the system differ from system to system.
        assert!(
            first.is_some_and(|text| text == want || !cfg!(target_os = "linux")),
            "{messages:?}"
        );
    }
}

#[test]
fn line_ends_of_windows_and_a_byte_order_mark_change_no_place() {
    let source = "\u{feff}slip = ['a']\r\n[stage.a]\r\npermits = 0\r\nparse = {}\r\n";
    assert_eq!(headlines(source), ["error 3:11 `permits` is 0; it must be 1 to 4096"]);
}
