//! The handlers of a flow, as the bus calls them.

use std::sync::Arc;
use std::time::Duration;

use waystage::clock::{Clock, SystemClock};
use waystage::{Bus, BusError, Context, Failure, Handler, Route, SlipError};

use super::output::Output;
use super::parse::parse;
use super::record::Record;
use super::rules::matches;
use super::tally::Tally;
use crate::flow::model::{self, Action, When};

/// What handlers share with the report.
#[derive(Debug, Default)]
pub struct Kept {
    /// The tallies with the names of their stages, in the order of the flow.
    pub tallies: Vec<(String, Arc<Tally>)>,
    /// The outputs with the names of their stages, in the order of the flow.
    pub outputs: Vec<(String, Arc<Output>)>,
}

/// A rule whose stages are routes of the bus.
struct Rule {
    when: When,
    change: Change,
}

enum Change {
    First(Vec<Route>),
    Then(Vec<Route>),
    Instead(Vec<Route>),
}

/// The handler of one stage. A stage that writes takes the next of `outputs`.
///
/// # Errors
/// A stage named by a rule cannot be one.
pub fn handler(
    bus: &Bus<Record>,
    stage: &model::Stage,
    outputs: &mut impl Iterator<Item = Arc<Output>>,
    kept: &mut Kept,
) -> Result<Handler<Record>, BusError> {
    Ok(match &stage.handler {
        model::Handler::Parse(format) => {
            let format = *format;
            Handler::each(move |context: &mut Context<'_, Record>| {
                parse(context.payload_mut(), format).map_err(Failure::permanent)
            })
        }
        model::Handler::Filter(when) => {
            let when = when.clone();
            Handler::each(move |context: &mut Context<'_, Record>| {
                if !matches(&when, context.payload().value.as_ref()) {
                    context.clear_slip();
                }
                Ok(())
            })
        }
        model::Handler::Route(rules) => route(bus, rules)?,
        model::Handler::Tally(by) => {
            let tally = Arc::new(Tally::new(by.clone(), bus.saved(&stage.name).values()));
            kept.tallies.push((stage.name.clone(), Arc::clone(&tally)));
            let is_saved = stage.settings.saves > 0;
            Handler::each(move |context: &mut Context<'_, Record>| {
                let name = tally.name(context.payload().value.as_ref());
                if is_saved {
                    // What the log has counts: the settlement of an earlier one may have failed.
                    let key = Tally::key(&name);
                    let before = context.saved(&key);
                    let count = before.and_then(|value| Tally::read(&value)).map_or(0, |it| it.1);
                    context.save(&key, &Tally::saved(&name, count + 1))?;
                }
                tally.count(name);
                Ok(())
            })
        }
        model::Handler::Write(_) => {
            let output = outputs.next().expect("one output was opened for each stage that writes");
            kept.outputs.push((stage.name.clone(), Arc::clone(&output)));
            Handler::each(move |context: &mut Context<'_, Record>| write(&output, context))
        }
        model::Handler::Work(time) => {
            let time = *time;
            Handler::each(move |_: &mut Context<'_, Record>| {
                keep_busy(time);
                Ok(())
            })
        }
    })
}

fn route(bus: &Bus<Record>, rules: &[model::Rule]) -> Result<Handler<Record>, BusError> {
    let routes =
        |names: &[String]| names.iter().map(|name| bus.route(name)).collect::<Result<Vec<_>, _>>();
    let mut resolved = Vec::with_capacity(rules.len());
    for rule in rules {
        let change = match &rule.action {
            Action::First(names) => Change::First(routes(names)?),
            Action::Then(names) => Change::Then(routes(names)?),
            Action::Instead(names) => Change::Instead(routes(names)?),
        };
        resolved.push(Rule { when: rule.when.clone(), change });
    }
    Ok(Handler::each(move |context: &mut Context<'_, Record>| {
        for rule in &resolved {
            if matches(&rule.when, context.payload().value.as_ref()) {
                // A slip that is full stays full: another attempt would be of no use.
                apply(context, &rule.change)
                    .map_err(|error| Failure::permanent(error.to_string()))?;
            }
        }
        Ok(())
    }))
}

fn apply(context: &mut Context<'_, Record>, change: &Change) -> Result<(), SlipError> {
    match change {
        Change::First(routes) => routes.iter().rev().try_for_each(|route| context.push(*route)),
        Change::Then(routes) => routes.iter().try_for_each(|route| context.append(*route)),
        Change::Instead(routes) => {
            context.clear_slip();
            routes.iter().try_for_each(|route| context.append(*route))
        }
    }
}

/// Writes the value as one line of JSON; the text as it came when it was never read.
fn write(output: &Output, context: &mut Context<'_, Record>) -> Result<(), Failure> {
    let record = context.payload();
    let mut line = Vec::with_capacity(record.text.len() + 16);
    match &record.value {
        Some(value) => serde_json::to_writer(&mut line, value)
            .map_err(|error| Failure::permanent(error.to_string()))?,
        None => line.extend_from_slice(record.text.as_bytes()),
    }
    line.push(b'\n');
    if let Some(sink) = output.sink() {
        return context.write(sink, &line).map_err(Failure::from);
    }
    output.append(&line).map_err(|error| Failure::new(format!("writing {}: {error}", output.name)))
}

fn keep_busy(time: Duration) {
    let clock = SystemClock::new();
    while Duration::from_nanos(clock.monotonic_ns()) < time {
        std::hint::spin_loop();
    }
}
