//! The command line of `waystage dead`.

use std::io;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};
use waystage::envelope::codec::NAME_BYTES_MAX;
use waystage::log::entry::CauseCode;

use super::choose::Since;
use super::{list, purge, redrive, show};
use crate::exit::Exit;
use crate::log::trouble;
use crate::run::Console;
use crate::run::options::{Rate, limit};

const LIST: &str = "\
Examples:
  waystage dead list var/quakes                          the oldest hundred, a line each
  waystage dead list var/quakes --count                  how many, by cause and stage
  waystage dead list var/quakes --cause handler_failed --error ENOSPC --since 1h
  waystage dead list var/quakes --json                   one document, waystage.dead-list/1

Reads the log without changing it, also while it is written to. A LETTER is a number that names one
dead letter for good; the same envelope may have died more than once.
Exit codes: 0; 1 where the log is damaged or cannot be read; 2 where the command line is wrong or
there is no log.";

const SHOW: &str = "\
Examples:
  waystage dead show var/quakes 90211
  waystage dead show var/quakes 0197a2c4                 an id, or its beginning
  waystage dead show var/quakes 90211 --body >body.json  to edit it, and `redrive --edit` it
  waystage dead show var/quakes 90211 --json             one document, waystage.dead-show/1

Exit codes: 0; 1 where there is no such dead letter, or more than one, or the log cannot be read;
2 where the command line is wrong or there is no log.";

const REDRIVE: &str = "\
Examples:
  waystage dead redrive var/quakes --cause handler_failed --dry-run
  waystage dead redrive var/quakes --cause handler_failed --rate 100/s --max 1000
  waystage dead redrive var/quakes 90211 --to archive
  waystage dead redrive var/quakes 90211 --edit body.json
  waystage dead redrive var/quakes --all --yes --json    one document, waystage.dead-redrive/1

Each goes back to the stage where it failed, or to that of --to, with a new series of attempts, its
id, its headers and the rest of its way, and without a deadline; what opens the log next takes it
up. Nothing else may have the log open. One whose id is on its way stays; one whose id has completed
since is removed and counted as a duplicate; one that was re-driven --max-redrives times stays.
Each is one record: what is interrupted goes on with the same command.
Exit codes: 0; 3 some of them stayed, and it is said why; 1 it could not be done, or a letter is not
there; 2 the command line is wrong, nothing was touched; 4 stopped by Ctrl-C, the rest is left.";

const PURGE: &str = "\
Examples:
  waystage dead purge var/quakes --stage parse --dry-run
  waystage dead purge var/quakes 90211 90214
  waystage dead purge var/quakes --all --yes             asks for nothing
  waystage dead purge var/quakes --all --yes --json      one document, waystage.dead-purge/1

Removes dead letters for good. Asks first on a terminal; elsewhere it needs --yes. Nothing else may
have the log open.
Exit codes: 0; 1 it could not be done, or a letter is not there; 2 the command line is wrong,
nothing was touched; 4 stopped by Ctrl-C, the rest is left.";

/// `waystage dead`.
#[derive(Debug, Args)]
pub struct Dead {
    /// What to do with them.
    #[command(subcommand)]
    pub command: DeadCommand,
}

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadCommand {
    /// Lists dead letters, or counts them
    #[command(after_long_help = LIST, args_override_self = true)]
    List(List),
    /// Shows one dead letter with all that is known of it
    #[command(after_long_help = SHOW, args_override_self = true)]
    Show(Show),
    /// Takes dead letters in again
    #[command(after_long_help = REDRIVE, args_override_self = true)]
    Redrive(Redrive),
    /// Removes dead letters for good
    #[command(after_long_help = PURGE, args_override_self = true)]
    Purge(Purge),
}

/// Which dead letters.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which ones")]
pub struct Filters {
    /// Only those given up at this stage
    #[arg(long, env = "WAYSTAGE_DEAD_STAGE", value_name = "STAGE", value_parser = stage)]
    pub stage: Option<String>,
    /// Only those with this cause
    #[arg(long, env = "WAYSTAGE_DEAD_CAUSE", value_name = "CAUSE", value_parser = cause)]
    pub cause: Option<String>,
    /// Only those whose reason has this text in it
    #[arg(long, env = "WAYSTAGE_DEAD_ERROR", value_name = "TEXT")]
    pub error: Option<String>,
    /// Only those given up since then: how long ago (1h), or a time (2026-11-30T20:00:00Z)
    #[arg(long, env = "WAYSTAGE_DEAD_SINCE", value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<Since>,
}

