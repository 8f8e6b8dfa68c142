//! Which dead letters are meant, and whether that is meant.

use std::io;
use std::str::FromStr;

use waystage::clock::{Clock as _, SystemClock};
use waystage::log::entry::EntryNumber;
use waystage::log::letters::{LetterFilter, Letters};

use super::arguments::{Change, Filters};
use crate::exit::Exit;
use crate::log::trouble::Subject;
use crate::run::Console;
use crate::run::options::time;
use crate::run::problem::Problem;

/// The shortest beginning of an id that names it.
const BEGINNING_CHARACTERS_MIN: usize = 4;
/// As many letters are named when more than one is meant.
const NAMED_MAX: usize = 5;

/// A time in unix milliseconds, or so long before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// So many milliseconds before now.
    Ago(u64),
    /// Then.
    At(u64),
}

impl Since {
    fn at(self, now_ms: u64) -> u64 {
        match self {
            Self::Ago(ago) => now_ms.saturating_sub(ago),
            Self::At(at) => at,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Ok(ago) = time(text.strip_prefix('-').unwrap_or(text)) {
            return Ok(Self::Ago(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)));
        }
        let at = text.parse::<jiff::Timestamp>().ok();
        let at = at.and_then(|at| u64::try_from(at.as_millisecond()).ok());
        at.map(Self::At).ok_or_else(|| {
            "write how long ago, like 1h or 30m, or a time like 2026-11-30T20:00:00Z".to_owned()
        })
    }
}

impl Filters {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_none(&self) -> bool {
        let Self { stage, cause, error, since } = self;
        stage.is_none() && cause.is_none() && error.is_none() && since.is_none()
    }

    /// The filter of the library.
    #[must_use]
    pub fn filter(&self) -> LetterFilter {
        let now_ms = SystemClock::new().wall_ms();
        LetterFilter {
            stage: self.stage.clone(),
            cause: self.cause.clone(),
            error: self.error.clone(),
            since_ms: self.since.map(|since| since.at(now_ms)),
            ..LetterFilter::default()
        }
    }
}

/// What was chosen.
#[derive(Debug)]
pub struct Chosen {
    /// The letters, and nothing where none of those named is there.
    pub filter: Option<LetterFilter>,
    /// Names under which no letter is there.
    pub missing: Vec<String>,
}

impl Chosen {
    /// The letters.
    #[must_use]
    pub fn picked(&self, letters: &Letters) -> Vec<EntryNumber> {
        self.filter.as_ref().map(|filter| letters.picked(filter)).unwrap_or_default()
    }
}

/// Whether letters are named in some way; otherwise says so, and how the command ends.
///
/// # Errors
/// Standard output took no more.
pub fn is_said(
    change: &Change,
    subject: &Subject<'_>,
    console: &mut Console<'_>,
) -> io::Result<Option<Exit>> {
    let (is_named, is_filtered) = (!change.letters.is_empty(), !change.filters.is_none());
    let words = match (is_named || is_filtered, change.all) {
        (false, false) => "no dead letters are named",
        (true, true) => "--all is said, and some are named too",
        _ => return Ok(None),
    };
    let help = "name letters, or say which by --stage, --cause, --error or --since; or say --all";
    subject.end(Exit::Usage, words, help, console).map(Some)
}

/// Looks at the log and chooses the letters that are to be changed; says which are not there. Where
/// that cannot be done, says why, and how the command ends.
///
/// # Errors
/// Standard output took no more.
pub fn chosen(
    change: &Change,
    subject: &Subject<'_>,
    console: &mut Console<'_>,
) -> io::Result<Result<(Letters, Chosen), Exit>> {
    let letters = match Letters::look(&change.log) {
        Ok(letters) => letters,
        Err(error) => return subject.fail(&error, console).map(Err),
    };
    let chosen = match choose(&letters, &change.letters, &change.filters) {
        Ok(chosen) => chosen,
        Err(problem) => return subject.problem(&problem, console).map(Err),
    };
    for name in &chosen.missing {
        console.say(&unknown(name, subject));
    }
    Ok(Ok((letters, chosen)))
}

/// Chooses letters by names and filters.
///
/// # Errors
/// In words: a name that stands for several.
fn choose(letters: &Letters, names: &[String], filters: &Filters) -> Result<Chosen, Problem> {
    let mut filter = filters.filter();
    let mut missing = Vec::new();
    for name in names {
        match &find(letters, name)[..] {
            [] => missing.push(name.clone()),
            [letter] => filter.letters.push(*letter),
            several => return Err(ambiguous(name, several)),
        }
    }
    let is_void = !names.is_empty() && filter.letters.is_empty();
    Ok(Chosen { filter: (!is_void).then_some(filter), missing })
}

/// The letters that a name stands for.
#[must_use]
pub fn find(letters: &Letters, name: &str) -> Vec<EntryNumber> {
    if let Some(number) = number(name)
        && letters.letter(number).is_some()
    {
        return vec![number];
    }
    let beginning = name.to_ascii_lowercase();
    if beginning.len() < BEGINNING_CHARACTERS_MIN {
        return Vec::new();
    }
    let all = letters.state().letters();
    let found = all.filter(|(_, letter)| letter.id.to_string().starts_with(&beginning));
    found.map(|(number, _)| number).collect()
}

/// The problem that a name stands for several letters.
#[must_use]
pub fn ambiguous(name: &str, several: &[EntryNumber]) -> Problem {
    let mut shown: Vec<_> = several.iter().take(NAMED_MAX).map(|one| written(*one)).collect();
    if several.len() > NAMED_MAX {
        shown.push("...".to_owned());
    }
    let count = several.len();
    let words = format!("`{name}` stands for {count} dead letters: {}", shown.join(", "));
    Problem::new(words, "name one by its number")
}

/// The problem that a name stands for no letter.
#[must_use]
pub fn unknown(name: &str, subject: &Subject<'_>) -> Problem {
    let log = crate::shell::file(subject.log);
    let help = format!("`waystage dead list {log}` says what is there");
    Problem::new(format!("there is no dead letter `{name}`"), help)
}

/// A letter's number as it is written: `90211`, or `90211.1` for the second entry of that record.
#[must_use]
pub fn written(number: EntryNumber) -> String {
    match number.index {
        0 => number.sequence.to_string(),
        _ => number.to_string(),
    }
}

fn number(text: &str) -> Option<EntryNumber> {
    let (sequence, index) = text.split_once('.').unwrap_or((text, "0"));
    Some(EntryNumber { sequence: sequence.parse().ok()?, index: index.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::{Since, number, written};

    #[test]
    fn times_and_numbers() {
        assert_eq!("1h".parse(), Ok(Since::Ago(3_600_000)));
        assert_eq!("-30m".parse(), Ok(Since::Ago(1_800_000)));
        assert_eq!("2024-01-01T00:00:00Z".parse(), Ok(Since::At(1_704_067_200_000)));
        for wrong in ["", "soon", "1969-01-01T00:00:00Z", "7"] {
            assert!(wrong.parse::<Since>().unwrap_err().contains("how long ago"), "{wrong}");
        }
        for (text, want) in [("7", "7"), ("7.0", "7"), ("7.2", "7.2")] {
            assert_eq!(number(text).map(written).as_deref(), Some(want));
        }
        assert!(number("7a").is_none() && number("7.").is_none() && number("-7").is_none());
    }
}
