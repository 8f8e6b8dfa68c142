//! The envelope itself: what the hot path touches in two cache lines, the rest in one box.
//!
//! Invariants: an envelope has one owner at a time; its hop counter only rises; its completion
//! callback fires at most once, because settling takes it out.

use std::fmt;

use super::headers::{HeaderError, HeaderValue, Headers};
use super::id::EnvelopeId;
use super::marks::Marks;
use super::slip::{Route, Slip};
use crate::sync::Exclusive;

/// Called once with what became of an envelope; see [`Envelope::on_settled`].
pub(crate) type Callback<P, S> = Box<dyn FnOnce(S, Option<Envelope<P>>) + Send>;

/// A callback that waits in its envelope: so that an envelope, and an error that holds one, can be
/// shared between threads where the payload can.
pub(crate) type Kept<P, S> = Exclusive<Callback<P, S>>;

/// What travels from stage to stage: an id, a payload of the embedder's type, a routing slip,
/// headers.
///
/// ```
/// # use waystage::{Bus, BusSettings, Envelope};
/// # let settings = BusSettings { workers: 0, ..BusSettings::default() };
/// # let bus: Bus<&'static str> = Bus::start(settings)?;
/// let slip = bus.slip(["parse", "archive"])?;
/// let envelope =
///     Envelope::new("M 4.5", slip).with_key("ci37868143").with_header("source", "usgs")?;
/// assert_eq!(envelope.payload(), &"M 4.5");
/// assert_eq!(envelope.slip().remaining(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct Envelope<P> {
    id: EnvelopeId,
    slip: Slip,
    extras: Option<Box<Extras<P>>>,
    payload: P,
    /// Last, and the only field with an unused bit pattern: so a slot of a ring that holds an
    /// envelope or a block is as large as the envelope, and both move in the same pieces.
    marks: Marks,
}

/// What most envelopes do not have.
pub(crate) struct Extras<P> {
    pub(crate) headers: Headers,
    /// Monotonic nanoseconds after which it must not be handled any more.
    pub(crate) expires_at: Option<u64>,
    /// How long it may live from its publish; turned into `expires_at` there.
    pub(crate) time_to_live_ns: Option<u64>,
    pub(crate) callback: Option<Kept<P, Settled>>,
    /// What a completion waits for; it gets the envelope, the callback then does not.
    pub(crate) tracker: Option<Kept<P, Settled>>,
    /// Set while the envelope is on its way to, or at, a dead-letter stage, and when the log keeps
    /// it as a dead letter.
    pub(crate) cause: Option<Box<Cause>>,
    /// How often it was re-driven from the dead letters.
    pub(crate) redrives: u16,
    /// Where the input that it came from goes on behind it.
    pub(crate) position: Option<Box<Position>>,
    /// What the log holds of it; `None` for an envelope that is only in memory.
    pub(crate) durable: Option<Durable>,
}

/// How far a named input was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) name: Box<str>,
    pub(crate) value: Box<[u8]>,
}

/// What the log holds of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durable {
    /// Whether its id is remembered beyond its end.
    pub(crate) exactly_once: bool,
    /// Which body the log has.
    pub(crate) body_version: u32,
    /// Whether a handler may have changed the payload since.
    pub(crate) is_changed: bool,
    /// The record that says what became of it last.
    pub(crate) sequence: u64,
}

impl<P> Default for Extras<P> {
    fn default() -> Self {
        Self {
            headers: Headers::default(),
            expires_at: None,
            time_to_live_ns: None,
            callback: None,
            tracker: None,
            cause: None,
            redrives: 0,
            position: None,
            durable: None,
        }
    }
}

/// Why an envelope was given up on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The handler failed on every allowed attempt, or said that retrying is of no use.
    #[error("handler failed: {0}")]
    HandlerFailed(String),
    /// The handler panicked on the last allowed attempt.
    #[error("handler panicked: {0}")]
    HandlerPanicked(String),
    /// The next hop names a stage that does not exist.
    #[error("no stage of that name")]
    NoRoute,
    /// The next stage has no handler.
    #[error("the stage has no handler")]
    NoConsumer,
    /// The next stage stayed full for the whole hop time-out.
    #[error("the next stage stayed full for the hop time-out")]
    NextStageFull,
    /// It had taken as many hops as the bus allows.
    #[error("hop limit reached")]
    HopLimit,
    /// The stage was closed while it waited there, or before it arrived.
    #[error("stage closed")]
    StageClosed,
    /// It was emitted into a durable stage, and the log did not take it.
    #[error("the log did not take it")]
    NotLogged,
    /// Whether it reached its end is not known: the log was salvaged, and its settlement may have
    /// been among what was lost.
    #[error("uncertain: {0}")]
    Uncertain(String),
}

