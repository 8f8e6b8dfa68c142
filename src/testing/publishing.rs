//! Random publishes by every way in, and what must hold of their answers.

use std::future::Future as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::cargo::{Cargo, Label};
use super::world::World;
use crate::bus::{Bus, Completion, PublishError, PublishFuture, Refused};
use crate::coord::on_worker::is_in_turn;
use crate::envelope::{Envelope, EnvelopeId, Route};
use crate::stage::settings::OnFull;
use crate::sync::{AtomicBool, Ordering, lock, panicking};

/// An asynchronous publish.
pub(super) struct Polled<P: Cargo> {
    uid: usize,
    pub(super) stage: Option<Route>,
    future: PublishFuture<P>,
    flag: Arc<Flag>,
}

/// A publish whose ending can be waited for.
pub(super) struct Tracked<P> {
    uid: usize,
    completion: Completion<P>,
}

struct Flag {
    woken: AtomicBool,
    panics: bool,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        // ORDERING: Relaxed: one thread.
        self.woken.store(true, Ordering::Relaxed);
        if self.panics && !panicking() {
            resume_unwind(Box::new("a planned panic of a waker"));
        }
    }
}

impl<P: Cargo> World<P> {
    /// An envelope with a random slip and a place in the ledger.
    pub(super) fn fresh(self: &Arc<Self>, is_foreign: bool) -> (usize, Envelope<P>) {
        let told = !self.random.one_in(self.plan.untold);
        let uid = self.ledger.make(told);
        let slip = self.slip(is_foreign);
        let label = Label { uid, foreign: is_foreign && slip.remaining() > 0, ..Label::default() };
        let cargo = P::pack(label, &self.ledger, self.random.one_in(self.plan.bomb));
        let mut envelope = Envelope::new(cargo, slip);
        if self.plan.meter_every > 1 {
            // Generated ids depend on the thread, and with them what is metered.
            envelope = envelope.with_id(EnvelopeId::from_key(&uid.to_le_bytes()));
        }
        if self.random.one_in(10) {
            envelope = envelope.with_time_to_live(Duration::from_millis(3));
        }
        if self.random.one_in(10) {
            envelope = envelope.with_header("h", "v").expect("it is short");
        }
        (uid, if told { self.with_callback(uid, envelope) } else { envelope })
    }

    fn with_callback(self: &Arc<Self>, uid: usize, envelope: Envelope<P>) -> Envelope<P> {
        let world = Arc::clone(self);
        let panics = self.random.one_in(self.plan.bomb);
        envelope.on_settled(move |end, envelope| {
            world.ledger.end(uid, end, envelope.is_some());
            world.interlude();
            drop(envelope);
            if panics {
                resume_unwind(Box::new("a planned panic of a callback"));
            }
        })
    }

    /// An envelope to publish: a new one, or one that came back.
    fn some_envelope(self: &Arc<Self>) -> (usize, Envelope<P>) {
        let returned = if self.random.one_in(3) { lock(&self.returned).pop() } else { None };
        let (uid, mut envelope) = match returned {
            Some(envelope) => (envelope.payload().label().uid, envelope),
            None => self.fresh(self.random.one_in(60)),
        };
        envelope.payload_mut().label_mut().entry = None;
        (uid, envelope)
    }

    /// Whether a publish that waits as its stage says would not wait.
    fn is_prompt(&self, bus: &Bus<P>, envelope: &Envelope<P>) -> bool {
        let first = envelope.slip().peek_next();
        let stage = first.and_then(|route| bus.find(&bus.name(route)?).ok());
        is_in_turn()
            || stage.is_none_or(|stage| !matches!(stage.settings().on_full, OnFull::Block(_)))
    }

    /// Gives an envelope its place among the publishes, and notes which others are under way.
    fn enter(&self, envelope: &mut Envelope<P>) -> u64 {
        // ORDERING: Relaxed: one thread.
        let entry = self.entries.fetch_add(1, Ordering::Relaxed);
        envelope.payload_mut().label_mut().entry = Some(entry);
        entry
    }

