//! Envelopes as entries, and back.

use crate::bus::registry::Registry;
use crate::clock::Clock;
use crate::envelope::codec::{EnvelopeView, Parts};
use crate::envelope::envelope::Durable;
use crate::envelope::{Cause, Envelope, Headers, Payload, PayloadError, Route, Slip};
use crate::log::entry::{CAUSE_HEADER, CauseCode, DurableLevel, Entry, EntryNumber};
use crate::stage::handler::guarded;
use crate::sync::{Mutex, lock};

use super::NotTaken;

const NS_PER_MS: u64 = 1_000_000;

/// How payloads of type `P` are written and read.
pub(super) struct Wire<P> {
    content_type: &'static str,
    encode: fn(&P, &mut Vec<u8>) -> Result<(), PayloadError>,
    decode: fn(&[u8]) -> Result<P, PayloadError>,
}

impl<P: Payload> Wire<P> {
    pub(super) fn new() -> Self {
        Self { content_type: P::CONTENT_TYPE, encode: P::encode, decode: P::decode }
    }
}

impl<P> Wire<P> {
    /// An accept, with the body.
    pub(super) fn accept(
        &self,
        registry: &Mutex<Registry>,
        clock: &dyn Clock,
        envelope: &Envelope<P>,
        level: DurableLevel,
        out: &mut Vec<u8>,
    ) -> Result<(), NotTaken> {
        let body = self.body(envelope)?;
        self.with_parts(registry, clock, envelope, (0, Some(&body)), |parts| {
            Entry::Accept { level, envelope: *parts }.encode(out).map_err(NotTaken::from)
        })
    }

    /// An accept for each emit.
    pub(super) fn accepts(
        &self,
        registry: &Mutex<Registry>,
        clock: &dyn Clock,
        emits: &[Envelope<P>],
        levels: &[DurableLevel],
    ) -> Result<Vec<Vec<u8>>, NotTaken> {
        let encode = |(emit, &level)| {
            let mut out = Vec::new();
            self.accept(registry, clock, emit, level, &mut out).map(|()| out)
        };
        emits.iter().zip(levels).map(encode).collect()
    }

    /// A hop, with the body if that may have changed.
    pub(super) fn hop(
        &self,
        registry: &Mutex<Registry>,
        clock: &dyn Clock,
        envelope: &Envelope<P>,
        version: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), NotTaken> {
        let is_changed = envelope.durable().is_some_and(|durable| durable.is_changed);
        let body = if is_changed { Some(self.body(envelope)?) } else { None };
        self.with_parts(registry, clock, envelope, (version, body.as_deref()), |parts| {
            Entry::Hop { envelope: *parts }.encode(out).map_err(NotTaken::from)
        })
    }

    /// A dead letter that comes in again, with the body that the log has.
    pub(super) fn redriven(
        &self,
        registry: &Mutex<Registry>,
        clock: &dyn Clock,
        letter: EntryNumber,
        envelope: &Envelope<P>,
        out: &mut Vec<u8>,
    ) -> Result<(), NotTaken> {
        let version = envelope.durable().map_or(0, |durable| durable.body_version);
        self.with_parts(registry, clock, envelope, (version, None), |parts| {
            Entry::Redriven { letter, envelope: *parts }.encode(out).map_err(NotTaken::from)
        })
    }

    /// The payload in bytes.
    fn body(&self, envelope: &Envelope<P>) -> Result<Vec<u8>, NotTaken> {
        let mut bytes = Vec::new();
        match guarded(|| (self.encode)(envelope.payload(), &mut bytes)) {
            Ok(Ok(())) => Ok(bytes),
            Ok(Err(_)) | Err(_) => Err(NotTaken::NoWireForm),
        }
    }

