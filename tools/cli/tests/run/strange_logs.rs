//! Directories that are no log, and files that are no segments: a clear error each time.

use std::fs;

use crate::journal::{everything, file, flow_log, tamper};
use crate::support::{Said, Scratch};

/// What is done to a segment.
type Change = fn(&mut Vec<u8>);

const READERS: [&str; 3] = ["stat", "dump", "verify"];

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    flow_log(&scratch.path("log"), 30);
    scratch
}

/// Says so in words and, where asked, in a document.
fn refused(scratch: &Scratch, arguments: &[&str], code: i32, words: &[&str]) {
    let said = scratch.run(arguments);
    assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
    for word in words {
        assert!(format!("{}{}", said.data, said.talk).contains(word), "{word} in {said:?}");
    }
    let (document, said) = scratch.json(arguments);
    assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
    let schema = document["schema"].as_str().unwrap();
    assert_eq!(schema, format!("waystage.log-{}/1", arguments[1]));
}

#[test]
fn a_directory_that_is_missing_a_file_or_no_log() {
    let scratch = Scratch::new();
    scratch.put("plain", "a file");
    fs::create_dir(scratch.path("empty")).unwrap();
    fs::create_dir(scratch.path("photos")).unwrap();
    scratch.put("photos/one.jpg", "1");
    for (name, words) in [
        ("gone", "gone: no such directory"),
        ("plain", "plain is no directory"),
        ("empty", "no log in `empty`"),
        ("photos", "no log in `photos`"),
    ] {
        for command in READERS {
            refused(&scratch, &["log", command, name], 2, &["error: ", words, "help: "]);
        }
        refused(&scratch, &["log", "salvage", name, "--to", "new"], 2, &[words]);
        assert!(!scratch.path("new").exists(), "nothing was made");
    }
}

#[test]
fn files_that_are_no_segments_are_named() {
    let cases: [(&str, Change, &str); 5] = [
        ("foreign", |bytes| *bytes = vec![b'x'; 200], "is none"),
        ("truncated", |bytes| bytes.truncate(1_000), "1000 bytes where its header says 4096"),
        ("grown", |bytes| bytes.extend([0; 8]), "4104 bytes where its header says 4096"),
        ("empty", Vec::clear, "0 bytes where its header says"),
        ("flipped", |bytes| bytes[50] ^= 1, "header does not check"),
    ];
    for (kind, change, words) in cases {
        let scratch = scratch();
        tamper(&scratch.path("log"), 2, change);
        let before = everything(&scratch.path("log"));
        let segment = "00000000000000000002.segment";
        refused(&scratch, &["log", "verify", "log"], 1, &["segment 2, offset 0", words]);
        refused(&scratch, &["log", "dump", "log"], 1, &[words]);
        refused(&scratch, &["log", "stat", "log"], 1, &[words]);
        let said = scratch.run(&["log", "dump", "log"]);
        assert!(said.talk.contains(segment) || kind == "foreign", "{said:?}");
        let said = scratch.run(&["log", "salvage", "log", "--to", "new"]);
        assert!(matches!(said.code, Some(0 | 3)), "{kind}: {said:?}");
        assert_eq!(scratch.run(&["log", "verify", "new", "--deep"]).code, Some(0), "{kind}");
        assert_eq!(everything(&scratch.path("log")), before, "{kind}: nothing was touched");
    }
}

#[test]
fn a_directory_or_a_pipe_in_place_of_a_segment() {
    for kind in ["directory", "pipe"] {
        let scratch = scratch();
        let segment = file(&scratch.path("log"), 2);
        fs::remove_file(&segment).unwrap();
        if kind == "directory" {
            fs::create_dir(&segment).unwrap();
        } else {
            let made = std::process::Command::new("mkfifo").arg(&segment).status().unwrap();
            assert!(made.success());
        }
        let name = "00000000000000000002.segment";
        refused(&scratch, &["log", "verify", "log"], 1, &["segment 2, offset 0", name]);
        refused(&scratch, &["log", "dump", "log"], 1, &[name]);
        refused(&scratch, &["log", "stat", "log"], 1, &[name]);
    }
}

#[test]
fn a_newer_version_is_left_alone() {
    let scratch = scratch();
    tamper(&scratch.path("log"), 2, |bytes| {
        bytes[8] = 2;
        let check = twox_hash::XxHash3_64::oneshot(&bytes[..56]);
        bytes[56..64].copy_from_slice(&check.to_le_bytes());
    });
    let words = "format version 2, this is 1; open it with a newer waystage";
    refused(&scratch, &["log", "verify", "log"], 1, &[words]);
    refused(&scratch, &["log", "dump", "log"], 1, &[words]);
    refused(&scratch, &["log", "salvage", "log", "--to", "new"], 1, &[words]);
    assert!(!scratch.path("new").exists());
}

#[test]
fn swapped_renamed_and_missing_segments() {
    let scratch = scratch();
    let log = scratch.path("log");
    let (second, third) = (file(&log, 2), file(&log, 3));
    fs::rename(&second, log.join("aside")).unwrap();
    refused(&scratch, &["log", "verify", "log"], 1, &["segment 2, offset 0", "segment_missing"]);
    fs::rename(&third, &second).unwrap();
    fs::rename(log.join("aside"), &third).unwrap();
    refused(
        &scratch,
        &["log", "verify", "log"],
        1,
        &["says that this is segment 3", "segment_number"],
    );
    // Each record is where its header says, whatever the files are called.
    let said = scratch.run(&["log", "salvage", "log", "--to", "new"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.data.contains("88 read"), "{}", said.data);
}

#[test]
fn a_directory_that_may_not_be_read() {
    let scratch = scratch();
    let said = Said::of(scratch.command(&["log", "stat", "log", "-C", "gone"]).env("LC_ALL", "C"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("-C gone"), "{}", said.talk);
}

#[test]
fn wrong_flags() {
    let scratch = scratch();
    for (arguments, words) in [
        (&["dump", "log", "--from", "soon"][..], "90211"),
        (&["dump", "log", "--kind", "accepted"], "accepted"),
        (&["dump", "log", "--id", "7"], "36 characters"),
        (&["dump", "log", "--limit", "0"], "at least 1"),
        (&["salvage", "log"], "--to"),
        (&["verify"], "DIR"),
        (&["mend", "log"], "mend"),
    ] {
        let said = scratch.run(&[&["log"], arguments].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.talk.contains(words), "{words} in {}", said.talk);
    }
    let mut dump = scratch.command(&["log", "dump", "log"]);
    let said = Said::of(dump.env("WAYSTAGE_DUMP_FROM", "soon"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.talk.contains("WAYSTAGE_DUMP_FROM of the environment"), "{}", said.talk);
}

/// Opening it would wait for the other end.
#[test]
fn a_pipe_in_place_of_a_segment_is_not_opened_for_writing() {
    let scratch = scratch();
    let path = scratch.path("log");
    let segment = file(&path, 2);
    fs::remove_file(&segment).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&segment).status().unwrap();
    assert!(made.success());
    let error = waystage::log::Log::open(&path, crate::journal::settings()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.to_string().contains("no regular file"), "{error}: {source}");
}
