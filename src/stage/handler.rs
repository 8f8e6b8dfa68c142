//! Handlers: the embedder's code, and the one guarded door through which it is called.
//!
//! A handler sees its envelope through a [`Context`]. What it changes there beside the payload
//! (slip, headers, emits) is written down and applied only if it returns `Ok`.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::context::{Batch, Context};

/// Why an attempt failed.
///
/// Every [`std::error::Error`] converts into one, with the causes behind it in its reason, so `?`
/// works in handlers. For `Box<dyn Error>` and the like, which are none themselves, it is
/// `.map_err(|error| Failure::new(error.to_string()))?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    reason: String,
    permanent: bool,
}

impl Failure {
    /// A failure that another attempt may mend.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), permanent: false }
    }

    /// A failure that no attempt can mend: the envelope is given up at once.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), permanent: true }
    }

    /// The reason in words.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether another attempt is of no use.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason.push_str(": ");
            reason.push_str(&error.to_string());
            cause = error.source();
        }
        Self::new(reason)
    }
}

pub(crate) type Each<P> = dyn Fn(&mut Context<'_, P>) -> Result<(), Failure> + Send + Sync;
pub(crate) type Batched<P> = dyn Fn(&mut Batch<'_, P>) -> Result<(), Failure> + Send + Sync;

/// What consumes a stage's envelopes.
pub struct Handler<P>(pub(crate) Kind<P>);

pub(crate) enum Kind<P> {
    Each(Box<Each<P>>),
    Batch(Box<Batched<P>>),
}

impl<P> Handler<P> {
    /// A handler that is called once per envelope.
    pub fn each(
        handle: impl Fn(&mut Context<'_, P>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::Each(Box::new(handle)))
    }

    /// A handler that is called once per batch of up to the stage's `batch` envelopes. `Err` fails
    /// all of them; [`Batch::fail`] fails one.
    pub fn batch(
        handle: impl Fn(&mut Batch<'_, P>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::Batch(Box::new(handle)))
    }
}

impl<P> Handler<P> {
    /// Whether it is called once per batch.
    pub(crate) fn is_batch(&self) -> bool {
        matches!(self.0, Kind::Batch(_))
    }
}

impl<P> fmt::Debug for Handler<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Each(_) => "Handler::each",
            Kind::Batch(_) => "Handler::batch",
        })
    }
}

/// Runs code that is not ours: handlers, callbacks, wakers, destructors. Never under a lock.
///
/// # Errors
/// The words of the panic, when it panicked.
pub(crate) fn guarded<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(describe)
}

/// How often what a panic carries may panic again when dropped.
const PANICS_MAX: usize = 8;

#[cold]
fn describe(panic: Box<dyn Any + Send>) -> String {
    let words = if let Some(text) = panic.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without words".to_owned()
    };
    // The payload of a panic may itself panic when dropped, and so may what comes of that.
    let mut panic = Some(panic);
    for _ in 0..PANICS_MAX {
        let Some(payload) = panic.take() else {
            return words;
        };
        panic = catch_unwind(AssertUnwindSafe(|| drop(payload))).err();
    }
    // One that never ends is left alone.
    panic.map(Box::leak);
    words
}
