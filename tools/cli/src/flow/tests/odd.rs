//! What a flow is warned of as a whole: circles among its stages, conditions that no record meets.

use super::{flow, headlines, problems};

/// The warnings of a flow of work stages with these lines.
fn circles(slip: &str, lines: &[&str]) -> Vec<String> {
    let source = format!("slip = [{slip}]\n{}\n", lines.join("\n"));
    assert_eq!(problems(&source).errors(), 0, "{}", problems(&source));
    let circle = |line: &String| line.contains("circle") || line.contains("itself");
    headlines(&source).into_iter().filter(circle).collect()
}

#[test]
fn circles_of_rules_are_named() {
    let to = |from: &str, to: &str| format!("stage.{from}.route = [ {{ first = ['{to}'] }} ]");
    let (ab, ba, bc, ca) = (to("a", "b"), to("b", "a"), to("b", "c"), to("c", "a"));
    let end = "stage.c.work = { busy = '1us' }";
    assert_eq!(circles("'a'", &[&ab, &bc, end]), [""; 0]);
    assert_eq!(
        circles("'a'", &[&ab, &ba]),
        ["warning 3:30 records may go in a circle: `a` to `b` to `a`"]
    );
    assert_eq!(
        circles("'a'", &[&ab, &bc, &ca]),
        ["warning 4:30 records may go in a circle: `a` to `b` to `c` to `a`"]
    );
    for action in ["then", "instead"] {
        assert_eq!(circles("'a'", &[&ab, &ba.replace("first", action)]).len(), 1, "{action}");
    }
    assert_eq!(circles("'a'", &[&to("a", "a")]), ["warning 2:30 `a` sends records to itself"]);
    // A stage that the slip visits twice is no circle: the slip ends.
    assert_eq!(circles("'a', 'c', 'a'", &[&to("a", "c"), end]), [""; 0]);
}

#[test]
fn circles_of_dead_letters_are_named() {
    let stage = |name: &str, dead: &str| {
        format!("[stage.{name}]\nwork = {{ busy = '1us' }}\ndead-letter = '{dead}'")
    };
    let (ab, bc, ca) = (stage("a", "b"), stage("b", "c"), stage("c", "a"));
    let end = "[stage.c]\nwork = { busy = '1us' }";
    assert_eq!(circles("'a'", &[&ab, &bc, end]), [""; 0]);
    assert_eq!(
        circles("'a'", &[&ab, &bc, &ca]),
        ["warning 10:15 records may go in a circle: `a` to `b` to `c` to `a`"]
    );
    let back = "[stage.b]\nroute = [ { first = ['a'] } ]";
    assert_eq!(
        circles("'a'", &[&ab, back]),
        ["warning 6:22 records may go in a circle: `a` to `b` to `a`"]
    );
    let source = format!("slip = ['a']\n{ab}\n{bc}\n{ca}");
    let text = problems(&source).to_string();
    assert!(text.contains("leave out its `dead-letter`"), "{text}");
}

/// One stage after another, and the last back to the first: no recursion, and nothing quadratic.
#[test]
fn a_very_long_circle_is_found() {
    let count = 20_000;
    let stage =
        |at: usize| format!("stage.s{at}.route = [{{ first = ['s{}'] }}]\n", (at + 1) % count);
    let source = format!("slip = ['s0']\n{}", (0..count).map(stage).collect::<String>());
    let lines = headlines(&source);
    assert_eq!(lines.len(), 1, "{}", lines.len());
    assert!(
        lines[0].contains("`s0` to `s1`") && lines[0].contains("19992 more to `s0`"),
        "{lines:?}"
    );
}

/// A flow of this input whose stage has these conditions, behind `parse` where there is one.
fn never(format: &str, parse: bool, when: &str) -> Vec<String> {
    let (slip, stage) = match parse {
        true => ("'parse', 'a'", "parse = {}"),
        false => ("'a'", "work = { busy = '1us' }"),
    };
    let source = format!(
        "slip = [{slip}]\n[input]\nformat = '{format}'\n[stage.a]\nfilter.when = {{ {when} }}\n\
         [stage.parse]\n{stage}\n"
    );
    assert_eq!(problems(&source).errors(), 0, "{}", problems(&source));
    let lines = headlines(&source).into_iter();
    lines.filter(|line| !line.contains("no record ever reaches")).collect()
}

