//! One flow for each kind of problem, and the line that is reported, with its place.

use super::{FILES, HANDLER, SLIP, headlines, small};

/// Checks that a small flow with one more line has exactly these problems.
fn check(table: &[(&str, &str, &[&str])]) {
    for (place, line, want) in table {
        assert_eq!(headlines(&small(&[(place, line)])), *want, "{line}");
    }
}

#[test]
fn input() {
    check(&[
        ("#INPUT", "max_line = 3", &["error 5:1 unknown key `max_line`"]),
        ("#INPUT", "max-line = 0", &["error 5:12 `max-line` is 0; it must be 1 to 1073741824"]),
        ("#INPUT", "max-line = '3TB'", &["error 5:12 `max-line` is not a size"]),
        ("#INPUT", "max-line = true", &["error 5:12 `max-line` must be a size, like \"1MiB\""]),
        ("#INPUT", "format = 'nsjson'", &["error 5:10 `format` cannot be `nsjson`"]),
        ("#INPUT", "id = 'id'", &["error 5:7 `id` is not a JSON pointer"]),
        (
            "#INPUT",
            "id = '/a'\nunique = { window = 0 }",
            &["error 6:21 `window` is 0; it must be 1 to 16777216"],
        ),
        (
            "#INPUT",
            "unique = 3",
            &["error 5:10 `unique` must be true, or a table like { window = 100_000 }"],
        ),
        ("#INPUT", "unique = true", &["warning 5:10 `unique` without `id` skips nothing"]),
        ("#INPUT", "unique = false", &[]),
        ("#INPUT", "id = '/a'\nunique = true", &[]),
        (FILES, "files = ['-', 'a', '-']", &["error 4:20 standard input is read twice"]),
        (
            FILES,
            "files = ['a', 3, 'x***']",
            &["error 4:15 `files` must be text", "error 4:22 `x***` is not a file pattern"],
        ),
    ]);
}

#[test]
fn bus() {
    check(&[
        ("#BUS", "workers = 3", &["error 8:1 duplicate key"]),
        ("#BUS", "pin = []", &["error 8:7 `pin` names no core"]),
        ("#BUS", "pin = [0, -1]", &["error 8:11 `pin` is -1; it must be 0 to 4095"]),
        ("#BUS", "idle = 'sleep'", &["error 8:8 `idle` cannot be `sleep`"]),
        ("#BUS", "hop-limit = 0", &["error 8:13 `hop-limit` is 0; it must be 1 to 65534"]),
        ("#BUS", "hop-limit = 1", &["error 2:8 `slip` has 2 hops, and the limit is 1"]),
        ("#BUS", "meter-every = 1", &["error 8:1 unknown key `meter-every`"]),
        (
            "#BUS",
            "dead-letters = -1",
            &["error 8:16 `dead-letters` is -1; it must be 1 to 16777216"],
        ),
        ("#BUS", "[durable]", &["error 8:2 `dir` is missing in [durable]"]),
    ]);
}

#[test]
fn settings() {
    check(&[
        ("#DEFAULTS", "capacity = 0", &["error 10:12 `capacity` is 0; it must be 1 to 16777216"]),
        (
            "#DEFAULTS",
            "capacity = 99999999999999999999999999999999999999999999",
            &["error 10:12 `capacity` is \
                 99999999999999999999999999999999999999999999; it must be 1 to 16777216"],
        ),
        ("#DEFAULTS", "capacity = 1.5", &["error 10:12 `capacity` must be a whole number"]),
        ("#DEFAULTS", "permits = 0", &["error 10:11 `permits` is 0; it must be 1 to 4096"]),
        (
            "#DEFAULTS",
            "permits = 3",
            &[
                "warning 10:11 `parse` has 3 permits but the bus has 2 workers; 1 \
                 can never be used",
                "warning 10:11 `archive` has 3 permits but the bus has 2 workers; 1 \
                 can never be used",
            ],
        ),
        ("#DEFAULTS", "attempts = 3", &["error 10:1 unknown key `attempts`"]),
        ("#DEFAULTS", "on-full = 'block'", &["error 10:11 `block` needs a time"]),
        (
            "#DEFAULTS",
            "on-full = 'block 25h'",
            &["error 10:11 `on-full` is 'block 25h'; it must be a wait of at most 1 day"],
        ),
        ("#DEFAULTS", "on-full = 'drop'", &["error 10:11 `on-full` cannot be `drop`"]),
        (
            "#DEFAULTS",
            "hop-timeout = 5",
            &["error 10:15 `hop-timeout` must be a time with its unit, like \"50ms\""],
        ),
        ("#DEFAULTS", "hop-timeout = '5'", &["error 10:15 `5` is not a time"]),
        ("#DEFAULTS", "hop-timeout = '-5s'", &["error 10:15 `-5s` is not a time"]),
        (
            "#DEFAULTS",
            "expiry = '0s'",
            &["error 10:10 `expiry` is '0s'; it must be more than zero"],
        ),
        (
            "#DEFAULTS",
            "retry = { attempts = 0 }",
            &["error 10:22 `attempts` is 0; it must be 1 to 255"],
        ),
    ]);
}

