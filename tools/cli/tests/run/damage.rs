//! Logs whose end is not as it should be: `stat` and `dump` say what `verify` says.

use std::os::unix::fs::symlink;

use serde_json::Value;
use waystage::envelope::codec::Parts;
use waystage::log::Log;
use waystage::log::entry::Entry;

use crate::journal::{accept, body, everything, file, flow_log, id, settings, tamper, torn_log};
use crate::support::{Scratch, number};

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    flow_log(&scratch.path("log"), 30);
    scratch
}

/// Where the last record ends.
fn end(scratch: &Scratch) -> (u64, usize) {
    let (document, _) = scratch.json(&["log", "stat", "log"]);
    let offset = usize::try_from(number(&document, "/end/offset")).unwrap();
    (number(&document, "/end/segment"), offset)
}

/// All three say that it is damaged, and where to read more.
fn damaged(scratch: &Scratch, what: &str) {
    let before = everything(&scratch.path("log"));
    assert_eq!(scratch.run(&["log", "verify", "log"]).code, Some(1), "{what}");
    for command in ["stat", "dump"] {
        let said = scratch.run(&["log", command, "log", "-q"]);
        assert_eq!(said.code, Some(1), "{what}: {said:?}");
        assert!(said.talk.contains("error: "), "{what}: {}", said.talk);
        assert!(said.talk.contains("waystage log verify log"), "{what}: {}", said.talk);
        assert!(!said.talk.contains("makes them so"), "{what}: {}", said.talk);
        let (document, said) = scratch.json(&["log", command, "log"]);
        assert_eq!(said.code, Some(1), "{what}: {said:?}");
        let words = match command {
            "stat" => &document["damage"],
            _ => &document["stopped"],
        };
        assert!(words.as_str().unwrap().contains("this is damage"), "{what}: {document}");
    }
    assert_eq!(everything(&scratch.path("log")), before, "nothing was touched");
}

#[test]
fn damage_at_the_end_is_no_end() {
    type Change = fn(&mut [u8], usize);
    let changes: [(&str, Change); 2] = [
        ("the last record", |bytes, end| bytes[end - 1] ^= 1),
        ("the first record of the last segment", |bytes, _| bytes[64 + 45] ^= 1),
    ];
    for (what, change) in changes {
        let scratch = scratch();
        let (segment, end) = end(&scratch);
        tamper(&scratch.path("log"), segment, |bytes| change(bytes, end));
        damaged(&scratch, what);
    }
    let scratch = scratch();
    std::fs::remove_file(file(&scratch.path("log"), 2)).unwrap();
    damaged(&scratch, "a segment that is missing");
}

#[test]
fn zeros_with_records_behind_them_are_no_end() {
    let scratch = Scratch::new();
    let (log, _) = Log::open(&scratch.path("log"), settings()).unwrap();
    for envelope in 1..16 {
        log.append(&accept(envelope)).unwrap().wait().unwrap();
    }
    drop(log);
    let (document, _) = scratch.json(&["log", "dump", "log", "--limit", "8"]);
    let place =
        |index: usize| usize::try_from(number(&document["entries"][index], "/offset")).unwrap();
    let (begin, end) = (place(3), place(5));
    tamper(&scratch.path("log"), 1, |bytes| bytes[begin..end].fill(0));
    damaged(&scratch, "zeros");
}

