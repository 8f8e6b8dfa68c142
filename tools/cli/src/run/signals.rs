//! Ctrl-C, SIGTERM, and SIGHUP of a terminal that went: while a run goes on the first asks it to
//! stop, and the next ends the process at once; before and after, the first one does. A SIGHUP that
//! was ignored when the process began stays so: that is what `nohup` is for.
//!
//! Some programs send a signal twice in one breath (`timeout` does, to its child and to the group):
//! so the next one counts only once the first was noticed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::SECOND_INTERRUPT;

/// Whether the user asked to stop.
#[derive(Debug, Clone)]
pub struct Interrupt {
    /// A signal came; set by the signal handler.
    asked: Arc<AtomicBool>,
    /// The next signal ends the process; read by the signal handler.
    ends_at_once: Arc<AtomicBool>,
}

impl Interrupt {
    /// One that no signal sets.
    #[must_use]
    pub fn never() -> Self {
        let ends_at_once = Arc::new(AtomicBool::new(true));
        Self { asked: Arc::new(AtomicBool::new(false)), ends_at_once }
    }

    /// Watches the signals of this process from now on; until [`ask_first`](Self::ask_first) each
    /// of them ends it.
    ///
    /// # Errors
    /// The system refused.
    pub fn watch() -> io::Result<Self> {
        let interrupt = Self::never();
        let hangup = (!ignores(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            let ends_at_once = Arc::clone(&interrupt.ends_at_once);
            flag::register_conditional_shutdown(signal, SECOND_INTERRUPT, ends_at_once)?;
            flag::register(signal, Arc::clone(&interrupt.asked))?;
        }
        Ok(interrupt)
    }

    /// From now on a signal only asks.
    pub fn ask_first(&self) {
        self.ends_at_once.store(false, Ordering::Relaxed);
    }

    /// From now on a signal ends the process.
    pub fn end_at_once(&self) {
        self.ends_at_once.store(true, Ordering::Relaxed);
    }

    /// Whether a signal came.
    #[must_use]
    pub fn came(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Whether this process ignores the signal; taken for granted where the system does not tell.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}
