//! Every line of the input is somewhere: `read` is the sum of all the others.

use serde_json::Value;

use crate::support::{Said, Scratch, number, records};

/// Checks the equation and returns `[read, accepted, refused, skipped, blank, headers, unsent]`.
fn account(document: &Value) -> [u64; 7] {
    let names = ["read", "accepted", "refused", "skipped", "blank", "headers", "unsent"];
    let all = names.map(|name| number(document, &format!("/input/{name}")));
    assert_eq!(all[0], all[1..].iter().sum::<u64>(), "{document}");
    assert_eq!(all[1], number(document, "/accepted"));
    assert_eq!(all[2], number(document, "/refused"));
    assert_eq!(all[3], number(document, "/skipped"));
    assert_eq!(document["adds_up"], true);
    all
}

#[test]
fn blank_lines_doubles_and_refused_ones() {
    let mut lines = b"{\"id\":1}\n\n \t\r\n{\"id\":1}\n{\"id\":2}\n\xFF\n{\"id\":".to_vec();
    lines.extend_from_slice(b"nope\n\n");
    let scratch = Scratch::with_lines(lines, "id = \"/id\"\nunique = true");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(account(&document), [8, 3, 1, 1, 3, 0, 0]);
    assert_eq!(document["input"]["unit"], "lines");
    let said = scratch.run(&["run", "flow.toml"]);
    let words = "input            8 lines = 3 accepted + 1 refused + 1 skipped + 3 blank\n";
    assert!(said.data.contains(words), "{}", said.data);
}

/// A blank that JSON does not know is no blank line.
#[test]
fn odd_white_space_is_no_blank_line() {
    let scratch = Scratch::with_lines("\u{a0}\n{}\n", "");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(account(&document), [2, 2, 0, 0, 0, 0, 0]);
}

#[test]
fn a_line_of_100_mb() {
    let scratch = Scratch::with_lines("", "");
    let file = std::fs::File::create(scratch.path("lines.ndjson")).unwrap();
    file.set_len(100_000_000).unwrap();
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(account(&document), [1, 0, 1, 0, 0, 0, 0]);
}

/// As the library for CSV has it: nothing at all is no row, a blank is a field.
#[test]
fn rows_of_csv_and_their_headers() {
    let scratch = Scratch::with_flow(
        "slip = [\"keep\"]\n[input]\nfiles = [\"a.csv\", \"b.csv\"]\nformat = \"csv\"\n\
         id = \"/n\"\nunique = true\n[stage.keep]\nwrite = { path = \"all.ndjson\" }\n",
    );
    scratch.put("a.csv", "n,m\n1,\"two\nlines\"\n\n   \n1,2\n3\n");
    scratch.put("b.csv", "n\n \n2\n");
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    // Rows: header, 1, blank, spaces, 1 again, 3 without its second field; header, spaces, 2.
    assert_eq!(account(&document), [9, 3, 2, 1, 1, 2, 0]);
    assert_eq!(document["input"]["unit"], "rows");
    assert_eq!(document["refusals"][0]["line"], 5);
    let all = scratch.read("all.ndjson");
    assert_eq!(all, "{\"n\":\"1\",\"m\":\"two\\nlines\"}\n{\"n\":\" \"}\n{\"n\":\"2\"}\n");
    let said = scratch.run(&["run", "flow.toml"]);
    let words = "9 rows = 3 accepted + 2 refused + 1 skipped + 1 blank + 2 headers\n";
    assert!(said.data.contains(words), "{}", said.data);
}

#[test]
fn a_limit_and_a_stop() {
    let scratch = Scratch::with_lines(records(50), "");
    let (document, _) = scratch.json(&["run", "flow.toml", "--limit", "7"]);
    assert_eq!(account(&document), [7, 7, 0, 0, 0, 0, 0]);
    let stopped = ["run", "flow.toml", "--rate", "1/h", "--duration", "50ms"];
    let (document, said) = scratch.json(&stopped);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert_eq!(account(&document), [2, 1, 0, 0, 0, 0, 1]);
    let said = scratch.run(&stopped);
    assert!(said.data.contains("+ 0 blank + 1 not sent"), "{}", said.data);
}

#[test]
fn an_input_that_was_left_behind() {
    let scratch = Scratch::with_lines("", "");
    let arguments = ["run", "flow.toml", "-", "--duration", "500ms", "--json"];
    let mut child = scratch.start(&arguments, &records(5));
    let stdin = child.stdin.take();
    let said = Said::from(child.wait_with_output().unwrap());
    drop(stdin);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert_eq!(account(&serde_json::from_str(&said.data).unwrap())[1], 5);
}

#[test]
fn what_a_full_stage_refuses() {
    let scratch = Scratch::with_flow(
        "slip = [\"slow\"]\n[input]\nfiles = [\"lines.txt\"]\nformat = \"lines\"\n\
         [defaults]\ncapacity = 1\non-full = \"drop-newest\"\n\
         [stage.slow]\nwork = { busy = \"2ms\" }\n",
    );
    scratch.put("lines.txt", "x\n\n".repeat(50));
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(account(&document)[0], 100);
}

#[test]
fn dead_letters_that_a_stage_took_are_counted_and_named() {
    let scratch = Scratch::with_lines("{\"a\":1}\nbroken\n{\"a\":\n", "");
    let flow =
        scratch.read("flow.toml") + "[stage.failed]\nwrite = { path = \"out/failed.txt\" }\n";
    let flow = flow.replace("[stage.parse]", "[stage.parse]\ndead-letter = \"failed\"");
    scratch.put("flow.toml", flow);
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(number(&document, "/dead"), 2);
    assert_eq!(number(&document, "/dead_letters_taken"), 2);
    let letters = document["dead_letters"].as_array().unwrap();
    assert_eq!(letters.len(), 2);
    for (letter, line) in letters.iter().zip([2, 3]) {
        assert_eq!((&letter["stage"], &letter["taken_by"]), (&"parse".into(), &"failed".into()));
        assert_eq!((&letter["line"], &letter["cause"]), (&line.into(), &"handler_failed".into()));
    }
    let said = scratch.run(&["run", "flow.toml"]);
    let words = "dead letters     failed 2 from parse (handler_failed)\n";
    assert!(said.data.contains(words), "{}", said.data);
    assert!(said.talk.contains("dead: lines.ndjson:2: parse: expected"), "{}", said.talk);
    assert!(said.talk.contains("(now in failed)"), "{}", said.talk);
    assert_eq!(scratch.read("out/failed.txt"), "broken\n{\"a\":\n");
}

#[test]
fn what_was_given_up_and_ended_well_is_told_too() {
    let scratch = Scratch::with_lines("{\"a\":1}\nbroken\n", "");
    let flow = scratch.read("flow.toml") + "[stage.back]\nroute = [ { first = [\"keep\"] } ]\n";
    scratch
        .put("flow.toml", flow.replace("[stage.parse]", "[stage.parse]\ndead-letter = \"back\""));
    let (document, said) = scratch.json(&["run", "flow.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((number(&document, "/completed"), number(&document, "/dead")), (2, 0));
    let want = serde_json::json!([{"stage": "parse", "count": 1, "to": "back"}]);
    assert_eq!(document["given_up"], want);
    let said = scratch.run(&["run", "flow.toml"]);
    assert!(said.data.contains("given up         parse 1 (to back)\n"), "{}", said.data);
}