#[test]
fn text_is_never_a_number() {
    let compared =
        |value: &str| vec![format!("warning 5:24 `/n` is text and is compared with {value}")];
    for parse in [true, false] {
        let check = |when: &str| never("csv", parse, when);
        assert_eq!(check("'/n' = 5"), compared("a number, 5"));
        assert_eq!(check("'/n' = true"), compared("true or false, true"));
        assert_eq!(check("'/n' = ['x', 4]"), compared("a number, 4"));
        assert_eq!(check("'/n' = { ge = 4.5 }"), compared("a number, 4.5"));
        assert_eq!(check("'/n' = { ne = 4 }"), compared("a number, 4"));
        for fine in ["'5'", "['x', 'y']", "{ ge = '4.5', lt = '9' }", "{ exists = true }"] {
            assert_eq!(check(&format!("'/n' = {fine}")), [""; 0], "{fine}");
        }
        let want = ["warning 5:26 `/n/m` is no field of a row of CSV"];
        assert_eq!(check("'/n/m' = '5'"), want);
        assert_eq!(check("'' = { exists = true }"), [""; 0]);
    }
    let lines = never("lines", true, "'/n' = 'x'");
    assert_eq!(lines, ["warning 5:24 a line has no value at `/n`"]);
    assert_eq!(never("lines", true, "'' = { matches = 'x' }"), [""; 0]);
    assert_eq!(never("lines", true, "'' = 4").len(), 1);
    for fine in ["5", "true", "['x', 4]", "{ ge = 4.5 }", "'5'"] {
        assert_eq!(never("ndjson", true, &format!("'/n' = {fine}")), [""; 0], "{fine}");
    }
}

#[test]
fn what_nobody_read_has_no_values() {
    let want = ["warning 4:8 `a` looks at values, but no stage parses"];
    assert_eq!(never("ndjson", false, "'/n' = 5"), want);
    assert_eq!(never("lines", false, "'/n' = 'x'"), want);
    assert_eq!(never("ndjson", false, "'/n' = { exists = false }"), [""; 0]);
    let late = "slip = ['a', 'parse']\nstage.a.tally = { by = '/n' }\nstage.parse.parse = {}\n";
    assert_eq!(headlines(late), ["warning 2:7 `a` looks at values, before any stage parses"]);
    let by_rule = "slip = ['r', 'a']\nstage.r.route = [ { first = ['p'] } ]\n\
                   stage.a.tally = { by = '/n' }\nstage.p.parse = {}\n";
    assert_eq!(headlines(by_rule), [""; 0]);
}

#[test]
fn comparisons_that_exclude_each_other() {
    for (all, want) in [
        ("ge = 5, lt = 4", true),
        ("gt = 5, le = 5", true),
        ("eq = 'x', lt = 'a'", true),
        ("ge = 4, matches = 'x'", true),
        ("gt = 'a', lt = 5", true),
        ("exists = false, eq = 1", true),
        ("gt = 9007199254740992, lt = 9007199254740994", false),
        ("ge = 5, le = 5", false),
        ("ge = 4, lt = 5, ne = 'x'", false),
        ("exists = true, eq = 1", false),
        ("exists = false, ne = 1", false),
    ] {
        let found = never("ndjson", true, &format!("'/n' = {{ {all} }}"));
        let line = "warning 5:24 this never holds".to_owned();
        assert_eq!(found, if want { vec![line] } else { Vec::new() }, "{all}");
    }
}

#[test]
fn stages_that_records_reach_are_marked() {
    let flow = flow(
        "slip = ['a']\nstage.a.route = [ { first = ['b'] } ]\n[stage.b]\nparse = {}\n\
         dead-letter = 'c'\n[stage.c]\nparse = {}\n[stage.d]\nparse = {}\n",
    );
    let opened: Vec<&str> = flow.opened().map(|stage| stage.name.as_str()).collect();
    assert_eq!(opened, ["a", "b", "c"]);
}
