//! The command line: commands, flags, environment names.
//!
//! Every flag has an environment name; the flag wins. It is `WAYSTAGE_<FLAG>`, but for flags whose
//! names mean other things at other commands: those of `log dump`, `log salvage` and `dead` have
//! the command in their names.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand};
use jsonptr::PointerBuf;

use crate::dead::arguments::Dead;
use crate::environment::Environment;
use crate::log::arguments::Log;
use crate::run::options::{FailOn, Options, Rate, limit, some_time, time};
use crate::shell::Typed;

/// What every long help ends with.
const AFTER: &str = "\
Output: --json is stable (its schema is named in it); text is for people and may change.
Standard output is data (the table, or one JSON document); everything else goes to standard error.

Exit codes:
  0    all done
  1    failed while running: an input or output broke
  2    command line, flow file or settings wrong; nothing was touched
  3    finished, but some records are dead letters or were refused, dropped or expired
       (see --fail-on)
  4    stopped before the end: what is left is named
  101  a mistake of waystage itself
  130  ended by a second Ctrl-C";

/// Runs flows: records from files through stages, with books that always add up.
#[derive(Debug, Parser)]
#[command(name = "waystage", version, after_long_help = AFTER, propagate_version = true)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Nothing on standard error but errors
    #[arg(short, long, global = true, env = "WAYSTAGE_QUIET")]
    #[arg(value_parser = FalseyValueParser::new(), conflicts_with = "verbose")]
    pub quiet: bool,
    /// Also says what a flow or a run is made of
    #[arg(short, long, global = true, env = "WAYSTAGE_VERBOSE")]
    #[arg(value_parser = FalseyValueParser::new())]
    pub verbose: bool,
    /// When to use colours; NO_COLOR is obeyed
    #[arg(
        long,
        global = true,
        env = "WAYSTAGE_COLOR",
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub color: Color,
    /// One JSON document instead of text
    #[arg(long, global = true, env = "WAYSTAGE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
    /// Changes to this folder first
    #[arg(short = 'C', long, global = true, env = "WAYSTAGE_DIRECTORY", value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// When text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands of this version.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a flow until its input has ended, and reports
    #[command(after_long_help = AFTER, args_override_self = true)]
    Run(Run),
    /// Looks at a flow without running it
    #[command(after_long_help = AFTER, args_override_self = true)]
    Check(Check),
    /// Looks into the log of a durable flow or bus, and saves what is left of a damaged one
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Log(Log),
    /// The dead letters of such a log: lists, shows, re-drives and purges them
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Dead(Dead),
}

/// `waystage check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The flow file
    pub flow: PathBuf,
    /// What is as bad as an error
    #[arg(long, env = "WAYSTAGE_DENY", value_name = "WHAT")]
    pub deny: Option<Deny>,
    /// Relative output paths start here, not at the flow file's folder
    #[arg(long, env = "WAYSTAGE_OUT", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Leaves out the files that the flow names
    #[arg(long, env = "WAYSTAGE_NO_FILES", value_parser = FalseyValueParser::new())]
    pub no_files: bool,
}

/// What may be denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Deny {
    /// Warnings.
    Warnings,
}

