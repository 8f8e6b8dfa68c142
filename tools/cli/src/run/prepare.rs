//! Before the start: everything that can be wrong is found here, all at once, and nothing that
//! exists is changed unless all is right.

use std::path::Path;
use std::sync::Arc;

use waystage::clock::{Clock as _, SystemClock};
use waystage::{Bus, BusSettings, OnFull, Slip, StageSettings};

use super::durable;
use super::feed::Feed;
use super::handlers::{Kept, handler};
use super::ledger::Ledger;
use super::options::Options;
use super::output::{self, Output, Wanted};
use super::problem::Problem;
use super::progress::Progress;
use super::record::Record;
use super::sources::{self, Source};
use super::unique::Window;
use crate::files::Taken;
use crate::flow::Flow;
use crate::flow::model::Handler;

/// A run that can start.
#[derive(Debug)]
pub struct Prepared {
    /// The bus with all stages and handlers.
    pub bus: Bus<Record>,
    /// The input, ready to be read.
    pub feed: Feed,
    /// What the run writes down.
    pub ledger: Arc<Ledger>,
    /// Tallies and outputs.
    pub kept: Kept,
    /// The bar.
    pub progress: Progress,
    /// Records that an earlier run left, and that are taken up.
    pub recovered: u64,
    /// When it began, in milliseconds since 1970.
    pub begin_ms: u64,
}

/// Builds everything; `ask` answers the question whether the log of `--fresh` may go.
///
/// # Errors
/// Everything that is wrong.
pub fn prepare(
    flow: &Flow,
    options: &Options,
    ask: &mut dyn FnMut(&str) -> bool,
) -> Result<Prepared, Vec<Problem>> {
    let begin_ms = SystemClock::new().wall_ms();
    let mut problems = Vec::new();
    let mut sources = sources(flow, options).unwrap_or_else(|found| {
        problems.extend(found);
        Vec::new()
    });
    if options.fresh && flow.durable.is_none() {
        let help = "leave it out: without [durable] every run begins anew";
        problems.push(Problem::new("--fresh is for a flow with a log", help));
    }
    let settings = settings(flow, options).map_err(|problem| problems.push(problem)).ok();
    let (Some(settings), true) = (settings, problems.is_empty()) else {
        return Err(problems);
    };
    let wanted = wanted_outputs(flow, options);
    let open = || {
        output::open(&wanted, &taken(options, &sources))
            .map_err(|problems| of_variable(problems, options, "--out"))
    };
    let one = |problem| vec![problem];
    let (bus, outputs) = match &flow.durable {
        None => {
            let help = "correct it in the flow file";
            let bus = Bus::start(settings);
            let bus = bus.map_err(|error| one(Problem::new(error.to_string(), help)))?;
            (bus, None)
        }
        Some(durable) => {
            // All that can be wrong with them is found before the log is touched.
            drop(open()?);
            if options.fresh {
                let directory = durable::directory(flow, durable);
                durable::begin_anew(&directory, options.yes, ask).map_err(one)?;
            }
            let bus = durable::start(flow, durable, settings, &wanted).map_err(one)?;
            let outputs = output::sinks(&wanted, |name| bus.sink(name));
            (bus, Some(outputs))
        }
    };
    let slip = stages(flow, &bus).map_err(one)?;
    let outputs = match outputs {
        Some(outputs) => outputs,
        None => open()?,
    };
    let kept = handlers(flow, &bus, outputs).map_err(one)?;
    if flow.durable.is_some() {
        durable::positions(&bus, flow, &mut sources)?;
    }
    let recovered = durable::recover(&bus, flow).map_err(one)? as u64;
    let ledger = Arc::new(Ledger::new());
    let progress = Progress::new(options.progress, &flow.name, &sources);
    let outputs = kept.outputs.iter().map(|(_, output)| Arc::clone(output)).collect();
    let feed = Feed { outputs, ..feed(flow, options, (&bus, slip), sources, &ledger) };
    Ok(Prepared { bus, feed, ledger, kept, progress, recovered, begin_ms })
}

fn sources(flow: &Flow, options: &Options) -> Result<Vec<Source>, Vec<Problem>> {
    if options.inputs.is_empty() {
        return sources::resolve(&flow.input.files, &flow.directory);
    }
    sources::resolve(&options.inputs, Path::new(""))
        .map_err(|problems| of_variable(problems, options, "--input"))
}

