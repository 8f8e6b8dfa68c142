//! The tables of a flow file, from the top: name, slip, input, bus, defaults, stages.

use toml::de::DeTable;
use waystage::{BusSettings, Idle, Pin};

use super::draft::{Draft, DraftStage, Named};
use super::model::{Format, Input};
use super::problem::{Problem, Span};
use super::reader::{Item, Reader, entries};
use super::settings::{Basis, SETTINGS};

const TOP: &[&str] = &["flow", "slip", "input", "bus", "durable", "defaults", "stage"];
const INPUT: &[&str] = &["files", "format", "id", "unique", "max-line"];
const BUS: &[&str] = &["workers", "pin", "idle", "hop-limit", "dead-letters"];

const IDLES: &[(&str, Idle)] =
    &[("park", Idle::Park), ("yield", Idle::Yield), ("spin", Idle::Spin)];

const WINDOW_DEFAULT: usize = 100_000;
const WINDOW_MAX: u64 = 1 << 24;
const LINE_DEFAULT: u64 = 1 << 20;
const LINE_MAX: u64 = 1 << 30;
const CORE_MAX: u64 = 4095;

impl Default for Input {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            format: Format::Ndjson,
            id: None,
            unique: None,
            max_line: LINE_DEFAULT,
        }
    }
}

