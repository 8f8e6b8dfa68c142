//! The command line of `waystage log`.

use std::io;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand, ValueEnum};
use waystage::EnvelopeId;

use super::filter::{Kinds, Mark};
use super::{dump, salvage, stat, trouble, verify};
use crate::exit::Exit;
use crate::run::Console;
use crate::run::options::limit;

const STAT: &str = "\
Examples:
  waystage log stat var/quakes               how far it goes, and how far it is safe
  waystage log stat var/quakes --segments    a line for each segment
  waystage log stat var/quakes --json        one document, waystage.log-stat/1

Reads headers, first records and the last segment, so it is quick on a log of any size; where that
does not end as a log does, it reads everything as verify does. Works while the log is written to.
Exit codes: 0, also for a torn tail; 1 where a file cannot be read, or something at the end is
damaged; 2 where there is no log.";

const DUMP: &str = "\
Examples:
  waystage log dump var/quakes --from 90211 --limit 20
  waystage log dump var/quakes --from 2026-11-30T20:00:00Z --to 2026-11-30T21:00:00Z
  waystage log dump var/quakes --from -1h --kind dead
  waystage log dump var/quakes --id 0197a2c4-5e6f-8a00-8000-0123456789ab --payload
  waystage log dump var/quakes --kind dead --format ndjson | jq -r .reason

One line for each entry, or for each record that holds none. A sequence is that of the record; the
second entry of record 7 is 7.1. Only what is known to be durable is shown; of a log that nobody
flushes (sync = \"os\") all that is valid, marked `unsafe`. Works while the log is written to.
Kinds: accept, hop, attempt, completed, expired, dead, redriven, purged, duplicate, state, source,
sink, copy, window, handled; settle is hop to dead and handled; mark, checkpoint, other are records
without entries.
--format ndjson prints one object a line, waystage.log-entry/1 each, and errors as text only.
Exit codes: 0, also before a torn tail; 1 where a file cannot be read, or where what comes next is
damaged or missing; 2 where the command line is wrong or there is no log.";

const VERIFY: &str = "\
Examples:
  waystage log verify var/quakes           every record, and the state that opening would find
  waystage log verify var/quakes --deep    also every entry, and each checkpoint against them
  waystage log verify var/quakes --json    one document, waystage.log-verify/1

Reads everything, takes no lock, changes nothing; works while the log is written to. A torn tail is
what a crash leaves: opening the log cuts it, and nothing that was safe is lost.
Exit codes: 0 nothing is damaged; 1 damage, each with segment, offset and kind; 2 there is no log.";

const SALVAGE: &str = "\
Examples:
  waystage log salvage var/quakes --to var/saved
  waystage log verify var/saved --deep

Makes a new log of what can be read. The old one is not touched, and nothing is written over: DIR of
--to has to be new, or empty. What may have ended in records that are lost becomes a dead letter
whose cause is `uncertain`; it is not handled again by itself.
Exit codes: 0 nothing is lost or uncertain; 3 something is, and it is named; 1 it could not be done;
2 the command line is wrong, or there is no log.";

/// `waystage log`.
#[derive(Debug, Args)]
pub struct Log {
    /// What to do with it.
    #[command(subcommand)]
    pub command: LogCommand,
}

/// What can be done with a log.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// How far a log goes, how far it is safe, what its segments are
    #[command(after_long_help = STAT, args_override_self = true)]
    Stat(Stat),
    /// Prints what is in a log
    #[command(after_long_help = DUMP, args_override_self = true)]
    Dump(Dump),
    /// Says what is damaged, and what is only a torn tail
    #[command(after_long_help = VERIFY, args_override_self = true)]
    Verify(Verify),
    /// Makes a new log of what can be read of a damaged one
    #[command(after_long_help = SALVAGE, args_override_self = true)]
    Salvage(Salvage),
}

/// `waystage log stat`.
#[derive(Debug, Args)]
pub struct Stat {
    /// The log's directory
    #[arg(value_name = "DIR")]
    pub log: PathBuf,
    /// A line for each segment
    #[arg(long, env = "WAYSTAGE_SEGMENTS", value_parser = FalseyValueParser::new())]
    pub segments: bool,
}

/// `waystage log dump`.
#[derive(Debug, Args)]
pub struct Dump {
    /// The log's directory
    #[arg(value_name = "DIR")]
    pub log: PathBuf,
    /// Begins here: a sequence, a time (2026-11-30T20:00:00Z) or how long ago (-1h)
    #[arg(long, env = "WAYSTAGE_DUMP_FROM", value_name = "SEQ|TIME", allow_hyphen_values = true)]
    pub from: Option<Mark>,
    /// Ends with this, which is still shown
    #[arg(long, env = "WAYSTAGE_DUMP_TO", value_name = "SEQ|TIME", allow_hyphen_values = true)]
    pub to: Option<Mark>,
    /// Ends after so many lines
    #[arg(long, env = "WAYSTAGE_DUMP_LIMIT", value_name = "N", allow_hyphen_values = true)]
    #[arg(value_parser = limit)]
    pub limit: Option<u64>,
    /// Only these kinds, separated by commas (accept,settle,dead)
    #[arg(long, env = "WAYSTAGE_DUMP_KIND", value_name = "KINDS")]
    pub kind: Option<Kinds>,
    /// Only this envelope
    #[arg(long, env = "WAYSTAGE_DUMP_ID", value_name = "ID")]
    pub id: Option<EnvelopeId>,
    /// Also the payloads
    #[arg(long, env = "WAYSTAGE_DUMP_PAYLOAD", value_parser = FalseyValueParser::new())]
    pub payload: bool,
    /// How entries are printed; wins over --json
    #[arg(long, env = "WAYSTAGE_DUMP_FORMAT", value_name = "FORMAT")]
    pub format: Option<Format>,
}

/// How entries are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table.
    Table,
    /// One document.
    Json,
    /// An object a line.
    Ndjson,
}

impl Dump {
    /// How entries are printed.
    #[must_use]
    pub fn format(&self, json: bool) -> Format {
        self.format.unwrap_or(if json { Format::Json } else { Format::Table })
    }
}

/// `waystage log verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The log's directory
    #[arg(value_name = "DIR")]
    pub log: PathBuf,
    /// Also what is before the newest checkpoint
    #[arg(long, env = "WAYSTAGE_DEEP", value_parser = FalseyValueParser::new())]
    pub deep: bool,
}

/// `waystage log salvage`.
#[derive(Debug, Args)]
pub struct Salvage {
    /// The log's directory
    #[arg(value_name = "DIR")]
    pub log: PathBuf,
    /// The directory of the new log: a new one, or an empty one
    #[arg(long, env = "WAYSTAGE_SALVAGE_TO", value_name = "DIR")]
    pub to: PathBuf,
}

impl Log {
    /// The schema of the command's document.
    #[must_use]
    pub fn schema(&self) -> &'static str {
        match self.command {
            LogCommand::Stat(_) => stat::SCHEMA,
            LogCommand::Dump(_) => dump::SCHEMA,
            LogCommand::Verify(_) => verify::SCHEMA,
            LogCommand::Salvage(_) => salvage::SCHEMA,
        }
    }

    /// Ends a command that cannot start.
    ///
    /// # Errors
    /// Standard output took no more.
    pub fn usage(&self, json: bool, words: &str, console: &mut Console<'_>) -> io::Result<Exit> {
        let json = match &self.command {
            LogCommand::Dump(dump) => dump.format(json) == Format::Json,
            _ => json,
        };
        trouble::document(self.schema(), json, Exit::Usage, words, console)
    }
}
