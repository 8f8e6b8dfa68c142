//! Why a command on a log could not do what it was to: a line on standard error, what to do, and
//! with `--json` a document.

use std::error::Error as _;
use std::io;
use std::path::Path;

use serde_json::json;
use waystage::log::LogError;

use crate::exit::Exit;
use crate::run::Console;
use crate::run::problem::Problem;
use crate::run::unless_closed;
use crate::words::plain;

/// What a command is about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The schema of its document.
    pub schema: &'static str,
    /// Whether it prints one.
    pub json: bool,
    /// The log's directory, as it was given.
    pub log: &'a Path,
}

impl Subject<'_> {
    /// Whether the directory is one; otherwise says why not, and how the command ends.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn check(&self, console: &mut Console<'_>) -> io::Result<Option<Exit>> {
        let shown = self.log.display();
        let (words, help) = match std::fs::metadata(self.log) {
            Ok(metadata) if metadata.is_dir() => return Ok(None),
            Ok(_) => (format!("{shown} is no directory"), "name the directory of the log"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (format!("{shown}: no such directory"), "name the directory of a log")
            }
            Err(error) => (format!("{shown}: {}", plain(&error)), "make it readable"),
        };
        self.end(Exit::Usage, &words, help, console).map(Some)
    }

    /// Ends with what the log says of itself.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn fail(&self, error: &LogError, console: &mut Console<'_>) -> io::Result<Exit> {
        let shown = self.log.display();
        let (exit, help) = match error {
            LogError::NoLog(_) => {
                (Exit::Usage, "a log has files like 00000000000000000001.segment")
            }
            LogError::NotEmpty(_) | LogError::Inside(_) => (Exit::Usage, "nothing was written"),
            LogError::Locked(_) => {
                (Exit::Failed, "a log that is in use is not damaged; stop it first")
            }
            LogError::Gone { .. } => (Exit::Failed, "`waystage log stat` says what is there"),
            LogError::Version { .. } => (Exit::Failed, "nothing was changed"),
            LogError::SinkNotGiven(_) => {
                (Exit::Failed, "`waystage run FLOW` opens it, and goes on; nothing was changed")
            }
            LogError::TooLarge { .. } => {
                (Exit::Failed, "it was not written; what was there before is as it was")
            }
            _ => (Exit::Failed, ""),
        };
        let words = words(error);
        let verify = format!("`waystage log verify {shown}` says what is wrong");
        let help = if help.is_empty() { &verify } else { help };
        self.end(exit, &words, help, console)
    }

    /// Ends with a problem of what was asked for.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn problem(&self, problem: &Problem, console: &mut Console<'_>) -> io::Result<Exit> {
        self.end(Exit::Failed, &problem.what, &problem.help, console)
    }

    /// Ends, and says why.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn end(
        &self,
        exit: Exit,
        words: &str,
        help: &str,
        console: &mut Console<'_>,
    ) -> io::Result<Exit> {
        console.say(&Problem::new(words, help));
        document(self.schema, self.json, exit, words, console)
    }
}

/// What an error of the log says, with what the system said.
#[must_use]
pub fn words(error: &LogError) -> String {
    if let LogError::Storage { source, .. } | LogError::NoRoom { source, .. } = error {
        return format!("{error}: {}", plain(source));
    }
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// Ends with a document that says why, if one is wanted.
///
/// # Errors
/// Standard output took no more.
pub fn document(
    schema: &str,
    json: bool,
    exit: Exit,
    words: &str,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    if json {
        let error = json!({"kind": exit.name(), "messages": [words]});
        unless_closed(console.document(&json!({"schema": schema, "error": error})))?;
    }
    Ok(exit)
}