/// `waystage run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The flow file
    pub flow: PathBuf,
    /// Inputs instead of the flow's; `-` is standard input
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<OsString>,
    /// Relative output paths start here, not at the flow file's folder
    #[arg(long, env = "WAYSTAGE_OUT", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Begins anew: removes the log of a durable flow, with all that an earlier run left in it
    #[arg(long, env = "WAYSTAGE_FRESH", value_parser = FalseyValueParser::new())]
    pub fresh: bool,
    /// Answers questions with yes
    #[arg(long, env = "WAYSTAGE_YES", value_parser = FalseyValueParser::new())]
    pub yes: bool,
    /// Sends records at this rate (5k/s, 90/m), on intended times: a late one moves no other
    #[arg(long, env = "WAYSTAGE_RATE", allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Ends after this many records
    #[arg(long, env = "WAYSTAGE_LIMIT", value_name = "N", allow_hyphen_values = true)]
    #[arg(value_parser = limit)]
    pub limit: Option<u64>,
    /// Stops after this time (30s, 5m): exit code 4 if input remained
    #[arg(long, env = "WAYSTAGE_DURATION", value_name = "TIME", value_parser = some_time)]
    #[arg(allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// One more input instead of the flow's; `-` is standard input
    #[arg(long = "input", env = "WAYSTAGE_INPUT", value_name = "FILE")]
    pub input: Vec<OsString>,
    /// Where a record's id is, as a JSON pointer, instead of what the flow says
    #[arg(long, env = "WAYSTAGE_ID", value_name = "/POINTER", value_parser = pointer)]
    pub id: Option<PointerBuf>,
    /// Worker threads, instead of what the flow says
    #[arg(long, env = "WAYSTAGE_WORKERS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    pub workers: Option<u8>,
    /// No progress bar on a terminal
    #[arg(long, env = "WAYSTAGE_NO_PROGRESS", value_parser = FalseyValueParser::new())]
    pub no_progress: bool,
    /// After a stop: how long what was taken in may go on
    #[arg(long, env = "WAYSTAGE_DRAIN", value_name = "TIME", value_parser = time)]
    #[arg(default_value = "30s", allow_hyphen_values = true)]
    pub drain: Duration,
    /// What makes exit code 3
    #[arg(long, env = "WAYSTAGE_FAIL_ON", value_name = "WHAT", default_value = "dead")]
    pub fail_on: FailOn,
}

impl Run {
    /// What the run is told.
    #[must_use]
    pub fn options(&self, global: &Global, environment: &Environment) -> Options {
        let inputs = self.inputs.iter().chain(&self.input).cloned().collect();
        Options {
            flow_file: self.flow.clone(),
            command: Typed::new(std::env::args_os().skip(1)),
            out: self.out.clone(),
            fresh: self.fresh,
            yes: self.yes,
            rate: self.rate,
            limit: self.limit,
            duration: self.duration,
            inputs,
            environment: environment.clone(),
            id: self.id.clone(),
            workers: self.workers.map(usize::from),
            progress: !(self.no_progress || global.quiet || global.json),
            drain: self.drain,
            fail_on: self.fail_on,
            json: global.json,
            width: terminal_size::terminal_size_of(std::io::stdout())
                .map(|(columns, _)| usize::from(columns.0))
                .filter(|columns| *columns > 0),
            quiet: global.quiet,
            verbose: global.verbose,
        }
    }
}

fn pointer(text: &str) -> Result<PointerBuf, String> {
    PointerBuf::parse(text).map_err(|error| format!("{error}; write it like /id or /user/name"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use clap::CommandFactory as _;

    use super::Arguments;

    /// The variables of a command and of those below it.
    fn check(command: &clap::Command, known: &mut HashMap<String, String>) {
        let own = match command.get_name() {
            name @ ("dump" | "salvage") => format!("{}_", name.to_uppercase()),
            "list" | "show" | "redrive" | "purge" => "DEAD_".to_owned(),
            _ => String::new(),
        };
        for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
            let id = argument.get_id().as_str();
            if ["help", "version"].contains(&id) || argument.is_global_set() {
                continue;
            }
            let want = format!("WAYSTAGE_{own}{}", id.to_uppercase());
            let variable = argument.get_env().and_then(|env| env.to_str());
            assert_eq!(variable, Some(want.as_str()));
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let values = format!("{:?} {help}", argument.get_value_names());
            let other = known.insert(want, values.clone());
            assert!(other.is_none_or(|other| other == values), "{id} has two meanings");
        }
        for inner in command.get_subcommands() {
            check(inner, known);
        }
    }

    #[test]
    fn every_flag_has_an_environment_name_of_one_meaning() {
        let mut command = Arguments::command();
        command.build();
        for argument in command.get_arguments().filter(|argument| argument.is_global_set()) {
            let want = format!("WAYSTAGE_{}", argument.get_id().as_str().to_uppercase());
            assert_eq!(argument.get_env().and_then(|env| env.to_str()), Some(want.as_str()));
        }
        check(&command, &mut HashMap::new());
        Arguments::command().debug_assert();
    }
}
