//! The settings of a stage: each key against the range that the library gives it.

use toml::de::DeTable;
use waystage::{OnFull, StageSettings};

use super::draft::{DraftStage, Named};
use super::handlers::HANDLERS;
use super::model::Format;
use super::problem::{Problem, Span};
use super::reader::{Item, Reader};

/// Keys that `[defaults]` and every stage may have.
pub(super) const SETTINGS: &[&str] = &[
    "capacity",
    "permits",
    "batch",
    "on-full",
    "retry",
    "dead-letter",
    "hop-timeout",
    "expiry",
    "emits",
];

const POLICIES: &[&str] = &["reject", "drop-newest", "drop-oldest", "block 5s"];

/// Settings as far as they are read, and where those stand that the checks of the whole need.
#[derive(Debug, Clone, Default)]
pub(super) struct Basis {
    settings: StageSettings,
    permits: Option<Span>,
    dead_letter: Option<Span>,
}

impl Reader<'_> {
    pub(super) fn stage(
        &mut self,
        name: Named,
        table: &DeTable<'_>,
        defaults: &Basis,
        format: Format,
    ) -> DraftStage {
        let known: Vec<&str> = SETTINGS.iter().chain(HANDLERS).copied().collect();
        let place = format!("[stage.{}]", name.name);
        let items = self.items(&place, table, &known);
        let unknown_keys = items.len() < table.len();
        let (settings, handlers): (Vec<Item<'_>>, Vec<Item<'_>>) =
            items.into_iter().partition(|item| SETTINGS.contains(&item.key));
        let mut basis = defaults.clone();
        // A default dead-letter stage keeps its own dead letters.
        if basis.settings.dead_letter.as_ref() == Some(&name.name) {
            basis.settings.dead_letter = None;
            basis.dead_letter = None;
        }
        self.settings(&settings, &mut basis);
        let mut stage = DraftStage {
            name,
            settings: basis.settings,
            permits: basis.permits,
            dead_letter: basis.dead_letter,
            unknown_keys,
            handler: None,
            path: None,
            reached: false,
            conditions: Vec::new(),
            targets: Vec::new(),
        };
        self.handler(&mut stage, &handlers, format);
        stage.conditions = std::mem::take(&mut self.conditions);
        stage
    }

    /// Reads settings over `basis`; what is wrong stays as it was.
    pub(super) fn settings(&mut self, items: &[Item<'_>], basis: &mut Basis) {
        for item in items {
            let mut trial = StageSettings::default();
            if self.setting(item, &mut trial).is_none() {
                continue;
            }
            if let Err(error) = trial.validate() {
                self.out_of_range(item, error.must);
                continue;
            }
            let settings = &mut basis.settings;
            match item.key {
                "capacity" => settings.capacity = trial.capacity,
                "permits" => {
                    settings.permits = trial.permits;
                    basis.permits = Some(item.span());
                }
                "batch" => settings.batch = trial.batch,
                "on-full" => settings.on_full = trial.on_full,
                "retry" => {
                    settings.attempts = trial.attempts;
                    settings.retry = trial.retry;
                }
                "dead-letter" => {
                    settings.dead_letter = trial.dead_letter;
                    basis.dead_letter = Some(item.span());
                }
                "hop-timeout" => settings.hop_timeout = trial.hop_timeout,
                "expiry" => settings.expiry = trial.expiry,
                _ => settings.emits = trial.emits,
            }
        }
    }

    /// Reads one setting into settings that are right in all others.
    fn setting(&mut self, item: &Item<'_>, trial: &mut StageSettings) -> Option<()> {
        match item.key {
            "capacity" => trial.capacity = self.integer(item)?,
            "permits" => trial.permits = self.integer(item)?,
            "batch" => trial.batch = self.integer(item)?,
            "on-full" => trial.on_full = self.on_full(item)?,
            "retry" => (trial.attempts, trial.retry) = self.retry(item)?,
            "dead-letter" => trial.dead_letter = Some(self.filled(item)?),
            "hop-timeout" => trial.hop_timeout = self.duration(item)?,
            "expiry" => trial.expiry = Some(self.duration(item)?),
            _ => trial.emits = self.integer(item)?,
        }
        Some(())
    }

    fn on_full(&mut self, item: &Item<'_>) -> Option<OnFull> {
        let text = self.text(item)?;
        match text {
            "reject" => Some(OnFull::Reject),
            "drop-newest" => Some(OnFull::DropNewest),
            "drop-oldest" => Some(OnFull::DropOldest),
            "block" => {
                let problem = Problem::error(item.span(), "`block` needs a time");
                self.report(problem.label("block for how long?").help("write \"block 5s\""));
                None
            }
            _ => match text.strip_prefix("block ") {
                Some(time) => {
                    let span = self.part(item, text, "block ".len()..text.len());
                    Some(OnFull::Block(self.duration_in(time, span)?))
                }
                None => {
                    self.not_a_choice(item, text, POLICIES);
                    None
                }
            },
        }
    }
}
