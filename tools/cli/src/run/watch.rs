//! The run itself: starts the input's thread, and watches for the end.
//!
//! The end comes by itself when everything read has ended, or is asked for: by Ctrl-C, or by
//! `--duration`. Then intake stops and what was taken in may go on for the drain time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use waystage::clock::Clock;
use waystage::{Bus, Conservation, DeadLetter, DeadLetterInfo, Leftover, Snapshot};

use super::Console;
use super::ending::End;
use super::handlers::Kept;
use super::ledger::Ledger;
use super::options::Options;
use super::prepare::Prepared;
use super::progress::Progress;
use super::record::{Place, Record};
use super::report::Told;
use super::signals::Interrupt;

/// How often the bar, the clock and the signals are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How often outputs are written out as far as they are, for whoever reads them meanwhile.
const SHOW: Duration = Duration::from_millis(200);
/// How often the books are looked at once the input has ended.
const LOOK_AT_BOOKS: Duration = Duration::from_micros(500);
/// How long a stopped input may take to say how far it came.
const FAREWELL: Duration = Duration::from_millis(200);

/// Why a run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C, SIGTERM or SIGHUP.
    Interrupt,
    /// The time of `--duration` was over.
    Duration,
}

/// How the input ended, as far as it is known.
#[derive(Debug)]
pub enum Input {
    /// As told by itself.
    Ended(End),
    /// It still waits in a read, and is left behind.
    Waits,
    /// Its thread panicked.
    Broken,
}

/// What a stop left at a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// The stage.
    pub stage: String,
    /// Records that waited there, or were held by a worker; handed back.
    pub waiting: u64,
    /// Calls of its handler that had not returned.
    pub running: u64,
    /// Whether they are in the log, and the next run goes on with them.
    pub in_log: bool,
    /// Where the first of those that waited stand.
    pub places: Vec<Place>,
}

/// What a run was, for the report.
#[derive(Debug)]
pub struct Watched {
    /// Why it was stopped, if it was.
    pub stop: Option<Stop>,
    /// How the input ended.
    pub input: Input,
    /// The meters at the end.
    pub snapshot: Snapshot,
    /// The last books.
    pub books: Conservation,
    /// What a stop left, by stage.
    pub leftovers: Vec<Left>,
    /// The dead letters that are kept.
    pub dead: Vec<DeadLetter<Record>>,
    /// Those of this run that the log keeps, whoever was told.
    pub in_log: Vec<DeadLetterInfo>,
    /// Those that callbacks were told of: how many, and the first of them.
    pub told: (u64, Vec<Told>),
    /// From the first read to the last record's end.
    pub time: Duration,
    /// Worker threads.
    pub workers: usize,
    /// What was written down.
    pub ledger: Arc<Ledger>,
    /// Tallies and outputs.
    pub kept: Kept,
    /// What the log failed of, if it did.
    pub log_failure: Option<String>,
}

/// Runs it.
pub fn watch(
    prepared: Prepared,
    options: &Options,
    interrupt: &Interrupt,
    console: &mut Console<'_>,
) -> Watched {
    let Prepared { bus, feed, ledger, kept, progress, begin_ms, .. } = prepared;
    interrupt.ask_first();
    let begin_ns = ledger.clock.monotonic_ns();
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let duration_ns = options.duration.map(nanoseconds);
    ledger.listen(interrupt, duration_ns.map(|time| begin_ns.saturating_add(time)));
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("waystage-input".to_owned()).spawn(move || {
        // Nobody listens any more when the run was stopped.
        let _ = sender.send(feed.run());
    });
    let watch = Watch {
        bus: &bus,
        ledger: &ledger,
        progress: &progress,
        kept: &kept,
        interrupt,
        options,
        begin_ns,
    };
    let mut input = match thread {
        Ok(_detached) => None,
        Err(error) => {
            let what = "the input's thread".to_owned();
            Some(Input::Ended(End::Failed { what, error }))
        }
    };
    let stop = watch.until_the_end(&receiver, &mut input);
    interrupt.end_at_once();
    if let Some(stop) = stop {
        progress.aside(|| watch.announce(stop, console));
        ledger.stop();
        if input.is_none() {
            input = receive(&receiver, FAREWELL);
        }
        watch.drain();
    }
    progress.clear();
    let snapshot = bus.snapshot();
    let shutdown = bus.shutdown(Duration::ZERO);
    let log_failure = bus.log_failure().map(|error| error.to_string());
    let (books, leftovers) = watch.close(&shutdown.leftovers);
    watch.agree_tallies();
    let (in_log, in_memory): (Vec<_>, Vec<_>) =
        bus.dead_letters().into_iter().partition(|info| info.is_in_log);
    let dead = in_memory.iter().filter_map(|info| bus.take_dead_letter(info.id)).collect();
    let in_log = in_log.into_iter().filter(|info| info.at_ms >= begin_ms).collect();
    let (number, named) = ledger.taken();
    let name = |route| bus.name(route).unwrap_or_default();
    let told = (number, named.into_iter().map(|taken| Told::new(taken, name)).collect());
    let end_ns = match ledger.last_told_ns.load(Ordering::Relaxed) {
        0 => ledger.clock.monotonic_ns(),
        told => told,
    };
    let time = Duration::from_nanos(end_ns.saturating_sub(begin_ns));
    let (input, workers) = (input.unwrap_or(Input::Waits), bus.workers());
    Watched {
        stop,
        input,
        snapshot,
        books,
        leftovers,
        dead,
        in_log,
        told,
        time,
        workers,
        ledger,
        kept,
        log_failure,
    }
}

