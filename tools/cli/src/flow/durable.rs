//! The table `[durable]`: where the log is, what it promises, and what it asks of stages.

use std::path::PathBuf;
use std::time::Duration;

use waystage::log::Sync;
use waystage::{Level, OnFull};

use super::draft::Draft;
use super::model::{Durable, Handler};
use super::problem::Problem;
use super::reader::{Item, Reader};

const DURABLE: &[&str] = &["dir", "level", "sync"];

const LEVELS: &[(&str, Level)] = &[
    ("exactly-once", Level::ExactlyOnce),
    ("at-least-once", Level::AtLeastOnce),
    ("at-most-once", Level::AtMostOnce),
];

/// Bytes of the counts that a tally may save.
pub(super) const TALLY_BYTES: usize = 16 << 20;
/// How long a record may wait for its flush, when nothing is said.
const SYNC_DEFAULT: Duration = Duration::from_millis(10);
/// The longest such time.
const SYNC_MAX: Duration = Duration::from_secs(60);

impl Reader<'_> {
    /// Reads the table; nothing when it is wrong, or says that all stays in memory.
    pub(super) fn durable(&mut self, item: &Item<'_>) -> Option<Durable> {
        let table = self.table(item, "a table, as in [durable]")?;
        let mut directory = None;
        let (mut level, mut sync) = (Level::ExactlyOnce, Sync::Within(SYNC_DEFAULT));
        let items = self.items("[durable]", table, DURABLE);
        let is_there = items.iter().any(|item| item.key == "dir");
        for item in items {
            match item.key {
                "dir" => directory = self.filled(&item).map(PathBuf::from),
                "level" => level = self.choice(&item, LEVELS).unwrap_or(level),
                _ => sync = self.sync(&item).unwrap_or(sync),
            }
        }
        if !is_there {
            let problem = Problem::error(item.key_span.clone(), "`dir` is missing in [durable]");
            let help = "say where the log is kept, as in `dir = \"var/log\"`";
            self.report(problem.label("no directory").help(help));
        }
        if level == Level::AtMostOnce {
            return None;
        }
        Some(Durable { directory: directory?, level, sync })
    }

    fn sync(&mut self, item: &Item<'_>) -> Option<Sync> {
        match self.text(item)? {
            "each" => Some(Sync::Each),
            "os" => Some(Sync::Os),
            text => {
                let time = self.duration_in(text, self.part(item, text, 0..text.len()))?;
                if time > SYNC_MAX {
                    self.out_of_range(item, "\"each\", \"os\", or a time of at most 60s");
                    return None;
                }
                Some(Sync::Within(time))
            }
        }
    }

    /// What a log asks of stages.
    pub(super) fn log_asks(&mut self, draft: &Draft) {
        let Some(durable) = &draft.durable else { return };
        for stage in &draft.stages {
            let name = &stage.name.name;
            if stage.settings.on_full == OnFull::DropOldest {
                let message = format!("`{name}` drops the oldest, and nothing durable is dropped");
                let problem = Problem::error(stage.name.span.clone(), message);
                self.report(problem.help("give it another `on-full`, like \"block 5s\""));
            }
            let is_tally = matches!(stage.handler, Some(Handler::Tally(_)));
            if is_tally && stage.settings.permits > 1 {
                let span = stage.permits.clone().unwrap_or_else(|| stage.name.span.clone());
                let message = format!("`{name}` counts durably, and for that has one permit");
                let problem = Problem::error(span, message).label("more than one");
                self.report(problem.help("give it `permits = 1`: counts are saved one by one"));
            }
        }
        if draft.input.unique.is_some() && durable.level != Level::ExactlyOnce {
            let message = "`unique` forgets what it saw when a run ends";
            let problem = Problem::warning(draft.slip_span.clone(), message);
            self.report(problem.help("write `level = \"exactly-once\"` in [durable] to keep it"));
        }
    }
}
