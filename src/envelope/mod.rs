//! What travels: an id, headers, a payload and a routing slip. Data only: no threads, no I/O.
//!
//! An [`Envelope`] is laid out for the ring it waits in: with a 64-byte payload it is 120 bytes,
//! two cache lines together with the ring's own stamp. What most envelopes do not have (headers, an
//! expiry, a completion callback, a cause of death) stands in one box that is absent until needed.

pub mod codec;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
pub(crate) mod envelope;
pub mod headers;
pub mod id;
mod marks;
pub mod payload;
pub mod slip;

pub use envelope::{Cause, Envelope, Settled};
pub use headers::{HeaderError, Headers};
pub use id::{EnvelopeId, EnvelopeIdError, IdGenerator};
pub use payload::{Payload, PayloadError};
pub use slip::{Route, Slip, SlipError};
