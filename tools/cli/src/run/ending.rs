//! How an input ends.

use std::io;
use std::time::Duration;

use waystage::clock::Clock;

use super::ledger::Ledger;
use super::sources::Source;

/// How long the end of a pipe waits for a Ctrl-C that ended its writer: the signal goes to
/// both, and the end may be seen first.
const GRACE: Duration = Duration::from_millis(20);

/// How the input came to its end.
#[derive(Debug)]
pub enum End {
    /// Everything was read.
    Exhausted,
    /// As many records as asked for were sent.
    Limit,
    /// It was asked to end, or the bus took no more.
    Stopped,
    /// An input failed, or an output before the first record.
    Failed {
        /// What, with its name.
        what: String,
        /// Why.
        error: io::Error,
    },
}

/// What ends a feed before the end of an input.
#[derive(Debug)]
pub enum Halt {
    /// An end of its own.
    At(End),
    /// What failed, and why.
    Io(String, io::Error),
}

/// At the end of a pipe: lets a Ctrl-C that ended its writer come first.
pub fn await_interrupt(source: &Source, ledger: &Ledger) {
    if !source.is_regular() {
        let now = Duration::from_nanos(ledger.clock.monotonic_ns());
        let due_ns = u64::try_from((now + GRACE).as_nanos()).unwrap_or(u64::MAX);
        // Whether it came is seen by whoever asks next.
        let _ = ledger.wait_until(due_ns);
    }
}
