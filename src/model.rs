//! Doors for the models of `loom-tests`: loom builds only, outside semver.
//!
//! Models run the production code; nothing here decides anything. What is private to a folder is
//! named here, and what a model needs beyond that (a stage without a bus, the end of a run) is made
//! of the same parts that the bus uses.

use std::sync::Arc;

pub use crate::coord::attendance::{self, Attendance, Released};
pub use crate::coord::parker::Parker;
pub use crate::coord::permits::Permits;
pub use crate::coord::sleep::Sleep;
pub use crate::coord::ticket::{Desk, Scheduler, Task, Ticket, Turned};
pub use crate::coord::timers::{TimerId, Timers};
pub use crate::envelope::envelope::{Cause, Settled};
pub use crate::log::disk::{Disk, FileFlusher, FileReader, FileWriter, Opened, Stable};
pub use crate::log::region::{Region, RegionWriter};
pub use crate::stage::Stage;
pub use crate::stage::engine::{Engine, Fate, Scratch, StageMap, Unwritten};
pub use crate::sync::Ring;
pub use crate::worker::shared::Shared;
pub use crate::worker::step::{Rest, Step, Worker};

use crate::bus::Bus;
use crate::clock::Clock;
use crate::coord::on_worker::InTurn;
use crate::envelope::{Envelope, Route};
use crate::log::{Log, LogError, LogSettings, Sync};
use crate::metrics::counter::{Counter, Tally};
use crate::stage::enter::Refusal;
use crate::stage::handler::Handler;
use crate::stage::queue::Block;
use crate::stage::room::Wake;
use crate::stage::settings::StageSettings;
use crate::stage::turn;
use crate::sync::lock;
use crate::worker::PoolSettings;

/// The route to the stage with this number.
#[must_use]
pub fn route(index: u16) -> Route {
    Route::new(1, index)
}

/// A stage with a handler, without a bus.
pub fn stage<P: Send + 'static>(
    index: u16,
    settings: StageSettings,
    handler: Handler<P>,
    engine: Arc<dyn Engine<P>>,
) -> Arc<Stage<P>> {
    let stage = Arc::new(Stage::new("stage", route(index), settings, None, None, engine));
    stage.set_handler(handler);
    stage
}

/// The map of these stages, each at its number.
#[must_use]
pub fn map<P>(stages: &[Arc<Stage<P>>]) -> Arc<StageMap<P>> {
    Arc::new(StageMap(stages.iter().map(|stage| Some(Arc::clone(stage))).collect()))
}

/// A scratch for one turn.
#[must_use]
pub fn scratch<P>(map: Arc<StageMap<P>>) -> Box<Scratch<P>> {
    Box::new(Scratch::new(map))
}

/// An envelope that stands at the first hop of its slip.
pub fn at_first_hop<P>(mut envelope: Envelope<P>) -> Envelope<P> {
    envelope.slip_mut().ratchet();
    envelope
}

/// Tells an envelope's callback, as the bus does.
pub fn tell<P>(mut envelope: Envelope<P>, end: Settled) {
    if let [Some(callback), _] = envelope.take_callbacks() {
        callback(end, Some(envelope));
    }
}

/// Why a publish was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// No room.
    Full,
    /// Anything else.
    Otherwise,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::Full { Self::Full } else { Self::Otherwise }
    }
}

/// P1 to P4.
///
/// # Errors
/// The envelope, and why it was refused.
pub fn enter<P: Send + 'static>(
    stage: &Arc<Stage<P>>,
    engine: &dyn Engine<P>,
    envelope: Envelope<P>,
) -> Result<(), (Refused, Envelope<P>)> {
    stage
        .try_enter(engine, Tally::shared(&Counter::default()), envelope)
        .map_err(|(refusal, back)| (refusal.into(), back))
}

/// P1 to P4 for a block.
///
/// # Errors
/// Why it was refused.
pub fn enter_block<P: Send + 'static>(
    stage: &Arc<Stage<P>>,
    engine: &dyn Engine<P>,
    envelopes: impl IntoIterator<Item = Envelope<P>>,
) -> Result<(), Refused> {
    let block = envelopes.into_iter().collect::<Block<P>>();
    stage
        .try_enter_block(engine, Tally::shared(&Counter::default()), block)
        .map_err(|(refusal, _)| refusal.into())
}

/// Runs a turn on the thread of a publisher.
///
/// # Errors
/// The envelope, when the stage is not idle.
pub fn caller_runs<P: Send + 'static>(
    stage: &Arc<Stage<P>>,
    engine: &dyn Engine<P>,
    desk: &Desk<'_>,
    envelope: Envelope<P>,
) -> Result<(), Envelope<P>> {
    let _inside = InTurn::begin();
    turn::caller_runs(stage, engine, desk, envelope)
}

/// Sets bits of the state word, as pause, close and shutdown do.
pub fn refuse<P: Send + 'static>(stage: &Arc<Stage<P>>, engine: &dyn Engine<P>, bits: u32) {
    stage.refuse(engine, bits);
}

