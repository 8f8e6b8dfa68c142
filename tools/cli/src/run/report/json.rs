//! The report for programs: one document, schema `waystage.run/1`. Durations are whole nanoseconds
//! with the unit in their name. It holds at least what the table holds.

use serde_json::{Map, Value, json};
use waystage::StageSnapshot;
use waystage::metrics::Quantiles;

use super::{Counted, Dead, Report};
use crate::run::account::Lines;
use crate::run::watch::Stop;

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.run/1";

/// The whole report.
#[must_use]
pub fn document(report: &Report) -> Value {
    let books = &report.books;
    let tallies = report.tallies.iter().map(|Counted { stage, by, counts }| {
        let counts = counts.iter().map(|(value, count)| json!({"value": value, "count": count}));
        json!({"stage": stage, "by": by, "counts": counts.collect::<Vec<_>>()})
    });
    let written = report.written.iter().map(|file| {
        json!({"file": file.name, "path": file.path, "stages": file.stages, "lines": file.lines,
            "kept": file.kept})
    });
    let refused = report.refused.1.iter().map(|refusal| {
        let place = &refusal.place;
        json!({"file": &*place.file, "line": place.line, "kind": refusal.kind.name(),
            "error": refusal.words})
    });
    let leftovers = report.leftovers.iter().map(|left| {
        let places = left.places.iter().map(ToString::to_string).collect::<Vec<_>>();
        json!({"stage": left.stage, "waiting": left.waiting, "running": left.running,
            "in_log": left.in_log, "records": places})
    });
    let given_up = report.given_up.iter();
    let given_up = given_up.map(|it| json!({"stage": it.stage, "count": it.count, "to": it.to}));
    json!({
        "schema": SCHEMA,
        "flow": report.flow,
        "exit": {"code": report.exit.code(), "name": report.exit.name()},
        "log": report.log.as_ref().map(|log| log.display().to_string()),
        "stopped_by": report.stop.map(|stop| match stop {
            Stop::Interrupt => "interrupt",
            Stop::Duration => "duration",
        }),
        "errors": report.failures,
        "input": input(report),
        "accepted": books.accepted,
        "recovered": books.recovered,
        "redriven": books.redriven,
        "completed": books.completed,
        "dead": books.dead,
        "expired": books.expired,
        "dropped": books.dropped,
        "undelivered": books.undelivered,
        "in_flight": books.in_flight,
        "adds_up": report.adds_up,
        "duration_ns": nanoseconds(report.time),
        "workers": report.workers,
        "latency": latency(report),
        "stages": report.stages.iter().map(|stage| row(report, stage)).collect::<Vec<_>>(),
        "tallies": tallies.collect::<Vec<_>>(),
        "written": written.collect::<Vec<_>>(),
        "skipped": report.lines.skipped,
        "without_id": report.without_id,
        "refused": report.refused.0,
        "refusals": refused.collect::<Vec<_>>(),
        "given_up": given_up.collect::<Vec<_>>(),
        "dead_letters_taken": report.taken,
        "dead_letters": report.dead.iter().map(dead).collect::<Vec<_>>(),
        "leftovers": leftovers.collect::<Vec<_>>(),
    })
}

/// The lines of the input: `read` is the sum of all the others.
fn input(report: &Report) -> Value {
    let Lines { read, accepted, refused, skipped, blank, headers, unsent } = report.lines;
    json!({"unit": if report.of_rows { "rows" } else { "lines" }, "read": read,
        "accepted": accepted, "refused": refused, "skipped": skipped, "blank": blank,
        "headers": headers, "unsent": unsent})
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn latency(report: &Report) -> Value {
    let from = if report.paced { "intended_time" } else { "reading" };
    let mut fields = Map::new();
    fields.insert("from".to_owned(), json!(from));
    meter(&mut fields, "", &report.latency);
    fields.insert("behind_max_ns".to_owned(), json!(report.behind_max_ns));
    Value::Object(fields)
}

fn row(report: &Report, stage: &StageSnapshot) -> Value {
    let left = report.leftovers.iter().find(|left| left.stage == stage.name);
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(stage.name));
    let numbers = [
        ("capacity", stage.capacity as u64),
        ("permits", u64::from(stage.permits)),
        ("in", stage.entered),
        ("done", stage.done),
        ("failed", stage.failed),
        ("panicked", stage.panicked),
        ("retried", stage.retried),
        ("dead", stage.dead),
        ("expired", stage.expired),
        ("dropped", stage.dropped),
        ("undelivered", left.map_or(0, |left| left.waiting)),
        ("running", left.map_or(0, |left| left.running)),
    ];
    for (name, number) in numbers {
        fields.insert(name.to_owned(), json!(number));
    }
    meter(&mut fields, "wait_", &stage.wait);
    meter(&mut fields, "service_", &stage.service);
    fields.insert("rate_per_second".to_owned(), json!(report.rate(stage)));
    Value::Object(fields)
}

/// The percentiles of one meter; all zero when nothing was measured.
fn meter(fields: &mut Map<String, Value>, name: &str, meter: &Quantiles) {
    fields.insert(format!("{name}count"), json!(meter.count()));
    for (quantile, at) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        fields.insert(format!("{name}{quantile}_ns"), json!(meter.at(at)));
    }
    fields.insert(format!("{name}max_ns"), json!(meter.max()));
}

fn dead(dead: &Dead) -> Value {
    json!({
        "id": dead.id,
        "file": &*dead.place.file,
        "line": dead.place.line,
        "stage": dead.stage,
        "cause": dead.cause.name(),
        "error": dead.words(),
        "attempts": dead.attempts,
        "attempts_max": dead.attempts_max,
        "trail": dead.trail,
        "taken_by": dead.taken_by,
    })
}
