//! Flows with a log: killed, stopped, run again, on files that changed.

use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{QUAKES, Said, Scratch, number, records, signal, until};

/// How often the feed of a week is killed; `WAYSTAGE_KILLS` says otherwise.
const KILLS: u64 = 8;

/// A flow over `in.ndjson` that parses, counts and writes; `more` is added to its [durable].
fn flow(more: &str) -> String {
    format!(
        "slip = [\"parse\", \"tally\", \"keep\"]\n\
         [input]\nfiles = [\"in.ndjson\"]\nformat = \"ndjson\"\nid = \"/id\"\n\
         [durable]\ndir = \"var/log\"\n{more}\n\
         [stage.parse]\nparse = {{ format = \"ndjson\" }}\n\
         [stage.tally]\ntally = {{ by = \"/kind\" }}\n\
         [stage.keep]\nwrite = {{ path = \"out.ndjson\" }}\n"
    )
}

fn scratch(more: &str) -> Scratch {
    let scratch = Scratch::with_flow(&flow(more));
    scratch.put("in.ndjson", records(500));
    scratch
}

/// Kills a run when it has accepted something, or is over.
fn kill_within(mut child: Child, pause: Duration) {
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(pause);
    let _ = child.kill();
    child.wait().unwrap();
}

fn start(scratch: &Scratch) -> Child {
    let mut command = scratch.command(&["run", "flow.toml"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Something that happens to files between runs.
type Change<'a> = &'a dyn Fn(&Scratch);

/// Waits until the output has so many lines: the input has had some time for its own then.
fn until_written(scratch: &Scratch, lines: usize) {
    until("lines are written", || {
        let text = fs::read_to_string(scratch.path("out.ndjson")).unwrap_or_default();
        text.lines().count() >= lines
    });
}

/// The lines of a file, each of which stands there once.
fn lines_once(scratch: &Scratch, name: &str) -> usize {
    let text = scratch.read(name);
    assert!(text.ends_with('\n'), "a line is cut short");
    let mut lines: Vec<&str> = text.lines().collect();
    let all = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), all, "a line stands twice in {name}");
    all
}

/// The week of earthquakes, killed at any moment and run again: the outputs and counts are those
/// of a run that nobody disturbed.
#[test]
fn killed_at_any_moment_and_run_again() {
    let scratch = Scratch::new();
    let feed = fs::read_to_string(format!("{QUAKES}/quakes.ndjson")).unwrap();
    scratch.put("quakes.ndjson", feed);
    let flow = fs::read_to_string(format!("{QUAKES}/flow.toml")).unwrap();
    let retry = "attempts = 3";
    scratch.put(
        "flow.toml",
        flow.replace("[defaults]", "[durable]\ndir = \"var\"\nsync = \"1ms\"\n\n[defaults]")
            .replace("\"tally\",", "\"tally\", \"slow\",")
            + "[stage.slow]\nwork = { busy = \"100us\" }\n",
    );
    assert!(scratch.read("flow.toml").contains(retry), "the feed's flow tries again");
    let kills = std::env::var("WAYSTAGE_KILLS").ok();
    let kills = kills.map_or(KILLS, |kills| kills.parse().expect("a number"));
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let (mut killed, mut whole) = (0, 0);
    while killed < kills || whole == 0 {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(killed | 1);
        // Now and then one is left alone.
        let said = if killed < kills && random >> 60 != 0 {
            kill_within(start(&scratch), Duration::from_millis(random >> 40 & 0x7F));
            killed += 1;
            continue;
        } else {
            scratch.run(&["run", "flow.toml", "--json"])
        };
        assert_eq!(said.code, Some(0), "{said:?}");
        let document: Value = serde_json::from_str(&said.data).unwrap();
        is_the_week(&scratch, &document);
        whole += 1;
        // And once more from the beginning.
        fs::remove_dir_all(scratch.path("var")).unwrap();
        fs::remove_dir_all(scratch.path("out")).unwrap();
    }
}

/// The outputs and counts of the week, each line once.
fn is_the_week(scratch: &Scratch, document: &Value) {
    assert_eq!(number(document, "/in_flight"), 0);
    let written = ["alerts", "archive", "blasts"];
    let counts = written.map(|name| lines_once(scratch, &format!("out/{name}.ndjson")));
    assert_eq!(counts, [85, 1679, 28]);
    let tally = document["tallies"][0]["counts"].as_array().unwrap();
    let tally: Vec<u64> = tally.iter().map(|count| number(count, "/count")).collect();
    assert_eq!(tally, [1039, 494, 105, 19, 15, 6, 1]);
}

#[test]
fn a_run_that_has_ended_leaves_nothing_to_do_until_the_input_grows() {
    for level in ["", "level = \"at-least-once\"\nsync = \"each\"", "sync = \"os\""] {
        let scratch = scratch(level);
        let (document, said) = scratch.json(&["run", "flow.toml"]);
        assert_eq!((said.code, number(&document, "/completed")), (Some(0), 500), "{said:?}");
        let (document, said) = scratch.json(&["run", "flow.toml"]);
        assert_eq!((said.code, number(&document, "/input/read")), (Some(0), 0), "{said:?}");
        assert_eq!(document["tallies"][0]["counts"][0]["count"], 500);
        let grown = records(503);
        scratch.put("in.ndjson", grown);
        let (document, said) = scratch.json(&["run", "flow.toml"]);
        assert_eq!((said.code, number(&document, "/completed")), (Some(0), 3), "{said:?}");
        assert_eq!(lines_once(&scratch, "out.ndjson"), 503);
    }
}

#[test]
fn a_stop_leaves_a_run_that_goes_on() {
    let scratch = scratch("");
    scratch.put("in.ndjson", records(200));
    let slow = flow("").replace("slip = [\"parse\",", "slip = [\"parse\", \"slow\",")
        + "[stage.slow]\nwork = { busy = \"10ms\" }\n";
    scratch.put("flow.toml", slow);
    let mut command = scratch.command(&["run", "flow.toml", "--json", "--drain", "1ms"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_written(&scratch, 5);
    signal(&child, "-INT");
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.talk.contains("in the log"), "{said:?}");
    assert!(said.talk.contains("# goes on where this run ended"), "{said:?}");
    let document: Value = serde_json::from_str(&said.data).unwrap();
    let left: u64 = document["leftovers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| {
            assert_eq!(left["in_log"], true);
            number(left, "/waiting")
        })
        .sum();
    assert!(left > 0);
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!((said.code, number(&document, "/recovered")), (Some(0), left), "{said:?}");
    assert_eq!(lines_once(&scratch, "out.ndjson"), 200);
}

#[test]
fn what_changed_between_runs_is_refused_and_nothing_is_touched() {
    let changes: [(&str, Change<'_>); 6] = [
        ("it has 10 bytes", &|scratch| {
            fs::File::options()
                .write(true)
                .open(scratch.path("out.ndjson"))
                .unwrap()
                .set_len(10)
                .unwrap();
        }),
        ("another file than the one that was written", &|scratch| {
            fs::rename(scratch.path("out.ndjson"), scratch.path("old")).unwrap();
            fs::copy(scratch.path("old"), scratch.path("out.ndjson")).unwrap();
        }),
        ("is not there any more", &|scratch| {
            let text = scratch.read("out.ndjson").replace("{\"id\":499}", "{\"id\":xxx}");
            scratch.put("out.ndjson", text);
        }),
        ("input in.ndjson was changed", &|scratch| scratch.put("in.ndjson", records(10))),
        ("input in.ndjson was changed", &|scratch| {
            let text = scratch.read("in.ndjson").replace("{\"id\":499}", "{\"id\":998}");
            scratch.put("in.ndjson", text);
        }),
        ("input in.ndjson was changed", &|scratch| {
            fs::rename(scratch.path("in.ndjson"), scratch.path("old")).unwrap();
            scratch.put("in.ndjson", records(500));
        }),
    ];
    for (words, change) in changes {
        let scratch = scratch("");
        assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
        change(&scratch);
        let before = scratch.read("out.ndjson");
        let said = scratch.run(&["run", "flow.toml"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.talk.contains(words) && said.talk.contains("--fresh"), "{said:?}");
        assert_eq!(scratch.read("out.ndjson"), before);
        let said = scratch.run(&["run", "flow.toml", "--fresh"]);
        assert_eq!(said.code, Some(2), "it asks: {said:?}");
        assert!(said.talk.contains("add --yes"), "{said:?}");
        let (document, said) = scratch.json(&["run", "flow.toml", "--fresh", "--yes"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let read = number(&document, "/completed");
        assert_eq!(lines_once(&scratch, "out.ndjson") as u64, read);
    }
}

#[test]
fn an_output_that_grew_behind_our_back_is_cut_where_the_log_says() {
    let scratch = scratch("");
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    let whole = scratch.read("out.ndjson");
    scratch.put("out.ndjson", format!("{whole}half a li"));
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    assert_eq!(scratch.read("out.ndjson"), whole);
}

#[test]
fn two_runs_of_one_log_and_a_stage_that_went() {
    let scratch = scratch("");
    let mut child = scratch.start(&["run", "flow.toml", "-"], "{\"id\":1}\n");
    until("the log is there", || {
        fs::metadata(scratch.path("out.ndjson")).is_ok_and(|metadata| metadata.len() > 0)
    });
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("another run has the log open"), "{said:?}");
    child.kill().unwrap();
    child.wait().unwrap();

    let scratch = scratch_with_leftovers();
    let flow = scratch.read("flow.toml").replace("\"slow\", ", "");
    let (flow, _) = flow.split_once("[stage.slow]").unwrap();
    scratch.put("flow.toml", flow);
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.talk.contains("not open: slow") && said.talk.contains("put the stage back"),
        "{said:?}"
    );
}

/// A log with records at a stage `slow`.
fn scratch_with_leftovers() -> Scratch {
    let scratch = scratch("");
    scratch.put("in.ndjson", records(200));
    let slow = flow("").replace("slip = [\"parse\",", "slip = [\"parse\", \"slow\",")
        + "[stage.slow]\nwork = { busy = \"10ms\" }\n";
    scratch.put("flow.toml", slow);
    let child = start(&scratch);
    until_written(&scratch, 5);
    kill_within(child, Duration::ZERO);
    scratch
}

/// Rows whose lines end in two bytes keep their numbers, which are their ids.
#[test]
fn rows_of_csv_go_on_with_their_header_and_their_numbers() {
    let rows = |count: usize| -> String {
        let rows = (0..count).map(|row| format!("{row},\"a\r\nb\"\r\n"));
        std::iter::once("n,text\r\n".to_owned()).chain(rows).collect()
    };
    let scratch = Scratch::with_flow(
        "slip = [\"keep\"]\n[input]\nfiles = [\"in.csv\"]\nformat = \"csv\"\n\
         [durable]\ndir = \"log\"\n[stage.keep]\nwrite = { path = \"out.ndjson\" }\n",
    );
    for (count, read) in [(3, 4), (3, 0), (7, 4)] {
        scratch.put("in.csv", rows(count));
        let (document, said) = scratch.json(&["run", "flow.toml"]);
        assert_eq!((said.code, number(&document, "/input/read")), (Some(0), read), "{said:?}");
        assert_eq!(lines_once(&scratch, "out.ndjson"), count);
    }
    assert!(scratch.read("out.ndjson").contains("{\"n\":\"6\",\"text\":\"a\\r\\nb\"}"));
}

/// What comes through a pipe is new every time, unless its records have ids.
#[test]
fn standard_input_is_new_every_time() {
    for (id, second) in [("", 2), ("id = \"/id\"\n", 0)] {
        let scratch = Scratch::with_flow(&format!(
            "slip = [\"keep\"]\n[input]\nfiles = [\"-\"]\nformat = \"ndjson\"\n{id}\
             [durable]\ndir = \"log\"\n[stage.keep]\nwrite = {{ path = \"out\" }}\n"
        ));
        for completed in [2, second] {
            let mut child = scratch.start(&["run", "flow.toml", "--json"], &records(2));
            drop(child.stdin.take());
            let said = Said::from(child.wait_with_output().unwrap());
            let document: Value = serde_json::from_str(&said.data).unwrap();
            assert_eq!(number(&document, "/completed"), completed, "{said:?}");
            assert_eq!(number(&document, "/skipped"), 2 - completed);
        }
    }
}

#[test]
fn what_a_log_asks_of_a_flow() {
    for (from, to, words) in [
        ("dir = \"var/log\"", "", "`dir` is missing"),
        ("dir = \"var/log\"", "dir = \"\"", "`dir` is empty"),
        ("[stage.tally]", "[stage.tally]\npermits = 2", "counts durably"),
        ("[stage.keep]", "[stage.keep]\non-full = \"drop-oldest\"", "nothing durable is dropped"),
        ("[stage.keep]", "[stage.keep]\nlevel = \"exactly-once\"", "for all stages"),
        ("dir =", "level = \"twice\"\ndir =", "exactly-once"),
        ("dir =", "sync = \"2h\"\ndir =", "at most 60s"),
        ("dir =", "sync = \"soon\"\ndir =", "sync"),
    ] {
        let scratch = scratch("");
        scratch.put("flow.toml", flow("").replacen(from, to, 1));
        let said = scratch.run(&["run", "flow.toml"]);
        assert_eq!(said.code, Some(2), "{to}: {said:?}");
        assert!(said.talk.contains(words), "{to}: {said:?}");
        assert!(!scratch.path("var").exists() && !scratch.path("out.ndjson").exists());
    }
}

/// Equal ids on their way at the same time are told apart where nothing deduplicates.
#[test]
fn at_least_once_loses_no_record_whose_id_comes_twice() {
    let scratch = scratch("level = \"at-least-once\"");
    scratch.put("in.ndjson", "{\"id\":7}\n".repeat(300));
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!((said.code, number(&document, "/completed")), (Some(0), 300), "{said:?}");
    assert_eq!(scratch.lines("out.ndjson"), 300);
}

/// What cannot be parsed is a dead letter of the log, with the command that shows it.
#[test]
fn dead_letters_name_the_next_command() {
    let scratch = scratch("");
    scratch.put("in.ndjson", "{\"id\":1}\n{\"id\":2\n");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!((said.code, number(&document, "/dead")), (Some(3), 1), "{said:?}");
    let letter = &document["dead_letters"][0];
    assert_eq!((&letter["stage"], &letter["taken_by"]), (&"parse".into(), &Value::Null));
    assert!(said.talk.contains("in.ndjson:2: parse:"), "{said:?}");
    assert!(said.talk.contains("waystage dead show var/log"), "{said:?}");
    assert!(said.talk.contains("next: waystage dead list var/log"), "{said:?}");
}

/// One file has one log at a time, whatever else is run.
#[test]
fn an_output_of_two_logs_is_refused() {
    let scratch = scratch("");
    scratch.put("other.toml", flow("").replace("var/log", "var/other").replace("in.ndjson", "-"));
    let mut child = scratch.start(&["run", "other.toml"], "{\"id\":1}\n");
    until("the other run writes", || {
        fs::metadata(scratch.path("out.ndjson")).is_ok_and(|metadata| metadata.len() > 0)
    });
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("is written by another log"), "{said:?}");
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(scratch.lines("out.ndjson"), 1);
}

/// An input is the same file however it is written; a last line without an end that goes on is not.
#[test]
fn an_input_has_one_name_and_whole_lines() {
    let scratch = scratch("");
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    let whole = scratch.path("in.ndjson");
    for name in ["./in.ndjson", whole.to_str().unwrap()] {
        let (document, said) = scratch.json(&["run", "flow.toml", name]);
        assert_eq!((said.code, number(&document, "/input/read")), (Some(0), 0), "{said:?}");
    }
    let text = records(500) + "{\"id\":500}";
    scratch.put("in.ndjson", &text);
    let (document, _) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(number(&document, "/completed"), 1);
    scratch.put("in.ndjson", format!("{text}\n{{\"id\":501}}\n"));
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!((said.code, number(&document, "/input/read")), (Some(0), 1), "{said:?}");
    scratch.put("in.ndjson", format!("{text}\n{{\"id\":501}}\n{{\"id\":50"));
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(3), "half a line is no JSON");
    scratch.put("in.ndjson", format!("{text}\n{{\"id\":501}}\n{{\"id\":502}}\n"));
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("goes on now"), "{said:?}");
}

