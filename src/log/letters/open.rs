//! Changes the dead letters of a log that no bus has open.

use std::path::Path;
use std::sync::Arc;

use super::super::disk::Disk;
use super::super::entry::{CAUSE_HEADER, Entry, EntryNumber};
use super::super::error::LogError;
use super::super::folder::Folder;
use super::super::read::outline;
use super::super::recover::Recovered;
use super::super::settings::LogSettings;
use super::super::state::Letter;
use super::super::store::Log;
use super::look::{missing, unreadable};
use super::{Claim, Form, LetterFilter, Letters, Redrive, Redriven, claim};
use crate::envelope::codec::Parts;

/// The dead letters of a log that is open here, so that they can be changed.
///
/// What is re-driven is taken up by the bus that opens the log next.
///
/// ```
/// use waystage::log::letters::{LetterFilter, OpenLetters, Redrive};
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
/// let mut letters = OpenLetters::open(directory.path())?;
/// let plan = Redrive { to: Some("fruit".into()), ..Redrive::default() };
/// let outcome = letters.redrive(&plan, None, &mut |_| true)?;
/// assert_eq!(outcome.redriven, 1);
/// letters.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenLetters {
    log: Log,
    letters: Letters,
}

impl OpenLetters {
    /// Opens the log in a directory.
    ///
    /// # Errors
    /// As [`Log::open`]; when there is none, and when it was not closed and its last records added
    /// something to sinks, which a bus that has them has to look at first.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let shown = path.display().to_string();
        let segments = outline(path)?.segments;
        let newest = segments.iter().rev().find_map(|segment| segment.header.as_ref().ok());
        let mut settings = LogSettings::default();
        match newest {
            // It goes on with segments of the size that it has.
            Some(header) => settings.segment_bytes = header.size,
            None if segments.is_empty() => return Err(LogError::NoLog(shown)),
            None => {}
        }
        let folder = Folder::unlocked(path).map_err(LogError::storage("open", &shown))?;
        let folder: Arc<dyn Disk> = Arc::new(folder);
        // Opening makes safe what is there, and only a bus with its sinks can say whether that
        // agrees with them: none is given, so what is not safe of them is an error.
        let (log, recovered) = Log::open_with(path, settings, &mut || Ok(Some(Vec::new())))?;
        Self::on(log, recovered, folder)?.ok_or(LogError::NoLog(shown))
    }

    /// The same on a log that is open on a disk; `None` where there was none.
    pub(crate) fn on(
        log: Log,
        recovered: Option<Recovered>,
        disk: Arc<dyn Disk>,
    ) -> Result<Option<Self>, LogError> {
        let Some(recovered) = recovered else { return Ok(None) };
        let letters = Letters { disk, state: recovered.state()? };
        Ok(Some(Self { log, letters }))
    }

    /// The letters as they are now.
    #[must_use]
    pub fn letters(&self) -> &Letters {
        &self.letters
    }

    /// Takes dead letters in again, the oldest first: to the stage where they failed or another,
    /// as they were or with the body `edited`, with a new series of attempts and no deadline. Their
    /// ids, headers, hops and what remains of their way stay.
    ///
    /// `pace` is called before each letter with how many came before, and ends it with `false`.
    /// What was done then stays done. It is safe once [`close`](Self::close) has returned.
    ///
    /// # Errors
    /// When the log cannot be written or read, or an edited body is too large; letters before that
    /// are done, the others are as they were.
    pub fn redrive(
        &mut self,
        plan: &Redrive,
        edited: Option<&[u8]>,
        pace: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Redriven, LogError> {
        if plan.dry_run {
            return Ok(self.letters.would(plan));
        }
        let mut outcome = Redriven::default();
        for (done, number) in self.letters.picked(&plan.filter).into_iter().enumerate() {
            if outcome.redriven >= plan.limit || !pace(done) {
                break;
            }
            match claim(&self.letters.state, number, plan.redrives_max) {
                None => {}
                Some(Claim::Guarded) => outcome.guarded += 1,
                Some(Claim::InFlight) => outcome.refused += 1,
                Some(Claim::Duplicate) => {
                    let id = self.letter(number)?.id;
                    self.append(&Entry::Duplicate { letter: number, id })?;
                    outcome.duplicates += 1;
                }
                Some(Claim::Free) => {
                    self.redrive_one(number, plan.to.as_deref(), edited)?;
                    outcome.redriven += 1;
                }
            }
        }
        Ok(outcome)
    }

    fn redrive_one(
        &mut self,
        number: EntryNumber,
        to: Option<&str>,
        edited: Option<&[u8]>,
    ) -> Result<(), LogError> {
        let held = self.letter(number)?.held.clone();
        let form = Form::on(&self.letters.disk, &held)?;
        let (view, body) = (form.view().map_err(unreadable)?, form.body().map_err(unreadable)?);
        let (size, limit) = (edited.map_or(0, <[u8]>::len), self.log.body_bytes_max());
        if size > limit {
            return Err(LogError::TooLarge { size, limit });
        }
        let current = to.unwrap_or(&held.stage);
        let mut headers = view.headers().to_headers();
        if to.is_some() {
            // Sent to another stage than a dead-letter stage, it lives again.
            headers.remove(CAUSE_HEADER);
        }
        let mut trail: Vec<&str> = view.trail().iter().collect();
        trail.extend(view.current().filter(|before| *before != current));
        let envelope = Parts {
            hops: held.hops,
            attempts: 0,
            body_version: held.body_version + u32::from(edited.is_some()),
            expires_at_ms: None,
            content_type: edited.and_then(|_| body.content_type()),
            current: Some(current),
            trail: (&*trail).into(),
            headers: (&headers).into(),
            payload: edited,
            ..*view.parts()
        };
        self.append(&Entry::Redriven { letter: number, envelope })
    }

    /// Removes dead letters for good, the oldest first; how many. `pace` is as for a re-drive.
    ///
    /// # Errors
    /// When the log cannot be written; letters before that are gone, the others are there.
    pub fn purge(
        &mut self,
        filter: &LetterFilter,
        pace: &mut dyn FnMut(usize) -> bool,
    ) -> Result<usize, LogError> {
        let mut purged = 0;
        for number in self.letters.picked(filter) {
            if !pace(purged) {
                break;
            }
            let id = self.letter(number)?.id;
            self.append(&Entry::Purged { letter: number, id })?;
            purged += 1;
        }
        Ok(purged)
    }

    /// Makes safe what was done, and lets others open the log.
    ///
    /// # Errors
    /// As [`Log::close`]; then what was done may be there or not.
    pub fn close(self) -> Result<(), LogError> {
        self.log.close()
    }

    fn letter(&self, number: EntryNumber) -> Result<&Letter, LogError> {
        self.letters.letter(number).ok_or_else(missing)
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<(), LogError> {
        let mut body = Vec::new();
        entry.encode(&mut body).map_err(|error| {
            LogError::storage("write", "a dead letter")(std::io::Error::other(error))
        })?;
        self.log.append_entries(&mut self.letters.state, &body)?;
        self.log.wake();
        Ok(())
    }
}