/// What the input says within this time.
fn receive(receiver: &Receiver<End>, limit: Duration) -> Option<Input> {
    match receiver.recv_timeout(limit) {
        Ok(end) => Some(Input::Ended(end)),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Input::Broken),
    }
}

struct Watch<'r> {
    bus: &'r Bus<Record>,
    ledger: &'r Ledger,
    progress: &'r Progress,
    kept: &'r Kept,
    interrupt: &'r Interrupt,
    options: &'r Options,
    begin_ns: u64,
}

impl Watch<'_> {
    /// Until everything read has ended, or somebody asks to stop.
    fn until_the_end(&self, receiver: &Receiver<End>, input: &mut Option<Input>) -> Option<Stop> {
        let mut shown = Duration::ZERO;
        loop {
            if self.interrupt.came() {
                return Some(Stop::Interrupt);
            }
            if self.options.duration.is_some_and(|limit| self.elapsed() >= limit) {
                return Some(Stop::Duration);
            }
            if self.elapsed() - shown >= SHOW {
                shown = self.elapsed();
                self.kept.outputs.iter().for_each(|(_, output)| output.show());
            }
            if input.is_none() {
                *input = receive(receiver, LOOK);
            } else if self.bus.conservation().in_flight == 0 {
                return None;
            } else {
                self.ledger.wait(LOOK_AT_BOOKS);
            }
            self.progress.show(self.ledger, self.ledger.told.load(Ordering::Relaxed));
        }
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.ledger.clock.monotonic_ns().saturating_sub(self.begin_ns))
    }

    fn announce(&self, stop: Stop, console: &mut Console<'_>) {
        if self.options.quiet {
            return;
        }
        let why = match stop {
            Stop::Interrupt => "interrupted",
            Stop::Duration => "the time of --duration is over",
        };
        let flight = crate::words::count(self.bus.conservation().in_flight);
        let drain = crate::words::time(self.options.drain);
        let again = "Ctrl-C ends at once";
        console.say(&format_args!(
            "{why}: the input is stopped, {flight} records in flight have {drain} to end; {again}"
        ));
    }

    /// The books once the workers have handed back what they held when the bus ended, and what was
    /// left by name. A handler that does not return is not waited for.
    fn close(&self, leftovers: &[Leftover]) -> (Conservation, Vec<Left>) {
        let limit = self.elapsed() + FAREWELL;
        while self.bus.conservation().in_flight > 0 && self.elapsed() < limit {
            self.ledger.wait(LOOK_AT_BOOKS);
        }
        let books = self.bus.conservation();
        let mut all = Vec::new();
        if leftovers.iter().any(|left| matches!(left, Leftover::InLog { .. })) {
            // All that is not done is in the log, whoever held it.
            for left in leftovers {
                if let Leftover::InLog { stage, envelopes } = left {
                    let (stage, waiting) = (stage.clone(), *envelopes);
                    all.push(Left { stage, waiting, in_log: true, ..Left::default() });
                }
            }
            return (books, all);
        }
        for (route, back) in self.ledger.handed_back() {
            let stage = route.and_then(|route| self.bus.name(route)).unwrap_or_default();
            let mut places = back.places;
            places.sort_by_key(|place| (Arc::clone(&place.file), place.line));
            all.push(Left { stage, waiting: back.count, places, ..Left::default() });
        }
        for leftover in leftovers.iter().filter(|_| books.in_flight > 0) {
            let Leftover::Running { stage, envelopes: calls } = leftover else {
                continue;
            };
            match all.iter_mut().find(|left| left.stage == *stage) {
                Some(left) => left.running += calls,
                None => all.push(Left { stage: stage.clone(), running: *calls, ..Left::default() }),
            }
        }
        (books, all)
    }

    /// Tallies of a durable flow are what the log says.
    fn agree_tallies(&self) {
        for (stage, tally) in &self.kept.tallies {
            let saved = self.bus.saved(stage);
            if !saved.is_empty() {
                tally.agree(saved.values());
            }
        }
    }

    fn drain(&self) {
        let limit = self.elapsed() + self.options.drain;
        while self.bus.conservation().in_flight > 0 && self.elapsed() < limit {
            self.ledger.wait(LOOK_AT_BOOKS);
            self.progress.show(self.ledger, self.ledger.told.load(Ordering::Relaxed));
        }
    }
}