/// The problems with a value of this flag, naming the variable if it came from one.
fn of_variable(mut problems: Vec<Problem>, options: &Options, flag: &str) -> Vec<Problem> {
    let name = options.environment.name(flag);
    if name != flag {
        for problem in &mut problems {
            problem.help = format!("correct or unset {name}, or give {flag}, which wins");
            problem.what = format!("{} (from {name} of the environment)", problem.what);
        }
    }
    problems
}

/// The files that no stage may write.
fn taken(options: &Options, sources: &[Source]) -> Taken {
    let mut taken = Taken::default();
    for source in sources {
        let what = "the same file is an input of this run";
        match &source.path {
            Some(path) => taken.path(path, what),
            None => taken.standard_input(what),
        }
    }
    taken.path(&options.flow_file, "the same file is the flow file");
    taken.standard_outputs();
    taken
}

/// The settings of the bus.
fn settings(flow: &Flow, options: &Options) -> Result<BusSettings, Problem> {
    let workers = options.workers.unwrap_or(flow.bus.workers);
    if workers == 0 {
        let help = "set `workers` in [bus], or --workers, to 1 to 64";
        return Err(Problem::new("`workers` is 0; nothing would run", help));
    }
    // In a run every record is timed, so that the report's counts are exact.
    Ok(BusSettings { workers, meter_every: 1, ..flow.bus.clone() })
}

/// Opens the stages, without handlers yet; the itinerary.
fn stages(flow: &Flow, bus: &Bus<Record>) -> Result<Slip, Problem> {
    let help = "correct it in the flow file";
    let wrong = |error: waystage::BusError| Problem::new(error.to_string(), help);
    for stage in flow.opened() {
        bus.open_stage(&stage.name, stage.settings.clone(), None).map_err(wrong)?;
    }
    let slip = bus.slip(flow.slip.iter().map(String::as_str)).map_err(wrong)?;
    if flow.slip.is_empty() {
        let help = "name at least one stage in `slip`";
        return Err(Problem::new("the slip is empty", help));
    }
    Ok(slip)
}

fn handlers(flow: &Flow, bus: &Bus<Record>, outputs: Vec<Arc<Output>>) -> Result<Kept, Problem> {
    let help = "correct it in the flow file";
    let wrong = |error: waystage::BusError| Problem::new(error.to_string(), help);
    let mut kept = Kept::default();
    let mut outputs = outputs.into_iter();
    for stage in flow.opened() {
        let handler = handler(bus, stage, &mut outputs, &mut kept).map_err(wrong)?;
        bus.set_handler(&stage.name, handler).map_err(wrong)?;
    }
    Ok(kept)
}

/// The name and place of each stage's output, in the order of stages.
fn wanted_outputs(flow: &Flow, options: &Options) -> Vec<Wanted> {
    let root = options.out.as_deref().unwrap_or(&flow.directory);
    let wanted = flow.opened().filter_map(|stage| match &stage.handler {
        Handler::Write(path) => {
            let (stage, name) = (stage.name.clone(), path.display().to_string());
            Some(Wanted { stage, name, path: root.join(path) })
        }
        _ => None,
    });
    wanted.collect()
}

fn feed(
    flow: &Flow,
    options: &Options,
    (bus, slip): (&Bus<Record>, Slip),
    sources: Vec<Source>,
    ledger: &Arc<Ledger>,
) -> Feed {
    let parses = |stage: &crate::flow::model::Stage| matches!(stage.handler, Handler::Parse(_));
    Feed {
        sources,
        format: flow.input.format,
        id: options.id.clone().or_else(|| flow.input.id.clone()),
        window: flow.input.unique.map(Window::new),
        line_bytes_max: flow.input.max_line,
        refuses_wrong_rows: !flow.opened().any(parses),
        rate: options.rate,
        limit: options.limit,
        outputs: Vec::new(),
        durable: flow.durable.as_ref().map(|durable| durable.level),
        waits_for_room: flow.durable.is_some() && blocks(flow),
        publisher: bus.publisher(),
        slip,
        ledger: Arc::clone(ledger),
    }
}

/// Whether the input waits where the first stage is full.
fn blocks(flow: &Flow) -> bool {
    let first = flow.slip.first().and_then(|name| settings_of(flow, name));
    first.is_some_and(|settings| matches!(settings.on_full, OnFull::Block(_)))
}

/// The settings of the stage of this name.
#[must_use]
pub fn settings_of<'f>(flow: &'f Flow, stage: &str) -> Option<&'f StageSettings> {
    flow.stages.iter().find(|other| other.name == stage).map(|stage| &stage.settings)
}
