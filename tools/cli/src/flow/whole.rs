//! Checks of the flow as a whole: names that must exist, stages nobody reaches, files that two
//! stages would write.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use super::draft::{Draft, Named};
use super::model::Handler;
use super::problem::Problem;
use super::reader::Reader;

/// The most hops a slip may hold.
const SLIP_MAX: usize = 65_535;

/// The most permits all stages may have together.
const PERMITS_MAX: usize = 1 << 20;

impl Reader<'_> {
    /// Checks what no single table shows.
    pub(super) fn whole(&mut self, draft: &mut Draft) {
        let known = self.names_known(draft);
        self.slip_length(draft);
        self.permits(draft);
        self.paths(draft);
        self.dead_letters(draft);
        self.circles(draft);
        self.log_asks(draft);
        // A misspelt name would make the stage that was meant look forgotten.
        if known {
            self.reached(draft);
            self.never(draft);
        }
    }

    fn names_known(&mut self, draft: &Draft) -> bool {
        let known: HashSet<&str> =
            draft.stages.iter().map(|stage| stage.name.name.as_str()).collect();
        let slip = draft.slip.iter().flatten().cloned();
        let targets = draft.stages.iter().flat_map(|stage| stage.targets.iter().cloned());
        let dead = draft.stages.iter().filter_map(|stage| {
            let name = stage.settings.dead_letter.clone()?;
            Some(Named { name, span: stage.dead_letter.clone()? })
        });
        let mut reported = HashSet::new();
        for Named { name, span } in slip.chain(targets).chain(dead) {
            if known.contains(name.as_str()) || !reported.insert(span.start) {
                continue;
            }
            let mut problem = Problem::error(span, format!("stage `{name}` is not defined"));
            let near = self.nearest(&name, known.iter().copied());
            let near = draft.stages.iter().find(|stage| Some(stage.name.name.as_str()) == near);
            problem = match near {
                Some(near) => problem.also(near.name.span.clone(), "a stage with a similar name"),
                None => problem.help(format!("add a table [stage.{}]", bare(&name))),
            };
            self.report(problem);
        }
        reported.is_empty()
    }

    fn slip_length(&mut self, draft: &Draft) {
        let hops = draft.slip.as_ref().map_or(0, Vec::len);
        let limit = usize::try_from(draft.bus.hop_limit).unwrap_or(usize::MAX);
        if hops > SLIP_MAX || hops > limit {
            let message =
                format!("`slip` has {hops} hops, and the limit is {}", limit.min(SLIP_MAX));
            let problem = Problem::error(draft.slip_span.clone(), message).label("too long");
            self.report(match hops > SLIP_MAX {
                true => problem,
                false => problem.help("raise `hop-limit` in [bus]"),
            });
        }
    }

    fn permits(&mut self, draft: &Draft) {
        let workers = draft.bus.workers;
        for stage in &draft.stages {
            let permits = usize::try_from(stage.settings.permits).unwrap_or(usize::MAX);
            if let (Some(span), true) = (&stage.permits, permits > workers) {
                let are = if workers == 1 { "worker" } else { "workers" };
                let message = format!(
                    "`{}` has {permits} permits but the bus has {workers} {are}; {} can never be \
                     used",
                    stage.name.name,
                    permits - workers
                );
                self.report(Problem::warning(span.clone(), message));
            }
        }
        let all: usize = draft.stages.iter().map(|stage| stage.settings.permits as usize).sum();
        if all > PERMITS_MAX {
            let message = format!("all stages together have {all} permits");
            let problem = Problem::of_file(message);
            self.report(problem.help(format!("a bus has at most {PERMITS_MAX}")));
        }
    }

    fn paths(&mut self, draft: &Draft) {
        let mut writers = HashMap::new();
        for stage in &draft.stages {
            let (Some(Handler::Write(path)), Some(span)) = (&stage.handler, &stage.path) else {
                continue;
            };
            let first = writers.entry(plain(path)).or_insert((&stage.name.name, span));
            if first.1 != span {
                let message = format!("two stages write `{}`", path.display());
                let problem = Problem::error(span.clone(), message).label("also written here");
                let problem = problem.also(first.1.clone(), format!("written by `{}`", first.0));
                self.report(problem.help("send both to one stage, or write two files"));
            }
        }
    }

    fn dead_letters(&mut self, draft: &Draft) {
        for stage in &draft.stages {
            let own = stage.settings.dead_letter.as_ref() == Some(&stage.name.name);
            if let (true, Some(span)) = (own, &stage.dead_letter) {
                let message = format!("`{}` cannot take its own dead letters", stage.name.name);
                let problem = Problem::error(span.clone(), message).label("the stage itself");
                self.report(problem.help("name another stage, or leave `dead-letter` out"));
            }
        }
    }

    fn reached(&mut self, draft: &mut Draft) {
        let Some(slip) = &draft.slip else {
            return;
        };
        let stages: HashMap<&str, _> =
            draft.stages.iter().map(|stage| (stage.name.name.as_str(), stage)).collect();
        let mut reached = HashSet::new();
        let mut next: Vec<&str> = slip.iter().map(|named| named.name.as_str()).collect();
        while let Some(name) = next.pop() {
            if let (true, Some(stage)) = (reached.insert(name), stages.get(name)) {
                next.extend(stage.targets.iter().map(|target| target.name.as_str()));
                next.extend(stage.settings.dead_letter.as_deref());
            }
        }
        let reached: Vec<bool> =
            draft.stages.iter().map(|stage| reached.contains(&*stage.name.name)).collect();
        for (stage, reached) in draft.stages.iter_mut().zip(reached) {
            stage.reached = reached;
            if reached {
                continue;
            }
            let message = format!("no record ever reaches `{}`", stage.name.name);
            let problem = Problem::warning(stage.name.span.clone(), message);
            let problem = problem.label("not in `slip`, nor in a rule");
            self.report(problem.help("add it to `slip` or to a rule, or remove it"));
        }
    }
}

/// A path without `.` and `..` where that can be said without looking at the disk.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(plain.components().next_back(), Some(Component::Normal(_))) =>
            {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// A name as a table header writes it.
fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) { name.to_owned() } else { format!("{name:?}") }
}