    fn with_parts<T>(
        &self,
        registry: &Mutex<Registry>,
        clock: &dyn Clock,
        envelope: &Envelope<P>,
        (body_version, payload): (u32, Option<&[u8]>),
        then: impl FnOnce(&Parts<'_>) -> T,
    ) -> T {
        let expires_at_ms = envelope.extras().and_then(|extras| extras.expires_at).map(|at| {
            let left = at.saturating_sub(clock.monotonic_ns());
            clock.wall_ms().saturating_add(left.div_ceil(NS_PER_MS))
        });
        let headers = with_cause(envelope);
        let headers = headers.as_ref().or_else(|| envelope.headers());
        let slip = envelope.slip();
        let registry = lock(registry);
        let name = |route: Route| registry.name(route).unwrap_or_default();
        let current = slip.current().map(name);
        let remaining: Vec<&str> = slip.routes().map(name).collect();
        let mut trail: Vec<&str> = slip.trail().map(name).collect();
        if current.is_some() {
            trail.pop();
        }
        then(&Parts {
            id: envelope.id(),
            hops: envelope.hops(),
            attempts: 0,
            body_version,
            expires_at_ms,
            content_type: payload.map(|_| self.content_type),
            current,
            remaining: (&*remaining).into(),
            trail: (&*trail).into(),
            headers: headers.map(Into::into).unwrap_or_default(),
            payload,
        })
    }

    /// An envelope from its wire form and the payload of its body; `Err` says why there is none.
    pub(super) fn envelope(
        &self,
        registry: &Mutex<Registry>,
        bus: u16,
        clock: &dyn Clock,
        form: &EnvelopeView<'_>,
        body: &[u8],
        durable: Durable,
    ) -> Result<Envelope<P>, String> {
        let payload = match guarded(|| (self.decode)(body)) {
            Ok(Ok(payload)) => payload,
            Ok(Err(error)) => return Err(format!("its payload cannot be read: {error}")),
            Err(words) => return Err(format!("reading its payload panicked: {words}")),
        };
        let slip = slip(registry, bus, form)?;
        let mut envelope = Envelope::new(payload, slip);
        envelope.set_id(form.id());
        envelope.set_hops(form.hops());
        let extras = envelope.extras_mut();
        extras.durable = Some(durable);
        let mut headers = form.headers().to_headers();
        extras.cause = cause(&mut headers).map(Box::new);
        extras.headers = headers;
        extras.expires_at = form.expires_at_ms().map(|at| {
            let left = at.saturating_sub(clock.wall_ms()).saturating_mul(NS_PER_MS);
            clock.monotonic_ns().saturating_add(left)
        });
        Ok(envelope)
    }
}

/// The slip, at its current stage, with the stages visited as far as they are known.
fn slip(registry: &Mutex<Registry>, bus: u16, form: &EnvelopeView<'_>) -> Result<Slip, String> {
    let mut registry = lock(registry);
    let mut routes = Vec::new();
    let visited = form.trail().len();
    let names = form.trail().iter().chain(form.current()).chain(form.remaining().iter());
    for name in names {
        routes.push(registry.intern(bus, name).map_err(|error| error.to_string())?);
    }
    drop(registry);
    let skip = if routes.len() > crate::envelope::slip::MAX_HOPS { visited } else { 0 };
    let all = Slip::via(routes.into_iter().skip(skip));
    let mut slip = all.map_err(|error| error.to_string())?;
    for _ in skip..=visited {
        slip.ratchet();
    }
    Ok(slip)
}

/// The headers with the cause among them, where there is one and room for it.
fn with_cause<P>(envelope: &Envelope<P>) -> Option<Headers> {
    let (code, reason) = CauseCode::of(envelope.cause()?);
    let mut headers = envelope.headers().cloned().unwrap_or_default();
    let mut value = vec![code.number()];
    value.extend_from_slice(reason.as_bytes());
    headers.insert(CAUSE_HEADER, &*value).ok()?;
    Some(headers)
}

/// Takes the cause out of the headers.
fn cause(headers: &mut Headers) -> Option<Cause> {
    let value = headers.get(CAUSE_HEADER)?.as_bytes();
    let (&code, reason) = value.split_first()?;
    let cause = CauseCode::from_number(code)?.cause(std::str::from_utf8(reason).ok()?);
    headers.remove(CAUSE_HEADER);
    Some(cause)
}
