//! `waystage dead purge`: removes dead letters for good.

use std::io::{self, IsTerminal as _};

use serde_json::json;
use waystage::log::LogError;
use waystage::log::letters::OpenLetters;

use super::arguments::Purge;
use super::choose::{Chosen, chosen, is_said};
use super::pace::Pace;
use crate::arguments::Global;
use crate::exit::Exit;
use crate::log::trouble::Subject;
use crate::run::{Console, unless_closed};
use crate::words::count;

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.dead-purge/1";

/// Does it, or says what it would do.
///
/// # Errors
/// Standard output took no more.
pub fn command(purge: &Purge, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &purge.change.log };
    if let Some(exit) = is_said(&purge.change, &subject, console)? {
        return Ok(exit);
    }
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let (letters, chosen) = match chosen(&purge.change, &subject, console)? {
        Ok(found) => found,
        Err(exit) => return Ok(exit),
    };
    let picked = chosen.picked(&letters).len();
    if purge.change.dry_run {
        return tell(purge, &chosen, (picked, picked, false), &subject, console);
    }
    if !purge.change.yes && picked > 0 {
        if !io::stdin().is_terminal() {
            let words = format!("{} dead letters would go for good", count(picked as u64));
            let help = "say --yes, or see them first with --dry-run";
            return subject.end(Exit::Usage, &words, help, console);
        }
        let question = format!("Remove {} dead letters for good?", count(picked as u64));
        if !console.ask(&question, &mut io::stdin().lock()) {
            console.say(&"nothing was changed");
            return Ok(Exit::Done);
        }
    }
    match carry_out(purge, &chosen, picked, global) {
        Ok((purged, was_stopped)) => {
            tell(purge, &chosen, (picked, purged, was_stopped), &subject, console)
        }
        Err(error) => subject.fail(&error, console),
    }
}

fn carry_out(
    purge: &Purge,
    chosen: &Chosen,
    picked: usize,
    global: &Global,
) -> Result<(usize, bool), LogError> {
    let Some(filter) = &chosen.filter else { return Ok((0, false)) };
    let mut letters = OpenLetters::open(&purge.change.log)?;
    let watched = Pace::begin(None, picked, global);
    let mut pace = watched.map_err(LogError::storage("watch", "signals"))?;
    let purged = letters.purge(filter, &mut |done| pace.next(done));
    pace.clear();
    letters.close()?;
    Ok((purged?, pace.was_interrupted()))
}

fn tell(
    purge: &Purge,
    chosen: &Chosen,
    (picked, purged, was_stopped): (usize, usize, bool),
    subject: &Subject<'_>,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    if subject.json {
        let document = json!({
            "schema": SCHEMA,
            "log": subject.log.display().to_string(),
            "dry_run": purge.change.dry_run,
            "picked": picked,
            "purged": purged,
            "missing": chosen.missing,
            "stopped": was_stopped,
        });
        unless_closed(console.document(&document))?;
    } else {
        let many = count(purged as u64);
        let line = match () {
            () if purge.change.dry_run => format!("would remove {many}; nothing changed"),
            () if was_stopped => format!("removed {many}; the same command goes on with the rest"),
            () => format!("removed {many}"),
        };
        unless_closed(writeln!(console.data, "{line}"))?;
    }
    Ok(match () {
        () if was_stopped => Exit::Stopped,
        () if !chosen.missing.is_empty() => Exit::Failed,
        () => Exit::Done,
    })
}
