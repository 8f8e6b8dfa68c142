//! Pinning: which core a worker runs on.
//!
//! The list of cores is read once, before any thread is pinned: afterwards the operating system
//! reports only the pinned thread's own core, and new threads inherit it.

use super::settings::{Pin, PoolError};

/// The core of each worker; empty when nothing is pinned.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan(Vec<core_affinity::CoreId>);

impl Plan {
    /// Reads the cores of this process and deals them out.
    ///
    /// # Errors
    /// [`PoolError`] when a core asked for is not among them, or there is none.
    pub(crate) fn new(pin: &Pin) -> Result<Self, PoolError> {
        let cores = match pin {
            Pin::Off => return Ok(Self::default()),
            Pin::InOrder => core_affinity::get_core_ids().unwrap_or_default(),
            Pin::Cores(wanted) => {
                let all = core_affinity::get_core_ids().unwrap_or_default();
                let find = |&core: &usize| {
                    all.iter().copied().find(|known| known.id == core).ok_or_else(|| {
                        PoolError::NoSuchCore {
                            core,
                            allowed: all.iter().map(|known| known.id).collect(),
                        }
                    })
                };
                wanted.iter().map(find).collect::<Result<Vec<_>, _>>()?
            }
        };
        if cores.is_empty() {
            return Err(PoolError::NoCores);
        }
        Ok(Self(cores))
    }

    /// Pins the calling thread as worker number `worker`; whether it is pinned now.
    pub(crate) fn pin(&self, worker: usize) -> bool {
        if self.0.is_empty() {
            return false;
        }
        core_affinity::set_for_current(self.0[worker % self.0.len()])
    }
}
