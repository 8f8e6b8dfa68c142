//! The bus: stages by name, routing, completions, dead letters, lifecycle.

mod batch;
mod completion;
mod core;
mod dead_letter;
mod durable;
mod error;
mod future;
mod handle;
pub(crate) mod journal;
mod lifecycle;
mod publish;
mod publisher;
mod redrive;
mod registry;
mod settings;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::clock::Clock;
use crate::envelope::Route;
use crate::stage::Stage;
use crate::stage::context::{Batch, Context};
use crate::stage::engine::Engine;
use crate::stage::handler::{Failure, Handler};
use crate::stage::lasting::Saved;
use crate::stage::settings::{Level, OnFull, StageSettings, demand};
use crate::sync::{lock, next_bus_number};
use crate::worker::Pool;

use self::core::{Core, machine_seed};

pub use self::completion::{Completion, Ending, WaitError};
pub use self::core::Lifecycle;
pub use self::dead_letter::{DeadLetter, DeadLetterInfo};
pub use self::error::{BatchError, BusError, PublishError, Refused};
pub use self::future::PublishFuture;
pub use self::handle::Handle;
pub use self::journal::{DurableSettings, Missing, Recovery};
pub use self::lifecycle::{Leftover, ShutdownReport};
pub use self::publisher::Publisher;
pub use self::settings::BusSettings;

/// The most memory that the ring of one stage may take.
const RING_BYTES_MAX: u64 = 1 << 32;

/// A staged message bus over payloads of type `P`.
///
/// It owns its stages and, unless it was put on a shared one, its pool. Dropping it is
/// [`shutdown`](Self::shutdown) without waiting. What other threads need is a
/// [`Handle`] or a [`Publisher`]; a bus is a handle itself.
///
/// ```
/// use std::time::Duration;
/// use waystage::{Bus, BusSettings, Envelope, StageSettings};
///
/// let bus: Bus<u64> = Bus::start(BusSettings::default())?;
/// bus.add_stage("double", StageSettings::default(), |context| {
///     *context.payload_mut() *= 2;
///     Ok(())
/// })?;
/// bus.add_stage("check", StageSettings::default(), |context| {
///     assert_eq!(*context.payload(), 42);
///     Ok(())
/// })?;
/// let mut completion = bus.publish_tracked(Envelope::new(21, bus.slip(["double", "check"])?))?;
/// let (outcome, envelope) = completion.wait(Duration::from_secs(5))?;
/// assert_eq!(outcome, waystage::Settled::Completed);
/// assert_eq!(envelope.map(|envelope| envelope.into_payload()), Some(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Bus<P: Send + 'static> {
    handle: Handle<P>,
    pool: Arc<Pool>,
}

