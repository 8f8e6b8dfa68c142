//! `waystage dead`: lists, shows, re-drives and purges, and what it refuses.

use std::process::Stdio;

use serde_json::Value;
use waystage::log::entry::{CauseCode, Entry};
use waystage::log::letters::Letters;
use waystage::log::{Log, Sync};

use crate::journal::{accept, body, everything, flow_log, id, plain_log, settings, tamper};
use crate::support::{Said, Scratch, number, signal, until};

/// A log with the dead letters 7, 14, 21 and 28 of `archive`, and 101 of `parse`.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    let path = scratch.path("log");
    flow_log(&path, 30);
    let (log, _) = Log::open(&path, settings()).unwrap();
    log.append(&accept(101)).unwrap().wait().unwrap();
    let (id, at_ms, cause) = (id(101), 1_700_000_000_000, CauseCode::HandlerPanicked);
    let dead = Entry::Dead { id, at_ms, attempts: 3, cause, reason: "line\n\u{1b}[31m 417" };
    log.append(&body(&[dead])).unwrap().wait().unwrap();
    log.close().unwrap();
    scratch
}

fn fine(said: &Said) -> &str {
    assert_eq!((said.code, &*said.talk), (Some(0), ""), "{said:?}");
    &said.data
}

fn letters(scratch: &Scratch, arguments: &[&str]) -> Vec<Value> {
    let (document, said) = scratch.json(&[&["dead", "list", "log"], arguments].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(document["schema"], "waystage.dead-list/1");
    document["letters"].as_array().unwrap().clone()
}

fn letter_of(scratch: &Scratch, envelope: u64) -> String {
    let of = id(envelope).to_string();
    let all = letters(scratch, &[]);
    let found = all.iter().find(|letter| letter["id"] == *of).unwrap();
    found["letter"].as_str().unwrap().to_owned()
}

/// The command, which has to end with this code and say these words.
#[track_caller]
fn ends(scratch: &Scratch, arguments: &[&str], code: i32, words: &[&str]) -> Said {
    let said = scratch.run(&[&["dead"], arguments].concat());
    assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
    for word in words {
        assert!(format!("{}{}", said.data, said.talk).contains(word), "{word} in {said:?}");
    }
    said
}

#[test]
fn list_shows_what_fits() {
    let scratch = scratch();
    let before = everything(&scratch.path("log"));
    let said = scratch.run(&["dead", "list", "log"]);
    let lines: Vec<_> = fine(&said).lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[0].starts_with("LETTER  ENVELOPE") && lines[1].contains("no such event"));
    assert!(lines[5].contains(r"line\u{a}\u{1b}[31m 417"), "it cannot act: {}", lines[5]);
    let said = scratch.run(&["dead", "list", "log", "--limit", "2"]);
    assert_eq!(fine(&said).lines().last(), Some("2 of 5 shown (--limit)"));
    let all = letters(&scratch, &[]);
    let seven = &all[0];
    assert_eq!(seven["id"], id(7).to_string());
    assert_eq!((&seven["cause"], &seven["stage"]), (&"handler_failed".into(), &"archive".into()));
    assert_eq!((number(seven, "/bytes"), number(seven, "/redrives")), (11, 0));
    assert_eq!(seven["time"], "2024-01-01T00:00:00.007Z");
    for (arguments, want) in [
        (&["--stage", "archive"][..], 4),
        (&["--cause", "handler_panicked"], 1),
        (&["--error", "such event"], 4),
        (&["--error", "such event", "--stage", "parse"], 0),
        (&["--since", "2023-12-31T00:00:00Z"], 4),
        (&["--since", "1h"], 0),
        (&["--limit", "3"], 3),
    ] {
        assert_eq!(letters(&scratch, arguments).len(), want, "{arguments:?}");
    }
    let said = scratch.run(&["dead", "list", "log", "--stage", "gone"]);
    assert_eq!(fine(&said), "none of 5 dead letters fits\n");
    assert_eq!(everything(&scratch.path("log")), before, "nothing was touched");
}

#[test]
fn list_counts_by_cause_and_stage() {
    let scratch = scratch();
    let said = scratch.run(&["dead", "list", "log", "--count"]);
    let lines: Vec<_> = fine(&said).lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "CAUSE STAGE COUNT OLDEST NEWEST SAMPLE"
    );
    assert!(lines[1].starts_with("handler_failed") && lines[1].contains("archive"), "{lines:?}");
    assert!(lines[2].starts_with("handler_panicked"), "{lines:?}");
    let (document, _) = scratch.json(&["dead", "list", "log", "--count"]);
    assert_eq!((number(&document, "/count"), number(&document, "/shares/0/count")), (5, 4));
    assert_eq!(document["shares"][0]["oldest"], "2024-01-01T00:00:00.007Z");
    assert_eq!(document["shares"][0]["newest"], "2024-01-01T00:00:00.028Z");
}

