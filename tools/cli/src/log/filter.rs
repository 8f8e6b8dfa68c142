//! Which entries are wanted: from where, to where, of which kinds.

use std::str::FromStr;
use std::time::Duration;

use waystage::log::Start;
use waystage::log::entry::EntryKind;

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A record.
    Sequence(u64),
    /// A time in unix nanoseconds.
    Time(u64),
    /// So long before now.
    Ago(Duration),
}

impl Mark {
    /// With the time it is now.
    #[must_use]
    pub fn at(self, now_ns: u64) -> Self {
        match self {
            Self::Ago(ago) => {
                let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
                Self::Time(now_ns.saturating_sub(ago))
            }
            other => other,
        }
    }

    /// Where a reader begins.
    #[must_use]
    pub fn start(self) -> Start {
        match self {
            Self::Sequence(sequence) => Start::Sequence(sequence),
            Self::Time(time) => Start::Time(time),
            Self::Ago(_) => Start::Oldest,
        }
    }

    /// Whether a record stands behind it.
    #[must_use]
    pub fn is_before(self, sequence: u64, time: u64) -> bool {
        match self {
            Self::Sequence(last) => last < sequence,
            Self::Time(last) => last < time,
            Self::Ago(_) => false,
        }
    }
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || {
            "write a sequence like 90211, a time like 2026-11-30T20:00:00Z, or how long ago, like \
             -1h"
            .to_owned()
        };
        if let Some(ago) = text.strip_prefix('-') {
            return crate::run::options::time(ago).map(Self::Ago).map_err(|_error| wrong());
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Sequence).map_err(|_error| wrong());
        }
        let time: jiff::Timestamp = text.parse().map_err(|_error| wrong())?;
        u64::try_from(time.as_nanosecond()).map(Self::Time).map_err(|_error| wrong())
    }
}

/// Records that hold no entries.
const OTHERS: [&str; 3] = ["mark", "checkpoint", "other"];
/// What `settle` stands for.
const SETTLE: [EntryKind; 6] = [
    EntryKind::Hop,
    EntryKind::Attempt,
    EntryKind::Completed,
    EntryKind::Expired,
    EntryKind::Dead,
    EntryKind::Handled,
];

/// Kinds of entries, and of records without entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds(Vec<&'static str>);

impl Kinds {
    /// Whether this kind is wanted.
    #[must_use]
    pub fn has(&self, kind: &str) -> bool {
        self.0.contains(&kind)
    }
}

impl FromStr for Kinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = EntryKind::ALL.iter().map(|kind| kind.name()).chain(OTHERS);
        let names: Vec<&'static str> = names.collect();
        let mut kinds = Vec::new();
        for word in text.split(',').map(str::trim) {
            if word == "settle" {
                kinds.extend(SETTLE.map(EntryKind::name));
            } else if let Some(name) = names.iter().find(|name| **name == word) {
                kinds.push(name);
            } else {
                return Err(format!("{word:?} is none of {}, settle", names.join(", ")));
            }
        }
        Ok(Self(kinds))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Kinds, Mark};

    #[test]
    fn marks() {
        let second = 1_000_000_000;
        assert_eq!("90211".parse(), Ok(Mark::Sequence(90_211)));
        assert_eq!("2024-01-01T00:00:00Z".parse(), Ok(Mark::Time(1_704_067_200 * second)));
        assert_eq!(
            "2024-01-01T01:00:00.5+01:00".parse::<Mark>().map(|mark| mark.at(0)),
            Ok(Mark::Time(1_704_067_200 * second + second / 2))
        );
        assert_eq!("-1h".parse(), Ok(Mark::Ago(Duration::from_secs(3_600))));
        assert_eq!(Mark::Ago(Duration::from_secs(1)).at(3 * second), Mark::Time(2 * second));
        for wrong in ["", "-", "soon", "1969-01-01T00:00:00Z", "99999999999999999999", "-5", "1.5"]
        {
            assert!(wrong.parse::<Mark>().unwrap_err().contains("90211"), "{wrong}");
        }
    }

    #[test]
    fn kinds() {
        let kinds: Kinds = "accept, settle,mark".parse().unwrap();
        for (kind, is_wanted) in [("accept", true), ("dead", true), ("mark", true), ("sink", false)]
        {
            assert_eq!(kinds.has(kind), is_wanted, "{kind}");
        }
        assert!("accept,settled".parse::<Kinds>().unwrap_err().contains("settled"));
    }
}