impl<P: Send + 'static> Bus<P> {
    /// Starts a bus with a pool of its own.
    ///
    /// # Errors
    /// [`BusError`] when a setting is out of range or a thread is refused.
    pub fn start(settings: BusSettings) -> Result<Self, BusError> {
        settings.validate()?;
        let pool = Arc::new(Pool::start(settings.pool())?);
        Self::on_pool(&pool, settings)
    }

    /// As [`start`](Self::start), with a clock of the caller's. Virtual time needs `workers: 0`: a
    /// worker thread that waits for a timer sleeps in real time, whatever the clock says.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_clock(
        settings: BusSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BusError> {
        settings.validate()?;
        let pool = Arc::new(Pool::start_with_clock(settings.pool(), clock)?);
        Self::on_pool(&pool, settings)
    }

    /// Starts a bus on a pool that other buses may share.
    ///
    /// # Errors
    /// [`BusError`] when a setting is out of range.
    pub fn on_pool(pool: &Arc<Pool>, settings: BusSettings) -> Result<Self, BusError> {
        settings.validate()?;
        let number = next_bus_number().ok_or(BusError::TooManyBuses)?;
        let shared = Arc::clone(pool.shared());
        let seed = settings.seed.unwrap_or_else(machine_seed);
        let core = Arc::new(Core::new(number, settings, shared, seed, None));
        Ok(Self { handle: Handle { core }, pool: Arc::clone(pool) })
    }

    /// Adds a stage whose handler is called once per envelope. Its route is returned.
    ///
    /// # Errors
    /// [`BusError`] when a setting is out of range, the name is taken or cannot be one, the level
    /// is durable, or the bus was shut down.
    pub fn add_stage(
        &self,
        name: &str,
        settings: StageSettings,
        handle: impl Fn(&mut Context<'_, P>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Route, BusError> {
        self.open_stage(name, settings, Some(Handler::each(handle)))
    }

    /// Adds a stage whose handler is called once per batch.
    ///
    /// # Errors
    /// As [`add_stage`](Self::add_stage).
    pub fn add_batch_stage(
        &self,
        name: &str,
        settings: StageSettings,
        handle: impl Fn(&mut Batch<'_, P>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Route, BusError> {
        self.open_stage(name, settings, Some(Handler::batch(handle)))
    }

    /// Adds a stage, with or without a handler. Without one it refuses publishes as `NoConsumer`,
    /// and hops into it are dead letters, until [`set_handler`](Self::set_handler).
    ///
    /// # Errors
    /// As [`add_stage`](Self::add_stage).
    pub fn open_stage(
        &self,
        name: &str,
        settings: StageSettings,
        handler: Option<Handler<P>>,
    ) -> Result<Route, BusError> {
        let wrong = |source| BusError::StageSetting { stage: name.to_owned(), source };
        settings.validate().map_err(wrong)?;
        let bytes = settings.capacity.saturating_mul(size_of::<crate::envelope::Envelope<P>>());
        let must = "small enough that all slots together take at most 4 GiB";
        demand(bytes as u64 <= RING_BYTES_MAX, "capacity", settings.capacity, must)
            .map_err(wrong)?;
        if let Some(handler) = &handler {
            fits(name, &settings, handler)?;
        }
        let is_durable = settings.level != Level::AtMostOnce;
        if (is_durable || settings.saves > 0) && self.core.journal.is_none() {
            return Err(BusError::NotDurable { stage: name.to_owned() });
        }
        if is_durable && settings.on_full == OnFull::DropOldest {
            let must = "another policy at a durable level, where nothing is dropped";
            demand(false, "on_full", settings.on_full, must).map_err(wrong)?;
        }
        if settings.dead_letter.as_deref() == Some(name) {
            let (field, must) = ("dead_letter", "another stage than the stage itself");
            demand(false, field, name, must).map_err(wrong)?;
        }
        let core = &self.core;
        let _changing = lock(&core.changing);
        let route = self.route(name)?;
        let dead_letter = match &settings.dead_letter {
            Some(target) => Some(self.route(target)?),
            None => None,
        };
        let before = core.stages();
        if before.get(route).is_some() {
            return Err(BusError::StageExists(name.to_owned()));
        }
        if core.lifecycle() == Lifecycle::Stopped || core.lifecycle() == Lifecycle::Draining {
            return Err(BusError::Stopped);
        }
        core.shared.reserve(settings.permits as usize)?;
        let engine = Arc::clone(core) as Arc<dyn Engine<P>>;
        let saved =
            (settings.saves > 0).then(|| Saved::new(settings.saves, name, self.saved(name)));
        let stage = Arc::new(Stage::new(name, route, settings, dead_letter, saved, engine));
        if core.lifecycle() == Lifecycle::Paused {
            stage.refuse(&**core, crate::coord::attendance::PAUSED_WITH_BUS);
        }
        if let Some(handler) = handler {
            stage.set_handler(handler);
        }
        let mut stages = before.0.clone();
        let index = usize::from(route.index());
        stages.resize_with(stages.len().max(index + 1), || None);
        stages[index] = Some(stage);
        core.set_stages(stages);
        Ok(route)
    }

    /// Gives a stage that was opened without one its handler; false when it has one.
    ///
    /// # Errors
    /// [`BusError::UnknownStage`], and [`BusError::StageSetting`] where a stage that saves state
    /// would get a batch handler.
    pub fn set_handler(&self, name: &str, handler: Handler<P>) -> Result<bool, BusError> {
        let stage = self.find(name)?;
        fits(name, stage.settings(), &handler)?;
        Ok(stage.set_handler(handler))
    }

    /// One turn on the caller's thread, for a bus with `workers: 0`: see [`Pool::turn`].
    pub fn turn(&self) -> usize {
        let taken = self.pool.turn();
        if self.workers() == 0 {
            self.core.keep_journal();
        }
        taken
    }

    /// Worker threads of its pool.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.pool.workers()
    }

    pub(crate) fn find(&self, name: &str) -> Result<Arc<Stage<P>>, BusError> {
        let core = &self.core;
        let map = core.stages();
        let route = lock(&core.registry).find(core.number, name);
        if let Some(stage) = route.and_then(|route| map.get(route).cloned()) {
            return Ok(stage);
        }
        let known = map.0.iter().flatten().map(|stage| stage.name());
        let nearest = registry::nearest(name, known);
        Err(BusError::UnknownStage { name: name.to_owned(), nearest })
    }
}

/// Whether a stage with these settings can have this handler.
fn fits<P>(stage: &str, settings: &StageSettings, handler: &Handler<P>) -> Result<(), BusError> {
    // The attempts of a batch would not find what the others of it save.
    let is_fine = settings.saves == 0 || !handler.is_batch();
    let must = "0 with a batch handler, whose attempts do not see each other's state";
    let wrong = |source| BusError::StageSetting { stage: stage.to_owned(), source };
    demand(is_fine, "saves", settings.saves, must).map_err(wrong)
}

impl<P: Send + 'static> Deref for Bus<P> {
    type Target = Handle<P>;

    fn deref(&self) -> &Handle<P> {
        &self.handle
    }
}

impl<P: Send + 'static> Drop for Bus<P> {
    fn drop(&mut self) {
        if self.core.lifecycle() != Lifecycle::Stopped {
            // From inside a handler too: nothing is waited for.
            self.end();
        }
    }
}

impl<P: Send + 'static> fmt::Debug for Bus<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").field("core", &self.core).finish_non_exhaustive()
    }
}