#[test]
fn show_finds_a_letter_by_number_id_or_beginning() {
    let scratch = scratch();
    let (seven, whole) = (letter_of(&scratch, 7), id(7).to_string());
    for name in [&*seven, &whole, &whole[..8], &whole[..8].to_uppercase()] {
        let said = scratch.run(&["dead", "show", "log", name]);
        let text = fine(&said);
        for words in ["cause     handler_failed", "trail     archive", "{\"mag\":4.5}"] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
    let said = scratch.run(&["dead", "show", "log", &seven, "--body"]);
    assert_eq!(fine(&said), "{\"mag\":4.5}");
    let (document, _) = scratch.json(&["dead", "show", "log", &seven]);
    assert_eq!(document["schema"], "waystage.dead-show/1");
    assert_eq!((&document["payload"], &document["hops"]), (&"{\"mag\":4.5}".into(), &1.into()));
    ends(&scratch, &["show", "log", "99999"], 1, &["no dead letter `99999`", "dead list log"]);
    ends(&scratch, &["show", "log", "0"], 1, &["no dead letter `0`"]);
    ends(&scratch, &["show", "log", &seven, "--body", "--json"], 2, &["--body is no JSON"]);
}

#[test]
fn redrive_does_what_the_dry_run_said() {
    let scratch = scratch();
    let before = everything(&scratch.path("log"));
    let failed = ["redrive", "log", "--cause", "handler_failed"];
    let dry = ends(&scratch, &[&failed[..], &["--dry-run"]].concat(), 0, &[]);
    let want = "would re-drive 4 to archive (0 were re-driven before, 0 reached --max-redrives 3); \
                nothing changed\n";
    assert_eq!(dry.data, want);
    assert_eq!(everything(&scratch.path("log")), before);
    let said = ends(&scratch, &[&failed[..], &["--max", "3"]].concat(), 0, &[]);
    assert_eq!(said.data, "re-driven 3 to archive\nnext: waystage run FLOW takes them up\n");
    let said = ends(&scratch, &[&failed[..], &["--json"]].concat(), 0, &[]);
    let document: Value = serde_json::from_str(&said.data).unwrap();
    assert_eq!((number(&document, "/picked"), number(&document, "/redriven")), (1, 1));
    let state = Letters::look(&scratch.path("log")).unwrap();
    let open = state.state().open(id(7)).unwrap();
    assert_eq!((&*open.held.stage, open.held.redrives), ("archive", 1));
    let said = scratch.run(&["log", "verify", "log", "--deep"]);
    assert!(fine(&said).contains("7 open, 1 dead letters"), "{}", said.data);
}

#[test]
fn redrive_elsewhere_and_edited() {
    let scratch = scratch();
    let seven = letter_of(&scratch, 7);
    scratch.put("new.json", "{\"mag\":5}");
    let arguments =
        ["redrive", "log", &seven, "--to", "parse", "--edit", "new.json", "--rate", "1000/s"];
    ends(&scratch, &arguments, 0, &["re-driven 1 to parse"]);
    let (document, _) = scratch.json(&["log", "dump", "log", "--kind", "redriven", "--payload"]);
    let entry = &document["entries"][0];
    assert_eq!((&entry["stage"], &entry["payload"]), (&"parse".into(), &"{\"mag\":5}".into()));
    let fourteen = letter_of(&scratch, 14);
    scratch.put("large", vec![b'x'; 5_000]);
    let before = letters(&scratch, &[]);
    let large = ["redrive", "log", &fourteen, "--edit", "large"];
    ends(&scratch, &large, 1, &["a record of 5000 bytes is above the limit"]);
    assert_eq!(letters(&scratch, &[]), before);
    ends(&scratch, &["redrive", "log", &fourteen, "--edit", "gone"], 2, &["gone: no such file"]);
    ends(&scratch, &["redrive", "log", "--all", "--edit", "large"], 2, &["for one dead letter"]);
}

#[test]
fn redrive_leaves_what_it_must() {
    let scratch = scratch();
    // The id of 7 came in again, and that of 14 has completed.
    let (log, _) = Log::open(&scratch.path("log"), settings()).unwrap();
    let window = Entry::Window { count: 9 };
    log.append(&body(&[window])).unwrap().wait().unwrap();
    for again in [7, 14] {
        log.append(&accept(again)).unwrap().wait().unwrap();
    }
    let done = Entry::Completed { id: id(14) };
    log.append(&body(&[done])).unwrap().wait().unwrap();
    log.close().unwrap();
    let guarded = ["redrive", "log", "--stage", "parse", "--max-redrives", "0"];
    ends(&scratch, &guarded, 3, &["re-driven 0", "1 reached --max-redrives 0"]);
    let words = ["re-driven 2", "1 whose ids are on their way", "1 that completed since"];
    ends(&scratch, &["redrive", "log", "--stage", "archive"], 3, &words);
    assert_eq!(letters(&scratch, &[]).len(), 2);
    // Some of those named are gone: the rest is done.
    let left = letter_of(&scratch, 101);
    ends(&scratch, &["redrive", "log", "424242", &left], 1, &["`424242`", "re-driven 1 to parse"]);
    ends(&scratch, &["redrive", "log", "424242"], 1, &["`424242`", "re-driven 0"]);
}

#[test]
fn a_name_of_several_is_refused() {
    let scratch = scratch();
    let (log, _) = Log::open(&scratch.path("log"), settings()).unwrap();
    log.append(&accept(7)).unwrap().wait().unwrap();
    let (id, at_ms, cause) = (id(7), 5, CauseCode::NoRoute);
    let dead = Entry::Dead { id, at_ms, attempts: 1, cause, reason: "" };
    log.append(&body(&[dead])).unwrap().wait().unwrap();
    log.close().unwrap();
    let (before, name) = (everything(&scratch.path("log")), id.to_string());
    for command in [&["show", "log"][..], &["redrive", "log"], &["purge", "log", "--yes"]] {
        let words = ["stands for 2 dead letters: ", "name one by its number"];
        ends(&scratch, &[command, &[&*name]].concat(), 1, &words);
    }
    assert_eq!(everything(&scratch.path("log")), before);
}

#[test]
fn purge_removes_and_wants_to_be_sure() {
    let scratch = scratch();
    let before = everything(&scratch.path("log"));
    ends(&scratch, &["purge", "log"], 2, &["no dead letters are named", "--all"]);
    ends(&scratch, &["purge", "log", "--all"], 2, &["5 dead letters would go for good", "--yes"]);
    ends(&scratch, &["purge", "log", "--all", "--stage", "x"], 2, &["--all is said"]);
    ends(&scratch, &["purge", "log", "--all", "--dry-run"], 0, &["would remove 5; nothing"]);
    assert_eq!(everything(&scratch.path("log")), before);
    let said = ends(&scratch, &["purge", "log", "--stage", "archive", "--yes"], 0, &[]);
    assert_eq!(said.data, "removed 4\n");
    let (document, _) = scratch.json(&["dead", "purge", "log", "--all", "--yes"]);
    assert_eq!(document["schema"], "waystage.dead-purge/1");
    assert_eq!(number(&document, "/purged"), 1);
    let said = scratch.run(&["dead", "list", "log"]);
    assert_eq!(fine(&said), "no dead letters\n");
    ends(&scratch, &["purge", "log", "--all"], 0, &["removed 0"]);
    ends(&scratch, &["redrive", "log", "--all"], 0, &["re-driven 0"]);
    let said = scratch.run(&["log", "verify", "log", "--deep"]);
    assert!(fine(&said).contains("0 dead letters"), "{}", said.data);
}

#[test]
fn a_log_that_is_open_elsewhere_is_only_looked_at() {
    let scratch = scratch();
    let (log, _) = Log::open(&scratch.path("log"), settings()).unwrap();
    assert_eq!(letters(&scratch, &[]).len(), 5);
    ends(&scratch, &["redrive", "log", "--all", "--dry-run"], 0, &["would re-drive 5"]);
    let words = ["open for writing elsewhere", "stop it first"];
    for command in [&["redrive", "log", "--all"][..], &["purge", "log", "--all", "--yes"]] {
        ends(&scratch, command, 1, &words);
    }
    drop(log);
    ends(&scratch, &["redrive", "log", "--all"], 0, &["re-driven 5 to where they failed"]);
}

#[test]
fn what_is_no_log_or_damaged() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("empty")).unwrap();
    scratch.put("plain", "a file");
    for (name, words) in
        [("gone", "no such directory"), ("plain", "no directory"), ("empty", "no log in `empty`")]
    {
        ends(&scratch, &["list", name], 2, &[words, "help"]);
        ends(&scratch, &["show", name, "7"], 2, &[words]);
        ends(&scratch, &["redrive", name, "--all"], 2, &[words]);
        ends(&scratch, &["purge", name, "--all", "--yes"], 2, &[words]);
        let (document, said) = scratch.json(&["dead", "list", name]);
        assert_eq!((said.code, &document["error"]["kind"]), (Some(2), &"usage".into()));
    }
    assert!(std::fs::read_dir(scratch.path("empty")).unwrap().next().is_none());
    let log = plain_log(&scratch.path("none"), Sync::Each, 0);
    log.close().unwrap();
    ends(&scratch, &["list", "none"], 0, &["no dead letters"]);
    let log = scratch.path("log");
    flow_log(&log, 30);
    let (whole, _) = scratch.json(&["log", "dump", "log"]);
    let hit = &whole["entries"][40];
    let place = usize::try_from(number(hit, "/offset")).unwrap();
    tamper(&log, number(hit, "/segment"), |bytes| bytes[place + 45] ^= 1);
    let before = everything(&log);
    for command in [&["list", "log"][..], &["redrive", "log", "--all"], &["show", "log", "7"]] {
        let words = ["the log is damaged", "waystage log verify log"];
        ends(&scratch, command, 1, &words);
    }
    assert_eq!(everything(&log), before);
}