impl Reader<'_> {
    /// Reads the whole table; what is wrong is reported and left at its default.
    pub(super) fn document(&mut self, table: &DeTable<'_>) -> Draft {
        let mut draft = Draft {
            name: None,
            slip: None,
            slip_span: 0..0,
            input: Input::default(),
            bus: BusSettings::default(),
            durable: None,
            stages: Vec::new(),
        };
        let items = self.items("the flow", table, TOP);
        let find = |key: &str| items.iter().find(|item| item.key == key);
        if let Some(item) = find("flow") {
            draft.name = self.filled(item);
        }
        match find("slip") {
            Some(item) => {
                draft.slip_span = item.span();
                draft.slip = self.slip(item);
            }
            None => self.report(missing("slip", "say which stages every record visits, as in")),
        }
        if let Some(table) = find("input").and_then(|item| self.table(item, "a table")) {
            draft.input = self.input(table);
        }
        if let Some(table) = find("bus").and_then(|item| self.table(item, "a table")) {
            draft.bus = self.bus(table);
        }
        if let Some(item) = find("durable") {
            draft.durable = self.durable(item);
        }
        let mut basis = Basis::default();
        if let Some(table) = find("defaults").and_then(|item| self.table(item, "a table")) {
            let items = self.items("[defaults]", table, SETTINGS);
            self.settings(&items, &mut basis);
        }
        if let Some(item) = find("stage") {
            draft.stages = self.stages(item, &basis, draft.input.format);
        }
        draft
    }

    fn slip(&mut self, item: &Item<'_>) -> Option<Vec<Named>> {
        let names = self.names(item)?;
        if names.is_empty() {
            let problem =
                Problem::error(item.span(), "`slip` is empty: records have nowhere to go");
            self.report(
                problem.label("at least one stage").help("list the stages, first hop first"),
            );
            return None;
        }
        Some(names)
    }

    /// A list of stage names.
    pub(super) fn names(&mut self, item: &Item<'_>) -> Option<Vec<Named>> {
        let list = self.list(item, "a list of stages, like [\"parse\"]")?;
        let mut names = Vec::with_capacity(list.len());
        for value in list.iter() {
            let element = Item { key: item.key, key_span: value.span(), value };
            let Some(name) = value.get_ref().as_str() else {
                self.mismatch(&element, "a list of stages, like [\"parse\"]");
                continue;
            };
            names.push(Named { name: name.to_owned(), span: value.span() });
        }
        Some(names)
    }

    fn input(&mut self, table: &DeTable<'_>) -> Input {
        let mut input = Input::default();
        let mut unique = None;
        for item in self.items("[input]", table, INPUT) {
            match item.key {
                "files" => input.files = self.files(&item),
                "format" => {
                    input.format = self.choice(&item, Format::NAMES).unwrap_or(input.format);
                }
                "id" => input.id = self.pointer(&item),
                "unique" => {
                    input.unique = self.unique(&item);
                    unique = Some(item.span());
                }
                _ => {
                    let size = self.size(&item, 1, LINE_MAX);
                    input.max_line = size.unwrap_or(LINE_DEFAULT);
                }
            }
        }
        if let (Some(span), Some(_), None) = (unique, input.unique, table.get("id")) {
            let message = "`unique` without `id` skips nothing";
            let problem = Problem::warning(span, message).label("no two records are the same");
            self.report(problem.help("say where a record's own id is, as in `id = \"/id\"`"));
        }
        input
    }

    fn files(&mut self, item: &Item<'_>) -> Vec<String> {
        const WANT: &str = "a file, or a list of files";
        if item.value.get_ref().is_str() {
            return self.file(item).into_iter().collect();
        }
        let Some(list) = self.list(item, WANT) else {
            return Vec::new();
        };
        let elements =
            list.iter().map(|value| Item { key: item.key, key_span: value.span(), value });
        let mut files: Vec<String> = Vec::with_capacity(list.len());
        let mut standard: Option<Span> = None;
        for element in elements {
            let Some(file) = self.file(&element) else {
                continue;
            };
            if let ("-", Some(first)) = (file.as_str(), &standard) {
                let problem = Problem::error(element.span(), "standard input is read twice");
                let problem = problem.label("and here").also(first.clone(), "here");
                self.report(problem.help("name \"-\" once"));
            }
            if file == "-" {
                standard = Some(element.span());
            }
            files.push(file);
        }
        files
    }

    fn file(&mut self, item: &Item<'_>) -> Option<String> {
        let text = self.filled(item)?;
        if let Err(error) = glob::Pattern::new(&text) {
            let offset = text.char_indices().nth(error.pos).map_or(text.len(), |(at, _)| at);
            let at = self.inner(&item.span(), &text).start + offset;
            let span = if at < item.span().end { at..at + 1 } else { item.span() };
            let problem = Problem::error(span, format!("`{text}` is not a file pattern"));
            let help = "`*`, `?` and `[...]` are wildcards; write `[[]` for a plain `[`";
            self.report(problem.label(error.msg).help(help));
            return None;
        }
        Some(text)
    }

    fn unique(&mut self, item: &Item<'_>) -> Option<usize> {
        if let Some(wanted) = item.value.get_ref().as_bool() {
            return wanted.then_some(WINDOW_DEFAULT);
        }
        let table = self.table(item, "true, or a table like { window = 100_000 }")?;
        let mut window = WINDOW_DEFAULT;
        for item in self.items("`unique`", table, &["window"]) {
            let number = self.within(&item, 1, WINDOW_MAX);
            window = number.and_then(|number| usize::try_from(number).ok()).unwrap_or(window);
        }
        Some(window)
    }

    fn bus(&mut self, table: &DeTable<'_>) -> BusSettings {
        let mut bus = BusSettings::default();
        for item in self.items("[bus]", table, BUS) {
            let mut trial = BusSettings::default();
            match item.key {
                "workers" => {
                    if let Some(workers) = self.within(&item, 1, 64) {
                        bus.workers = usize::try_from(workers).unwrap_or(bus.workers);
                    }
                    continue;
                }
                "pin" => {
                    bus.pin = self.pin(&item).unwrap_or_default();
                    continue;
                }
                "idle" => {
                    bus.idle = self.choice(&item, IDLES).unwrap_or_default();
                    continue;
                }
                "hop-limit" => trial.hop_limit = self.integer(&item).unwrap_or(trial.hop_limit),
                _ => trial.dead_letters = self.integer(&item).unwrap_or(trial.dead_letters),
            }
            match trial.validate() {
                Err(error) => self.out_of_range(&item, error.must),
                Ok(()) if item.key == "hop-limit" => bus.hop_limit = trial.hop_limit,
                Ok(()) => bus.dead_letters = trial.dead_letters,
            }
        }
        bus
    }

    fn pin(&mut self, item: &Item<'_>) -> Option<Pin> {
        if let Some(wanted) = item.value.get_ref().as_bool() {
            return Some(if wanted { Pin::InOrder } else { Pin::Off });
        }
        let list = self.list(item, "true, false, or a list of cores, like [0, 1]")?;
        let elements =
            list.iter().map(|value| Item { key: item.key, key_span: value.span(), value });
        let cores = elements.map(|element| self.within(&element, 0, CORE_MAX));
        let cores: Option<Vec<u64>> = cores.collect();
        let cores: Vec<usize> = cores?.into_iter().flat_map(usize::try_from).collect();
        if cores.is_empty() {
            let problem = Problem::error(item.span(), "`pin` names no core");
            self.report(problem.label("at least one core").help("write `pin = false` for none"));
            return None;
        }
        Some(Pin::Cores(cores))
    }

    fn stages(&mut self, item: &Item<'_>, basis: &Basis, format: Format) -> Vec<DraftStage> {
        let want = "a table of stages, as in [stage.parse]";
        let Some(table) = self.table(item, want) else {
            return Vec::new();
        };
        let mut stages = Vec::new();
        for stage in entries(table) {
            let named = self.stage_name(stage.key, stage.key_span.clone());
            if let (true, Some(table)) = (named, self.table(&stage, want)) {
                let name = Named { name: stage.key.to_owned(), span: stage.key_span.clone() };
                stages.push(self.stage(name, table, basis, format));
            }
        }
        stages
    }

    /// A text that is not empty.
    pub(super) fn filled(&mut self, item: &Item<'_>) -> Option<String> {
        let text = self.text(item)?;
        if text.is_empty() {
            self.report(Problem::error(item.span(), format!("`{}` is empty", item.key)));
            return None;
        }
        Some(text.to_owned())
    }
}

fn missing(key: &str, help: &str) -> Problem {
    Problem::of_file(format!("`{key}` is missing"))
        .help(format!("{help} `{key} = [\"parse\", \"archive\"]`"))
}
