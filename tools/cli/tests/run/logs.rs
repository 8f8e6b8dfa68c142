//! `waystage log` on logs that are whole, torn or damaged.

use serde_json::Value;
use waystage::log::{Log, Sync};

use crate::journal::{accept, everything, flow_log, id, plain_log, settings, tamper, torn_log};
use crate::support::{Said, Scratch, number};

/// A log of thirty envelopes in several segments.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    flow_log(&scratch.path("log"), 30);
    scratch
}

fn fine(said: &Said) -> &str {
    assert_eq!((said.code, &*said.talk), (Some(0), ""), "{said:?}");
    &said.data
}

fn entries(document: &Value) -> Vec<(u64, String)> {
    let entries = document["entries"].as_array().unwrap();
    let of =
        |entry: &Value| (number(entry, "/sequence"), entry["kind"].as_str().unwrap().to_owned());
    entries.iter().map(of).collect()
}

#[test]
fn stat_says_how_far_it_goes() {
    let scratch = scratch();
    let before = everything(&scratch.path("log"));
    let said = scratch.run(&["log", "stat", "log"]);
    let text = fine(&said);
    assert!(text.contains("records   1..88   "), "{text}");
    assert!(text.contains("durable   up to 87"), "{text}");
    let said = scratch.run(&["log", "stat", "log", "--segments"]);
    let segments = before.len();
    let rows = fine(&said).lines().skip_while(|line| !line.contains("SEGMENT")).count();
    assert_eq!(rows, segments + 1, "{}", said.data);
    let (document, _) = scratch.json(&["log", "stat", "log"]);
    assert_eq!(document["schema"], "waystage.log-stat/1");
    assert_eq!((number(&document, "/last"), number(&document, "/durable")), (88, 87));
    let records = document["segments"].as_array().unwrap().iter();
    let records: u64 = records.filter_map(|segment| segment["records"].as_u64()).sum();
    assert_eq!(records, 88, "every segment counts its own");
    assert_eq!(everything(&scratch.path("log")), before, "nothing was touched");
}

#[test]
fn dump_prints_what_is_wanted() {
    let scratch = scratch();
    let said = scratch.run(&["log", "dump", "log", "-q"]);
    let text = fine(&said);
    // Thirty came in and hopped, 27 ended with a state each; the mark itself is not yet safe.
    assert_eq!(text.lines().count(), 1 + 30 + 30 + 2 * 27, "{text}");
    let (document, _) = scratch.json(&["log", "dump", "log", "--kind", "dead"]);
    assert_eq!(document["schema"], "waystage.log-dump/1");
    let dead = &document["entries"];
    let letters: Vec<_> = dead.as_array().unwrap().iter().map(|entry| &entry["id"]).collect();
    assert_eq!(letters, [7, 14, 21, 28].map(|number| id(number).to_string()).each_ref());
    assert_eq!(
        (&dead[0]["cause"], &dead[0]["reason"]),
        (&"handler_failed".into(), &"no such event".into())
    );
    let (document, _) = scratch.json(&[
        "log",
        "dump",
        "log",
        "--kind",
        "accept,settle",
        "--from",
        "4",
        "--to",
        "6",
    ]);
    let want = [(4, "accept"), (5, "hop"), (6, "completed")];
    assert_eq!(entries(&document), want.map(|(sequence, kind)| (sequence, kind.to_owned())));
    let seven = id(7).to_string();
    let (document, _) = scratch.json(&["log", "dump", "log", "--id", &seven, "--payload"]);
    let found: Vec<_> = entries(&document).into_iter().map(|entry| entry.1).collect();
    assert_eq!(found, ["accept", "hop", "dead"]);
    assert_eq!(document["entries"][0]["payload"], "{\"mag\":4.5}");
    let said = scratch.run(&["log", "dump", "log", "--limit", "2", "--payload", "-q"]);
    let lines: Vec<_> = fine(&said).lines().collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[1].contains(" accept ") && lines[1].contains("level exactly-once"));
    assert_eq!(lines[2].trim(), "{\"mag\":4.5}");
    assert_eq!(lines[4], "2 shown (--limit)");
}

