//! Publishing: what all ways of it share. The envelope is counted before the push, so that the
//! books never show more settled than accepted.

use std::sync::Arc;
use std::time::Duration;

use super::core::{Core, Lifecycle};
use super::error::{PublishError, Refused};
use crate::coord::on_worker::is_in_turn;
use crate::coord::parker::Parker;
use crate::envelope::{Envelope, EnvelopeId};
use crate::metrics::counter::Tally;
use crate::stage::Stage;
use crate::stage::engine::StageMap;
use crate::stage::enter::Refusal;
use crate::stage::hop::nanoseconds;
use crate::stage::room::Wake;
use crate::stage::settings::{Level, OnFull};
use crate::sync::{SMALL, yield_now};

/// How long a publisher without room spins and yields before it parks: the price of a wake-up.
const YIELD_NS: u64 = 50_000;
/// The most looks before it parks, should the clock stand still.
const ROUNDS: u32 = 1024;
/// The longest park between two looks at the deadline.
const PARK_NS: u64 = 100_000_000;
/// Spins between two looks at a full ring.
const PAUSE_SPINS: u32 = 100;

/// Leaves a full ring alone for about a microsecond: each look at it takes the lines that its
/// consumer needs, and a consumer that is left alone frees room for many.
fn pause_before_retry(round: u32) {
    if round > 3 {
        yield_now();
    }
    for _ in 0..PAUSE_SPINS {
        std::hint::spin_loop();
    }
}

/// How long a publish may wait for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// Not here: the caller comes again when there is room.
    Elsewhere,
    /// As long as the stage's `OnFull` says.
    Policy,
    /// At most this long, whatever the policy; the policy decides at the end.
    Within(Duration),
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Full,
            Refusal::Paused => Self::Paused,
            Refusal::Draining | Refusal::Closed => Self::Closed,
            Refusal::NoConsumer => Self::NoConsumer,
            Refusal::NotRecovered => Self::NotRecovered,
            Refusal::InFlight => Self::InFlight,
            Refusal::Duplicate => Self::Duplicate,
            Refusal::NoWireForm => Self::NoWireForm,
            Refusal::LogFull => Self::LogFull,
            Refusal::LogFailed => Self::LogFailed,
            Refusal::TooManyDeadLetters => Self::TooManyDeadLetters,
        }
    }
}

