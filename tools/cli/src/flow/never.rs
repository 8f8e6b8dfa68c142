//! Conditions that no record can meet, as far as the flow alone tells: text is never a number, what
//! was not read has no values, and nothing is above five and below four.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::draft::{Condition, Draft, DraftStage};
use super::model::{Comparison, Format, Handler, Test};
use super::problem::Problem;
use super::reader::Reader;

/// What the records of a flow may be where a condition looks at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Any value of JSON.
    Json,
    /// An object of text: rows of CSV.
    Row,
    /// One text: a line.
    Line,
}

const CONVERT: &str = "values of CSV are text, which compares byte by byte (\"10\" is below \
                       \"9\"): compare with text in quotes, or convert the input to NDJSON for \
                       numbers";

impl Reader<'_> {
    /// Warns of conditions that never hold.
    pub(super) fn never(&mut self, draft: &Draft) {
        let values = values(draft);
        if draft.input.format != Format::Csv {
            self.unread(draft);
        }
        for condition in draft.stages.iter().flat_map(|stage| &stage.conditions) {
            match values {
                Values::Row => self.in_rows(condition),
                Values::Line => self.in_lines(condition),
                Values::Json => {}
            }
            if let Test::All(all) = &condition.test
                && let Some(why) = contradiction(all)
            {
                let problem = Problem::warning(condition.span.clone(), "this never holds");
                self.report(problem.label(why).help("all comparisons of a table must hold"));
            }
        }
    }

    /// Warns of the first stage that looks at the values of records nobody has read yet.
    fn unread(&mut self, draft: &Draft) {
        let Some(slip) = &draft.slip else {
            return;
        };
        let stages: HashMap<&str, &DraftStage> =
            draft.stages.iter().map(|stage| (stage.name.name.as_str(), stage)).collect();
        let targets: HashSet<&str> = draft
            .stages
            .iter()
            .flat_map(|stage| stage.targets.iter().map(|target| target.name.as_str()))
            .collect();
        let parses = |stage: &&DraftStage| matches!(stage.handler, Some(Handler::Parse(_)) | None);
        let any = draft.stages.iter().any(|stage| stage.reached && parses(&stage));
        // A rule may send records through such a stage first.
        let by_rule = draft.stages.iter().any(|it| parses(&it) && targets.contains(&*it.name.name));
        let hops = slip.iter().filter_map(|hop| stages.get(hop.name.as_str()).copied());
        let mut before =
            hops.take_while(|stage| !(parses(stage) || by_rule && !stage.targets.is_empty()));
        let found = if any {
            before.find(|stage| looks(stage) && !targets.contains(&*stage.name.name))
        } else {
            draft.stages.iter().find(|stage| stage.reached && looks(stage))
        };
        if let Some(stage) = found {
            let why = if any { "before any stage parses" } else { "but no stage parses" };
            let message = format!("`{}` looks at values, {why}", stage.name.name);
            let problem = Problem::warning(stage.name.span.clone(), message);
            let help = "put a stage with `parse = {}` before it in `slip`";
            self.report(problem.label("it never finds any").help(help));
        }
    }

    fn in_rows(&mut self, condition: &Condition) {
        let tokens = condition.pointer.tokens().count();
        let test = &condition.test;
        if tokens > 1 && needs_value(test) || tokens == 0 && !is_presence(test) {
            let message = format!("`{}` is no field of a row of CSV", condition.pointer);
            let problem = Problem::warning(condition.span.clone(), message);
            self.report(
                problem.label("this never holds").help("write \"/\" and the column's name"),
            );
            return;
        }
        self.of_text(condition, CONVERT);
    }

    fn in_lines(&mut self, condition: &Condition) {
        if !condition.pointer.is_root() && needs_value(&condition.test) {
            let message = format!("a line has no value at `{}`", condition.pointer);
            let problem = Problem::warning(condition.span.clone(), message);
            let help = "the whole line is at \"\"; records with fields need `parse` of another \
                        format";
            self.report(problem.label("this never holds").help(help));
            return;
        }
        self.of_text(condition, "a line is text: compare with text in quotes");
    }

    /// Warns when text is compared with what is none.
    fn of_text(&mut self, condition: &Condition, help: &str) {
        let other = |value: &Value| !value.is_string();
        let (never, what) = match &condition.test {
            Test::Equals(value) => (other(value), Some(value)),
            Test::OneOf(values) => {
                let others: Vec<_> = values.iter().filter(|value| other(value)).collect();
                (others.len() == values.len(), others.first().copied())
            }
            Test::All(all) => {
                let wrong = all.iter().find_map(|one| wanted(one).filter(|value| other(value)));
                let only_ne = all.iter().all(|one| match one {
                    Comparison::Ne(_) => true,
                    one => wanted(one).is_none_or(|value| !other(value)),
                });
                (!only_ne, wrong)
            }
        };
        let Some(value) = what.filter(|value| other(value)) else {
            return;
        };
        let kind = if value.is_boolean() { "true or false" } else { "a number" };
        let place = &condition.pointer;
        let message = format!("`{place}` is text and is compared with {kind}, {value}");
        let problem = Problem::warning(condition.span.clone(), message);
        let label = if never { "this never holds" } else { "this makes no difference" };
        self.report(problem.label(label).help(help));
    }
}

