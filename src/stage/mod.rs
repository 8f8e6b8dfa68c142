//! A stage: a bounded ring, its permits, a handler and a policy. The only place where anything
//! waits.
//!
//! Invariants: an envelope inside is in exactly one place (ring, side list, line of waiting hops,
//! delayed, in a worker's hand); a permit that is out is in exactly one place (a ticket, a worker,
//! a [`room::Hold`]); user code runs under no lock and only through [`handler::guarded`].
#![allow(unreachable_pub, reason = "re-exported by crate::model in loom builds")]

mod backlog;
pub mod context;
mod durable;
pub mod engine;
pub mod enter;
pub mod handler;
pub mod hop;
pub mod lasting;
pub mod meters;
pub mod queue;
pub mod retry;
pub mod room;
pub mod settings;
pub mod settle;
pub mod turn;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::coord::attendance::{self, Attendance, Released, SLOW};
use crate::coord::ticket::{Desk, Scheduler, Task, Ticket, Turned};
use crate::envelope::Route;
use crate::metrics::StageSnapshot;
use crate::metrics::counter::Counter;
use crate::sync::{AtomicU32, Mutex, Ordering, lock};

use engine::Engine;
use handler::{Handler, guarded};
use lasting::Saved;
use meters::StageMeters;
use queue::Queue;
use room::{Hold, Room};
use settings::{OnFull, StageSettings};

/// A named bounded ring with permits, a handler and a policy.
pub struct Stage<P> {
    name: String,
    route: Route,
    settings: StageSettings,
    /// The route of `settings.dead_letter`.
    dead_letter: Option<Route>,
    home: usize,
    attendance: Attendance,
    queue: Queue<P>,
    /// Gone once the stage is closed: who keeps a view of closed stages keeps no foreign code.
    handler: ArcSwapOption<Handler<P>>,
    room: Mutex<Room<P>>,
    /// Permits that wait with hops or are with a thread that is no worker, counted where there are
    /// several: while there are any, *attended* does not mean that somebody comes by, so *slow*
    /// stays set.
    held: AtomicU32,
    /// Slots that were freed since a publisher that waits was woken last.
    unoffered: Counter,
    meters: StageMeters,
    /// What it has saved, where it saves anything.
    saved: Option<Saved>,
    /// A circle with the registry, broken when that lets the stage go.
    engine: Arc<dyn Engine<P>>,
}

