//! What is wrong with single records: each is named by file and line, and the rest goes on.

use std::io::Write as _;

use crate::support::{Said, Scratch, number, records, until};

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

/// The line is followed by a record and by an open standard input: once that record is written,
/// the most memory the process ever had is read.
#[cfg(target_os = "linux")]
#[test]
fn a_line_of_100_mb_is_never_held() {
    let scratch = Scratch::with_lines("", "");
    let path = scratch.path("lines.ndjson");
    std::fs::File::create(&path).unwrap().set_len(100_000_000).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"\n{\"a\":2}\n").unwrap();
    let arguments = ["run", "flow.toml", "lines.ndjson", "-", "--json"];
    let child = scratch.start(&arguments, "");
    until("the record behind the line is written", || {
        std::fs::read_to_string(scratch.path("out/all.ndjson")).is_ok_and(|text| !text.is_empty())
    });
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 50_000, "{kilobytes} kB");
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.data.contains("the line has 100,000,000 bytes"), "{}", said.data);
    assert!(said.data.contains("too_long"), "{}", said.data);
    assert_eq!(scratch.lines("out/all.ndjson"), 1);
}

#[test]
fn csv_rows_are_objects_of_strings() {
    let scratch = Scratch::with_flow(
        "slip = [\"parse\", \"big\", \"keep\"]\n\
         [input]\nfiles = [\"b*.csv\"]\nformat = \"csv\"\nid = \"/id\"\n\
         [stage.parse]\nparse = { format = \"csv\" }\n\
         [stage.big]\nfilter = { when = { \"/kind\" = \"big\" } }\n\
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

#[test]
fn several_inputs_in_the_order_given() {
    let scratch = Scratch::with_lines("", "");
    for (name, text) in [("a", "1\n"), ("b", "2\n"), ("c", "3\n")] {
        scratch.put(name, text);
    }
    let said = scratch.run(&["run", "flow.toml", "c", "--input", "b", "--input", "a"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(scratch.read("out/all.ndjson"), "3\n2\n1\n");
}

#[test]
fn dead_letters_beyond_the_store_count_as_dropped() {
    let scratch = Scratch::with_lines("nonsense\n".repeat(10_050), "");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{}", said.talk);
    assert_eq!((number(&document, "/dead"), number(&document, "/dropped")), (10_000, 50));
    assert_eq!(document["adds_up"], true);
    assert_eq!(document["dead_letters"].as_array().unwrap().len(), 10_000);
    assert!(said.talk.contains("10 of 10,000 dead letters shown"), "{}", said.talk);
}

#[test]
fn what_a_full_stage_refuses_is_named() {
    let flow = |policy: &str| {
        format!(
            "slip = [\"slow\"]\n[input]\nfiles = [\"lines.txt\"]\nformat = \"lines\"\n\
             [defaults]\ncapacity = 1\non-full = \"{policy}\"\n\
             [stage.slow]\nwork = {{ busy = \"2ms\" }}\n"
        )
    };
    let scratch = Scratch::with_flow(&flow("reject"));
    scratch.put("lines.txt", "x\n".repeat(100));
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let (accepted, refused) = (number(&document, "/accepted"), number(&document, "/refused"));
    assert_eq!(accepted + refused, 100);
    assert!(refused > 0 && accepted > 0, "{document}");
    assert_eq!(document["refusals"][0]["kind"], "stage_full");

    scratch.put("flow.toml", flow("drop-oldest"));
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(number(&document, "/accepted"), 100);
    let (completed, dropped) = (number(&document, "/completed"), number(&document, "/dropped"));
    assert_eq!(completed + dropped, 100);
    assert!(dropped > 0, "{document}");

    scratch.put("flow.toml", flow("block 1m"));
    let (document, _) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(number(&document, "/completed"), 100);
}

#[test]
fn a_csv_file_without_a_header_is_a_failure() {
    let scratch = Scratch::with_lines("", "");
    let flow = scratch.read("flow.toml").replace("\"ndjson\"", "\"csv\"");
    scratch.put("flow.toml", flow.replace("lines.ndjson", "lines.csv"));
    scratch.put("lines.csv", b"a,\xFF\n1,2\n");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.talk.contains("error: input lines.csv: "), "{}", said.talk);
}

/// A flow over `lines.csv` that parses and writes `out/all.ndjson`.
fn with_csv(rows: impl AsRef<[u8]>, more: &str) -> Scratch {
    let scratch = Scratch::with_lines("", more);
    let flow = scratch.read("flow.toml").replace("\"ndjson\"", "\"csv\"");
    scratch.put("flow.toml", flow.replace("lines.ndjson", "lines.csv"));
    scratch.put("lines.csv", rows);
    scratch
}

#[test]
fn a_quote_inside_a_plain_field_of_csv_is_text() {
    let scratch = with_csv("name,n\n5\" pipe,1\nfoo,2\n6\" pipe,3\n", "");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let want = "{\"name\":\"5\\\" pipe\",\"n\":\"1\"}\n{\"name\":\"foo\",\"n\":\"2\"}\n\
                {\"name\":\"6\\\" pipe\",\"n\":\"3\"}\n";
    assert_eq!(scratch.read("out/all.ndjson"), want);
}

#[test]
fn a_lone_carriage_return_ends_a_row_of_csv() {
    let scratch = with_csv("a,b\r1,2\r3,4\r5\r", "unique = true");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!((number(&document, "/accepted"), number(&document, "/dead")), (3, 1));
    assert_eq!(document["dead_letters"][0]["line"], 4);
    assert_eq!(scratch.lines("out/all.ndjson"), 2);
}

#[test]
fn a_quote_that_is_never_closed_swallows_no_rows_silently() {
    let scratch = with_csv("a,b\n1,2\n3,\"4\n5,6\n", "");
    let said = scratch.run(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let words = "dead: lines.csv:3: parse: a quote is opened and never closed";
    assert!(said.talk.contains(words), "{}", said.talk);
    assert_eq!(scratch.read("out/all.ndjson"), "{\"a\":\"1\",\"b\":\"2\"}\n");
}

#[test]
fn a_bad_line_inside_a_row_of_csv_refuses_the_whole_row() {
    let scratch = with_csv(b"a,b\n1,\"x\n\xFF\n7,8\n\"\n3,4\n", "");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!((number(&document, "/accepted"), number(&document, "/refused")), (1, 1));
    assert_eq!(document["refusals"][0]["line"], 2);
    assert_eq!(scratch.read("out/all.ndjson"), "{\"a\":\"3\",\"b\":\"4\"}\n");
}

#[test]
fn a_csv_header_names_every_column_once() {
    let scratch = with_csv("", "");
    for (rows, words) in [
        ("\na,b,a\n1,2,3\n", "line 2: the header: more than one column is named `a`"),
        ("a,,b\n1,2,3\n", "line 1: the header: column 2 has no name"),
    ] {
        scratch.put("lines.csv", rows);
        let said = scratch.run(&["run", "flow.toml"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.talk.contains("error: input lines.csv: "), "{}", said.talk);
        assert!(said.talk.contains(words), "{}", said.talk);
    }
}

#[test]
fn a_broken_record_does_not_shadow_a_whole_one() {
    let lines = "{\"id\":\"a\",\"n\":nope}\n{\"id\":\"a\",\"n\":1}\n{\"id\":\"a\",\"n\":2}\n";
    let scratch = Scratch::with_lines(lines, "id = \"/id\"\nunique = true");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!((number(&document, "/dead"), number(&document, "/completed")), (1, 1));
    assert_eq!(scratch.read("out/all.ndjson"), "{\"id\":\"a\",\"n\":1}\n");
}

#[test]
fn an_empty_id_is_none() {
    let lines = "{\"id\":\"\",\"n\":1}\n{\"id\":\"\",\"n\":2}\n{\"id\":1}\n{\"id\":\"1\"}\n";
    let scratch = Scratch::with_lines(lines, "id = \"/id\"\nunique = true");
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    assert_eq!(scratch.lines("out/all.ndjson"), 3);
    let scratch = with_csv("id,n\n,1\n,2\nx,3\nx,4\n", "id = \"/id\"\nunique = true");
    assert_eq!(scratch.run(&["run", "flow.toml"]).code, Some(0));
    assert_eq!(scratch.lines("out/all.ndjson"), 3);
}

/// As JSON leaves it open, it is decided: everywhere the last of equal keys counts.
#[test]
fn of_equal_keys_the_last_counts_everywhere() {
    let text = "{\"id\":\"a\",\"n\":1,\"id\":\"b\"}\n{\"id\":\"b\"}\n{\"id\":\"a\"}\n";
    let scratch = Scratch::with_lines(text, "id = \"/id\"\nunique = true");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(document["input"]["skipped"], 1, "the second has the id of the first");
    assert_eq!(scratch.read("out/all.ndjson"), "{\"id\":\"b\",\"n\":1}\n{\"id\":\"a\"}\n");
}
