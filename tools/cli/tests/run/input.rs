//! What is wrong with single records: each is named by file and line, and the rest goes on.

use std::io::Write as _;

use crate::support::{Scratch, number, records};

#[test]
fn a_broken_line_is_a_dead_letter() {
    let scratch = Scratch::with_lines("{\"a\":1}\n{\"a\":\n{\"a\":3}\n", "");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.talk.contains("dead: lines.ndjson:2: parse: "), "{}", said.talk);
    assert!(said.talk.contains("(attempt 1 of 1)"), "{}", said.talk);
    assert_eq!(scratch.read("out/all.ndjson"), "{\"a\":1}\n{\"a\":3}\n");
    let (document, _) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(number(&document, "/dead"), 1);
    let dead = &document["dead_letters"][0];
    assert_eq!((&dead["file"], &dead["line"]), (&"lines.ndjson".into(), &2.into()));
    assert_eq!((&dead["stage"], &dead["cause"]), (&"parse".into(), &"handler_failed".into()));
    assert_eq!(number(dead, "/attempts"), 1);
    assert_eq!(scratch.run(&["run", "flow.toml", "--fail-on", "never"]).code, Some(0));
}

#[test]
fn a_parse_error_is_tried_once_whatever_retry_says() {
    let scratch = Scratch::with_lines("nonsense\n", "");
    let flow = scratch.read("flow.toml") + "[defaults]\nretry = { attempts = 3 }\n";
    scratch.put("flow.toml", flow);
    let said = scratch.run(&["run", "flow.toml"]);
    assert!(said.talk.contains("(attempt 1 of 3)"), "{}", said.talk);
}

#[test]
fn invalid_utf8_is_refused_with_file_and_line() {
    let scratch = Scratch::with_lines(b"{\"a\":1}\n{\"a\":\"\xFF\"}\n{\"a\":3}\n", "");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let words = "refused: lines.ndjson:2: the line is not UTF-8 at byte 7";
    assert!(said.talk.contains(words), "{}", said.talk);
    assert_eq!(scratch.lines("out/all.ndjson"), 2);
    let (document, _) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(number(&document, "/refused"), 1);
    assert_eq!(number(&document, "/accepted"), 2);
    assert_eq!(document["refusals"][0]["kind"], "not_utf8");
}

#[test]
fn a_long_line_is_refused_with_its_size() {
    let long = format!("{{\"a\":1}}\n\"{}\"\n{{\"a\":3}}\n", "x".repeat(5_000_000));
    let scratch = Scratch::with_lines(long, "max-line = \"64KiB\"");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let words = "refused: lines.ndjson:2: the line has 5,000,002 bytes, more than the 65,536";
    assert!(said.talk.contains(words), "{}", said.talk);
    assert_eq!(scratch.lines("out/all.ndjson"), 2);
}

/// The memory is bounded by the operating system here: more than 96 MiB are refused.
#[cfg(target_os = "linux")]
#[test]
fn a_line_of_100_mb_is_never_held() {
    let scratch = Scratch::with_lines("", "");
    let file = std::fs::File::create(scratch.path("lines.ndjson")).unwrap();
    file.set_len(100_000_000).unwrap();
    let mut file =
        std::fs::OpenOptions::new().append(true).open(scratch.path("lines.ndjson")).unwrap();
    file.write_all(b"\n{\"a\":2}\n").unwrap();
    let (document, said) = scratch.json(&["run", "flow.toml", "--workers", "1"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(document["refusals"][0]["kind"], "too_long");
    assert!(document["refusals"][0]["error"].as_str().unwrap().contains("100,000,000 bytes"));
    assert_eq!(scratch.lines("out/all.ndjson"), 1);
}

#[test]
fn csv_rows_are_objects_of_strings() {
    let scratch = Scratch::with_flow(
        "slip = [\"parse\", \"big\", \"keep\"]\n\
         [input]\nfiles = [\"b*.csv\"]\nformat = \"csv\"\nid = \"/id\"\n\
         [stage.parse]\nparse = { format = \"csv\" }\n\
         [stage.big]\nfilter = { \"/kind\" = \"big\" }\n\
         [stage.keep]\nwrite = { path = \"big.ndjson\" }\n",
    );
    scratch.put("b2.csv", "id,kind\n3,big\n4,small,too many\n");
    scratch.put("b1.csv", "id,kind\r\n1,big\r\n2,\"bi\ng\"\r\n");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let words = "dead: b2.csv:3: parse: 3 fields, but the header has 2";
    assert!(said.talk.contains(words), "{}", said.talk);
    let want = "{\"id\":\"1\",\"kind\":\"big\"}\n{\"id\":\"3\",\"kind\":\"big\"}\n";
    assert_eq!(scratch.read("big.ndjson"), want);
}

#[test]
fn lines_that_were_never_read_are_written_as_they_are() {
    let scratch = Scratch::with_flow(
        "slip = [\"keep\"]\n[input]\nfiles = [\"-\"]\nformat = \"lines\"\n\
         [stage.keep]\nwrite = { path = \"all.txt\" }\n",
    );
    let child = scratch.start(&["run", "flow.toml"], "one\n\n  three \n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(scratch.read("all.txt"), "one\n\n  three \n");
}

#[test]
fn standard_input_by_name_and_a_limit() {
    let scratch = Scratch::with_lines("", "");
    for arguments in
        [["run", "flow.toml", "-", "--limit=3"], ["run", "flow.toml", "--input=-", "--limit=3"]]
    {
        let child = scratch.start(&arguments, &records(10));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(scratch.lines("out/all.ndjson"), 3);
    }
}
