//! What opening the log would say: recovery's own choice of a checkpoint, and its judge.

use super::Surveyed;
use crate::log::checkpoint::Complete;
use crate::log::error::LogError;
use crate::log::judge::Verdict;
use crate::log::recover::{from_the_beginning, newest_checkpoint};
use crate::log::segment;
use crate::log::survey::Survey;

/// How a log opens.
#[derive(Debug)]
pub(super) struct Opening {
    /// Where it ends.
    pub(super) verdict: Verdict,
    /// The number of the first segment needed.
    pub(super) first_segment: u64,
    /// The newest checkpoint.
    pub(super) checkpoint: Option<Complete>,
}

/// Goes over the segments as recovery does; `None` where there are none.
///
/// # Errors
/// What recovery would say. Where that is in a file's header, the file's own error has the details.
pub(super) fn opening(all: &[Surveyed]) -> Result<Option<Opening>, LogError> {
    let mut bound = u64::MAX;
    let mut surveys: Vec<&Survey> = Vec::new();
    for segment in all.iter().rev() {
        let Ok(survey) = &segment.survey else {
            return Err(LogError::Foreign(segment::name(segment.number)));
        };
        if let Some(next) = surveys.first()
            && next.header.log != survey.header.log
        {
            return Err(LogError::OtherLog(segment::name(next.header.number)));
        }
        surveys.insert(0, survey);
        if let Some((start, found, verdict)) = newest_checkpoint(&surveys, &mut bound)? {
            return Ok(Some(of(&surveys[start..], verdict, Some(found))));
        }
    }
    Ok(from_the_beginning(&surveys)?.map(|verdict| of(&surveys, verdict, None)))
}

fn of(surveys: &[&Survey], verdict: Verdict, checkpoint: Option<Complete>) -> Opening {
    let first_segment = surveys.first().map_or(1, |survey| survey.header.number);
    Opening { verdict, first_segment, checkpoint }
}