#[test]
fn dump_takes_times() {
    let scratch = scratch();
    let (all, _) = scratch.json(&["log", "dump", "log"]);
    let first = all["entries"][0]["time"].as_str().unwrap().to_owned();
    let count = number(&all, "/count");
    let counted = |arguments: &[&str]| {
        let (document, _) = scratch.json(&[&["log", "dump", "log"], arguments].concat());
        number(&document, "/count")
    };
    assert_eq!(counted(&["--from", &first]), count);
    assert_eq!(counted(&["--from", "-1h"]), count);
    assert_eq!(counted(&["--from", "2099-01-01T00:00:00Z"]), 0);
    assert_eq!(counted(&["--to", "2001-01-01T00:00:00Z"]), 0);
    assert_eq!(counted(&["--from", "86"]), 2, "an accept, a hop and no end");
}

#[test]
fn a_log_is_looked_at_while_it_is_written() {
    let scratch = Scratch::new();
    let log = plain_log(&scratch.path("log"), Sync::Os, 20);
    let said = scratch.run(&["log", "dump", "log"]);
    let lines: Vec<_> = fine(&said).lines().skip(1).collect();
    assert_eq!(lines.len(), 20);
    assert!(lines.iter().all(|line| line.ends_with("  unsafe")), "nobody flushes it");
    let said = scratch.run(&["log", "stat", "log", "--segments"]);
    assert!(fine(&said).contains(" os"), "{}", said.data);
    log.close().unwrap();
    // What is not known to be safe is not shown of another one.
    let log = plain_log(&scratch.path("other"), Sync::Each, 20);
    log.flush().unwrap();
    let said = scratch.run(&["log", "dump", "other"]);
    assert_eq!(said.code, Some(0));
    let shown = said.data.lines().skip(1).count();
    assert!(shown < 20, "{shown}");
    let want = format!("records from {} on are there and not known to be durable", shown + 1);
    assert!(said.talk.contains(&want), "{}", said.talk);
    let said = scratch.run(&["log", "salvage", "other", "--to", "new"]);
    assert_eq!(said.code, Some(1));
    assert!(said.talk.contains("open for writing elsewhere"), "{}", said.talk);
    assert!(!scratch.path("new").exists());
    drop(log);
}

