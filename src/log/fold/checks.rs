//! What a wire form has to say, given what is remembered of its envelope.

use std::sync::Arc;

use super::violation::Breach;
use crate::envelope::codec::Parts;
use crate::log::state::Held;

/// The stage that a wire form names.
pub(super) fn stage(envelope: &Parts<'_>) -> Result<Arc<str>, Breach> {
    envelope.current.map(Arc::from).ok_or(Breach::NoStage)
}

/// Who comes to a stage has made no attempt there.
pub(super) fn begins_anew(envelope: &Parts<'_>) -> Result<(), Breach> {
    match envelope.attempts {
        0 => Ok(()),
        found => Err(Breach::Attempts { held: 0, found }),
    }
}

/// Attempts are counted upwards.
pub(super) fn rises(held: u16, found: u16, or_stays: bool) -> Result<(), Breach> {
    let is_allowed = found > held || or_stays && found == held;
    if is_allowed { Ok(()) } else { Err(Breach::Attempts { held, found }) }
}

/// Whether it has a new body, whose version is higher; without one it has that of before.
pub(super) fn goes_on(held: &Held, envelope: &Parts<'_>) -> Result<bool, Breach> {
    let (before, found) = (held.body_version, envelope.body_version);
    let is_new = envelope.payload.is_some();
    let is_allowed = if is_new { found > before } else { found == before };
    if is_allowed { Ok(is_new) } else { Err(Breach::Body { held: before, found, is_new }) }
}

/// A copy says what its original says.
pub(super) fn is_the_same(held: &Held, envelope: &Parts<'_>) -> Result<(), Breach> {
    if envelope.current != Some(&*held.stage) {
        return Err(Breach::Stage);
    }
    if envelope.hops != held.hops {
        return Err(Breach::Hops { held: held.hops, found: envelope.hops });
    }
    if envelope.attempts != held.attempts {
        return Err(Breach::Attempts { held: held.attempts, found: envelope.attempts });
    }
    let (before, found) = (held.body_version, envelope.body_version);
    if found != before {
        return Err(Breach::Body { held: before, found, is_new: false });
    }
    if envelope.payload.is_none() { Err(Breach::NoBody) } else { Ok(()) }
}
