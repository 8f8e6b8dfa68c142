//! `waystage dead redrive`: takes dead letters in again.

use std::io::{self, IsTerminal as _};

use serde_json::json;
use waystage::log::LogError;
use waystage::log::entry::EntryNumber;
use waystage::log::letters::{Letters, OpenLetters, Redrive as Plan, Redriven};

use super::arguments::Redrive;
use super::choose::{Chosen, chosen, is_said};
use super::pace::Pace;
use crate::arguments::Global;
use crate::exit::Exit;
use crate::log::trouble::Subject;
use crate::run::{Console, unless_closed};
use crate::style::WARNING;
use crate::words::{count, harmless, plain};

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.dead-redrive/1";

/// Does it, or says what it would do.
///
/// # Errors
/// Standard output took no more.
pub fn command(redrive: &Redrive, global: &Global, console: &mut Console<'_>) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &redrive.change.log };
    if let Some(exit) = is_said(&redrive.change, &subject, console)? {
        return Ok(exit);
    }
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let edited = match edited(redrive) {
        Ok(edited) => edited,
        Err(words) => {
            let help = "name one dead letter, and a file with its new body";
            return subject.end(Exit::Usage, &words, help, console);
        }
    };
    let (letters, chosen) = match chosen(&redrive.change, &subject, console)? {
        Ok(found) => found,
        Err(exit) => return Ok(exit),
    };
    let run = Run { redrive, subject, picked: chosen.picked(&letters), chosen, edited };
    if redrive.change.dry_run {
        let outcome = run.plan().map_or_else(Redriven::default, |plan| letters.would(&plan));
        return run.tell(&letters, outcome, false, console);
    }
    if !run.is_meant(&letters, console) {
        console.say(&"nothing was changed");
        return Ok(Exit::Done);
    }
    match run.carry_out(global) {
        Ok((outcome, was_stopped)) => run.tell(&letters, outcome, was_stopped, console),
        Err(error) => run.subject.fail(&error, console),
    }
}

/// The new body.
fn edited(redrive: &Redrive) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = &redrive.edit else { return Ok(None) };
    if redrive.change.letters.len() != 1 {
        return Err("--edit is for one dead letter".to_owned());
    }
    let body = std::fs::read(file);
    body.map(Some).map_err(|error| format!("{}: {}", file.display(), plain(&error)))
}

struct Run<'a> {
    redrive: &'a Redrive,
    subject: Subject<'a>,
    chosen: Chosen,
    picked: Vec<EntryNumber>,
    edited: Option<Vec<u8>>,
}

impl Run<'_> {
    /// What is to be done; nothing where none of those named is there.
    fn plan(&self) -> Option<Plan> {
        let mut plan = Plan::default();
        plan.filter.clone_from(self.chosen.filter.as_ref()?);
        plan.to.clone_from(&self.redrive.to);
        plan.redrives_max = self.redrive.max_redrives;
        let max = self.redrive.max.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        plan.limit = max.unwrap_or(usize::MAX);
        Some(plan)
    }

    fn is_meant(&self, letters: &Letters, console: &mut Console<'_>) -> bool {
        if self.redrive.change.yes || self.picked.is_empty() || !io::stdin().is_terminal() {
            return true;
        }
        let (many, to) = (count(self.picked.len() as u64), self.to(letters));
        console.ask(&format!("Re-drive {many} to {to}?"), &mut io::stdin().lock())
    }

    /// Where they go, in words.
    fn to(&self, letters: &Letters) -> String {
        if let Some(to) = &self.redrive.to {
            return harmless(to);
        }
        let held = self.picked.iter().filter_map(|number| letters.letter(*number));
        let mut stages: Vec<_> = held.map(|letter| &letter.held.stage).collect();
        stages.sort_unstable();
        stages.dedup();
        match &stages[..] {
            [stage] => harmless(stage),
            _ => "where they failed".to_owned(),
        }
    }

    /// Does it; also says whether it was interrupted.
    fn carry_out(&self, global: &Global) -> Result<(Redriven, bool), LogError> {
        let Some(plan) = self.plan() else { return Ok((Redriven::default(), false)) };
        let mut letters = OpenLetters::open(self.subject.log)?;
        let watched = Pace::begin(self.redrive.rate, self.picked.len().min(plan.limit), global);
        let mut pace = watched.map_err(LogError::storage("watch", "signals"))?;
        let edited = self.edited.as_deref();
        let outcome = letters.redrive(&plan, edited, &mut |done| pace.next(done));
        pace.clear();
        letters.close()?;
        Ok((outcome?, pace.was_interrupted()))
    }

    fn tell(
        &self,
        letters: &Letters,
        outcome: Redriven,
        was_stopped: bool,
        console: &mut Console<'_>,
    ) -> io::Result<Exit> {
        let exit = match () {
            () if was_stopped => Exit::Stopped,
            () if !self.chosen.missing.is_empty() => Exit::Failed,
            () if outcome.guarded + outcome.refused > 0 && !self.redrive.change.dry_run => {
                Exit::Dead
            }
            () => Exit::Done,
        };
        if self.subject.json {
            let document = json!({
                "schema": SCHEMA,
                "log": self.subject.log.display().to_string(),
                "dry_run": self.redrive.change.dry_run,
                "picked": self.picked.len(),
                "redriven": outcome.redriven,
                "guarded": outcome.guarded,
                "in_flight": outcome.refused,
                "duplicates": outcome.duplicates,
                "to": self.redrive.to,
                "edited": self.edited.is_some(),
                "missing": self.chosen.missing,
                "stopped": was_stopped,
            });
            unless_closed(console.document(&document))?;
        } else {
            unless_closed(self.text(letters, outcome, was_stopped, console))?;
        }
        Ok(exit)
    }

    fn text(
        &self,
        letters: &Letters,
        outcome: Redriven,
        was_stopped: bool,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        let (many, to) = (count(outcome.redriven as u64), self.to(letters));
        let max = self.redrive.max_redrives;
        if self.redrive.change.dry_run {
            let held = self.picked.iter().filter_map(|number| letters.letter(*number));
            let again = held.filter(|letter| letter.held.redrives > 0).count();
            let (again, guarded) = (count(again as u64), count(outcome.guarded as u64));
            writeln!(
                console.data,
                "would re-drive {many} to {to} ({again} were re-driven before, {guarded} reached \
                 --max-redrives {max}); nothing changed"
            )?;
        } else {
            writeln!(console.data, "re-driven {many} to {to}")?;
            if outcome.guarded > 0 {
                let guarded = count(outcome.guarded as u64);
                let words = format!("{guarded} reached --max-redrives {max}");
                writeln!(console.data, "{WARNING}left{WARNING:#}      {words}")?;
            }
        }
        if outcome.refused > 0 {
            let words = format!("{} whose ids are on their way", count(outcome.refused as u64));
            writeln!(console.data, "{WARNING}left{WARNING:#}      {words}")?;
        }
        if outcome.duplicates > 0 {
            let words = format!("{} that completed since", count(outcome.duplicates as u64));
            let name = if self.redrive.change.dry_run { "to go" } else { "removed" };
            writeln!(console.data, "{name:<10}{words}")?;
        }
        if was_stopped {
            writeln!(console.data, "stopped   the same command goes on with the rest")?;
        }
        if outcome.redriven > 0 && !self.redrive.change.dry_run {
            writeln!(console.data, "next: waystage run FLOW takes them up")?;
        }
        Ok(())
    }
}
