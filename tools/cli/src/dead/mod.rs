//! `waystage dead`: the dead letters of a log, listed, shown, taken in again, removed.
//!
//! `list`, `show` and what `--dry-run` says read a log that is written to as well as one that is
//! not: they take no lock and change nothing. `redrive` and `purge` open it, so nobody else may
//! have it open.

pub mod arguments;
pub mod choose;
pub mod list;
pub mod pace;
pub mod purge;
pub mod redrive;
pub mod show;

use std::io;

use serde_json::Value;
use waystage::clock::{Clock as _, SystemClock};

use crate::arguments::Global;
use crate::exit::Exit;
use crate::log::json_time;
use crate::run::Console;
use arguments::{Dead, DeadCommand};

/// Looks at dead letters, or changes them.
///
/// # Errors
/// Standard output took no more.
pub fn command(dead: &Dead, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    match &dead.command {
        DeadCommand::List(list) => list::command(list, global, console),
        DeadCommand::Show(show) => show::command(show, global, console),
        DeadCommand::Redrive(redrive) => redrive::command(redrive, global, console),
        DeadCommand::Purge(purge) => purge::command(purge, global, console),
    }
}

/// How long ago, in its two largest units: `3h 2m`.
#[must_use]
pub fn ago(at_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(at_ms) / 1_000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let begin = units.iter().position(|(size, _)| seconds >= *size).unwrap_or(3);
    let (size, name) = units[begin];
    let (large, rest) = (crate::words::count(seconds / size), seconds % size);
    match units.get(begin + 1) {
        Some((small, smaller)) if rest / small > 0 && begin < 2 => {
            format!("{large}{name} {}{smaller}", rest / small)
        }
        _ => format!("{large}{name}"),
    }
}

/// The time now in unix milliseconds.
fn now_ms() -> u64 {
    SystemClock::new().wall_ms()
}

/// A time of a letter for JSON.
fn json_ms(at_ms: u64) -> Value {
    json_time(at_ms.checked_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::ago;

    #[test]
    fn how_long_ago() {
        let all = [0, 999, 59_000, 61_000, 3_600_000, 10_920_000, 590_400_000].map(|it| ago(0, it));
        assert_eq!(all, ["0s", "0s", "59s", "1m", "1h", "3h 2m", "6d 20h"]);
        assert_eq!(ago(5, 1), "0s", "clocks differ");
    }
}
