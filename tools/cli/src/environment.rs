//! Values that came from the environment: their errors name the variable, not the flag that nobody
//! gave.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory as _, Error, FromArgMatches as _};

use crate::arguments::{self, Arguments};

/// The variables whose values are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(Vec<String>);

impl Environment {
    /// What messages call the value of a flag: the variable it came from, or the flag.
    #[must_use]
    pub fn name<'n>(&'n self, flag: &'n str) -> &'n str {
        let variable = variable(flag);
        self.0.iter().find(|name| **name == variable).map_or(flag, String::as_str)
    }

    fn of(matches: &ArgMatches) -> Self {
        let used = matches
            .ids()
            .map(clap::Id::as_str)
            .filter(|id| matches.value_source(id) == Some(ValueSource::EnvVariable));
        Self(used.map(variable).collect())
    }
}

/// The variable of a flag, or of its field, of all commands but those that have their own.
fn variable(flag: &str) -> String {
    format!("WAYSTAGE_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase())
}

/// Reads a command line, and the environment for what it leaves out.
///
/// # Errors
/// What is wrong with either.
pub fn read(line: &[OsString]) -> Result<(Arguments, Environment), Error> {
    let matches =
        Arguments::command().try_get_matches_from(line).map_err(|error| named(error, line))?;
    let mut arguments = Arguments::from_arg_matches(&matches)?;
    let environment = Environment::of(innermost(&matches));
    if let arguments::Command::Run(run) = &mut arguments.command
        && environment.name("--input") != "--input"
        && !run.inputs.is_empty()
    {
        // What is on the line wins.
        run.input.clear();
    }
    Ok((arguments, environment))
}

/// The error of a line that would be right without the environment, in the variable's name.
fn named(mut error: Error, line: &[OsString]) -> Error {
    let kinds = [ErrorKind::InvalidValue, ErrorKind::ValueValidation, ErrorKind::ArgumentConflict];
    let alone = without_environment(Arguments::command()).try_get_matches_from(line);
    let (true, Ok(alone)) = (kinds.contains(&error.kind()), alone) else {
        return error;
    };
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        if let Some(ContextValue::String(shown)) = error.get(kind)
            && let Some(flag) = shown.split_whitespace().next()
            && !is_given(flag, &alone)
            && let Some(variable) = variable_of(flag, &Arguments::command(), &alone)
        {
            let words = format!("{variable} of the environment");
            error.insert(kind, ContextValue::String(words));
        }
    }
    error
}

/// The variable of a flag of the last command on the line.
fn variable_of(flag: &str, command: &Command, line: &ArgMatches) -> Option<String> {
    let mut command = command.clone();
    command.build();
    let (mut command, mut line) = (&command, line);
    while let Some((name, inner)) = line.subcommand() {
        command = command.find_subcommand(name)?;
        line = inner;
    }
    let id = flag.trim_start_matches('-').replace('-', "_");
    let mut arguments = command.get_arguments();
    let argument = arguments.find(|argument| argument.get_id().as_str() == id)?;
    Some(argument.get_env()?.to_string_lossy().into_owned())
}

/// What the last command on the line was given.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}

/// Whether a flag stands on the line.
fn is_given(flag: &str, line: &ArgMatches) -> bool {
    let line = innermost(line);
    let id = flag.trim_start_matches('-').replace('-', "_");
    line.ids().any(|known| known.as_str() == id)
        && line.value_source(&id) == Some(ValueSource::CommandLine)
}

fn without_environment(command: Command) -> Command {
    let none = None::<&'static str>;
    command.mut_args(|argument| argument.env(none)).mut_subcommands(without_environment)
}
