//! A run with a log: the bus that goes on where an earlier run ended, and what the log says of
//! inputs and outputs.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use waystage::clock::{Clock as _, SystemClock};
use waystage::log::{Log, LogError, LogSettings, SinkSettings};
use waystage::{Bus, BusError, BusSettings, DurableSettings, EnvelopeId, Missing};

use super::output::Wanted;
use super::problem::{Problem, is_failure};
use super::record::Record;
use super::resume::Position;
use super::sources::Source;
use crate::flow::Flow;
use crate::flow::model::Durable;

/// The longest name of an input, with room for a number behind it.
const NAME_BYTES_MAX: usize = 200;

/// Ids that are remembered when the flow does not say.
const REMEMBERED: u32 = 100_000;

/// Where the log of a flow is.
#[must_use]
pub fn directory(flow: &Flow, durable: &Durable) -> PathBuf {
    flow.directory.join(&durable.directory)
}

/// Opens the log and starts a bus on it.
///
/// # Errors
/// What is wrong with the log, with an output, or with the settings.
pub fn start(
    flow: &Flow,
    durable: &Durable,
    settings: BusSettings,
    outputs: &[Wanted],
) -> Result<Bus<Record>, Problem> {
    let directory = directory(flow, durable);
    let sink = |output: &Wanted| {
        let mut sink = SinkSettings::new(&*output.name, &output.path);
        sink.empties = true;
        sink
    };
    let unique = flow.input.unique.and_then(|window| u32::try_from(window).ok());
    let mut settings_of_log = DurableSettings::in_directory(directory);
    settings_of_log.log = LogSettings { sync: durable.sync, ..LogSettings::default() };
    settings_of_log.sinks = outputs.iter().map(sink).collect();
    settings_of_log.remembered_ids = unique.unwrap_or(REMEMBERED);
    let started = Bus::start_durable(settings, &settings_of_log);
    started.map_err(|error| wrong(&error, &settings_of_log.directory))
}

/// Removes the log, if there is one: after a question, unless that is answered already.
///
/// # Errors
/// When it may not go, or what is wrong with it.
pub fn begin_anew(
    directory: &Path,
    is_meant: bool,
    ask: &mut dyn FnMut(&str) -> bool,
) -> Result<(), Problem> {
    let shown = directory.display();
    // What cannot be looked at may be a log too.
    let has_log = match waystage::log::outline(directory) {
        Ok(outline) => !outline.segments.is_empty(),
        Err(LogError::NoLog(_)) => false,
        Err(_) => directory.exists(),
    };
    if has_log && !is_meant && !ask(&format!("Remove the log in {shown} and begin anew?")) {
        let help = "add --yes if what the log holds may go: unfinished records, dead letters, \
                    and where the inputs stand";
        return Err(Problem::new(format!("--fresh removes the log in {shown}"), help));
    }
    let error = |error: LogError| wrong(&BusError::Log(error), directory);
    Log::discard(directory).map(drop).map_err(error)
}

/// What is wrong with a log, and what to do.
fn wrong(error: &BusError, directory: &Path) -> Problem {
    let shown = directory.display();
    let help = match error {
        BusError::Log(LogError::Locked(_)) => {
            "another run has the log open: wait for its end, or stop it".to_owned()
        }
        BusError::Log(LogError::SinkTaken(_)) => {
            "write elsewhere, or wait for the end of the other run".to_owned()
        }
        BusError::Log(LogError::SinkNotGiven(_)) => {
            "put the stage that writes it back into the flow for a run, or begin anew with --fresh"
                .to_owned()
        }
        BusError::Log(LogError::Sink { .. }) => {
            "put the file back as it was, or begin anew with --fresh".to_owned()
        }
        BusError::Log(
            LogError::Damaged(_)
            | LogError::Record { .. }
            | LogError::Checkpoint(_)
            | LogError::Foreign(_)
            | LogError::OtherLog(_),
        ) => format!(
            "look at it with `waystage log verify {shown}`; `waystage log salvage {shown} --to \
             DIR` saves what is left, --fresh begins anew"
        ),
        BusError::Log(error) if has_failed(error) => {
            "mend what the storage says; nothing is lost, and the next run goes on".to_owned()
        }
        BusError::Log(_) => {
            "free room, or mend what the message names: `dir` of [durable] and the \
                             outputs have to be writable"
                .to_owned()
        }
        _ => "correct it in the flow file".to_owned(),
    };
    let mut what = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let words = error.to_string();
        if !what.contains(&words) {
            what = format!("{what}: {words}");
        }
        cause = error.source();
    }
    let is_failure = matches!(error, BusError::Log(error) if has_failed(error));
    Problem::new(what, help).failed(is_failure)
}