#[test]
fn a_torn_tail_is_noted() {
    let scratch = torn_log();
    for command in ["stat", "dump"] {
        let said = scratch.run(&["log", command, "log"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.talk.contains("note: no record stands in segment 1"), "{}", said.talk);
        assert!(said.talk.contains("a torn tail, which opening the log cuts"), "{}", said.talk);
        let said = scratch.run(&["log", command, "log", "-q"]);
        assert_eq!((said.code, &*said.talk), (Some(0), ""));
    }
}

/// It is a file that cannot be read, not one that went; what else can be is salvaged.
#[test]
fn a_link_to_nowhere_in_place_of_a_segment() {
    let itself = "00000000000000000002.segment";
    for (target, behind) in [("gone", false), ("gone", true), (itself, false)] {
        let scratch = scratch();
        let log = scratch.path("log");
        let segment = if behind { everything(&log).len() as u64 + 1 } else { 2 };
        let path = file(&log, segment);
        if !behind {
            std::fs::remove_file(&path).unwrap();
        }
        symlink(target, &path).unwrap();
        for command in ["stat", "dump", "verify"] {
            let said = scratch.run(&["log", command, "log"]);
            assert_eq!(said.code, Some(1), "{said:?}");
            let all = format!("{}{}", said.data, said.talk);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(all.contains(name) && all.contains("leads nowhere"), "{all}");
        }
        let said = scratch.run(&["log", "salvage", "log", "--to", "new"]);
        assert_eq!(said.code, Some(3), "{said:?}");
    }
}

#[test]
fn salvage_names_what_could_be_read_and_not_followed() {
    let scratch = Scratch::new();
    let (log, _) = Log::open(&scratch.path("log"), settings()).unwrap();
    let envelope =
        Parts { current: Some("parse"), payload: Some(b"{}"), hops: 1, ..Parts::new(id(2)) };
    let mut broken = body(&[
        Entry::Attempt { id: id(4), attempts: 1, due_ms: 0 },
        Entry::Completed { id: id(5) },
    ]);
    // A reserved byte of the first one.
    broken[8 + 26] = 1;
    for body in [
        accept(1),
        body(&[Entry::Hop { envelope }]),
        body(&[Entry::Completed { id: id(3) }]),
        broken,
    ] {
        log.append(&body).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    let (document, said) = scratch.json(&["log", "salvage", "log", "--to", "new"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let unfit = document["unfit"].as_array().unwrap();
    let named =
        |entry: &Value| (entry["id"].as_str().unwrap().to_owned(), number(entry, "/sequence"));
    let unfit: Vec<_> = unfit.iter().map(named).collect();
    let want = [(2, 2), (3, 3), (4, 4), (5, 4)].map(|(of, record)| (id(of).to_string(), record));
    assert_eq!(unfit, want);
    let said = scratch.run(&["log", "salvage", "log", "--to", "other"]);
    for (id, _) in want {
        assert!(said.data.contains(&format!("unfit     {id}")), "{}", said.data);
    }
    assert_eq!(scratch.run(&["log", "verify", "new", "--deep"]).code, Some(0));
}

#[test]
fn dump_prints_an_object_a_line() {
    let scratch = scratch();
    let (document, _) = scratch.json(&["log", "dump", "log", "--payload"]);
    let all = document["entries"].as_array().unwrap();
    for arguments in [&["--format", "ndjson"][..], &["--format", "ndjson", "--json"]] {
        let arguments = [&["log", "dump", "log", "--payload", "-q"][..], arguments].concat();
        let said = scratch.run(&arguments);
        assert_eq!((said.code, &*said.talk), (Some(0), ""), "{arguments:?}");
        let lines: Vec<Value> =
            said.data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), all.len());
        for (line, entry) in lines.iter().zip(all) {
            assert_eq!(line["schema"], "waystage.log-entry/1");
            for (name, value) in entry.as_object().unwrap() {
                assert_eq!(&line[name], value, "{name}");
            }
        }
    }
    let said = scratch.run(&["log", "dump", "log", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&said.data).unwrap()["schema"], document["schema"]);
    let said = scratch.run(&["log", "dump", "gone", "--format", "ndjson"]);
    assert_eq!((said.code, &*said.data), (Some(2), ""), "{said:?}");
}

/// Standard output is data: that it is lost is a failure, whoever prints it.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_that_takes_nothing_is_a_failure() {
    let scratch = scratch();
    for arguments in [
        &["stat", "log", "--segments"][..],
        &["dump", "log"],
        &["dump", "log", "--json"],
        &["dump", "log", "--format", "ndjson"],
        &["verify", "log"],
        &["verify", "log", "--json"],
        &["salvage", "log", "--to", "new"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = scratch.command(&[&["log"], arguments].concat());
        let said = command.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
        assert_eq!(said.status.code(), Some(1), "{arguments:?}");
        let talk = String::from_utf8(said.stderr).unwrap();
        assert!(talk.contains("error: standard output: No space left"), "{arguments:?}: {talk}");
    }
}