/// Nothing that exists is changed when a run is refused: not the content of an output that the log
/// does not know yet.
#[test]
fn a_run_that_is_refused_empties_nothing() {
    let scratch = scratch("");
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    scratch.put("two.ndjson", "somebody's own\n");
    let more = flow("").replace("\"tally\",", "\"tally\", \"two\",")
        + "[stage.two]\nwrite = { path = \"two.ndjson\" }\n";
    scratch.put("flow.toml", more);
    scratch.put("in.ndjson", records(10));
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(2));
    assert_eq!(scratch.read("two.ndjson"), "somebody's own\n");
}

/// While an earlier run's records are worked through the input waits: no line is passed over.
#[test]
fn no_line_is_lost_while_a_backlog_is_worked_through() {
    let scratch = scratch_with_leftovers();
    let flow = scratch.read("flow.toml");
    scratch.put(
        "flow.toml",
        flow.replace(
            "[stage.parse]",
            "[defaults]\ncapacity = 8\non-full = \"block 1ms\"\n\n[stage.parse]",
        ),
    );
    scratch.put("in.ndjson", records(300));
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!((said.code, number(&document, "/refused")), (Some(0), 0), "{said:?}");
    assert!(number(&document, "/recovered") > 0);
    assert_eq!(lines_once(&scratch, "out.ndjson"), 300);
}

/// `--fresh` asks only where there is a log to lose, and is nothing for a flow without one.
#[test]
fn fresh_is_for_a_log() {
    let scratch = scratch("");
    fs::create_dir_all(scratch.path("var/log")).unwrap();
    scratch.put("var/log/notes.txt", "no log of anybody's");
    let said = scratch.run(&["run", "flow.toml", "--fresh"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(scratch.read("var/log/notes.txt"), "no log of anybody's");
    let (before, after) = (scratch.read("out.ndjson"), flow("").replace("dir = \"var/log\"\n", ""));
    scratch.put("flow.toml", after.replace("[durable]\n", ""));
    let said = scratch.run(&["run", "flow.toml", "--fresh", "--yes"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("for a flow with a log"), "{said:?}");
    assert_eq!(scratch.read("out.ndjson"), before);
}
