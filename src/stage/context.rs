//! What a handler sees: its envelope, and a notebook of changes that apply only on success.

use std::fmt;
use std::sync::Arc;

use super::handler::Failure;
use super::lasting::{Lasting, LastingError, Saved, add};
use crate::envelope::headers::HeaderValue;
use crate::envelope::{Envelope, EnvelopeId, HeaderError, Headers, Route, Slip, SlipError};
use crate::log::SinkFile;

/// A change of the slip.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Push(Route),
    Append(Route),
    Clear,
}

/// What one attempt wrote down.
pub(crate) struct Notebook<P> {
    pub(crate) changes: Vec<Change>,
    pub(crate) emits: Vec<Envelope<P>>,
    /// The headers as they shall be, when they were changed.
    pub(crate) headers: Option<Headers>,
    pub(crate) failure: Option<Failure>,
    /// What lasts of it.
    pub(crate) lasting: Option<Box<Lasting>>,
}

impl<P> Notebook<P> {
    pub(crate) fn new() -> Self {
        Self { changes: Vec::new(), emits: Vec::new(), headers: None, failure: None, lasting: None }
    }

    /// Forgets everything; the emits are handed back, since dropping them runs foreign code.
    pub(crate) fn reset(&mut self) -> Vec<Envelope<P>> {
        self.changes.clear();
        self.headers = None;
        self.failure = None;
        self.lasting = None;
        if self.emits.is_empty() { Vec::new() } else { std::mem::take(&mut self.emits) }
    }
}

/// Why an emit was refused. The envelope is in the [`EmitError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitRefused {
    /// The attempt emitted more envelopes than its stage allows.
    #[error("an attempt may emit {limit} envelopes at this stage; raise `emits` to allow more")]
    TooMany {
        /// The stage's bound.
        limit: usize,
    },
    /// The slip has no hop to go to.
    #[error("the slip of the emit has no hop left to visit; give it at least one")]
    EmptySlip,
    /// The slip was made by another bus.
    #[error("the slip belongs to another bus; make it with this bus's `slip`")]
    ForeignSlip,
}

/// A refused emit, with its envelope.
pub struct EmitError<P> {
    /// Why.
    pub reason: EmitRefused,
    /// The envelope, as it was given.
    pub envelope: Box<Envelope<P>>,
}

impl<P> fmt::Debug for EmitError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmitError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<P> fmt::Display for EmitError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)
    }
}

impl<P> std::error::Error for EmitError<P> {}

/// One envelope in the hands of a handler.
///
/// The payload is changed in place and stays changed when the attempt fails; slip, headers and
/// emits change only if the handler returns `Ok`.
pub struct Context<'a, P> {
    pub(crate) envelope: &'a mut Envelope<P>,
    pub(crate) notebook: &'a mut Notebook<P>,
    pub(crate) stage: &'a str,
    pub(crate) emits_max: usize,
    pub(crate) saved: Option<&'a Saved>,
}

