//! Payloads of the simulator: a plain label, and a crate around it whose drop is counted and
//! rarely panics.

use std::panic::resume_unwind;
use std::sync::Arc;

use super::ledger::Ledger;

/// What every simulated envelope carries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Label {
    /// Its place in the ledger.
    pub(super) uid: usize,
    /// Its place among the publishes, until it is first handled.
    pub(super) entry: Option<u64>,
    /// The stage it left last with success, and its place among those that did.
    pub(super) left: Option<(usize, u64)>,
    /// Its place among the arrivals at the stage it is at.
    pub(super) arrival: u64,
    /// Re-drives it had when a handler last saw it.
    pub(super) redrives: u16,
    /// Its slip is of another bus: no handler may ever see it.
    pub(super) foreign: bool,
}

/// A payload type of the simulator.
pub(super) trait Cargo: Send + 'static {
    /// `bomb`: whether its drop panics, if this type can.
    fn pack(label: Label, ledger: &Arc<Ledger>, bomb: bool) -> Self;
    fn label(&self) -> &Label;
    fn label_mut(&mut self) -> &mut Label;
    /// Makes its drop harmless: it is with its producer again.
    fn disarm(&mut self);
}

impl Cargo for Label {
    fn pack(label: Label, _ledger: &Arc<Ledger>, _bomb: bool) -> Self {
        label
    }

    fn label(&self) -> &Label {
        self
    }

    fn label_mut(&mut self) -> &mut Label {
        self
    }

    fn disarm(&mut self) {}
}

/// A label with a destructor.
#[derive(Debug)]
pub(super) struct Crate {
    label: Label,
    ledger: Arc<Ledger>,
    bomb: bool,
}

impl Cargo for Crate {
    fn pack(label: Label, ledger: &Arc<Ledger>, bomb: bool) -> Self {
        ledger.packed();
        Self { label, ledger: Arc::clone(ledger), bomb }
    }

    fn label(&self) -> &Label {
        &self.label
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn disarm(&mut self) {
        self.bomb = false;
    }
}

impl Drop for Crate {
    fn drop(&mut self) {
        self.ledger.unpacked();
        if self.bomb && !std::thread::panicking() {
            // Like a panic, without the noise of the hook.
            resume_unwind(Box::new("a planned panic of a destructor"));
        }
    }
}
