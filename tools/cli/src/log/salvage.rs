//! `waystage log salvage`: a new log of what can be read, and what was lost.

use std::io;

use serde_json::{Value, json};
use waystage::log::salvage::{Hole, Salvaged, salvage};

use super::arguments::Salvage;
use super::trouble::Subject;
use crate::arguments::Global;
use crate::exit::Exit;
use crate::run::{Console, unless_closed};
use crate::style::WARNING;
use crate::words::{count, plain};

/// The schema's name and version.
pub const SCHEMA: &str = "waystage.log-salvage/1";
/// As many ids and holes are named in text; JSON has all.
const NAMED_MAX: usize = 20;

/// Makes the new log.
///
/// # Errors
/// Standard output took no more.
pub fn command(
    arguments: &Salvage,
    global: &Global,
    console: &mut Console<'_>,
) -> io::Result<Exit> {
    let subject = Subject { schema: SCHEMA, json: global.json, log: &arguments.log };
    if let Some(exit) = subject.check(console)? {
        return Ok(exit);
    }
    let to = arguments.to.display();
    match std::fs::metadata(&arguments.to) {
        Ok(metadata) if !metadata.is_dir() => {
            let words = format!("{to} is no directory");
            return subject.end(Exit::Usage, &words, "name a new directory", console);
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let words = format!("{to}: {}", plain(&error));
            return subject.end(Exit::Usage, &words, "name a new directory", console);
        }
        Ok(_) | Err(_) => {}
    }
    let salvaged = match salvage(&arguments.log, &arguments.to) {
        Ok(salvaged) => salvaged,
        Err(error) => return subject.fail(&error, console),
    };
    let is_whole = salvaged.holes.is_empty()
        && salvaged.uncertain.is_empty()
        && salvaged.lost.is_empty()
        && salvaged.unfit.is_empty()
        && salvaged.uncertain_letters == 0;
    let exit = if is_whole { Exit::Done } else { Exit::Dead };
    if global.json {
        unless_closed(console.document(&document(&salvaged, arguments)))?;
    } else {
        unless_closed(text(&salvaged, arguments, console))?;
    }
    Ok(exit)
}

fn text(salvaged: &Salvaged, arguments: &Salvage, console: &mut Console<'_>) -> io::Result<()> {
    let (from, to) = (arguments.log.display(), arguments.to.display());
    writeln!(console.data, "{from} was not touched; what can be read of it is in {to}")?;
    let records = format!("{} read", count(salvaged.records));
    writeln!(console.data, "records   {records}")?;
    for hole in salvaged.holes.iter().take(NAMED_MAX) {
        let (place, words) = (hole.location, missing(hole));
        writeln!(
            console.data,
            "{WARNING}lost{WARNING:#}      {words}   segment {}, offset {}",
            place.segment,
            count(place.offset)
        )?;
    }
    more(salvaged.holes.len(), console)?;
    if salvaged.is_raw {
        writeln!(console.data, "entries   none: the records were copied one by one")?;
    } else {
        entries(salvaged, console)?;
    }
    writeln!(console.data, "next: waystage log verify {to} --deep")
}

fn entries(salvaged: &Salvaged, console: &mut Console<'_>) -> io::Result<()> {
    let (open, letters) = (count(salvaged.open as u64), count(salvaged.letters as u64));
    writeln!(console.data, "open      {open}")?;
    let doubtful = salvaged.uncertain.len() + salvaged.uncertain_letters;
    let doubtful = match doubtful {
        0 => String::new(),
        doubtful => format!(", {} of them uncertain", count(doubtful as u64)),
    };
    writeln!(console.data, "dead      {letters}{doubtful}")?;
    let lists = [
        (
            "uncertain",
            "may have ended in what is lost; it is a dead letter now",
            &salvaged.uncertain,
        ),
        ("lost", "too little of it can be read", &salvaged.lost),
    ];
    for (name, why, ids) in lists {
        for id in ids.iter().take(NAMED_MAX) {
            writeln!(console.data, "{WARNING}{name}{WARNING:#} {id}   {why}")?;
        }
        more(ids.len(), console)?;
    }
    for (id, sequence) in salvaged.unfit.iter().take(NAMED_MAX) {
        let why = format!("record {sequence} of it could be read, and does not follow");
        writeln!(console.data, "{WARNING}unfit{WARNING:#}     {id}   {why}")?;
    }
    more(salvaged.unfit.len(), console)?;
    if salvaged.is_behind {
        let what = "saved states and positions of inputs and outputs may be older than they were";
        writeln!(console.data, "{WARNING}note{WARNING:#}: {what}")?;
    }
    Ok(())
}

fn more(all: usize, console: &mut Console<'_>) -> io::Result<()> {
    if all > NAMED_MAX {
        let all = count(all as u64);
        writeln!(console.data, "          {NAMED_MAX} of {all} shown (--json has all)")?;
    }
    Ok(())
}

fn missing(hole: &Hole) -> String {
    match hole.last {
        Some(last) if last == hole.first => format!("record {last}"),
        Some(last) => format!("records {}..{last}", hole.first),
        None => format!("records from {} on", hole.first),
    }
}

fn document(salvaged: &Salvaged, arguments: &Salvage) -> Value {
    let holes = salvaged.holes.iter().map(|hole| {
        let place = hole.location;
        json!({"segment": place.segment, "offset": place.offset, "first": hole.first,
            "last": hole.last})
    });
    let named =
        |ids: &[waystage::EnvelopeId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    let unfit = salvaged.unfit.iter();
    let unfit = unfit.map(|(id, sequence)| json!({"id": id.to_string(), "sequence": sequence}));
    json!({
        "schema": SCHEMA,
        "log": arguments.log.display().to_string(),
        "to": arguments.to.display().to_string(),
        "records": salvaged.records,
        "holes": holes.collect::<Vec<_>>(),
        "entries": !salvaged.is_raw,
        "checkpoint": salvaged.has_checkpoint,
        "open": salvaged.open,
        "dead_letters": salvaged.letters,
        "uncertain": named(&salvaged.uncertain),
        "uncertain_letters": salvaged.uncertain_letters,
        "lost": named(&salvaged.lost),
        "mended": salvaged.mended,
        "unfit": unfit.collect::<Vec<_>>(),
        "behind": salvaged.is_behind,
        "first": salvaged.first,
    })
}
