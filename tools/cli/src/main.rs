//! The command `waystage`.

use std::io;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::Parser as _;
use waystage_cli::arguments::{Arguments, Color, Command, Global};
use waystage_cli::exit::Exit;
use waystage_cli::run::Console;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
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
    let ended = dispatch(&arguments, &mut console).and_then(|exit| {
        console.data.flush()?;
        Ok(exit)
    });
    match ended {
        Ok(exit) => ExitCode::from(exit.code()),
        // Whoever read has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            console.say(&format_args!("error: standard output: {error}"));
            ExitCode::from(Exit::Failed.code())
        }
    }
}

fn dispatch(arguments: &Arguments, console: &mut Console<'_>) -> io::Result<Exit> {
    let Global { directory, .. } = &arguments.global;
    if let Some(folder) = directory
        && let Err(error) = std::env::set_current_dir(folder)
    {
        console.say(&format_args!("error: -C {}: {error}", folder.display()));
        return Ok(Exit::Usage);
    }
    match &arguments.command {
        Command::Run(run) => waystage_cli::run::command(run, &arguments.global, console),
        Command::Check(check) => waystage_cli::inspect::command(check, &arguments.global, console),
    }
}
