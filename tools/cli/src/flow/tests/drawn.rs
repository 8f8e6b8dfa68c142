//! Problems as they are drawn, to the letter.

use super::{HANDLER, SLIP, problems, small};

/// Checks the text of a small flow's problems with these lines.
fn check(lines: &[(&str, &str)], want: &str) {
    assert_eq!(
        format!(
            "
{}
",
            problems(&small(lines))
        ),
        want
    );
}

#[test]
fn a_misspelt_key() {
    let lines = &[("#DEFAULTS", "capcity = 1024")];
    check(
        lines,
        r#"
error: unknown key `capcity`
  --> flow.toml:10:1
   |
10 | capcity = 1024
   | ^^^^^^^ not a key of [defaults]
   |
   = help: did you mean `capacity`?

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn an_underscore() {
    let lines = &[("#INPUT", "max_line = '1MiB'")];
    check(
        lines,
        r#"
error: unknown key `max_line`
 --> flow.toml:5:1
  |
5 | max_line = '1MiB'
  | ^^^^^^^^ keys are written with hyphens
  |
  = help: did you mean `max-line`?

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn a_misspelt_stage_points_at_the_one_that_was_meant() {
    let lines = &[("#PARSE", "dead-letter = 'archve'")];
    check(
        lines,
        r#"
error: stage `archve` is not defined
  --> flow.toml:13:15
   |
13 | dead-letter = 'archve'
   |               ^^^^^^^^
14 | [stage.archive]
   |        ------- a stage with a similar name

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn a_key_of_a_later_version() {
    let lines = &[("#PARSE", "control = {}")];
    check(
        lines,
        r#"
error: `control` is not in this version
  --> flow.toml:13:1
   |
13 | control = {}
   | ^^^^^^^ comes with a later version
   |
   = help: remove it

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn a_setting_out_of_range() {
    let lines = &[("#DEFAULTS", "permits = 0")];
    check(
        lines,
        r#"
error: `permits` is 0; it must be 1 to 4096
  --> flow.toml:10:11
   |
10 | permits = 0
   |           ^ out of range

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn a_time_inside_a_text() {
    let lines = &[("#DEFAULTS", "on-full = 'block 5x'")];
    check(
        lines,
        r#"
error: `5x` is not a time
  --> flow.toml:10:18
   |
10 | on-full = 'block 5x'
   |                  ^^ not a time
   |
   = help: a number and its unit: ns, us, ms, s, m or h, as in "50ms", "1h 30m"

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn a_pointer_with_the_caret_at_its_fault() {
    let lines = &[(HANDLER, "tally = { by = '/mag~Type' }")];
    check(
        lines,
        r#"
error: `/mag~Type` is not a JSON pointer
  --> flow.toml:12:21
   |
12 | tally = { by = '/mag~Type' }
   |                     ^ `~` stands only in `~0` and `~1`
   |
   = help: write `~0` for `~` and `~1` for `/`

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn two_handlers() {
    let lines = &[("#PARSE", "work = { busy = '20us' }")];
    check(
        lines,
        r#"
error: stage `parse` has 2 handlers
  --> flow.toml:13:1
   |
12 | parse = {}
   | ----- the first handler
13 | work = { busy = '20us' }
   | ^^^^ a second handler
   |
   = help: a stage does one thing: make two stages of it

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn no_handler() {
    let lines = &[(HANDLER, "")];
    check(
        lines,
        r#"
error: stage `parse` has no handler
  --> flow.toml:11:8
   |
11 | [stage.parse]
   |        ^^^^^ what does it do?
   |
   = help: give it one of: parse, filter, route, tally, write, work

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn two_writers_of_one_file() {
    let lines = &[(HANDLER, "write = { path = 'out/./a.ndjson' }")];
    check(
        lines,
        r#"
error: two stages write `out/a.ndjson`
  --> flow.toml:15:18
   |
12 | write = { path = 'out/./a.ndjson' }
   |                  ---------------- written by `parse`
...
15 | write = { path = "out/a.ndjson" }
   |                  ^^^^^^^^^^^^^^ also written here
   |
   = help: send both to one stage, or write two files

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn permits_nobody_can_use() {
    let lines = &[("#PARSE", "permits = 8")];
    check(
        lines,
        r#"
warning: `parse` has 8 permits but the bus has 2 workers; 6 can never be used
  --> flow.toml:13:11
   |
13 | permits = 8
   |           ^

flow.toml: 1 warning
"#,
    );
}

#[test]
fn a_stage_nobody_reaches() {
    let lines = &[("#ARCHIVE", "[stage.spare]\nparse = {}")];
    check(
        lines,
        r#"
warning: no record ever reaches `spare`
  --> flow.toml:16:8
   |
16 | [stage.spare]
   |        ^^^^^ not in `slip`, nor in a rule
   |
   = help: add it to `slip` or to a rule, or remove it

flow.toml: 1 warning
"#,
    );
}

#[test]
fn no_slip() {
    let lines = &[(SLIP, "")];
    check(
        lines,
        r#"
error: `slip` is missing
--> flow.toml
 = help: say which stages every record visits, as in `slip = ["parse", "archive"]`

flow.toml: 1 error; nothing was started
"#,
    );
}

#[test]
fn only_the_first_syntax_error_of_a_line_and_nothing_that_may_follow_from_it() {
    let lines = &[(SLIP, "slip = ['parse', archive"), ("#BUS", "idle = 'prak'")];
    check(
        lines,
        r#"
error: string values must be quoted, expected literal string
 --> flow.toml:2:18
  |
2 | slip = ['parse', archive
  |                  ^^^^^^^

error: missing comma between array elements, expected `,`
 --> flow.toml:3:1
  |
3 | [input]
  | ^

flow.toml: 2 errors; nothing was started
"#,
    );
}

#[test]
fn letters_of_other_scripts_keep_the_carets_in_place() {
    let lines = &[("#DEFAULTS", "on-full = '\u{e9}\u{f1}\u{4e2d}' # \u{1f30b}")];
    check(
        lines,
        "
error: `on-full` cannot be `\u{e9}\u{f1}\u{4e2d}`
  --> flow.toml:10:11
   |
10 | on-full = '\u{e9}\u{f1}\u{4e2d}' # \u{1f30b}
   |           ^^^^^^ not one of reject, drop-newest, drop-oldest, block 5s

flow.toml: 1 error; nothing was started
",
    );
}
