//! Prints what `tidy` finds in the repository; exit code 1 when there is something.
#![expect(clippy::print_stdout, reason = "printing is what this command is for")]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let root = std::env::args_os().nth(1).map_or_else(waystage_tidy::root, PathBuf::from);
    let violations = waystage_tidy::check(&root)?;
    for violation in &violations {
        println!("{violation}");
    }
    println!("tidy: {} violations", violations.len());
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
