//! What a stage asks of the bus: routing, settlement, time. Implemented on the bus's floor.

use std::fmt;
use std::sync::Arc;

use super::Stage;
use super::context::Notebook;
use super::lasting::Left;
use super::queue::Block;
use super::settings::Level;
use crate::clock::Clock;
use crate::coord::ticket::{Desk, Scheduler};
use crate::envelope::envelope::{Cause, Settled};
use crate::envelope::{Envelope, EnvelopeId, Route};

/// The stages of a bus by route number. Immutable; replaced as a whole when one is added.
pub struct StageMap<P>(pub(crate) Vec<Option<Arc<Stage<P>>>>);

impl<P> StageMap<P> {
    /// The stage behind a route.
    #[inline]
    pub(crate) fn get(&self, route: Route) -> Option<&Arc<Stage<P>>> {
        self.0.get(usize::from(route.index()))?.as_ref()
    }
}

impl<P> fmt::Debug for StageMap<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StageMap").field(&self.0.len()).finish()
    }
}

/// What an attempt of a durable envelope led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes on to the stage that is current now.
    Hop,
    /// Its itinerary ended.
    Completed,
    /// It failed, and is tried again, after a pause of so many nanoseconds.
    Attempt {
        /// The pause.
        pause: u64,
    },
}

/// Why something was not written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwritten {
    /// The log took nothing now.
    Failed,
    /// It can never be written: no encoding, or too large for a record.
    Impossible,
    /// An envelope with this id is on its way, or is remembered.
    Known,
}

/// The bus, as its stages see it.
pub trait Engine<P>: Send + Sync + 'static {
    /// The stages now.
    fn stages(&self) -> Arc<StageMap<P>>;
    /// Brings a view of the stages up to date.
    fn refresh(&self, view: &mut Arc<StageMap<P>>);
    /// The time.
    fn clock(&self) -> &dyn Clock;
    /// The pool.
    fn scheduler(&self) -> &Arc<dyn Scheduler>;
    /// The most hops an envelope may take.
    fn hop_limit(&self) -> u32;
    /// Ends an envelope: counts the outcome, tells the producer, drops what is left.
    fn settle(&self, desk: &Desk<'_>, envelope: Envelope<P>, end: Settled);
    /// Counts a completed envelope of which nothing is left to do but to drop it.
    fn settle_plain(&self, desk: &Desk<'_>);
    /// Ends an envelope as a dead letter that is kept.
    fn bury(&self, desk: &Desk<'_>, envelope: Envelope<P>, cause: Cause, stage: &str);
    /// Takes in an emit of `parent`, the `ordinal`th of its attempt: gives it an id and counts it.
    fn accept_emit(
        &self,
        desk: &Desk<'_>,
        parent: &Envelope<P>,
        ordinal: u32,
        emit: &mut Envelope<P>,
    );
    /// A random number for the jitter of a retry.
    fn random(&self) -> u64;
    /// A place to work in; given back by [`put_scratch`](Self::put_scratch).
    fn scratch(&self) -> Box<Scratch<P>>;
    /// Gives a scratch back.
    fn put_scratch(&self, scratch: Box<Scratch<P>>);
    /// An empty block, used before if there is one.
    fn empty_block(&self) -> Block<P> {
        Block::new()
    }
    /// Writes down what an attempt of a durable envelope led to, before anything moves, together
    /// with the emits that came of it and with what it leaves behind. Emits whose id is known
    /// already are taken out, and handed back.
    ///
    /// # Errors
    /// When it was not written: then the log has the envelope as it was.
    fn record(
        &self,
        _envelope: &mut Envelope<P>,
        _step: Fate,
        _emits: &mut Vec<Envelope<P>>,
        _left: &Left<'_>,
    ) -> Result<Vec<Envelope<P>>, Unwritten> {
        Err(Unwritten::Failed)
    }
    /// Writes down that an emit of an envelope in memory enters a durable stage.
    ///
    /// # Errors
    /// When it was not written.
    fn record_emit(&self, _emit: &mut Envelope<P>, _level: Level) -> Result<(), Unwritten> {
        Err(Unwritten::Failed)
    }
    /// The envelope with this id as the log has it, for a stage with a backlog; `None` when it
    /// cannot be read, and was given up.
    fn recall(&self, _id: EnvelopeId) -> Option<Envelope<P>> {
        None
    }
    /// Counts a panic in a callback, a waker or a destructor.
    fn count_panic(&self);
}

/// The default batch of a stage.
const USUAL_BATCH: usize = 64;

/// Buffers of one turn, kept between turns so that nothing is allocated in steady state.
pub struct Scratch<P> {
    /// The stages as the last turn saw them.
    pub(crate) map: Arc<StageMap<P>>,
    /// Hops of this turn by next stage, in order.
    pub(crate) out: Vec<(Arc<Stage<P>>, Block<P>)>,
    /// Empty blocks.
    pub(crate) spare: Vec<Block<P>>,
    /// The block in hand.
    pub(crate) hand: Block<P>,
    /// The batch of a batch handler.
    pub(crate) batch: Vec<Envelope<P>>,
    pub(crate) notebooks: Vec<Notebook<P>>,
}

impl<P> Scratch<P> {
    /// Empty buffers.
    pub(crate) fn new(map: Arc<StageMap<P>>) -> Self {
        Self {
            map,
            out: Vec::new(),
            spare: Vec::new(),
            hand: Block::new(),
            batch: Vec::new(),
            notebooks: vec![Notebook::new()],
        }
    }
}

impl<P> Scratch<P> {
    /// Lets go of what has room for more than `envelopes`, but for what a usual batch needs.
    pub(crate) fn shrink(&mut self, envelopes: usize) {
        let most = envelopes.max(USUAL_BATCH);
        self.spare.retain(|block| block.capacity() <= most);
        if self.hand.capacity() > most {
            self.hand = Block::new();
        }
        if self.batch.capacity() > most {
            self.batch = Vec::new();
        }
        if self.notebooks.len() > most {
            self.notebooks.truncate(most);
            self.notebooks.shrink_to_fit();
        }
    }
}

/// Adds an envelope to what goes to `target`, and lends it there.
#[inline]
pub(crate) fn collect<'a, P>(
    out: &'a mut Vec<(Arc<Stage<P>>, Block<P>)>,
    spare: &mut Vec<Block<P>>,
    target: &Arc<Stage<P>>,
    envelope: Envelope<P>,
) -> &'a mut Envelope<P> {
    let known = out.iter().position(|(stage, _)| Arc::ptr_eq(stage, target));
    let place = known.unwrap_or_else(|| {
        out.push((Arc::clone(target), spare.pop().unwrap_or_default()));
        out.len() - 1
    });
    let block = &mut out[place].1;
    block.push_back(envelope);
    block.back_mut().expect("it was just pushed")
}

impl<P> fmt::Debug for Scratch<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}
