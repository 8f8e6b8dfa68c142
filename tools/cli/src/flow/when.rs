//! Conditions on records: JSON pointers and what must be found there.

use serde_json::{Number, Value};
use toml::de::DeValue;

use super::draft::Condition;
use super::model::{Comparison, Test, When};
use super::problem::Problem;
use super::reader::{Item, Reader, entries};
use super::values::wide;

/// `ge` before `gt`: of two that are equally near to a misspelt one, the first is suggested, and
/// people write `gte`.
const COMPARISONS: &[&str] = &["eq", "ne", "le", "lt", "ge", "gt", "exists", "matches"];

impl Reader<'_> {
    pub(super) fn when(&mut self, item: &Item<'_>) -> Option<When> {
        let table = self.table(item, "a table, like { \"/mag\" = { ge = 4.5 } }")?;
        if table.is_empty() {
            let problem = Problem::warning(item.span(), "`when` has no conditions");
            self.report(problem.label("every record matches"));
        }
        let mut when = Some(When::default());
        for item in entries(table) {
            let span = self.inner(&item.key_span, item.key);
            let pointer = self.pointer_in(item.key, span);
            let test = self.test(&item);
            if let (Some(pointer), Some(test)) = (pointer.clone(), test.clone()) {
                self.conditions.push(Condition { pointer, test, span: item.span() });
            }
            when = when.zip(pointer.zip(test)).map(|(mut when, condition)| {
                when.0.push(condition);
                when
            });
        }
        when
    }

    fn test(&mut self, item: &Item<'_>) -> Option<Test> {
        match item.value.get_ref() {
            DeValue::Array(list) => {
                if list.is_empty() {
                    let problem = Problem::error(item.span(), "this list matches nothing");
                    self.report(problem.label("at least one value"));
                    return None;
                }
                let elements =
                    list.iter().map(|value| Item { key: item.key, key_span: value.span(), value });
                let values: Vec<Option<Value>> =
                    elements.map(|element| self.scalar(&element)).collect();
                values.into_iter().collect::<Option<Vec<Value>>>().map(Test::OneOf)
            }
            DeValue::Table(table) => {
                if table.is_empty() {
                    let problem = Problem::error(item.span(), "this compares with nothing");
                    let help = format!("add one of {}", COMPARISONS.join(", "));
                    self.report(problem.label("at least one comparison").help(help));
                    return None;
                }
                let before = self.problems.len();
                let mut all = Vec::new();
                for item in self.items("a comparison", table, COMPARISONS) {
                    all.extend(self.comparison(&item));
                }
                (self.problems.len() == before).then_some(Test::All(all))
            }
            _ => self.scalar(item).map(Test::Equals),
        }
    }

    fn comparison(&mut self, item: &Item<'_>) -> Option<Comparison> {
        match item.key {
            "exists" => match item.value.get_ref().as_bool() {
                Some(wanted) => Some(Comparison::Exists(wanted)),
                None => {
                    self.mismatch(item, "true or false");
                    None
                }
            },
            "matches" => self.filled(item).map(Comparison::Matches),
            "eq" => self.scalar(item).map(Comparison::Eq),
            "ne" => self.scalar(item).map(Comparison::Ne),
            key => {
                let value = self.scalar(item)?;
                if value.is_boolean() {
                    self.mismatch(item, "a number or text: others have no order");
                    return None;
                }
                Some(match key {
                    "lt" => Comparison::Lt(value),
                    "le" => Comparison::Le(value),
                    "gt" => Comparison::Gt(value),
                    _ => Comparison::Ge(value),
                })
            }
        }
    }

    /// A value as JSON has it.
    fn scalar(&mut self, item: &Item<'_>) -> Option<Value> {
        let problem =
            |label: &str| Problem::error(item.span(), "no record holds such a value").label(label);
        let fault = match item.value.get_ref() {
            DeValue::String(text) => return Some(Value::String(text.clone().into_owned())),
            DeValue::Boolean(value) => return Some(Value::Bool(*value)),
            DeValue::Integer(integer) => match wide(integer).and_then(Number::from_i128) {
                Some(number) => return Some(Value::Number(number)),
                None => problem("too large"),
            },
            DeValue::Float(float) => match float.as_str().parse().ok().and_then(Number::from_f64) {
                Some(number) => return Some(Value::Number(number)),
                None => problem("JSON has no such number"),
            },
            DeValue::Datetime(_) => {
                problem("JSON has no dates").help("compare with text, in quotes")
            }
            DeValue::Array(_) | DeValue::Table(_) => problem("only text, numbers, true and false"),
        };
        self.report(fault);
        None
    }
}
