//! Walking the tables of a flow file: known keys in the order of the file, every other key a
//! problem with a suggestion.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::draft::Condition;
use super::names::nearest;
use super::problem::{Problem, Span};

/// Keys and handlers of later versions: known, so that they are not taken for typing errors.
const LATER: &[&str] = &[
    "actor",
    "actors",
    "byte-budget",
    "control",
    "deadline",
    "exec",
    "filter-type",
    "gateway",
    "metrics",
    "order-by",
    "pull",
    "subscribe",
    "topic",
    "topics",
    "tracing",
];

/// With more problems than this, suggestions are no longer looked for.
const SUGGESTED_MAX: usize = 20;

/// A key with its value, or an element of a list under the list's key.
#[derive(Debug, Clone)]
pub(super) struct Item<'t> {
    pub(super) key: &'t str,
    pub(super) key_span: Span,
    pub(super) value: &'t Spanned<DeValue<'t>>,
}

impl Item<'_> {
    pub(super) fn span(&self) -> Span {
        self.value.span()
    }
}

/// Collects problems while a file is read.
#[derive(Debug)]
pub(super) struct Reader<'s> {
    pub(super) source: &'s str,
    pub(super) problems: Vec<Problem>,
    /// The conditions of the stage that is being read.
    pub(super) conditions: Vec<Condition>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, problems: Vec::new(), conditions: Vec::new() }
    }

    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Nearest name, or none when there are so many problems that looking costs too much.
    pub(super) fn nearest<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if self.problems.len() > SUGGESTED_MAX {
            return None;
        }
        nearest(word, candidates)
    }

    /// The items of a table whose keys are known, in the order of the file; `place` names the
    /// table in messages.
    pub(super) fn items<'t>(
        &mut self,
        place: &str,
        table: &'t DeTable<'_>,
        known: &[&str],
    ) -> Vec<Item<'t>> {
        let mut items = entries(table);
        items.retain(|item| {
            let fine = known.contains(&item.key);
            if !fine {
                self.unknown_key(place, item, known);
            }
            fine
        });
        items
    }

    fn unknown_key(&mut self, place: &str, item: &Item<'_>, known: &[&str]) {
        let (key, span) = (item.key, item.key_span.clone());
        if LATER.contains(&key) {
            let problem = Problem::error(span, format!("`{key}` is not in this version"));
            self.report(problem.label("comes with a later version").help("remove it"));
            return;
        }
        let hyphenated = key.replace('_', "-");
        let (label, meant) = if known.contains(&hyphenated.as_str()) {
            ("keys are written with hyphens".to_owned(), Some(hyphenated.as_str()))
        } else {
            (format!("not a key of {place}"), self.nearest(key, known.iter().copied()))
        };
        let mut problem = Problem::error(span, format!("unknown key `{key}`")).label(label);
        problem = match (meant, key) {
            (None, "attempts" | "backoff" | "jitter") => problem
                .help("it is part of `retry`: `retry = { attempts = 3, backoff = \"50ms..5s\" }`"),
            (None, "level" | "sync") => problem.help(format!(
                "it is said once for all stages, in [durable]: `{key} = ...` beside `dir`"
            )),
            (None, _) => problem.help(format!("the keys of {place}: {}", known.join(", "))),
            (meant, _) => problem.suggest(meant),
        };
        self.report(problem);
    }

    /// A value of the wrong type.
    pub(super) fn mismatch(&mut self, item: &Item<'_>, want: &str) {
        let message = format!("`{}` must be {want}", item.key);
        let label = format!("this is {}", kind(item.value.get_ref()));
        self.report(Problem::error(item.span(), message).label(label));
    }
}

/// All items of a table, in the order of the file.
pub(super) fn entries<'t>(table: &'t DeTable<'_>) -> Vec<Item<'t>> {
    let item = |(key, value): (&'t Spanned<_>, &'t Spanned<_>)| -> Item<'t> {
        let text: &std::borrow::Cow<'_, str> = key.get_ref();
        Item { key: text, key_span: key.span(), value }
    };
    let mut items: Vec<Item<'t>> = table.iter().map(item).collect();
    items.sort_by_key(|item| item.key_span.start);
    items
}

/// What a value is, in words.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
