//! The command `waystage`.

use std::io;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use waystage_cli::arguments::{Arguments, Color, Command, Global};
use waystage_cli::environment::{self, Environment};
use waystage_cli::exit::Exit;
use waystage_cli::run::{Console, unless_closed, usage};

fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    let (arguments, environment) = environment::read(&line).unwrap_or_else(|error| {
        let _ = error.print();
        let mut data = io::stdout();
        let mut talk = io::stderr();
        let mut console = Console { data: &mut data, talk: &mut talk };
        let given = |word: &str| line.iter().any(|argument| argument == word);
        if error.use_stderr() && given("run") && given("--json") {
            // The text has said it already.
            let _ = usage(true, &[error.to_string()], &mut console);
        }
        std::process::exit(error.exit_code())
    });
    let choice = match arguments.global.color {
        Color::Auto => None,
        Color::Always => Some(ColorChoice::AlwaysAnsi),
        Color::Never => Some(ColorChoice::Never),
    };
    if let Some(choice) = choice {
        choice.write_global();
    }
    let mut data = AutoStream::auto(io::stdout());
    let mut talk = AutoStream::auto(io::stderr());
    let mut console = Console { data: &mut data, talk: &mut talk };
    let ended = dispatch(&arguments, &environment, &mut console).and_then(|exit| {
        // Whoever read has seen enough; what the command did is told all the same.
        unless_closed(console.data.flush())?;
        Ok(exit)
    });
    match ended {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            console.say(&format_args!("error: standard output: {error}"));
            ExitCode::from(Exit::Failed.code())
        }
    }
}

fn dispatch(
    arguments: &Arguments,
    environment: &Environment,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    let Global { directory, .. } = &arguments.global;
    if let Some(folder) = directory
        && let Err(error) = std::env::set_current_dir(folder)
    {
        let name = match environment.name("--directory") {
            "--directory" => "-C",
            variable => variable,
        };
        let words = format!("{name} {}: {error}", folder.display());
        console.say(&format_args!("error: {words}"));
        let json = arguments.global.json;
        return match &arguments.command {
            Command::Log(log) => log.usage(json, &words, console),
            Command::Dead(dead) => dead.usage(json, &words, console),
            Command::Run(_) => usage(json, &[words], console),
            Command::Check(_) => usage(false, &[words], console),
        };
    }
    match &arguments.command {
        Command::Run(run) => {
            let options = run.options(&arguments.global, environment);
            waystage_cli::run::command(&options, console)
        }
        Command::Check(check) => {
            waystage_cli::inspect::command(check, &arguments.global, environment, console)
        }
        Command::Log(log) => waystage_cli::log::command(log, &arguments.global, console),
        Command::Dead(dead) => waystage_cli::dead::command(dead, &arguments.global, console),
    }
}
