//! Random stages and what their handlers do and check.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::cargo::{Cargo, Label};
use super::world::{BATCH_MAX, NAMES, World};
use crate::envelope::{Route, Slip};
use crate::stage::context::{Batch, Context};
use crate::stage::handler::{Failure, Handler};
use crate::stage::settings::{OnFull, Retry, StageSettings};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// What one opened stage saw.
pub(super) struct Log {
    /// Tells it from others of its name.
    number: usize,
    name: &'static str,
    /// Whether it must be first in, first out.
    in_order: bool,
    /// Whether nothing may overtake an envelope between its attempts either.
    in_place: bool,
    arrivals: AtomicU64,
    departures: AtomicU64,
    last_entry: AtomicU64,
    last_done: AtomicU64,
    last_from: Mutex<BTreeMap<usize, u64>>,
    /// How often its handler fails, and how slow it is.
    failure: usize,
    service_ns: u64,
}

/// How a call is to end.
enum End {
    Well,
    Fails,
    FailsForGood,
    Panics,
}

impl<P: Cargo> World<P> {
    /// Opens a stage with random settings, if it is not open.
    pub(super) fn open(self: &Arc<Self>, name: &'static str) {
        let Some(bus) = self.bus() else {
            return;
        };
        let settings = self.stage_settings(name);
        let handler = (!self.random.one_in(30)).then(|| self.handler(name, &settings));
        // It may be open, or the bus stopped.
        let _ = bus.open_stage(name, settings, handler);
    }

    /// Gives a stage that was opened without one its handler.
    pub(super) fn give_handler(self: &Arc<Self>, name: &'static str) {
        let Some(bus) = self.bus() else {
            return;
        };
        if let Ok(stage) = bus.find(name) {
            // The stage may be gone, or have one.
            let _ = bus.set_handler(name, self.handler(name, stage.settings()));
        }
    }