impl<P: Send + 'static> Stage<P> {
    /// A stage without a handler. The settings were validated by the caller.
    pub(crate) fn new(
        name: &str,
        route: Route,
        settings: StageSettings,
        dead_letter: Option<Route>,
        saved: Option<Saved>,
        engine: Arc<dyn Engine<P>>,
    ) -> Self {
        Self {
            saved,
            name: name.to_owned(),
            route,
            dead_letter,
            home: usize::from(route.index()),
            attendance: Attendance::new(settings.permits, attendance::NO_CONSUMER),
            queue: Queue::new(settings.capacity),
            handler: ArcSwapOption::empty(),
            room: Mutex::new(Room::new()),
            held: AtomicU32::new(0),
            unoffered: Counter::default(),
            meters: StageMeters::default(),
            engine,
            settings,
        }
    }

    /// Gives it its handler; false when it had one.
    pub(crate) fn set_handler(&self, handler: Handler<P>) -> bool {
        let none = None::<Arc<Handler<P>>>;
        let fresh = self.handler.compare_and_swap(&none, Some(Arc::new(handler))).is_none();
        self.attendance.clear(attendance::NO_CONSUMER);
        if self.attendance.has(attendance::CLOSED) {
            // Whoever closed it may have looked before it was there.
            self.forget_handler();
        }
        fresh
    }

    /// Lets go of the handler of a closed stage; a call that runs keeps it until it returns.
    pub(crate) fn forget_handler(&self) {
        let handler = self.handler.swap(None);
        if guarded(|| drop(handler)).is_err() {
            self.engine.count_panic();
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn route(&self) -> Route {
        self.route
    }

    pub(crate) fn settings(&self) -> &StageSettings {
        &self.settings
    }

    pub(crate) fn meters(&self) -> &StageMeters {
        &self.meters
    }

    /// Whether its permit holder is the only writer of its meters.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.settings.permits == 1
    }

    /// Whether envelopes may enter in blocks: not where the oldest is dropped. What is left of a
    /// block whose first was dropped would overtake an older envelope that a worker just popped.
    pub(crate) fn takes_blocks(&self) -> bool {
        self.settings.on_full != OnFull::DropOldest
    }

    /// R3: whether a worker would find something to do.
    #[inline]
    fn has_work(&self) -> bool {
        !self.queue.is_empty() && !self.attendance.has(attendance::PAUSED)
    }

    /// Looks once, as the release function does, and queues a ticket if nobody would come by.
    pub(crate) fn look(self: &Arc<Self>, scheduler: &dyn Scheduler) {
        if self.has_work() && self.attendance.try_attend() {
            scheduler.post(Ticket::new(Arc::clone(self) as Arc<dyn Task>));
        }
    }

    /// The same for who pushed just now: what it pushed is the oldest if nobody had a permit.
    pub(crate) fn look_after_push(self: &Arc<Self>, scheduler: &dyn Scheduler) {
        if self.has_work() && self.attendance.try_attend() {
            if self.attendance.used() == 1 {
                self.note_awake();
            }
            scheduler.post(Ticket::new(Arc::clone(self) as Arc<dyn Task>));
        }
    }

    /// Takes the free permits of a closed stage out of use for ever; their places in the run queues
    /// go back to the pool. Permits that are out follow when they are released.
    pub(crate) fn retire(&self, scheduler: &dyn Scheduler) {
        while self.attendance.has(attendance::CLOSED) && self.attendance.try_take() {
            scheduler.unreserve(1);
        }
    }

    /// Remembers when the stage went from idle to attended, as a bound for the oldest age.
    fn note_awake(&self) {
        self.meters.hot.last_entered.set(self.engine.clock().monotonic_ns());
    }

    /// Sets bits of the state word.
    pub(crate) fn mark(&self, bits: u32) {
        self.attendance.set(bits);
    }

    /// Clears bits of the state word at `now`, and takes up the work that was held.
    pub(crate) fn unmark(self: &Arc<Self>, engine: &dyn Engine<P>, bits: u32, now: u64) {
        if self.attendance.has(attendance::PAUSED) {
            lock(&self.room).resumed_at = now;
        }
        self.attendance.clear(bits);
        self.look(&**engine.scheduler());
    }

    /// Sets bits of the state word and lets everyone blocked look at it again.
    pub(crate) fn refuse(&self, engine: &dyn Engine<P>, bits: u32) {
        self.mark(bits);
        self.wake_publishers(engine, usize::MAX);
    }

    /// Clears bits of the state word, takes up the work that was held, and lets everyone blocked
    /// look at it again.
    pub(crate) fn readmit(self: &Arc<Self>, engine: &dyn Engine<P>, bits: u32) {
        self.unmark(engine, bits, engine.clock().monotonic_ns());
        self.wake_publishers(engine, usize::MAX);
    }

    /// The state word.
    pub(crate) fn word(&self) -> u32 {
        self.attendance.before_push()
    }

    /// Whether some thread has its lock.
    #[cfg(test)]
    pub(crate) fn is_locked(&self) -> bool {
        crate::sync::try_lock(&self.room).is_none()
    }

    /// Its queue, for the simulator.
    #[cfg(test)]
    pub(crate) fn queue(&self) -> &Queue<P> {
        &self.queue
    }

    /// Holds a permit of this stage for an envelope that waits elsewhere.
    fn hold(self: &Arc<Self>, engine: &dyn Engine<P>) -> Arc<Hold> {
        self.attendance.mark_attended();
        if !self.is_alone() {
            self.count_held();
        }
        Hold::new(Arc::clone(self) as Arc<dyn Task>, Arc::clone(engine.scheduler()))
    }

    /// Counts a permit, of several, whose holder may not come by for long: until
    /// [`hold_ended`](Task::hold_ended) the stage is slow.
    fn count_held(&self) {
        // ORDERING: SeqCst, with the bit after it: pairs with `note_fast`.
        self.held.fetch_add(1, Ordering::SeqCst);
        self.attendance.set(SLOW);
    }

    /// Its handler is fast: whoever holds a permit will come by soon, unless that waits with hops.
    fn note_fast(&self) {
        // ORDERING: SeqCst on both, around the clearing: pairs with `count_held`, which counts and
        // then sets the bit.
        if self.held.load(Ordering::SeqCst) == 0 {
            self.attendance.clear(SLOW);
            if self.held.load(Ordering::SeqCst) != 0 {
                self.attendance.set(SLOW);
            }
        }
    }

    /// A reading of its meters.
    pub(crate) fn snapshot(&self, now: u64) -> StageSnapshot {
        let meters = &self.meters;
        let word = self.word();
        let depth = self.queue.depth() as u64;
        let started = meters.hot.started.get();
        let (hops_waiting, delayed) = {
            let room = lock(&self.room);
            (room.hops.len() as u64, room.delayed.len() as u64)
        };
        StageSnapshot {
            name: self.name.clone(),
            capacity: self.settings.capacity,
            permits: self.settings.permits,
            permits_used: self.attendance.used(),
            depth,
            hops_waiting,
            delayed,
            in_flight: started.saturating_sub(meters.hot.left.get()),
            entered: (started + depth + delayed).saturating_sub(meters.put_aside.get()),
            done: meters.hot.done.get(),
            failed: meters.failed.get(),
            panicked: meters.panicked.get(),
            retried: meters.retried.get(),
            dead: meters.dead.get(),
            expired: meters.expired.get(),
            dropped: meters.dropped.get(),
            refused: meters.refused.get(),
            undelivered: meters.undelivered.get(),
            oldest_age_ns: if depth == 0 {
                0
            } else {
                now.saturating_sub(meters.hot.last_entered.get())
            },
            paused: word & attendance::PAUSED != 0,
            closed: word & attendance::CLOSED != 0,
            lints: Vec::new(),
            wait: meters.wait.quantiles(),
            service: meters.service.quantiles(),
        }
    }
}