impl<P> Context<'_, P> {
    /// The payload.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &P {
        self.envelope.payload()
    }

    /// The payload, to change.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut P {
        self.envelope.note_change();
        self.envelope.payload_mut()
    }

    /// The envelope as it came in.
    #[must_use]
    pub fn envelope(&self) -> &Envelope<P> {
        self.envelope
    }

    /// The envelope's id.
    #[must_use]
    pub fn id(&self) -> EnvelopeId {
        self.envelope.id()
    }

    /// A header's value, with the changes of this attempt.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        match &self.notebook.headers {
            Some(headers) => headers.get(name).map(HeaderValue::as_bytes),
            None => self.envelope.header(name),
        }
    }

    /// The name of the stage.
    #[must_use]
    pub fn stage(&self) -> &str {
        self.stage
    }

    /// Attempts that failed at this stage before this one.
    #[must_use]
    pub fn attempts(&self) -> u16 {
        self.envelope.attempts()
    }

    /// Makes `route` the very next hop.
    ///
    /// # Errors
    /// [`SlipError::ForeignRoute`] when the route is of another bus, [`SlipError::TooLong`] when
    /// the slip with the hops of this attempt holds as many as it may.
    pub fn push(&mut self, route: Route) -> Result<(), SlipError> {
        self.note(route, Change::Push(route))
    }

    /// Makes `route` the last hop.
    ///
    /// # Errors
    /// [`SlipError::ForeignRoute`] when the route is of another bus, [`SlipError::TooLong`] when
    /// the slip with the hops of this attempt holds as many as it may.
    pub fn append(&mut self, route: Route) -> Result<(), SlipError> {
        self.note(route, Change::Append(route))
    }

    /// Forgets the remaining hops, those pushed before in this attempt included.
    pub fn clear_slip(&mut self) {
        self.notebook.changes.clear();
        self.notebook.changes.push(Change::Clear);
    }

    /// Sets a header.
    ///
    /// # Errors
    /// [`HeaderError`] when it is beyond the bounds of [`Headers`].
    pub fn set_header<'a>(
        &mut self,
        name: &str,
        value: impl Into<HeaderValue<'a>>,
    ) -> Result<(), HeaderError> {
        self.headers_mut().insert(name, value)
    }

    /// Removes a header.
    pub fn remove_header(&mut self, name: &str) {
        self.headers_mut().remove(name);
    }

    /// Publishes another envelope when this attempt succeeds, with an id derived from this one's:
    /// accepted together with this envelope's settlement, or not at all. It has taken one hop more
    /// than this one, so circles of emits end at the hop limit. A copy of this envelope's own slip
    /// leads on to what remains of it.
    ///
    /// # Errors
    /// [`EmitError`] with the envelope, at the stage's bound or when the slip is empty or of
    /// another bus.
    pub fn emit(&mut self, payload: P, slip: Slip) -> Result<(), EmitError<P>> {
        self.emit_envelope(Envelope::new(payload, slip))
    }

    /// As [`emit`](Self::emit), for an envelope with headers, a callback or an id of its own.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    pub fn emit_envelope(&mut self, envelope: Envelope<P>) -> Result<(), EmitError<P>> {
        match self.refusal(&envelope) {
            None => {
                self.notebook.emits.push(envelope);
                Ok(())
            }
            Some(reason) => Err(EmitError { reason, envelope: Box::new(envelope) }),
        }
    }

    /// Saves a value with this attempt's settlement, under a key of this stage: after a crash it is
    /// there if the envelope counts as handled, and only then. An empty value removes the key.
    /// Later attempts of the stage find it with [`saved`](Self::saved), others with
    /// [`Handle::saved`](crate::Handle::saved).
    ///
    /// ```
    /// use std::time::Duration;
    /// use waystage::envelope::payload::Plain;
    /// use waystage::{Bus, BusSettings, DurableSettings, Envelope, Level, Missing, StageSettings};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let durable = DurableSettings::in_directory(directory.path());
    /// let bus: Bus<Plain<u8>> = Bus::start_durable(BusSettings::default(), &durable)?;
    /// let settings =
    ///     StageSettings { level: Level::ExactlyOnce, saves: 1024, ..StageSettings::default() };
    /// bus.add_stage("sum", settings, |context| {
    ///     let before = context.saved("sum").map_or(0, |bytes| bytes[0]);
    ///     let sum = before + context.payload().0;
    ///     context.save("sum", &[sum])?;
    ///     Ok(())
    /// })?;
    /// bus.recover(Missing::Refuse)?;
    /// for number in [3, 4] {
    ///     bus.publish(Envelope::new(Plain(number), bus.slip(["sum"])?))?;
    /// }
    /// assert!(bus.shutdown(Duration::from_secs(5)).drained);
    /// assert_eq!(bus.saved("sum")["sum"], [7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LastingError`] when the envelope is in memory only, when the stage saves nothing or would
    /// save more than it may, or when the key is empty, or has more bytes than 254 less those of
    /// the stage's name.
    pub fn save(&mut self, key: &str, value: &[u8]) -> Result<(), LastingError> {
        if !self.envelope.is_durable() {
            return Err(LastingError::NotDurable);
        }
        let saved = self.saved.ok_or(LastingError::NotSaving)?;
        let lasting = self.notebook.lasting.get_or_insert_default();
        saved.save(&mut lasting.saves, key, value)
    }

    /// What was saved under this key: by this attempt, or else by those that are settled.
    #[must_use]
    pub fn saved(&self, key: &str) -> Option<Vec<u8>> {
        let own = self.notebook.lasting.as_ref().and_then(|lasting| lasting.saves.get(key));
        match own {
            Some(value) => (!value.is_empty()).then(|| value.clone()),
            None => self.saved?.get(key),
        }
    }

    /// Adds to a sink of the bus with this attempt's settlement: in the file it stands exactly
    /// once, power loss included, and not at all if the attempt fails. Where the file cannot be
    /// written the attempt fails.
    ///
    /// # Errors
    /// [`LastingError`] when the envelope is in memory only, when the sink is of another bus, and
    /// when the attempt adds more than 16 MiB.
    pub fn write(&mut self, sink: &Arc<SinkFile>, bytes: &[u8]) -> Result<(), LastingError> {
        if !self.envelope.is_durable() {
            return Err(LastingError::NotDurable);
        }
        let bus = self.envelope.current().map(Route::bus);
        if !bus.is_some_and(|bus| sink.is_of(bus)) {
            return Err(LastingError::ForeignSink);
        }
        let lasting = self.notebook.lasting.get_or_insert_default();
        add(&mut lasting.writes, sink, bytes)
    }

    /// Why an emit is refused.
    fn refusal(&self, envelope: &Envelope<P>) -> Option<EmitRefused> {
        if self.notebook.emits.len() >= self.emits_max {
            return Some(EmitRefused::TooMany { limit: self.emits_max });
        }
        let elsewhere = envelope.current().filter(|&at| self.envelope.current() != Some(at));
        match elsewhere.or_else(|| envelope.slip().peek_next()) {
            None => Some(EmitRefused::EmptySlip),
            Some(first) if self.is_foreign(first) => Some(EmitRefused::ForeignSlip),
            Some(_) => None,
        }
    }

    fn note(&mut self, route: Route, change: Change) -> Result<(), SlipError> {
        if self.is_foreign(route) {
            return Err(SlipError::ForeignRoute);
        }
        let changes = &self.notebook.changes;
        // `clear_slip` forgets what came before it.
        let (left, pushed) = match changes.first() {
            Some(Change::Clear) => (0, changes.len() - 1),
            _ => (self.envelope.slip().remaining(), changes.len()),
        };
        if left + pushed >= crate::envelope::slip::MAX_HOPS {
            return Err(SlipError::TooLong);
        }
        self.notebook.changes.push(change);
        Ok(())
    }

    fn is_foreign(&self, route: Route) -> bool {
        self.envelope.current().is_some_and(|current| current.bus() != route.bus())
    }

    fn headers_mut(&mut self) -> &mut Headers {
        let envelope = &self.envelope;
        self.notebook.headers.get_or_insert_with(|| envelope.headers().cloned().unwrap_or_default())
    }
}

