//! `waystage log`: what a log holds, what is wrong with it, and what is left of a damaged one.
//!
//! `stat`, `dump` and `verify` read a log that is written to as well as one that is not: they take
//! no lock and change nothing. `salvage` makes a new log and never touches the old one.

pub mod arguments;
pub mod condition;
pub mod dump;
pub mod entry;
pub mod filter;
pub mod salvage;
pub mod stat;
pub mod table;
pub mod trouble;
pub mod verify;

use std::io;

use jiff::Timestamp;
use serde_json::Value;
use waystage::log::segment;

use crate::arguments::Global;
use crate::exit::Exit;
use crate::run::Console;
use arguments::{Log, LogCommand};

/// Looks into a log.
///
/// # Errors
/// Standard output took no more.
pub fn command(log: &Log, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    match &log.command {
        LogCommand::Stat(stat) => stat::command(stat, global, console),
        LogCommand::Dump(dump) => dump::command(dump, global, console),
        LogCommand::Verify(verify) => verify::command(verify, global, console),
        LogCommand::Salvage(salvage) => salvage::command(salvage, global, console),
    }
}

/// A time of the log, in RFC 3339 with milliseconds.
#[must_use]
pub fn time(nanoseconds: u64) -> String {
    Timestamp::from_nanosecond(i128::from(nanoseconds))
        .map_or_else(|_| "-".to_owned(), |time| format!("{time:.3}"))
}

/// The same for JSON, to the nanosecond; null where there is none.
#[must_use]
pub fn json_time(nanoseconds: Option<u64>) -> Value {
    let time = nanoseconds.and_then(|time| Timestamp::from_nanosecond(i128::from(time)).ok());
    time.map_or(Value::Null, |time| Value::String(time.to_string()))
}

/// Bytes in the largest unit that divides them.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match unit {
        Some((shift, name)) => format!("{} {name}", crate::words::count(bytes >> shift)),
        None => format!("{} bytes", crate::words::count(bytes)),
    }
}

/// The name of a segment's file.
fn file(number: u64) -> String {
    segment::name(number)
}

#[cfg(test)]
mod tests {
    use super::{bytes, time};

    #[test]
    fn times_and_sizes() {
        assert_eq!(time(1_704_067_200_123_000_000), "2024-01-01T00:00:00.123Z");
        assert_eq!(time(u64::MAX), "2554-07-21T23:34:33.709Z");
        let all = [0, 1, 4096, 64 << 20, 1 << 30, (64 << 20) + 1].map(bytes);
        let want = ["0 bytes", "1 bytes", "4 KiB", "64 MiB", "1 GiB", "67,108,865 bytes"];
        assert_eq!(all, want);
    }
}
