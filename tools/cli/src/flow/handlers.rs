//! What stages do: exactly one handler key each.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::draft::DraftStage;
use super::model::{Action, Format, Handler, Rule, When};
use super::problem::Problem;
use super::reader::{Item, Reader};

/// The handlers of this version.
pub(super) const HANDLERS: &[&str] = &["parse", "filter", "route", "tally", "write", "work"];

const ACTIONS: &[&str] = &["first", "then", "instead"];

/// The longest that `work` keeps a core busy.
const BUSY_MAX: Duration = Duration::from_secs(3600);

impl Reader<'_> {
    pub(super) fn handler(&mut self, stage: &mut DraftStage, items: &[Item<'_>], format: Format) {
        let name = &stage.name.name;
        match items {
            // A key that is not known was meant to be it, most likely.
            [] if stage.unknown_keys => {}
            [] => {
                let message = format!("stage `{name}` has no handler");
                let problem = Problem::error(stage.name.span.clone(), message);
                let help = format!("give it one of: {}", HANDLERS.join(", "));
                self.report(problem.label("what does it do?").help(help));
            }
            [item] => stage.handler = self.one_handler(stage, item, format),
            [first, second, ..] => {
                let message = format!("stage `{name}` has {} handlers", items.len());
                let problem = Problem::error(second.key_span.clone(), message);
                let problem = problem
                    .label("a second handler")
                    .also(first.key_span.clone(), "the first handler");
                self.report(problem.help("a stage does one thing: make two stages of it"));
            }
        }
    }

    fn one_handler(
        &mut self,
        stage: &mut DraftStage,
        item: &Item<'_>,
        format: Format,
    ) -> Option<Handler> {
        match item.key {
            "parse" => {
                let found = self.argument(item, "format", "{ format = \"ndjson\" }", false)?;
                let format =
                    found.map_or(Some(format), |item| self.choice(&item, Format::NAMES))?;
                Some(Handler::Parse(format))
            }
            "filter" => {
                let want = "{ when = { \"/type\" = \"earthquake\" } }";
                let item = self.argument(item, "when", want, true)??;
                self.when(&item).map(Handler::Filter)
            }
            "route" => self.route(stage, item).map(Handler::Route),
            "tally" => {
                let item = self.argument(item, "by", "{ by = \"/type\" }", true)??;
                self.pointer(&item).map(Handler::Tally)
            }
            "write" => {
                let want = "{ path = \"out/archive.ndjson\" }";
                let item = self.argument(item, "path", want, true)??;
                stage.path = Some(item.span());
                self.path(&item).map(Handler::Write)
            }
            _ => {
                let item = self.argument(item, "busy", "{ busy = \"20us\" }", true)??;
                let busy = self.duration(&item)?;
                if busy > BUSY_MAX {
                    self.out_of_range(&item, "at most 1 h");
                    return None;
                }
                Some(Handler::Work(busy))
            }
        }
    }

    /// The only key of a handler's table. Nothing when the table is wrong; an inner nothing when
    /// a key that may be missing is missing.
    fn argument<'t>(
        &mut self,
        item: &Item<'t>,
        key: &str,
        example: &str,
        needed: bool,
    ) -> Option<Option<Item<'t>>> {
        let table = self.table(item, &format!("a table, like {example}"))?;
        let place = format!("`{}`", item.key);
        let unknown = table.len();
        let mut items = self.items(&place, table, &[key]);
        let all_known = unknown == items.len();
        let found = items.pop();
        if found.is_none() && !all_known {
            return None;
        }
        if found.is_none() && needed {
            let problem = Problem::error(item.span(), format!("{place} needs `{key}`"));
            let help = format!("write `{} = {example}`", item.key);
            self.report(problem.label(format!("`{key}` is missing")).help(help));
            return None;
        }
        Some(found)
    }

    fn path(&mut self, item: &Item<'_>) -> Option<PathBuf> {
        let text = self.filled(item)?;
        let fault = match text.as_str() {
            "-" => "standard output belongs to the report",
            text if text.ends_with('/') => "this is a folder",
            text if text.contains('\0') => "a path has no zero bytes",
            _ => return Some(PathBuf::from(text)),
        };
        let problem = Problem::error(item.span(), "`path` must be a file").label(fault);
        self.report(problem.help("write `path = \"out/archive.ndjson\"`"));
        None
    }

    fn route(&mut self, stage: &mut DraftStage, item: &Item<'_>) -> Option<Vec<Rule>> {
        let want = "a list of rules, like [ { when = { \"/mag\" = { ge = 5 } }, \
                    first = [\"alerts\"] } ]";
        let list = self.list(item, want)?;
        if list.is_empty() {
            let problem = Problem::warning(item.span(), "`route` has no rules");
            self.report(problem.label("records pass unchanged"));
        }
        let mut rules = Some(Vec::new());
        for value in list.iter() {
            let element = Item { key: item.key, key_span: value.span(), value };
            let rule = self.rule(stage, &element);
            rules = rules.zip(rule).map(|(mut rules, rule)| {
                rules.push(rule);
                rules
            });
        }
        rules
    }

    fn rule(&mut self, stage: &mut DraftStage, item: &Item<'_>) -> Option<Rule> {
        let DeValue::Table(table) = item.value.get_ref() else {
            self.mismatch(item, "a list of rules, each a table");
            return None;
        };
        let items = self.items("a rule", table, &["when", "first", "then", "instead"]);
        let mut actions = items.iter().filter(|item| ACTIONS.contains(&item.key));
        let (action, extra) = (actions.next(), actions.next());
        let mut read = None;
        match (action, extra) {
            (None, _) => {
                let problem = Problem::error(item.span(), "this rule does nothing");
                let help = "add `first`, `then` or `instead` with the stages, like \
                            `first = [\"alerts\"]`";
                self.report(problem.label("no `first`, `then` or `instead`").help(help));
            }
            (Some(action), Some(extra)) => {
                let message = format!("a rule has one action: `{}` or `{}`", action.key, extra.key);
                let problem = Problem::error(extra.key_span.clone(), message);
                let problem = problem.label("a second action");
                let problem = problem.also(action.key_span.clone(), "the first action");
                self.report(problem.help("make two rules of it: all that match apply, in order"));
            }
            (Some(action), None) => read = self.action(stage, action),
        }
        let when = match items.iter().find(|item| item.key == "when") {
            Some(item) => self.when(item),
            None => Some(When::default()),
        };
        Some(Rule { when: when?, action: read? })
    }

    fn action(&mut self, stage: &mut DraftStage, item: &Item<'_>) -> Option<Action> {
        let targets = self.names(item)?;
        if targets.is_empty() && item.key != "instead" {
            let message = format!("`{}` names no stages", item.key);
            self.report(Problem::warning(item.span(), message).label("this rule changes nothing"));
        }
        let names = targets.iter().map(|target| target.name.clone()).collect();
        stage.targets.extend(targets);
        Some(match item.key {
            "first" => Action::First(names),
            "then" => Action::Then(names),
            _ => Action::Instead(names),
        })
    }
}