#[test]
fn settings_more() {
    check(&[
        (
            "#DEFAULTS",
            "retry = { attempts = 2, jitter = 0.5 }",
            &["error 10:25 `jitter` has no effect on retries in place"],
        ),
        (
            "#DEFAULTS",
            "retry = { attempts = 2, backoff = '1s', place = 'in-place' }",
            &["error 10:25 `backoff` has no effect on retries in place"],
        ),
        (
            "#DEFAULTS",
            "retry = { attempts = 2, backoff = '1s..1' }",
            &["error 10:40 `1` is not a time"],
        ),
        ("#DEFAULTS", "level = 'exactly-once'", &["error 10:1 unknown key `level`"]),
        ("#DEFAULTS", "write = { path = 'x' }", &["error 10:1 unknown key `write`"]),
    ]);
}

#[test]
fn stages() {
    check(&[
        (
            "#PARSE",
            "dead-letter = 'parse'",
            &["error 13:15 `parse` cannot take its own dead letters"],
        ),
        ("#PARSE", "dead-letter = 'archiv'", &["error 13:15 stage `archiv` is not defined"]),
        ("#PARSE", "work = { busy = '20us' }", &["error 13:1 stage `parse` has 2 handlers"]),
        ("#PARSE", "control = {}", &["error 13:1 `control` is not in this version"]),
        ("#ARCHIVE", "[stage.\"\"]", &["error 16:8 a stage needs a name"]),
    ]);
}

#[test]
fn handlers() {
    check(&[
        (HANDLER, "prase = {}", &["error 12:1 unknown key `prase`"]),
        (HANDLER, "", &["error 11:8 stage `parse` has no handler"]),
        (HANDLER, "parse = { from = 'ndjson' }", &["error 12:11 unknown key `from`"]),
        (HANDLER, "filter = {}", &["error 12:10 `filter` needs `when`"]),
        (HANDLER, "filter = { when = {} }", &["warning 12:19 `when` has no conditions"]),
        (HANDLER, "filter = { when = { '/a' = [] } }", &["error 12:28 this list matches nothing"]),
        (HANDLER, "filter = { when = { '/a' = { gte = 1 } } }", &["error 12:30 unknown key `gte`"]),
        (
            HANDLER,
            "filter = { when = { '/a' = { ge = true } } }",
            &["error 12:35 `ge` must be a number or text: others have no order"],
        ),
        (
            HANDLER,
            "filter = { when = { '/a' = nan } }",
            &["error 12:28 no record holds such a value"],
        ),
        (
            HANDLER,
            "filter = { when = { '/a' = 2026-11-30 } }",
            &["error 12:28 no record holds such a value"],
        ),
        (HANDLER, "filter = { when = { '/a' = {} } }", &["error 12:28 this compares with nothing"]),
        (HANDLER, "route = []", &["warning 12:9 `route` has no rules"]),
        (HANDLER, "route = [ { when = { '/a' = 1 } } ]", &["error 12:11 this rule does nothing"]),
        (
            HANDLER,
            "route = [ { first = ['archive'], then = ['archive'] } ]",
            &["error 12:34 a rule has one action: `first` or `then`"],
        ),
    ]);
}

#[test]
fn handlers_more() {
    check(&[
        (HANDLER, "route = [ { first = [] } ]", &["warning 12:21 `first` names no stages"]),
        (
            HANDLER,
            "route = [ { first = ['parse'] } ]",
            &["warning 12:22 `parse` sends records to itself"],
        ),
        (
            HANDLER,
            "route = [ { first = ['nobody'] } ]",
            &["error 12:22 stage `nobody` is not defined"],
        ),
        (
            HANDLER,
            "write = { path = './out/x/../a.ndjson' }",
            &["error 15:18 two stages write `out/a.ndjson`"],
        ),
        (HANDLER, "write = { path = '-' }", &["error 12:18 `path` must be a file"]),
        (HANDLER, "tally = { by = '/a~2' }", &["error 12:19 `/a~2` is not a JSON pointer"]),
        (
            HANDLER,
            "work = { busy = '2h' }",
            &["error 12:17 `busy` is '2h'; it must be at most 1 h"],
        ),
    ]);
}

#[test]
fn slip() {
    check(&[
        (SLIP, "", &["error 1:1 `slip` is missing"]),
        (SLIP, "slip = []", &["error 2:8 `slip` is empty: records have nowhere to go"]),
        (SLIP, "slip = 'parse'", &["error 2:8 `slip` must be a list of stages, like [\"parse\"]"]),
        (SLIP, "slip = ['parse']", &["warning 14:8 no record ever reaches `archive`"]),
    ]);
}