impl<P: fmt::Debug> fmt::Debug for Context<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("stage", &self.stage)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Several envelopes in the hands of a batch handler, in the order they came.
pub struct Batch<'a, P> {
    pub(crate) envelopes: &'a mut [Envelope<P>],
    pub(crate) notebooks: &'a mut [Notebook<P>],
    pub(crate) stage: &'a str,
    pub(crate) emits_max: usize,
    pub(crate) saved: Option<&'a Saved>,
}

impl<P> Batch<'_, P> {
    /// How many they are: at least one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.envelopes.len()
    }

    /// Never true.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.envelopes.is_empty()
    }

    /// The payloads.
    pub fn payloads(&self) -> impl Iterator<Item = &P> {
        self.envelopes.iter().map(Envelope::payload)
    }

    /// One envelope, to look at, change and route.
    ///
    /// # Panics
    /// When `index` is not below [`len`](Self::len).
    pub fn context(&mut self, index: usize) -> Context<'_, P> {
        Context {
            envelope: &mut self.envelopes[index],
            notebook: &mut self.notebooks[index],
            stage: self.stage,
            emits_max: self.emits_max,
            saved: self.saved,
        }
    }

    /// Fails this one envelope; the others succeed if the handler returns `Ok`.
    ///
    /// # Panics
    /// When `index` is not below [`len`](Self::len).
    pub fn fail(&mut self, index: usize, failure: Failure) {
        self.notebooks[index].failure = Some(failure);
    }
}

impl<P> fmt::Debug for Batch<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).finish_non_exhaustive()
    }
}