/// Clears bits of the state word, as resume does.
pub fn readmit<P: Send + 'static>(stage: &Arc<Stage<P>>, engine: &dyn Engine<P>, bits: u32) {
    stage.readmit(engine, bits);
}

/// Closes a stage as the bus does.
pub fn close<P: Send + 'static>(stage: &Arc<Stage<P>>, engine: &dyn Engine<P>) {
    stage.mark(attendance::CLOSED);
    stage.settle_closed(engine);
    stage.retire(&**engine.scheduler());
}

/// Drops the oldest waiting envelope, as `DropOldest` does; whether there was one.
pub fn drop_oldest<P: Send + 'static>(stage: &Arc<Stage<P>>, engine: &dyn Engine<P>) -> bool {
    stage.drop_oldest(engine)
}

/// Registers a blocked publisher.
pub fn join<P: Send + 'static>(stage: &Arc<Stage<P>>, parker: &Arc<Parker>) -> u64 {
    stage.join_publishers(Wake::Thread(Arc::clone(parker)))
}

/// Takes a blocked publisher out of line.
pub fn leave<P: Send + 'static>(
    stage: &Arc<Stage<P>>,
    engine: &dyn Engine<P>,
    number: u64,
    used: bool,
) {
    stage.leave_publishers(engine, number, used);
}

/// The state word.
pub fn word<P: Send + 'static>(stage: &Arc<Stage<P>>) -> u32 {
    stage.word()
}

/// Permits out, and envelopes in any waiting place, now.
pub fn at_rest<P: Send + 'static>(stage: &Arc<Stage<P>>) -> (u32, u64) {
    let now = stage.snapshot(0);
    (now.permits_used, now.depth + now.hops_waiting + now.delayed)
}

/// What the workers of one pool share, without threads.
pub fn shared(workers: usize, tickets: usize, clock: Arc<dyn Clock>) -> Arc<Shared> {
    let settings = PoolSettings { workers, tickets, ..PoolSettings::default() };
    Arc::new(Shared::new(&settings, clock))
}

/// The worker with this number.
#[must_use]
pub fn worker(shared: &Arc<Shared>, index: usize) -> Worker {
    Worker::new(Arc::clone(shared), index)
}

/// Whether a worker is inside a turn.
#[must_use]
pub fn is_in_turn(shared: &Shared, worker: usize) -> bool {
    shared.seats[worker].is_in_turn()
}

/// Asks all workers to leave.
pub fn stop(shared: &Shared) {
    shared.stop();
}

/// Whether the workers were asked to leave.
#[must_use]
pub fn is_stopping(shared: &Shared) -> bool {
    shared.is_stopping()
}

/// The parked workers.
#[must_use]
pub fn sleep(shared: &Shared) -> &Sleep {
    &shared.sleep
}

/// Takes what is left in the run queues, which breaks their circles with the stages. Returns how
/// many tickets there were.
pub fn clear(shared: &Shared) -> usize {
    let mut count = 0;
    for seat in &shared.seats {
        while seat.queue.pop().is_some() {
            count += 1;
        }
        drop(lock(&seat.working_on).take());
    }
    count
}

/// How often workers parked.
#[must_use]
pub fn parks(shared: &Shared) -> u64 {
    shared.snapshot().iter().map(|worker| worker.parks).sum()
}

/// How often workers stole.
#[must_use]
pub fn steals(shared: &Shared) -> u64 {
    shared.snapshot().iter().map(|worker| worker.steals).sum()
}

/// Hops that wait for room.
pub fn hops_waiting<P: Send + 'static>(stage: &Arc<Stage<P>>) -> u64 {
    stage.snapshot(0).hops_waiting
}

/// Opens a log on a disk of the model, without a thread of its own.
///
/// # Errors
/// What the disk says.
pub fn log(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>) -> Result<Log, LogError> {
    log_by(disk, clock, Sync::Each)
}

/// Opens such a log with another policy.
///
/// # Errors
/// What the disk says.
pub fn log_by(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, sync: Sync) -> Result<Log, LogError> {
    let settings =
        LogSettings { segment_bytes: 4_096, sync, seed: Some(1), ..LogSettings::default() };
    Ok(Log::on(disk, &settings, clock, None)?.0)
}

/// The stages of a bus. A model keeps them to its end: loom does not see the counts of std's `Arc`,
/// and would take the drop of a closed stage for a race.
#[must_use]
pub fn stages<P: Send + 'static>(bus: &Bus<P>) -> Arc<StageMap<P>> {
    bus.core.stages()
}

/// Permits that are out of use for ever: all of a closed stage, none otherwise.
#[must_use]
pub fn retired<P: Send + 'static>(stage: &Arc<Stage<P>>) -> u32 {
    if stage.word() & attendance::CLOSED == 0 { 0 } else { stage.settings().permits }
}