    /// Runs one call that publishes the entries `numbers`.
    fn entering<R>(&self, numbers: &[u64], call: impl FnOnce() -> R) -> R {
        let mut entering = lock(&self.entering);
        lock(&self.overlapped).extend(entering.iter().copied());
        let depth = entering.len();
        entering.extend_from_slice(numbers);
        drop(entering);
        let answer = call();
        lock(&self.entering).truncate(depth);
        answer
    }

    pub(super) fn publish(self: &Arc<Self>) {
        let Some(bus) = self.bus() else {
            return;
        };
        match self.random.below(12) {
            0..=1 => return self.publish_batch(&bus),
            2..=3 => return self.publish_async(&bus),
            _ => {}
        }
        let (uid, mut envelope) = self.some_envelope();
        let is_prompt = self.is_prompt(&bus, &envelope);
        let entry = self.enter(&mut envelope);
        let hops = envelope.slip().routes().collect::<Vec<_>>();
        let way = if is_prompt { self.random.below(7) } else { self.random.below(3) };
        let answer = self.entering(&[entry], || {
            match way {
                0 => bus.try_publish(envelope),
                1 => bus.publish_within(envelope, Duration::ZERO),
                2 => self.with_publisher(&bus, |publisher| publisher.try_publish(envelope)),
                3 => self.with_publisher(&bus, |publisher| publisher.publish(envelope)),
                4 => bus.publish(envelope),
                5 => bus.publish_inline(envelope),
                _ => match bus.publish_tracked(envelope) {
                    Ok(completion) => {
                        lock(&self.tracked).push(Tracked { uid, completion });
                        Ok(())
                    }
                    // Its callback was wrapped: it is not published again.
                    Err(error) => return Err((error, false)),
                },
            }
            .map_err(|error| (error, true))
        });
        match answer {
            Ok(()) => self.ledger.accept(uid),
            Err((error, again)) => self.take_back(error, uid, &hops, again),
        }
    }

    fn with_publisher<R>(
        &self,
        bus: &Bus<P>,
        call: impl FnOnce(&mut crate::bus::Publisher<P>) -> R,
    ) -> R {
        let kept = lock(&self.publisher).take();
        let mut publisher = kept.unwrap_or_else(|| bus.publisher());
        let answer = call(&mut publisher);
        if !self.random.one_in(8) {
            *lock(&self.publisher) = Some(publisher);
        }
        answer
    }

    fn take_back(&self, error: PublishError<P>, uid: usize, hops: &[Route], again: bool) {
        self.note_refusal(error.reason);
        self.take_back_envelope(*error.envelope, uid, Some(hops), again);
        if error.reason == Refused::Full && error.stage.is_none() {
            self.ledger.fail("a full stage has no name");
        }
    }

    fn note_refusal(&self, reason: Refused) {
        self.ledger.note(match reason {
            Refused::Full => "refused: full",
            Refused::Paused => "refused: paused",
            Refused::Closed => "refused: closed",
            Refused::NoRoute => "refused: no route",
            Refused::ForeignSlip => "refused: foreign slip",
            Refused::NoConsumer => "refused: no consumer",
            _ => "refused by a log that is not there",
        });
    }

    fn take_back_envelope(
        &self,
        mut envelope: Envelope<P>,
        uid: usize,
        hops: Option<&[Route]>,
        again: bool,
    ) {
        if envelope.payload().label().uid != uid {
            self.ledger.fail(format!("another envelope than {uid} came back"));
        }
        let now = envelope.slip().routes().collect::<Vec<_>>();
        if hops.is_some_and(|hops| hops != now) {
            self.ledger.fail(format!("the slip of {uid} came back as {now:?}, not {hops:?}"));
        }
        envelope.payload_mut().label_mut().entry = None;
        let mut returned = lock(&self.returned);
        if again && returned.len() < 8 {
            return returned.push(envelope);
        }
        drop(returned);
        envelope.payload_mut().disarm();
    }