impl Cause {
    /// The cause's stable name, as printed in reports and JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::HandlerFailed(_) => "handler_failed",
            Self::HandlerPanicked(_) => "handler_panicked",
            Self::NoRoute => "no_route",
            Self::NoConsumer => "no_consumer",
            Self::NextStageFull => "next_stage_full",
            Self::HopLimit => "hop_limit",
            Self::StageClosed => "stage_closed",
            Self::NotLogged => "not_logged",
            Self::Uncertain(_) => "uncertain",
        }
    }
}

/// What became of an accepted envelope; each has exactly one of these ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// Its itinerary ended.
    Completed,
    /// It was given up on.
    Dead(Cause),
    /// Its deadline passed before it was handled.
    Expired,
    /// It was dropped: the victim of `DropOldest`.
    Dropped,
    /// The bus was shut down before its end.
    Undelivered,
}

impl<P> Envelope<P> {
    /// An envelope that will visit the hops of `slip`. Its id is given when it is published.
    pub fn new(payload: P, slip: Slip) -> Self {
        Self { id: EnvelopeId::NIL, slip, extras: None, payload, marks: Marks::NEW }
    }

    /// Gives it this id. Nil asks for a fresh one at publish.
    #[must_use]
    pub fn with_id(mut self, id: EnvelopeId) -> Self {
        self.id = id;
        self
    }

    /// Makes its id from the producer's own key; the key stays readable in the header `key`
    /// as far as it fits there.
    #[must_use]
    pub fn with_key(mut self, key: impl AsRef<[u8]>) -> Self {
        let key = key.as_ref();
        self.id = EnvelopeId::from_key(key);
        // A key beyond the header limits still makes the id; it is only not kept.
        let _ = self.extras_mut().headers.insert(super::headers::KEY, key);
        self
    }

    /// Says where its input goes on behind it: kept in the log if a durable stage accepts it, in
    /// the same record, so that a position and what came before it survive together. `value` is
    /// the reader's own; [`Handle::position`](crate::Handle::position) gives it back.
    ///
    /// A name has 1 to 255 bytes, and a value takes room in the record: a publish with another
    /// name is refused as `NoWireForm`. In a stage in memory it means nothing.
    #[must_use]
    pub fn with_position(mut self, name: &str, value: &[u8]) -> Self {
        let position = Position { name: name.into(), value: value.into() };
        self.extras_mut().position = Some(Box::new(position));
        self
    }