impl<P: Send + 'static> Core<P> {
    /// One publish, counted as accepted in `tally`.
    pub(crate) fn publish(
        &self,
        map: &StageMap<P>,
        tally: Tally<'_>,
        fresh_id: impl FnOnce() -> EnvelopeId,
        mut envelope: Envelope<P>,
        wait: Wait,
    ) -> Result<(), PublishError<P>> {
        let stage = match self.target(map, &mut envelope) {
            Ok(stage) => stage,
            Err(reason) => return Err(self.refuse(envelope, reason)),
        };
        self.stamp(&mut envelope, stage.settings().expiry, fresh_id);
        if stage.settings().level != Level::AtMostOnce {
            return self.publish_durable(stage, tally, envelope, wait).map(drop);
        }
        match self.enter_waiting(stage, tally, envelope, wait) {
            Ok(()) => Ok(()),
            Err((refusal, envelope)) => {
                if wait != Wait::Elsewhere || refusal != Refusal::Full {
                    stage.meters().refused.add(1);
                }
                Err(self.refuse(envelope, refusal.into()))
            }
        }
    }

    /// One envelope into one stage, by wait and policy.
    #[inline]
    pub(crate) fn enter_waiting(
        &self,
        stage: &Arc<Stage<P>>,
        tally: Tally<'_>,
        envelope: Envelope<P>,
        wait: Wait,
    ) -> Result<(), (Refusal, Envelope<P>)> {
        match stage.try_enter(self, tally, envelope) {
            Ok(()) => Ok(()),
            Err((refusal, envelope)) => self.enter_full(stage, tally, refusal, envelope, wait),
        }
    }

    /// The stage an envelope goes to first. Ratchets the slip if its producer did not.
    #[inline]
    pub(crate) fn target<'a>(
        &self,
        map: &'a StageMap<P>,
        envelope: &mut Envelope<P>,
    ) -> Result<&'a Arc<Stage<P>>, Refused> {
        let slip = envelope.slip_mut();
        let current = if slip.is_at_stage() { slip.current() } else { slip.ratchet() };
        let route = current.ok_or(Refused::NoRoute)?;
        if route.bus() != self.number {
            return Err(Refused::ForeignSlip);
        }
        map.get(route).ok_or_else(|| self.why_missing())
    }

    /// A bus that ends lets go of its stages: then a missing one was closed.
    #[cold]
    fn why_missing(&self) -> Refused {
        match self.lifecycle() {
            Lifecycle::Running | Lifecycle::Paused => Refused::NoRoute,
            Lifecycle::Draining | Lifecycle::Stopped => Refused::Closed,
        }
    }

    #[cold]
    pub(crate) fn refuse(&self, mut envelope: Envelope<P>, reason: Refused) -> PublishError<P> {
        let stage = envelope
            .current()
            .filter(|route| route.bus() == self.number)
            .map(|route| self.name(route));
        envelope.slip_mut().unratchet();
        PublishError { reason, envelope: Box::new(envelope), stage }
    }

    /// What happens when the first try was refused: the wait, then the policy.
    #[cold]
    fn enter_full(
        &self,
        stage: &Arc<Stage<P>>,
        tally: Tally<'_>,
        refusal: Refusal,
        envelope: Envelope<P>,
        wait: Wait,
    ) -> Result<(), (Refusal, Envelope<P>)> {
        let enter = |envelope| stage.try_enter(self, tally, envelope);
        match self.wait_for_room(stage, refusal, envelope, wait, enter) {
            Err((Refusal::Full, envelope)) if stage.settings().on_full == OnFull::DropOldest => {
                self.displace(stage, tally, envelope)
            }
            ended => ended,
        }
    }

    /// `DropOldest`: as many victims as it takes, up to what the stage can hold; none while hops
    /// wait, since the room would be theirs.
    fn displace(
        &self,
        stage: &Arc<Stage<P>>,
        tally: Tally<'_>,
        mut envelope: Envelope<P>,
    ) -> Result<(), (Refusal, Envelope<P>)> {
        for _ in 0..=2 * stage.settings().capacity {
            if stage.has_waiting_hops() || !stage.drop_oldest(self) {
                break;
            }
            match stage.try_enter(self, tally, envelope) {
                Ok(()) => return Ok(()),
                Err((Refusal::Full, back)) => envelope = back,
                Err(refused) => return Err(refused),
            }
        }
        stage.try_enter(self, tally, envelope)
    }

    /// Waits for room for `item` on this thread, as far as it may: spins, yields, then parks in
    /// line. `enter` tries to put it in.
    pub(crate) fn wait_for_room<T, R>(
        &self,
        stage: &Arc<Stage<P>>,
        refusal: Refusal,
        mut item: T,
        wait: Wait,
        enter: impl Fn(T) -> Result<R, (Refusal, T)>,
    ) -> Result<R, (Refusal, T)> {
        let limit = match (wait, stage.settings().on_full) {
            (Wait::Policy, OnFull::Block(limit)) | (Wait::Within(limit), _) => nanoseconds(limit),
            (Wait::No | Wait::Elsewhere | Wait::Policy, _) => 0,
        };
        // Without threads only the caller makes room: waiting would be waiting for itself.
        if refusal != Refusal::Full || limit == 0 || is_in_turn() || !self.shared.has_threads() {
            return Err((refusal, item));
        }
        let begin = self.clock().monotonic_ns();
        let deadline = begin.saturating_add(limit);
        for round in 1..=ROUNDS {
            if SMALL {
                break;
            }
            pause_before_retry(round);
            match enter(item) {
                Err((Refusal::Full, back)) => item = back,
                ended => return ended,
            }
            if round % 8 == 0 && self.clock().monotonic_ns() > begin + YIELD_NS {
                break;
            }
        }
        let parker = Arc::new(Parker::new());
        let mut slept = 0;
        loop {
            let number = stage.join_publishers(Wake::Thread(Arc::clone(&parker)));
            let tried = enter(item);
            let left = deadline.saturating_sub(self.clock().monotonic_ns());
            match tried {
                // What was slept ends it too, should the clock stand still.
                Err((Refusal::Full, back)) if left > 0 && slept < limit => {
                    item = back;
                    let pause = left.min(limit - slept).min(PARK_NS);
                    let woken = parker.park(Some(Duration::from_nanos(pause)));
                    slept += if woken { 0 } else { pause };
                    // Whoever took us out of the line gave us a turn: it is used below.
                    stage.leave_publishers(self, number, woken);
                }
                ended => {
                    stage.leave_publishers(self, number, ended.is_ok());
                    return ended;
                }
            }
        }
    }
}
