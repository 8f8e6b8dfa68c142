//! Values with units and rules: numbers, sizes, durations, pointers, names, choices.
//!
//! Each reader takes an item and gives the value, or reports what is wrong with it and gives
//! nothing.

use std::time::Duration;

use jiff::fmt::friendly::SpanParser;
use jsonptr::PointerBuf;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

use super::problem::{Problem, Span};
use super::reader::{Item, Reader};

static DURATIONS: SpanParser = SpanParser::new();

/// Units of sizes, longest first so that `B` does not match `MiB`.
const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// The most bytes a stage's name may have: what the wire codec can write.
const NAME_BYTES_MAX: usize = 255;

impl Reader<'_> {
    pub(super) fn text<'t>(&mut self, item: &Item<'t>) -> Option<&'t str> {
        let text = item.value.get_ref().as_str();
        if text.is_none() {
            self.mismatch(item, "text");
        }
        text
    }

    pub(super) fn table<'t>(&mut self, item: &Item<'t>, want: &str) -> Option<&'t DeTable<'t>> {
        let table = item.value.get_ref().as_table();
        if table.is_none() {
            self.mismatch(item, want);
        }
        table
    }

    pub(super) fn list<'t>(&mut self, item: &Item<'t>, want: &str) -> Option<&'t DeArray<'t>> {
        let list = item.value.get_ref().as_array();
        if list.is_none() {
            self.mismatch(item, want);
        }
        list
    }

    /// A number that fits its type; what does not fit becomes the largest, which every range
    /// refuses.
    pub(super) fn integer<T: TryFrom<i128> + Bounded>(&mut self, item: &Item<'_>) -> Option<T> {
        match item.value.get_ref() {
            DeValue::Integer(integer) => {
                Some(wide(integer).and_then(|wide| T::try_from(wide).ok()).unwrap_or(T::LARGEST))
            }
            _ => {
                self.mismatch(item, "a whole number");
                None
            }
        }
    }

    /// A number in a range of our own.
    pub(super) fn within(&mut self, item: &Item<'_>, least: u64, most: u64) -> Option<u64> {
        let number = self.integer::<u64>(item)?;
        if (least..=most).contains(&number) {
            return Some(number);
        }
        self.out_of_range(item, &format!("{least} to {most}"));
        None
    }

    /// "`workers` is 0; it must be 1 to 64", with the value as it is written.
    pub(super) fn out_of_range(&mut self, item: &Item<'_>, must: &str) {
        let written = self.source.get(item.span()).unwrap_or_default();
        let written = if written.contains('\n') { "this" } else { written };
        let message = format!("`{}` is {written}; it must be {must}", item.key);
        self.report(Problem::error(item.span(), message).label("out of range"));
    }

    /// A duration in words: `20us`, `50ms`, `1h 30m`.
    pub(super) fn duration(&mut self, item: &Item<'_>) -> Option<Duration> {
        let Some(text) = item.value.get_ref().as_str() else {
            self.mismatch(item, "a time with its unit, like \"50ms\"");
            return None;
        };
        self.duration_in(text, item.span())
    }

    /// A duration that is all or part of a text at `span`.
    pub(super) fn duration_in(&mut self, text: &str, span: Span) -> Option<Duration> {
        match DURATIONS.parse_unsigned_duration(text.trim()) {
            Ok(duration) => Some(duration),
            Err(_reason) => {
                let problem = Problem::error(span, format!("`{text}` is not a time"));
                let help =
                    "a number and its unit: ns, us, ms, s, m or h, as in \"50ms\", \"1h 30m\"";
                self.report(problem.label("not a time").help(help));
                None
            }
        }
    }

    /// A size: bytes, or text with a unit.
    pub(super) fn size(&mut self, item: &Item<'_>, least: u64, most: u64) -> Option<u64> {
        let Some(text) = item.value.get_ref().as_str() else {
            if item.value.get_ref().is_integer() {
                return self.within(item, least, most);
            }
            self.mismatch(item, "a size, like \"1MiB\"");
            return None;
        };
        let Some(bytes) = bytes(text) else {
            let problem = Problem::error(item.span(), format!("`{}` is not a size", item.key));
            let help = "a whole number and a unit: B, kB, MB, GB, KiB, MiB or GiB, as in \"1MiB\"";
            self.report(problem.label("not a size").help(help));
            return None;
        };
        if (least..=most).contains(&bytes) {
            return Some(bytes);
        }
        self.out_of_range(item, &format!("{least} to {most} bytes"));
        None
    }

    pub(super) fn pointer(&mut self, item: &Item<'_>) -> Option<PointerBuf> {
        let text = self.text(item)?;
        self.pointer_in(text, self.inner(&item.span(), text))
    }

    /// A JSON pointer written at `span`, quotes excluded.
    pub(super) fn pointer_in(&mut self, text: &str, span: Span) -> Option<PointerBuf> {
        let error = match jsonptr::Pointer::parse(text) {
            Ok(pointer) => return Some(pointer.to_buf()),
            Err(error) => error,
        };
        let problem = if error.is_no_leading_slash() {
            let message = format!("`{text}` is not a JSON pointer");
            let label = "a JSON pointer starts with `/`";
            Problem::error(span, message).label(label).help(format!("write \"/{text}\""))
        } else {
            let at = span.start + error.complete_offset();
            let span = if at < span.end { at..at + 1 } else { span };
            Problem::error(span, format!("`{text}` is not a JSON pointer"))
                .label("`~` stands only in `~0` and `~1`")
                .help("write `~0` for `~` and `~1` for `/`")
        };
        self.report(problem);
        None
    }

    /// One of the words of a list.
    pub(super) fn choice<T: Copy>(&mut self, item: &Item<'_>, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(item)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.not_a_choice(item, text, &words);
        None
    }

    pub(super) fn not_a_choice(&mut self, item: &Item<'_>, text: &str, words: &[&str]) {
        let problem = Problem::error(item.span(), format!("`{}` cannot be `{text}`", item.key));
        let label = format!("not one of {}", words.join(", "));
        self.report(problem.label(label).suggest(self.nearest(text, words.iter().copied())));
    }

    /// Whether a stage may have this name.
    pub(super) fn stage_name(&mut self, name: &str, span: Span) -> bool {
        let fault = if name.is_empty() {
            "a stage needs a name"
        } else if name.len() > NAME_BYTES_MAX {
            "a stage's name has at most 255 bytes"
        } else if name.chars().any(char::is_control) {
            "a stage's name has no control characters"
        } else {
            return true;
        };
        self.report(Problem::error(span, fault));
        false
    }

    /// The place of a part of an item's text; all of it when it is written with escapes.
    pub(super) fn part(&self, item: &Item<'_>, text: &str, part: Span) -> Span {
        let inner = self.inner(&item.span(), text);
        if inner.len() == text.len() {
            inner.start + part.start..inner.start + part.end
        } else {
            item.span()
        }
    }

    /// The span of a text without its quotes; with them when it is written with escapes.
    pub(super) fn inner(&self, span: &Span, text: &str) -> Span {
        let written = self.source.get(span.clone()).unwrap_or_default();
        match written.find(text) {
            Some(at) if !text.is_empty() && written.len() <= text.len() + 6 => {
                span.start + at..span.start + at + text.len()
            }
            _ => span.clone(),
        }
    }
}

/// Types with a largest value.
pub(super) trait Bounded {
    const LARGEST: Self;
}

impl Bounded for u16 {
    const LARGEST: Self = Self::MAX;
}

impl Bounded for u32 {
    const LARGEST: Self = Self::MAX;
}

impl Bounded for u64 {
    const LARGEST: Self = Self::MAX;
}

impl Bounded for usize {
    const LARGEST: Self = Self::MAX;
}

/// The number, if 128 bits hold it.
pub(super) fn wide(integer: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) =
        UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)))?;
    let digits = number.trim_end().replace('_', "");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_have_units() {
        let table = [
            ("1MiB", Some(1 << 20)),
            ("64 KiB", Some(64 << 10)),
            ("10MB", Some(10_000_000)),
            ("1_000B", Some(1000)),
            ("7kB", Some(7000)),
            ("1", None),
            ("MiB", None),
            ("1.5MiB", None),
            ("-1B", None),
            ("99999999999GiB", None),
            ("1mib", None),
        ];
        for (text, want) in table {
            assert_eq!(bytes(text), want, "{text}");
        }
    }
}
