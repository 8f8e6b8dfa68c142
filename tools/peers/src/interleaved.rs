//! Subjects that write to a directory, run in turns so that what the machine does meets them all:
//! one table for all shapes, as ratios to the first subject of each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;

use crate::gate;
use crate::statistics::Summary;

/// Does something so many times with so many bytes in a fresh directory; the time it took.
pub type Run = fn(&Path, &[u8], u64) -> Duration;

/// What is compared.
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// How often it is done in one run.
    pub times: u64,
    /// Who does it; the ratios are to the first.
    pub subjects: &'static [(&'static str, Run)],
}

#[derive(Parser)]
struct Arguments {
    /// Only shapes whose name contains this.
    #[arg(default_value = "")]
    shape: String,
    /// Quiet runs of each subject.
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Bytes of a body.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// Where to write; default: the directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Take runs of a busy machine too.
    #[arg(long)]
    no_gate: bool,
}

/// Compares as the command line says; `unit` heads the times.
pub fn compare_all(unit: &str, shapes: &[Shape]) {
    let arguments = Arguments::parse();
    println!(
        "{:<22} {:<12} {unit:>11} {:>9} {:>9}  {:>6} {:>15}  runs",
        "SHAPE", "SUBJECT", "min", "max", "ratio", "interval"
    );
    for shape in shapes.iter().filter(|shape| shape.name.contains(&arguments.shape)) {
        compare(shape, &arguments);
    }
}

fn compare(shape: &Shape, arguments: &Arguments) {
    let body = vec![b'p'; arguments.bytes];
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let run = |run: Run| {
        let directory = tempfile::tempdir_in(&parent).expect("the directory can be written");
        run(directory.path(), &body, shape.times).as_nanos() as f64 / shape.times as f64
    };
    let mut times = vec![Vec::new(); shape.subjects.len()];
    let mut tries = 0;
    while times[0].len() < arguments.pairs && tries < 4 * arguments.pairs {
        tries += 1;
        let mut round = Vec::new();
        for (_, subject) in shape.subjects {
            let quiet = arguments.no_gate || gate::is_quiet();
            gate::free();
            let time = run(*subject);
            if quiet && (arguments.no_gate || gate::is_quiet()) {
                round.push(time);
            }
        }
        if round.len() == shape.subjects.len() {
            times.iter_mut().zip(round).for_each(|(times, time)| times.push(time));
        }
    }
    for ((name, _), own) in shape.subjects.iter().zip(&times) {
        let row = Summary::of(own, &times[0]);
        println!(
            "{:<22} {name:<12} {:>11.0} {:>9.0} {:>9.0}  {:>6.2} {:>6.2} ... {:>4.2}  {}/{tries}",
            shape.name,
            row.median,
            row.min,
            row.max,
            row.ratio,
            row.low,
            row.high,
            own.len()
        );
    }
}