/// `waystage dead list`.
#[derive(Debug, Args)]
pub struct List {
    /// The log's directory
    #[arg(value_name = "DIR")]
    pub log: PathBuf,
    /// Which ones.
    #[command(flatten)]
    pub filters: Filters,
    /// Ends after so many, the oldest first
    #[arg(long, env = "WAYSTAGE_DEAD_LIMIT", value_name = "N", allow_hyphen_values = true)]
    #[arg(value_parser = limit, default_value = "100")]
    pub limit: u64,
    /// Counts them by cause and stage
    #[arg(long, env = "WAYSTAGE_DEAD_COUNT", value_parser = FalseyValueParser::new())]
    pub count: bool,
}

/// `waystage dead show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The log's directory
    #[arg(value_name = "DIR")]
    pub log: PathBuf,
    /// The dead letter: its number, its id, or the beginning of that
    #[arg(value_name = "LETTER")]
    pub letter: String,
    /// Only its body, byte by byte
    #[arg(long, env = "WAYSTAGE_DEAD_BODY", value_parser = FalseyValueParser::new())]
    pub body: bool,
}

/// Which dead letters a command changes, and whether that is meant.
#[derive(Debug, Args)]
pub struct Change {
    /// The log's directory
    #[arg(value_name = "DIR")]
    pub log: PathBuf,
    /// The dead letters: numbers, ids, or beginnings of those
    #[arg(value_name = "LETTER")]
    pub letters: Vec<String>,
    /// Which ones.
    #[command(flatten)]
    pub filters: Filters,
    /// All of them
    #[arg(long, env = "WAYSTAGE_DEAD_ALL", value_parser = FalseyValueParser::new())]
    pub all: bool,
    /// Only says what would be done, and changes nothing
    #[arg(long, env = "WAYSTAGE_DEAD_DRY_RUN", value_parser = FalseyValueParser::new())]
    pub dry_run: bool,
    /// Does not ask
    #[arg(long, env = "WAYSTAGE_DEAD_YES", value_parser = FalseyValueParser::new())]
    pub yes: bool,
}

/// `waystage dead redrive`.
#[derive(Debug, Args)]
pub struct Redrive {
    /// Which ones, and whether that is meant.
    #[command(flatten)]
    pub change: Change,
    /// Sends them to this stage, not to the one where they failed
    #[arg(long, env = "WAYSTAGE_DEAD_TO", value_name = "STAGE", value_parser = stage)]
    pub to: Option<String>,
    /// With what is in this file instead of its body: for one dead letter
    #[arg(long, env = "WAYSTAGE_DEAD_EDIT", value_name = "FILE")]
    pub edit: Option<PathBuf>,
    /// At this rate (100/s, 90/m)
    #[arg(long, env = "WAYSTAGE_DEAD_RATE", allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Takes in so many at most
    #[arg(long, env = "WAYSTAGE_DEAD_MAX", value_name = "N", allow_hyphen_values = true)]
    #[arg(value_parser = limit)]
    pub max: Option<u64>,
    /// Leaves those that were re-driven so often
    #[arg(long, env = "WAYSTAGE_DEAD_MAX_REDRIVES", value_name = "N", default_value = "3")]
    #[arg(allow_hyphen_values = true)]
    pub max_redrives: u16,
}

/// `waystage dead purge`.
#[derive(Debug, Args)]
pub struct Purge {
    /// Which ones, and whether that is meant.
    #[command(flatten)]
    pub change: Change,
}

impl Dead {
    /// The schema of the command's document.
    #[must_use]
    pub fn schema(&self) -> &'static str {
        match self.command {
            DeadCommand::List(_) => list::SCHEMA,
            DeadCommand::Show(_) => show::SCHEMA,
            DeadCommand::Redrive(_) => redrive::SCHEMA,
            DeadCommand::Purge(_) => purge::SCHEMA,
        }
    }

    /// Ends a command that cannot start.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn usage(&self, json: bool, words: &str, console: &mut Console<'_>) -> io::Result<Exit> {
        trouble::document(self.schema(), json, Exit::Usage, words, console)
    }
}

fn stage(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("a stage has a name".to_owned()),
        length if length > NAME_BYTES_MAX => {
            Err(format!("it has {length} bytes; a stage's name has {NAME_BYTES_MAX} at most"))
        }
        _ => Ok(text.to_owned()),
    }
}

fn cause(text: &str) -> Result<String, String> {
    let names = CauseCode::ALL.map(CauseCode::name);
    let found = names.into_iter().find(|name| *name == text);
    found.map(str::to_owned).ok_or_else(|| format!("write one of {}", names.join(", ")))
}
