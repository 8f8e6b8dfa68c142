//! Looks at dead letters, and changes nothing.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::super::disk::Disk;
use super::super::entry::{CAUSE_HEADER, CauseCode, EntryNumber};
use super::super::error::LogError;
use super::super::folder::Folder;
use super::super::state::{Letter, State};
use super::super::verify::state_on;
use super::{Claim, Form, LetterFilter, Redrive, Redriven, claim};
use crate::envelope::Headers;

/// The dead letters of a log, as they were when it was looked at.
///
/// ```
/// use waystage::log::letters::{LetterFilter, Letters};
/// # use waystage::envelope::{EnvelopeId, codec::Parts};
/// # use waystage::log::entry::{CauseCode, DurableLevel, Entry};
/// # use waystage::log::{Log, LogSettings};
/// # let directory = tempfile::tempdir()?;
/// # let (log, _) = Log::open(directory.path(), LogSettings::default())?;
/// # let id = EnvelopeId::from_key(b"order-17");
/// # let envelope = Parts { current: Some("price"), payload: Some(b"2 pears"), ..Parts::new(id) };
/// # let mut body = Vec::new();
/// # Entry::Accept { level: DurableLevel::AtLeastOnce, envelope }.encode(&mut body)?;
/// # let (at_ms, cause) = (1_704_067_200_000, CauseCode::HandlerFailed);
/// # Entry::Dead { id, at_ms, attempts: 3, cause, reason: "no pears" }.encode(&mut body)?;
/// # log.append(&body)?.wait()?;
/// # log.close()?;
/// let letters = Letters::look(directory.path())?;
/// for number in letters.picked(&LetterFilter::default()) {
///     let letter = letters.letter(number).unwrap();
///     assert_eq!((&*letter.held.stage, &*letter.reason), ("price", "no pears"));
///     assert_eq!(letters.content(number)?.payload, b"2 pears");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Letters {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) state: State,
}

/// What the log has of a letter, besides what its state says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// The stages it visited, the last of them where it died.
    pub trail: Vec<String>,
    /// The stages it would have gone on to.
    pub remaining: Vec<String>,
    /// Its headers.
    pub headers: Headers,
    /// What its payload is.
    pub content_type: Option<String>,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Its deadline, in unix milliseconds.
    pub expires_at_ms: Option<u64>,
}

/// Letters of one cause and stage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share {
    /// Why they were given up.
    pub cause: CauseCode,
    /// Where.
    pub stage: Arc<str>,
    /// How many they are.
    pub count: usize,
    /// When the first one died, in unix milliseconds.
    pub oldest_ms: u64,
    /// When the last one died.
    pub newest_ms: u64,
    /// What the last one died of, in words.
    pub sample: Box<str>,
}

impl Letters {
    /// Looks at the log in a directory, whether somebody writes to it or not.
    ///
    /// # Errors
    /// When there is none, when it is damaged, and what the storage says.
    pub fn look(path: &Path) -> Result<Self, LogError> {
        let shown = path.display().to_string();
        let folder = Folder::unlocked(path).map_err(LogError::storage("open", &shown))?;
        Self::on(Arc::new(folder))?.ok_or(LogError::NoLog(shown))
    }

    /// Looks at the log on a disk; `None` where there is none.
    pub(crate) fn on(disk: Arc<dyn Disk>) -> Result<Option<Self>, LogError> {
        let state = state_on(&disk)?;
        Ok(state.map(|state| Self { disk, state }))
    }

    /// What is true in the log.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The letters that fit, the oldest first.
    #[must_use]
    pub fn picked(&self, filter: &LetterFilter) -> Vec<EntryNumber> {
        filter.picked(&self.state)
    }

    /// The letter that this entry made.
    #[must_use]
    pub fn letter(&self, number: EntryNumber) -> Option<&Letter> {
        self.state.letter(number)
    }

    /// The rest of a letter, read from the log.
    ///
    /// # Errors
    /// When it is not there any more, and what the storage says.
    pub fn content(&self, number: EntryNumber) -> Result<Content, LogError> {
        let letter = self.state.letter(number).ok_or_else(missing)?;
        let form = Form::on(&self.disk, &letter.held)?;
        let (view, body) = (form.view().map_err(unreadable)?, form.body().map_err(unreadable)?);
        let mut headers = view.headers().to_headers();
        headers.remove(CAUSE_HEADER);
        let trail = view.trail().iter().chain(view.current()).map(str::to_owned).collect();
        Ok(Content {
            trail,
            remaining: view.remaining().iter().map(str::to_owned).collect(),
            headers,
            content_type: body.content_type().map(str::to_owned),
            payload: body.payload().unwrap_or_default().to_vec(),
            expires_at_ms: view.expires_at_ms(),
        })
    }

    /// The letters that fit, by cause and stage, the most frequent first.
    #[must_use]
    pub fn shares(&self, filter: &LetterFilter) -> Vec<Share> {
        let mut shares: BTreeMap<(u8, Arc<str>), Share> = BTreeMap::new();
        for (number, letter) in self.state.letters() {
            if !filter.picks(number, letter) {
                continue;
            }
            let (cause, stage, at_ms) = (letter.cause, &letter.held.stage, letter.at_ms);
            let key = (cause.number(), Arc::clone(stage));
            let share = shares.entry(key).or_insert_with(|| Share {
                cause,
                stage: Arc::clone(stage),
                count: 0,
                oldest_ms: at_ms,
                newest_ms: at_ms,
                sample: Box::default(),
            });
            share.count += 1;
            share.oldest_ms = share.oldest_ms.min(at_ms);
            share.newest_ms = share.newest_ms.max(at_ms);
            if !letter.reason.is_empty() {
                share.sample.clone_from(&letter.reason);
            }
        }
        let mut shares: Vec<_> = shares.into_values().collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.count));
        shares
    }

    /// What a re-drive would do.
    #[must_use]
    pub fn would(&self, plan: &Redrive) -> Redriven {
        would(&self.state, plan, |_| true)
    }
}

/// What a re-drive would do with the letters of a state whose stages take it.
pub(crate) fn would(state: &State, plan: &Redrive, is_taken: impl Fn(&Letter) -> bool) -> Redriven {
    let mut outcome = Redriven::default();
    // Of two letters with the same id one comes in.
    let mut claimed = HashSet::new();
    for number in plan.filter.picked(state) {
        let Some(letter) = state.letter(number) else { continue };
        if outcome.redriven >= plan.limit {
            break;
        }
        match claim(state, number, plan.redrives_max) {
            None => {}
            Some(Claim::Guarded) => outcome.guarded += 1,
            Some(Claim::Duplicate) => outcome.duplicates += 1,
            Some(Claim::Free) if is_taken(letter) && claimed.insert(letter.id) => {
                outcome.redriven += 1;
            }
            Some(Claim::Free | Claim::InFlight) => outcome.refused += 1,
        }
    }
    outcome
}

pub(super) fn missing() -> LogError {
    let source = std::io::ErrorKind::NotFound.into();
    LogError::storage("find a dead letter in", "the log")(source)
}

pub(super) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> LogError {
    LogError::storage("read", "an envelope of the log")(std::io::Error::other(error))
}
