//! The labelled lines below the books, each a list of facts.

use std::collections::BTreeMap;

use super::text::{NAME_CHARACTERS_MAX, SHOWN_MAX};
use super::{Counted, Report};
use crate::run::account::Lines;
use crate::words::{count, microseconds, shortened};

/// The label of the line that accounts for the input.
pub(super) const INPUT: &str = "input";

/// The terms that are not zero, or always said, each with its sign.
pub(super) fn sum(first: &str, terms: &[(u64, &str, bool)]) -> Vec<String> {
    let shown = terms.iter().filter(|(number, _, always)| *always || *number > 0);
    let signs = std::iter::once(first).chain(std::iter::repeat("+ "));
    shown
        .zip(signs)
        .map(|((number, name, _), sign)| format!("{sign}{} {name}", count(*number)))
        .collect()
}

/// The labelled lines below the books.
pub(super) fn facts(report: &Report) -> Vec<(String, Vec<String>)> {
    let mut facts = vec![(INPUT.to_owned(), input(report))];
    let latency = &report.latency;
    if latency.count() > 0 {
        let from = if report.paced { "its intended time" } else { "its reading" };
        let quantiles = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];
        let items = quantiles.map(|(name, at)| format!("{name} {}", microseconds(latency.at(at))));
        let items = items.into_iter().chain([format!("from {from} to its end")]);
        facts.push(("latency \u{b5}s".to_owned(), items.collect()));
    }
    if report.paced {
        let behind = microseconds(report.behind_max_ns);
        let words = format!("{behind} \u{b5}s behind its intended time");
        facts.push(("latest send".to_owned(), vec![words]));
    }
    for Counted { by, counts, .. } in &report.tallies {
        let shown = counts.iter().take(SHOWN_MAX);
        let shown = shown.map(|(name, number)| {
            format!("{} {}", shortened(name, NAME_CHARACTERS_MAX), count(*number))
        });
        let mut items: Vec<_> = shown.collect();
        if counts.len() > SHOWN_MAX {
            items.push(format!("({SHOWN_MAX} of {} shown)", count(counts.len() as u64)));
        }
        facts.push((format!("tally {by}"), items));
    }
    if !report.written.is_empty() {
        let files = report.written.iter().map(|file| match file.kept {
            true => format!("{} as it was", file.name),
            false => format!("{} {}", file.name, count(file.lines)),
        });
        facts.push(("written".to_owned(), files.collect()));
    }
    if report.lines.skipped > 0 {
        let words = format!("{} whose id was seen before", count(report.lines.skipped));
        facts.push(("skipped".to_owned(), vec![words]));
    }
    if report.without_id > 0 {
        let words = format!("{}: file and line stand for it", count(report.without_id));
        facts.push(("without id".to_owned(), vec![words]));
    }
    if !report.given_up.is_empty() {
        let items = report.given_up.iter().take(SHOWN_MAX);
        let items = items.map(|it| format!("{} {} (to {})", it.stage, count(it.count), it.to));
        facts.push(("given up".to_owned(), items.collect()));
    }
    if report.taken > 0 {
        facts.push(("dead letters".to_owned(), taken(report)));
    }
    facts
}

/// Where every line that was read is: an equation, as the books are.
fn input(report: &Report) -> Vec<String> {
    let Lines { read, accepted, refused, skipped, blank, headers, unsent } = report.lines;
    let unit = match (report.of_rows, read) {
        (true, 1) => "row",
        (true, _) => "rows",
        (false, 1) => "line",
        (false, _) => "lines",
    };
    let terms = [
        (accepted, "accepted", true),
        (refused, "refused", true),
        (skipped, "skipped", true),
        (blank, "blank", true),
        (headers, if headers == 1 { "header" } else { "headers" }, false),
        (unsent, "not sent", false),
    ];
    let mut items = vec![format!("{} {unit}", count(read))];
    items.extend(sum("= ", &terms));
    items
}

/// How many dead letters each dead-letter stage took, and why: of those that are named.
fn taken(report: &Report) -> Vec<String> {
    let mut counts = BTreeMap::<_, u64>::new();
    for dead in &report.dead {
        if let Some(stage) = &dead.taken_by {
            *counts.entry((stage, &dead.stage, dead.cause.name())).or_default() += 1;
        }
    }
    let named: u64 = counts.values().sum();
    let name = |name: &str| shortened(name, NAME_CHARACTERS_MAX);
    let mut items: Vec<_> = counts
        .iter()
        .take(SHOWN_MAX)
        .map(|((by, from, cause), number)| {
            format!("{} {} from {} ({cause})", name(by), count(*number), name(from))
        })
        .collect();
    if counts.len() > SHOWN_MAX || report.taken > named {
        items.push(format!("({} in all)", count(report.taken)));
    }
    items
}
