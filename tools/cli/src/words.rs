//! Numbers and times as people read them.

use std::io;
use std::time::Duration;

/// A number with its thousands apart: `1,707`.
#[must_use]
pub fn count(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate without its fraction, its thousands apart.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub fn rate(per_second: f64) -> String {
    count(per_second.round() as u64)
}

/// Nanoseconds in microseconds: one decimal below ten.
#[must_use]
pub fn microseconds(nanoseconds: u64) -> String {
    if nanoseconds < 9_950 {
        let tenths = (nanoseconds + 50) / 100;
        return format!("{}.{}", tenths / 10, tenths % 10);
    }
    count((nanoseconds + 500) / 1000)
}

/// A time in its best unit: `812 us`, `45 ms`, `12.3 s`, `4 min 5 s`.
#[must_use]
pub fn time(time: Duration) -> String {
    let nanoseconds = time.as_nanos();
    let seconds = time.as_secs();
    match nanoseconds {
        0..1_000_000 => format!("{} \u{b5}s", nanoseconds / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", (nanoseconds + 500_000) / 1_000_000),
        1_000_000_000..60_000_000_000 => match time.subsec_millis() / 100 {
            0 => format!("{seconds} s"),
            tenths => format!("{seconds}.{tenths} s"),
        },
        _ if seconds < 3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", count(seconds / 3600), seconds / 60 % 60),
    }
}

/// A system error in words.
#[must_use]
pub fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// The name, its middle cut out when it is long.
#[must_use]
pub fn shortened(name: &str, characters_max: usize) -> String {
    let name = &harmless(name);
    let length = name.chars().count();
    if length <= characters_max {
        return name.clone();
    }
    let head = characters_max / 2;
    let tail = characters_max - head - 1;
    let start: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(length - tail).collect();
    format!("{start}\u{2026}{end}")
}

/// A name from the data as it may go to a terminal: line ends, escapes and marks that turn the
/// direction of text are written out.
#[must_use]
pub fn harmless(name: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() || turns(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{count, microseconds, shortened, time};

    #[test]
    fn thousands() {
        let all = [0_u64, 7, 999, 1000, 38_210, 1_234_567].map(count);
        assert_eq!(all, ["0", "7", "999", "1,000", "38,210", "1,234,567"]);
    }

    #[test]
    fn times() {
        let all = [0, 40, 51, 5_149, 9_949, 9_950, 12_400, 1_234_567].map(microseconds);
        assert_eq!(all, ["0.0", "0.0", "0.1", "5.1", "9.9", "10", "12", "1,235"]);
        let all = [
            812_000,
            45_000_000,
            30_000_000_000,
            12_345_000_000,
            245_000_000_000,
            7_260_000_000_000,
        ]
        .map(|nanoseconds| time(Duration::from_nanos(nanoseconds)));
        assert_eq!(all, ["812 \u{b5}s", "45 ms", "30 s", "12.3 s", "4 min 5 s", "2 h 1 min"]);
    }

    #[test]
    fn names() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("abcdefghij", 5), "ab\u{2026}ij");
    }

    #[test]
    fn what_would_act_on_a_terminal_is_written_out() {
        assert_eq!(shortened("l1\nl2", 40), "l1\\u{a}l2");
        assert_eq!(shortened("\u{1b}[31m\u{202e}x", 40), "\\u{1b}[31m\\u{202e}x");
    }
}