/// What records are once they were read.
fn values(draft: &Draft) -> Values {
    if draft.input.format == Format::Csv {
        // Rows are read with the input; `parse` says what is wrong with one.
        return Values::Row;
    }
    let lines = |stage: &DraftStage| match stage.handler {
        Some(Handler::Parse(format)) => Some(format == Format::Lines),
        _ => None,
    };
    let mut formats =
        draft.stages.iter().filter(|stage| stage.reached).filter_map(lines).peekable();
    if formats.peek().is_some() && formats.all(|lines| lines) { Values::Line } else { Values::Json }
}

/// Whether a stage needs the values of records.
fn looks(stage: &DraftStage) -> bool {
    matches!(stage.handler, Some(Handler::Tally(_)))
        || stage.conditions.iter().any(|condition| needs_value(&condition.test))
}

/// Whether a test fails where there is no value.
fn needs_value(test: &Test) -> bool {
    match test {
        Test::Equals(_) | Test::OneOf(_) => true,
        Test::All(all) => {
            all.iter().any(|one| !matches!(one, Comparison::Ne(_) | Comparison::Exists(false)))
        }
    }
}

/// Whether a test asks only whether something is there.
fn is_presence(test: &Test) -> bool {
    matches!(test, Test::All(all) if all.iter().all(|one| matches!(one, Comparison::Exists(_))))
}

/// What a comparison compares with.
fn wanted(comparison: &Comparison) -> Option<&Value> {
    match comparison {
        Comparison::Eq(value)
        | Comparison::Ne(value)
        | Comparison::Lt(value)
        | Comparison::Le(value)
        | Comparison::Ge(value)
        | Comparison::Gt(value) => Some(value),
        Comparison::Exists(_) | Comparison::Matches(_) => None,
    }
}

/// Why these comparisons cannot hold together, if that is plain.
fn contradiction(all: &[Comparison]) -> Option<&'static str> {
    let absent = all.iter().any(|one| matches!(one, Comparison::Exists(false)));
    let needed = |one: &Comparison| !matches!(one, Comparison::Ne(_) | Comparison::Exists(false));
    if absent && all.iter().any(needed) {
        return Some("what is not there compares with nothing");
    }
    let text = |one: &Comparison| match one {
        Comparison::Matches(_) => Some(true),
        Comparison::Ne(_) => None,
        one => wanted(one).map(Value::is_string),
    };
    let kinds: Vec<bool> = all.iter().filter_map(text).collect();
    if kinds.contains(&true) && kinds.contains(&false) {
        return Some("no value is both text and a number");
    }
    let lows = all.iter().filter_map(|one| match one {
        Comparison::Ge(value) | Comparison::Eq(value) => Some((value, true)),
        Comparison::Gt(value) => Some((value, false)),
        _ => None,
    });
    let is_empty = lows.into_iter().any(|(low, low_in)| {
        all.iter().any(|one| {
            let (high, high_in) = match one {
                Comparison::Le(value) | Comparison::Eq(value) => (value, true),
                Comparison::Lt(value) => (value, false),
                _ => return false,
            };
            match order(low, high) {
                Some(Ordering::Greater) => true,
                Some(Ordering::Equal) => !(low_in && high_in),
                _ => false,
            }
        })
    });
    is_empty.then_some("nothing lies between these bounds")
}

/// The order of two numbers or two texts.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i128(), right.as_i128()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        _ => None,
    }
}