#[test]
fn verify_ticks_what_is_whole() {
    let scratch = scratch();
    let before = everything(&scratch.path("log"));
    let said = scratch.run(&["log", "verify", "log"]);
    let text = fine(&said);
    for words in ["none missing", "88 valid, durable up to 87", "3 open, 4 dead letters"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (document, said) = scratch.json(&["log", "verify", "log", "--deep"]);
    assert_eq!(said.code, Some(0));
    assert_eq!(document["schema"], "waystage.log-verify/1");
    assert_eq!((&document["damaged"], &document["deep"]), (&false.into(), &true.into()));
    assert_eq!(
        (number(&document, "/state/open"), number(&document, "/state/dead_letters")),
        (3, 4)
    );
    assert_eq!(everything(&scratch.path("log")), before, "nothing was touched");
}

#[test]
fn verify_names_segment_offset_and_kind_of_damage() {
    let scratch = scratch();
    let log = scratch.path("log");
    let (whole, _) = scratch.json(&["log", "dump", "log"]);
    let hit = &whole["entries"][40];
    let (segment, offset) = (number(hit, "/segment"), number(hit, "/offset"));
    let sequence = number(hit, "/sequence");
    let place = usize::try_from(offset).unwrap();
    tamper(&log, segment, |bytes| bytes[place + 45] ^= 1);
    let said = scratch.run(&["log", "verify", "log"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let want = format!("segment {segment}, offset {}", waystage_cli::words::count(offset));
    for words in [
        &*want,
        &format!("(sequence {sequence})"),
        "record_checksum",
        "not a torn tail",
        "help: waystage log salvage log --to DIR",
    ] {
        assert!(said.data.contains(words), "{words} in {}", said.data);
    }
    let (document, said) = scratch.json(&["log", "verify", "log"]);
    assert_eq!(said.code, Some(1));
    let findings = document["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (number(&findings[0], "/segment"), number(&findings[0], "/offset")),
        (segment, offset)
    );
    assert_eq!(number(&findings[0], "/sequence"), sequence);
    assert_eq!(
        (&findings[0]["kind"], &findings[0]["torn"]),
        (&"record_checksum".into(), &false.into())
    );
    // A dump ends there and says so; what comes after can be asked for.
    let said = scratch.run(&["log", "dump", "log"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.talk.contains(&format!("no record stands in segment {segment}")), "{}", said.talk);
    let after = format!("{}", sequence + 1);
    let (document, _) = scratch.json(&["log", "dump", "log", "--from", &after]);
    assert!(document["entries"].as_array().unwrap().len() < 80);
}

#[test]
fn a_torn_tail_is_no_damage() {
    let scratch = torn_log();
    let (document, said) = scratch.json(&["log", "verify", "log"]);
    let torn: Vec<_> =
        document["findings"].as_array().unwrap().iter().map(|found| &found["torn"]).collect();
    assert!(torn.contains(&&true.into()), "{document}");
    // These bodies are no entries, which is another thing.
    assert_eq!(said.code, Some(1));
    assert_eq!(document["findings"].as_array().unwrap().len(), 2);
    let scratch = Scratch::new();
    let (log, _) = Log::open(&scratch.path("log"), settings()).unwrap();
    for envelope in 1..9 {
        log.append(&accept(envelope)).unwrap().wait().unwrap();
    }
    drop(log);
    tamper(&scratch.path("log"), 1, |bytes| bytes[512..1_024].fill(0));
    let said = scratch.run(&["log", "verify", "log"]);
    assert_eq!(said.code, Some(1), "records that are known to be safe are gone: {}", said.data);
    assert!(said.data.contains("this is damage"), "{}", said.data);
}

#[test]
fn salvage_makes_another_log_and_says_what_is_lost() {
    let scratch = scratch();
    let log = scratch.path("log");
    let (whole, _) = scratch.json(&["log", "dump", "log", "--kind", "completed"]);
    let hit = &whole["entries"][5];
    let place = usize::try_from(number(hit, "/offset")).unwrap();
    let lost = hit["id"].as_str().unwrap();
    tamper(&log, number(hit, "/segment"), |bytes| bytes[place + 45] ^= 1);
    let before = everything(&log);
    let (document, said) = scratch.json(&["log", "salvage", "log", "--to", "new"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(document["schema"], "waystage.log-salvage/1");
    assert!(document["uncertain"].as_array().unwrap().contains(&lost.into()), "{document}");
    assert_eq!(document["holes"][0]["first"], hit["sequence"]);
    assert_eq!(everything(&log), before, "the old one is not touched");
    let said = scratch.run(&["log", "verify", "new", "--deep"]);
    assert!(fine(&said).contains("none missing"), "{}", said.data);
    let (log, recovered) = Log::open(&scratch.path("new"), settings()).unwrap();
    let state = recovered.unwrap().state().unwrap();
    assert!(state.open(lost.parse().unwrap()).is_none(), "it is not handled again");
    log.close().unwrap();
    let again = scratch.run(&["log", "salvage", "log", "--to", "new"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.talk.contains("is not empty"), "{}", again.talk);
}

#[test]
fn salvage_of_a_whole_log_loses_nothing() {
    let scratch = scratch();
    let said = scratch.run(&["log", "salvage", "log", "--to", "deep/er/new"]);
    let text = fine(&said);
    for words in ["log was not touched", "88 read", "open      3", "dead      4\n"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    for (to, words) in
        [("log", "own directory"), ("log/new", "own directory"), ("plain", "no directory")]
    {
        scratch.put("plain", "a file");
        let said = scratch.run(&["log", "salvage", "log", "--to", to]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.talk.contains(words), "{}", said.talk);
    }
    assert_eq!(scratch.read("plain"), "a file");
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let scratch = scratch();
    let mut command = scratch.command(&["log", "dump", "log", "--json"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!((said.code, &*said.talk), (Some(0), ""));
}

#[test]
fn helps_have_examples_and_exit_codes() {
    let scratch = Scratch::new();
    for name in ["stat", "dump", "verify", "salvage"] {
        let said = scratch.run(&["log", name, "--help"]);
        let text = fine(&said);
        assert!(text.contains(&format!("waystage log {name} var/quakes")), "{text}");
        assert!(text.contains("Exit codes:"), "{text}");
    }
    assert_eq!(scratch.run(&["log"]).code, Some(2));
}