    /// Adds a header.
    ///
    /// # Errors
    /// [`HeaderError`] when name, value or their number is beyond the bounds of [`Headers`].
    pub fn with_header<'a>(
        mut self,
        name: &str,
        value: impl Into<HeaderValue<'a>>,
    ) -> Result<Self, HeaderError> {
        self.extras_mut().headers.insert(name, value)?;
        Ok(self)
    }

    /// Lets it expire: if it is not handled within `time` of its publish, it never is.
    #[must_use]
    pub fn with_time_to_live(mut self, time: std::time::Duration) -> Self {
        self.extras_mut().time_to_live_ns =
            Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self
    }

    /// Asks to be told what becomes of it: `callback` runs exactly once after acceptance, on the
    /// thread that settles the envelope; it gets the envelope back unless that is kept among the
    /// dead letters or a completion waits for it. It must not block: publishing there does not wait
    /// for room. A panic in it is caught and counted.
    #[must_use]
    pub fn on_settled(
        mut self,
        callback: impl FnOnce(Settled, Option<Self>) + Send + 'static,
    ) -> Self {
        self.extras_mut().callback = Some(Exclusive::new(Box::new(callback)));
        self
    }

    /// Its id; nil until it is published or given one.
    pub fn id(&self) -> EnvelopeId {
        self.id
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &P {
        &self.payload
    }

    /// The payload, to change.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut P {
        &mut self.payload
    }

    /// Takes the payload out, dropping the rest.
    pub fn into_payload(self) -> P {
        self.payload
    }

    /// Its routing slip.
    pub fn slip(&self) -> &Slip {
        &self.slip
    }

    /// Its routing slip, to change before a publish.
    pub fn slip_mut(&mut self) -> &mut Slip {
        &mut self.slip
    }

    /// The stage it is at, or was sent to.
    pub fn current(&self) -> Option<Route> {
        self.slip.current()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.extras.as_ref()?.headers.get(name).map(HeaderValue::as_bytes)
    }

    /// All headers; `None` when there are none.
    pub fn headers(&self) -> Option<&Headers> {
        self.extras.as_ref().map(|extras| &extras.headers).filter(|headers| !headers.is_empty())
    }

    /// Hops taken so far, across re-drives and journeys: one that is published again goes on
    /// counting, so that no circle of publishes is endless.
    pub fn hops(&self) -> u32 {
        self.marks.hops()
    }

    /// Failed attempts at the current stage.
    pub fn attempts(&self) -> u16 {
        self.marks.attempts()
    }

    /// Why it was sent to a dead-letter stage, when it was.
    pub fn cause(&self) -> Option<&Cause> {
        self.extras.as_ref()?.cause.as_deref()
    }

    /// How often it was re-driven from the dead letters.
    pub fn redrives(&self) -> u16 {
        self.extras.as_ref().map_or(0, |extras| extras.redrives)
    }

    #[inline]
    pub(crate) fn is_metered(&self) -> bool {
        self.marks.is_metered()
    }

    /// Whether dropping it runs no foreign code and nobody wants to know what became of it.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.extras.is_none() && !std::mem::needs_drop::<P>()
    }

    /// Whether the log has it.
    #[inline]
    pub(crate) fn is_durable(&self) -> bool {
        self.durable().is_some()
    }

    /// What the log holds of it.
    #[inline]
    pub(crate) fn durable(&self) -> Option<Durable> {
        self.extras.as_ref()?.durable
    }

    /// Notes that the payload may be another one than the log's.
    #[inline]
    pub(crate) fn note_change(&mut self) {
        if let Some(durable) = self.extras.as_mut().and_then(|extras| extras.durable.as_mut()) {
            durable.is_changed = true;
        }
    }

    #[inline]
    pub(crate) fn extras(&self) -> Option<&Extras<P>> {
        self.extras.as_deref()
    }

    pub(crate) fn extras_mut(&mut self) -> &mut Extras<P> {
        self.extras.get_or_insert_default()
    }

    pub(crate) fn extras_if_any(&mut self) -> Option<&mut Extras<P>> {
        self.extras.as_deref_mut()
    }

    /// Takes out whoever wants to know what becomes of it: callback, tracker.
    pub(crate) fn take_callbacks(&mut self) -> [Option<Callback<P, Settled>>; 2] {
        match &mut self.extras {
            Some(extras) => [&mut extras.callback, &mut extras.tracker]
                .map(|place| place.take().map(Exclusive::into_inner)),
            None => [None, None],
        }
    }

    /// Makes the next hop the current one, and counts it.
    #[inline]
    pub(crate) fn arrive(&mut self) {
        self.slip.ratchet();
        self.set_hops(self.hops() + 1);
    }

    /// Forgets attempts and the way to a dead-letter stage: it begins a new journey.
    pub(crate) fn forget_failures(&mut self) {
        self.set_attempts(0);
        if let Some(extras) = &mut self.extras {
            extras.cause = None;
        }
    }

    /// Sends it to `route` next, its remaining hops untouched; it counts as being there.
    pub(crate) fn redirect(&mut self, route: Route) {
        if self.slip.current() != Some(route) && self.slip.push(route).is_ok() {
            self.slip.ratchet();
        }
    }

    pub(crate) fn set_id(&mut self, id: EnvelopeId) {
        self.id = id;
    }

    pub(crate) fn set_hops(&mut self, hops: u32) {
        self.marks = self.marks.with_hops(hops);
    }

    pub(crate) fn set_attempts(&mut self, attempts: u16) {
        self.marks = self.marks.with_attempts(attempts);
    }

    /// Nanoseconds since it came to wait, for a metered envelope.
    pub(crate) fn waited(&self, now: u64) -> u64 {
        self.marks.since_stamp(now)
    }

    pub(crate) fn clear_stamp(&mut self) {
        self.marks = self.marks.without_stamp();
    }

    pub(crate) fn set_stamp(&mut self, monotonic_ns: u64) {
        self.marks = self.marks.with_stamp(monotonic_ns);
    }
}

impl<P: fmt::Debug> fmt::Debug for Envelope<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("id", &self.id)
            .field("slip", &self.slip)
            .field("hops", &self.hops())
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Envelope;

    #[test]
    fn two_cache_lines_with_64_bytes_of_payload() {
        assert_eq!(size_of::<Envelope<[u64; 8]>>(), 120, "and 8 for the stamp of a ring's slot");
        assert_eq!(size_of::<Option<Envelope<[u64; 8]>>>(), 120);
    }
}