#[test]
fn wrong_flags() {
    let scratch = scratch();
    let long = "n".repeat(256);
    for (arguments, words) in [
        (&["list", "log", "--since", "soon"][..], "how long ago"),
        (&["list", "log", "--cause", "failed"], "handler_failed, handler_panicked"),
        (&["list", "log", "--limit", "0"], "at least 1"),
        (&["redrive", "log"], "no dead letters are named"),
        (&["redrive", "log", "--all", "--to", &long], "it has 256 bytes"),
        (&["redrive", "log", "--all", "--to", ""], "has a name"),
        (&["redrive", "log", "--all", "--rate", "fast"], "500/s"),
        (&["redrive", "log", "--all", "--max-redrives", "-1"], "-1"),
        (&["show", "log"], "LETTER"),
        (&["bury", "log"], "bury"),
    ] {
        ends(&scratch, arguments, 2, &[words]);
    }
    let mut list = scratch.command(&["dead", "list", "log"]);
    let said = Said::of(list.env("WAYSTAGE_DEAD_SINCE", "soon"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("WAYSTAGE_DEAD_SINCE of the environment"), "{}", said.talk);
    let mut list = scratch.command(&["dead", "list", "log", "-C", "gone", "--json"]);
    let said = Said::of(&mut list);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.data.contains("waystage.dead-list/1"), "{}", said.data);
}