    fn handler(self: &Arc<Self>, name: &'static str, settings: &StageSettings) -> Handler<P> {
        let is_batched = self.random.one_in(3);
        // ORDERING: Relaxed: one thread.
        let number = self.instances.fetch_add(1, Ordering::Relaxed);
        let log = Log {
            number,
            name,
            in_order: settings.permits == 1,
            in_place: settings.retry == Retry::InPlace && settings.permits == 1 && !is_batched,
            arrivals: AtomicU64::new(0),
            departures: AtomicU64::new(0),
            last_entry: AtomicU64::new(0),
            last_done: AtomicU64::new(0),
            last_from: Mutex::new(BTreeMap::new()),
            failure: if self.random.one_in(2) { self.plan.failure } else { 0 },
            service_ns: self.random.pick(&[0, 0, 1_000, 200_000, 30_000_000]),
        };
        let world = Arc::clone(self);
        if is_batched {
            Handler::batch(move |batch: &mut Batch<'_, P>| world.handle_batch(&log, batch))
        } else {
            Handler::each(move |context: &mut Context<'_, P>| world.handle(&log, context))
        }
    }

    fn stage_settings(&self, name: &str) -> StageSettings {
        let random = &self.random;
        let on_full = random.pick(&[
            OnFull::Reject,
            OnFull::Block(Duration::from_millis(1)),
            OnFull::DropNewest,
            OnFull::DropOldest,
        ]);
        let first = Duration::from_micros(random.next() % 50_000 + 1);
        let delayed =
            Retry::Delayed { first, max: first * 4, jitter: random.pick(&[0.0, 0.5, 1.0]) };
        let dead_letter = random.one_in(3).then(|| random.pick(&NAMES));
        lock(&self.dead_ends).extend(dead_letter);
        StageSettings {
            capacity: random.between(1, 8),
            permits: u32::try_from(random.pick(&[1, 1, 2, 3])).expect("it is small"),
            batch: random.between(1, BATCH_MAX),
            on_full,
            attempts: u16::try_from(random.between(1, 4)).expect("it is small"),
            retry: if random.one_in(2) { delayed } else { Retry::InPlace },
            dead_letter: dead_letter.filter(|target| *target != name).map(str::to_owned),
            hop_timeout: Duration::from_millis(random.pick(&[1, 100])),
            expiry: random.one_in(6).then_some(Duration::from_millis(20)),
            emits: random.pick(&[0, 3, 1024]),
            ..StageSettings::default()
        }
    }

    fn handle(self: &Arc<Self>, log: &Log, context: &mut Context<'_, P>) -> Result<(), Failure> {
        let (mut emits, mut end) = (Vec::new(), End::Well);
        self.guard(|| {
            self.arrive(log, context);
            self.serve(log);
            emits = self.change(context);
            end = self.choose_end(log);
        });
        match end {
            End::Well => {}
            End::Fails => return Err(Failure::new("planned")),
            End::FailsForGood => return Err(Failure::permanent("planned")),
            End::Panics => resume_unwind(Box::new("a planned panic of a handler")),
        }
        self.depart(log, context.payload_mut().label_mut(), &emits);
        Ok(())
    }

    fn handle_batch(self: &Arc<Self>, log: &Log, batch: &mut Batch<'_, P>) -> Result<(), Failure> {
        let mut emits = Vec::new();
        let (mut whole, mut single) = (End::Well, Vec::new());
        self.guard(|| {
            for index in 0..batch.len() {
                self.arrive(log, &mut batch.context(index));
            }
            self.serve(log);
            for index in 0..batch.len() {
                emits.push(self.change(&mut batch.context(index)));
                single.push(self.choose_end(log));
            }
            if self.random.one_in(4) {
                whole = self.choose_end(log);
            }
        });
        match whole {
            End::Well => {}
            End::Fails => return Err(Failure::new("planned")),
            End::FailsForGood => return Err(Failure::permanent("planned")),
            End::Panics => resume_unwind(Box::new("a planned panic of a handler")),
        }
        for (index, end) in single.into_iter().enumerate() {
            match end {
                End::Well => {
                    let mut context = batch.context(index);
                    self.depart(log, context.payload_mut().label_mut(), &emits[index]);
                }
                End::Fails => batch.fail(index, Failure::new("planned")),
                End::FailsForGood | End::Panics => {
                    batch.fail(index, Failure::permanent("planned"));
                }
            }
        }
        Ok(())
    }

    fn choose_end(&self, log: &Log) -> End {
        if !self.random.one_in(log.failure) {
            return End::Well;
        }
        match self.random.below(6) {
            0 => End::FailsForGood,
            1 => End::Panics,
            _ => End::Fails,
        }
    }

    fn serve(self: &Arc<Self>, log: &Log) {
        if log.service_ns > 0 && self.random.one_in(4) {
            self.clock.advance(Duration::from_nanos(log.service_ns));
        }
        self.interlude();
    }

    /// Checks that the envelope may be here, and in its order.
    fn arrive(&self, log: &Log, context: &mut Context<'_, P>) {
        let (id, redrives, attempts) =
            (context.id(), context.envelope().redrives(), context.attempts());
        let mut label = *context.payload().label();
        let known = *lock(&self.ids).entry(id).or_insert(label.uid);
        if known != label.uid {
            self.ledger.fail(format!("envelopes {known} and {} have the id {id:?}", label.uid));
        }
        if label.foreign {
            self.ledger.fail(format!("{label:?} of another bus came to `{}`", log.name));
        }
        if context.envelope().cause().is_some() && !lock(&self.dead_ends).contains(log.name) {
            self.ledger.fail(format!("{label:?} came to `{}` as a dead letter", log.name));
        }
        let at = context.envelope().current().and_then(|route| self.bus()?.name(route));
        if at.as_deref().is_some_and(|at| at != log.name) {
            self.ledger.fail(format!("{label:?} at `{}` says that it is at {at:?}", log.name));
        }
        if attempts > 0 {
            return;
        }
        let (entry, left) = (label.entry.take(), label.left.take());
        let is_redriven = std::mem::replace(&mut label.redrives, redrives) != redrives;
        // ORDERING: Relaxed on all: one thread.
        label.arrival = log.arrivals.fetch_add(1, Ordering::Relaxed) + 1;
        *context.payload_mut().label_mut() = label;
        if !log.in_order || is_redriven {
            return;
        }
        if let Some(entry) = entry.filter(|entry| !lock(&self.overlapped).contains(entry)) {
            let last = log.last_entry.swap(entry, Ordering::Relaxed);
            if last > entry {
                self.ledger.fail(format!("`{}`: publish {entry} behind {last}", log.name));
            }
        }
        if let Some((from, number)) = left {
            let last = lock(&log.last_from).insert(from, number).unwrap_or(0);
            if last > number {
                let place = format!("`{}` from stage {from}", log.name);
                self.ledger.fail(format!("{place}: departure {number} behind {last}"));
            }
        }
    }

    /// Notes a success.
    fn depart(&self, log: &Log, label: &mut Label, emits: &[usize]) {
        for uid in emits {
            self.ledger.accept(*uid);
        }
        if log.in_place {
            // ORDERING: Relaxed: one thread.
            let last = log.last_done.swap(label.arrival, Ordering::Relaxed);
            if last > label.arrival {
                let words =
                    format!("`{}`: arrival {} overtaken by {last}", log.name, label.arrival);
                self.ledger.fail(words);
            }
        }
        if log.in_order {
            // ORDERING: Relaxed: one thread.
            let number = log.departures.fetch_add(1, Ordering::Relaxed) + 1;
            label.left = Some((log.number, number));
        }
    }

    /// Changes slip and headers and emits; the emits' places in the ledger.
    fn change(self: &Arc<Self>, context: &mut Context<'_, P>) -> Vec<usize> {
        let mut emits = Vec::new();
        let Some(bus) = self.bus() else {
            return emits;
        };
        if !self.random.one_in(3) {
            return emits;
        }
        for _ in 0..self.random.between(1, 3) {
            let name = self.random.pick(&NAMES);
            let route = bus.route(name).expect("it is a name");
            match self.random.below(8) {
                0..=1 => context.push(route).expect("the slip is short"),
                2 => context.append(route).expect("the slip is short"),
                3 => context.clear_slip(),
                4 => context.set_header("x", "y").expect("it is short"),
                5 => {
                    let foreign = self.foreign(route);
                    if context.push(foreign).is_ok() {
                        self.ledger.fail("a foreign route was taken into a slip");
                    }
                }
                _ => {
                    let (uid, envelope) = self.fresh(self.random.one_in(8));
                    match context.emit_envelope(envelope) {
                        Ok(()) => emits.push(uid),
                        // A refused one is dropped here, which may panic: that is ours.
                        Err(refused) => drop(catch_unwind(AssertUnwindSafe(|| drop(refused)))),
                    }
                }
            }
        }
        emits
    }

    /// The same number on another bus.
    pub(super) fn foreign(&self, route: Route) -> Route {
        Route::new(route.bus().wrapping_add(1), route.index())
    }

    /// A random slip of up to four hops; self-loops and cycles are likely.
    pub(super) fn slip(&self, is_foreign: bool) -> Slip {
        let Some(bus) = self.bus() else {
            return Slip::new();
        };
        let hops = if self.random.one_in(40) { 0 } else { self.random.between(1, 4) };
        let names = if self.random.one_in(12) { NAMES.len() } else { self.plan.stages };
        let routes = (0..hops).map(|_| {
            let route = bus.route(NAMES[self.random.below(names)]).expect("it is a name");
            if is_foreign { self.foreign(route) } else { route }
        });
        Slip::via(routes.collect::<Vec<_>>()).expect("the slip is short")
    }
}