    fn publish_batch(self: &Arc<Self>, bus: &Bus<P>) {
        let mut batch = Vec::new();
        let mut numbers = Vec::new();
        let slip = self.slip(false);
        for _ in 0..self.random.between(1, 9) {
            let (uid, mut envelope) = self.some_envelope();
            if !self.random.one_in(4) && !envelope.payload().label().foreign {
                *envelope.slip_mut() = slip.clone();
            }
            if !self.is_prompt(bus, &envelope) {
                self.take_back_envelope(envelope, uid, None, true);
                continue;
            }
            numbers.push(self.enter(&mut envelope));
            batch.push(envelope);
        }
        let uids: Vec<_> = batch.iter().map(|envelope| envelope.payload().label().uid).collect();
        let hops: Vec<Vec<_>> =
            batch.iter().map(|envelope| envelope.slip().routes().collect()).collect();
        let mut batch = batch.into_iter();
        let answer = self.entering(&numbers, || {
            if self.random.one_in(2) {
                bus.publish_batch(&mut batch)
            } else {
                self.with_publisher(bus, |publisher| publisher.publish_batch(&mut batch))
            }
        });
        let (accepted, rest) = match answer {
            Ok(accepted) => (accepted, Vec::new()),
            Err(error) => (error.accepted, error.rest.into_iter().chain(batch).collect()),
        };
        if accepted + rest.len() != uids.len() {
            let words = format!("{accepted} accepted and {} of {} back", rest.len(), uids.len());
            self.ledger.fail(words);
        }
        for uid in &uids[..accepted.min(uids.len())] {
            self.ledger.accept(*uid);
        }
        for (index, envelope) in (accepted..uids.len()).zip(rest) {
            self.take_back_envelope(envelope, uids[index], Some(&hops[index]), true);
        }
    }

    fn publish_async(self: &Arc<Self>, bus: &Bus<P>) {
        let (uid, envelope) = self.some_envelope();
        let stage = envelope.slip().peek_next();
        let future = bus.publish_async(envelope);
        let panics = self.random.one_in(self.plan.bomb);
        let flag = Arc::new(Flag { woken: AtomicBool::new(true), panics });
        lock(&self.polled).push(Polled { uid, stage, future, flag });
    }

    /// Polls a future that was woken, sometimes one that was not, or drops one.
    pub(super) fn poll_some(self: &Arc<Self>) {
        let mut all = lock(&self.polled);
        if all.is_empty() {
            return;
        }
        let start = self.random.below(all.len());
        let count = all.len();
        let by_chance = self.random.one_in(6);
        let found = (0..count)
            .map(|offset| (start + offset) % count)
            .find(|&index| by_chance || all[index].is_woken());
        let Some(polled) = found.map(|index| all.swap_remove(index)) else {
            return;
        };
        drop(all);
        if self.random.one_in(25) {
            // Its payload may panic in the hands of its producer: that is no concern of the bus.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(polled)));
            return;
        }
        // ORDERING: Relaxed: one thread.
        polled.flag.woken.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&polled.flag));
        let mut context = Context::from_waker(&waker);
        let Polled { uid, stage, flag, mut future } = polled;
        match self.entering(&[], || Pin::new(&mut future).poll(&mut context)) {
            Poll::Pending => {
                self.ledger.note("asynchronous publishes that waited");
                lock(&self.polled).push(Polled { uid, stage, flag, future });
            }
            Poll::Ready(Ok(())) => self.ledger.accept(uid),
            Poll::Ready(Err(error)) => {
                if error.reason == Refused::Full {
                    self.ledger.fail("an asynchronous publish ended as full");
                }
                self.take_back_envelope(*error.envelope, uid, None, true);
            }
        }
    }

    /// At the end each completion was told once.
    pub(super) fn check_completions(&self) {
        for Tracked { uid, mut completion } in lock(&self.tracked).drain(..) {
            let ending = completion.poll_now();
            if let Some((_, envelope)) = &ending {
                self.ledger.came_back(uid, envelope.is_some());
            }
            match ending {
                None => self.ledger.fail(format!("the completion of {uid} was not told")),
                Some((_, Some(mut envelope))) => envelope.payload_mut().disarm(),
                Some((_, None)) => {}
            }
        }
    }
}

impl<P: Cargo> Polled<P> {
    pub(super) fn is_woken(&self) -> bool {
        // ORDERING: Relaxed: one thread.
        self.flag.woken.load(Ordering::Relaxed)
    }
}