#[test]
fn helps_have_examples_and_exit_codes() {
    let scratch = Scratch::new();
    for name in ["list", "show", "redrive", "purge"] {
        let said = scratch.run(&["dead", name, "--help"]);
        let text = fine(&said);
        assert!(text.contains(&format!("waystage dead {name} var/quakes")), "{text}");
        assert!(text.contains("Exit codes:"), "{text}");
    }
    assert_eq!(scratch.run(&["dead"]).code, Some(2));
}

/// A re-drive that is stopped, or killed, leaves the rest, and the same command does it.
#[cfg(target_os = "linux")]
#[test]
fn what_is_interrupted_goes_on_with_the_same_command() {
    for how in ["-INT", "-KILL"] {
        let scratch = scratch();
        let slowly = ["dead", "redrive", "log", "--all", "--rate", "1/m"];
        let mut command = scratch.command(&slowly);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // It watches signals once it has the log open.
        until("it watches", || watches(child.id()));
        signal(&child, how);
        let said = Said::from(child.wait_with_output().unwrap());
        if how == "-INT" {
            assert_eq!(said.code, Some(4), "{said:?}");
            assert!(said.data.contains("the same command goes on"), "{}", said.data);
        }
        let left = letters(&scratch, &[]).len();
        assert!(left >= 4, "{left}");
        let words = format!("re-driven {left} ");
        ends(&scratch, &["redrive", "log", "--all"], 0, &[&*words]);
        assert_eq!(letters(&scratch, &[]).len(), 0);
    }
}

/// Whether a process catches Ctrl-C.
#[cfg(target_os = "linux")]
fn watches(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 0b10 != 0)
}