impl<P: Send + 'static> Task for Stage<P> {
    fn turn(self: Arc<Self>, ticket: Ticket, desk: &Desk<'_>) -> Turned {
        turn::turn(&self, &*self.engine, ticket, desk)
    }

    fn release(self: Arc<Self>, ticket: Ticket) -> Option<Ticket> {
        match self.attendance.release(|| self.has_work()) {
            Released::Free => {
                // Whoever closed it may have looked before this permit was back.
                self.retire(&**self.engine.scheduler());
                None
            }
            Released::Again => Some(ticket),
        }
    }

    fn hold_ended(&self) {
        if !self.is_alone() {
            // ORDERING: SeqCst, pairs with `note_fast`.
            self.held.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn is_shared(&self) -> bool {
        !self.is_alone()
    }

    fn home(&self) -> usize {
        self.home
    }

    fn rescue(self: Arc<Self>, scheduler: &dyn Scheduler) {
        if self.settings.permits > 1 {
            self.attendance.set(SLOW);
            self.look(scheduler);
        }
    }
}

impl<P> Drop for Stage<P> {
    /// What a handler owns is foreign code to drop, and whoever lets go of the last view of a
    /// closed stage may be in another stage's turn.
    fn drop(&mut self) {
        let handler = self.handler.swap(None);
        // Nobody is left to be told of a panic.
        let _ = guarded(|| drop(handler));
    }
}

impl<P> fmt::Debug for Stage<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("name", &self.name).finish_non_exhaustive()
    }
}