/// Whether it is the storage that failed.
fn has_failed(error: &LogError) -> bool {
    match error {
        LogError::Storage { source, .. } | LogError::NoRoom { source, .. } => is_failure(source),
        LogError::Poisoned { .. } => true,
        _ => false,
    }
}

/// Takes up what an earlier run left; how many records that are.
///
/// # Errors
/// When the log has records for stages that the flow does not have, or cannot be written.
pub fn recover(bus: &Bus<Record>, flow: &Flow) -> Result<usize, Problem> {
    bus.recover(Missing::Refuse).map(|recovery| recovery.taken_up).map_err(|error| {
        if let (BusError::Log(_), Some(durable)) = (&error, &flow.durable) {
            return wrong(&error, &directory(flow, durable));
        }
        let help = "put the stage back into the flow until its records are done, or begin anew \
                    with --fresh";
        Problem::new(error.to_string(), help)
    })
}

/// Looks where the inputs stand, and whether they are still the files that were read.
///
/// # Errors
/// Each that has changed.
pub fn positions(
    bus: &Bus<Record>,
    flow: &Flow,
    sources: &mut [Source],
) -> Result<(), Vec<Problem>> {
    name_by_place(flow, sources);
    let mut problems = Vec::new();
    let run = format!("{}.{}", SystemClock::new().wall_ms(), std::process::id());
    for source in sources.iter_mut() {
        let Some(path) = source.path.as_ref().filter(|_| source.bytes.is_some()) else {
            source.run = format!("@{run}");
            continue;
        };
        let Some(position) = bus.position(&source.key) else { continue };
        let position = Position::from_bytes(&position)
            .ok_or_else(|| "what the log says of it cannot be read".to_owned())
            .and_then(|position| position.check(path));
        match position {
            Ok(position) => source.position = Some(position),
            Err(words) => problems.push(Problem::new(
                format!("input {} was changed since an earlier run read it: {words}", source.key),
                "put it back as it was, or begin anew with --fresh",
            )),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Names the inputs by where they are, however they were written: by their place below the flow
/// file's folder, or else by their whole path. The second time that one is read it has another
/// name.
fn name_by_place(flow: &Flow, sources: &mut [Source]) {
    let here = if flow.directory.as_os_str().is_empty() { Path::new(".") } else { &flow.directory };
    let here = std::fs::canonicalize(here).unwrap_or_default();
    let mut times = HashMap::<String, u32>::new();
    for source in sources {
        let Some(path) = &source.path else { continue };
        let Ok(path) = std::fs::canonicalize(path) else { continue };
        let place = path.strip_prefix(&here).unwrap_or(&path).as_os_str().as_bytes();
        let mut key = String::from_utf8_lossy(place).into_owned();
        if key.len() > NAME_BYTES_MAX || key.as_bytes() != place {
            key = EnvelopeId::from_key(place).to_string();
        }
        let count = times.entry(key.clone()).or_default();
        *count += 1;
        source.key = if *count > 1 { format!("{key}#{count}") } else { key };
    }
}

/// The inode of an input that can be gone on with.
#[must_use]
pub fn inode(source: &Source) -> Option<u64> {
    let path = source.path.as_ref().filter(|_| source.bytes.is_some())?;
    let metadata = File::open(path).and_then(|file| file.metadata()).ok()?;
    Some(std::os::unix::fs::MetadataExt::ino(&metadata))
}
