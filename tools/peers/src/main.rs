//! The same shapes on waystage and on its peers, interleaved in one run.
//!
//! Every run is checked: count, checksum and per-sender order of everything received. Before and
//! after each run a canary sees whether both cores are free; runs on a busy machine are repeated.
//! Ratios are of pairs of runs of one round, `--base` says to whose; the interval is the middle
//! 95 % of the bootstrapped median of these ratios.

#![expect(clippy::disallowed_methods, reason = "a harness reads the machine's clock")]

mod message;
mod ours;
mod theirs;

use std::time::Duration;

use clap::Parser;

use waystage_peers::gate;
use waystage_peers::statistics::Summary;

/// Time per message of one run of a shape.
type Run = fn(u64) -> Duration;

/// A shape on one subject.
struct Subject {
    shape: &'static str,
    name: &'static str,
    run: Run,
}

const SUBJECTS: &[Subject] = &[
    Subject { shape: "hop", name: "arrayqueue (same envelope)", run: theirs::ring_of_envelopes },
    Subject { shape: "hop", name: "waystage", run: ours::hop },
    Subject { shape: "hop", name: "arrayqueue", run: theirs::ring_hop },
    Subject { shape: "hop", name: "crossbeam-channel", run: theirs::channel_hop },
    Subject { shape: "hop", name: "tokio mpsc (threads)", run: theirs::tokio_hop },
    Subject { shape: "hop batch 32", name: "arrayqueue", run: theirs::ring_hop },
    Subject { shape: "hop batch 32", name: "waystage", run: ours::hop_batch },
    Subject { shape: "hop batch 32", name: "crossbeam-channel", run: theirs::channel_hop },
    Subject { shape: "pipeline 3", name: "crossbeam-channel", run: theirs::channel_pipeline },
    Subject { shape: "pipeline 3", name: "waystage", run: ours::pipeline },
    Subject { shape: "pipeline 3", name: "arrayqueue", run: theirs::ring_pipeline },
    Subject { shape: "pipeline 3", name: "tokio mpsc (tasks)", run: theirs::tokio_pipeline },
    Subject {
        shape: "pipeline 3 batch 32",
        name: "crossbeam-channel",
        run: theirs::channel_pipeline,
    },
    Subject { shape: "pipeline 3 batch 32", name: "waystage", run: ours::pipeline_batch },
    Subject { shape: "fan of 3 emits", name: "crossbeam-channel x 3", run: theirs::channel_fan },
    Subject { shape: "fan of 3 emits", name: "waystage", run: ours::fan },
];

/// Compares shapes with peers, each row as a ratio to the first subject of its shape.
#[derive(Parser)]
struct Arguments {
    /// Only shapes whose name contains this.
    #[arg(default_value = "")]
    shape: String,
    /// Only subjects whose name contains this.
    #[arg(long, default_value = "")]
    subject: String,
    /// The subject that ratios are taken to, by its exact name; default: the first of each shape.
    #[arg(long)]
    base: Option<String>,
    /// Quiet runs of each subject.
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Messages per run.
    #[arg(long, default_value_t = 2_000_000)]
    messages: u64,
    /// Take runs of a busy machine too.
    #[arg(long)]
    no_gate: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let mut shapes: Vec<&str> = Vec::new();
    for subject in SUBJECTS {
        if subject.shape.contains(&arguments.shape) && !shapes.contains(&subject.shape) {
            shapes.push(subject.shape);
        }
    }
    println!(
        "{:<20} {:<28} {:>8} {:>8} {:>8}  {:>6} {:>15}  runs",
        "SHAPE", "SUBJECT", "ns/msg", "min", "max", "ratio", "interval"
    );
    for shape in shapes {
        compare(shape, &arguments);
    }
}

fn compare(shape: &str, arguments: &Arguments) {
    let subjects: Vec<&Subject> = SUBJECTS
        .iter()
        .filter(|subject| subject.shape == shape && subject.name.contains(&arguments.subject))
        .collect();
    for subject in &subjects {
        (subject.run)(arguments.messages / 10);
    }
    let mut times = vec![Vec::new(); subjects.len()];
    let mut tries = 0;
    while times[0].len() < arguments.pairs && tries < 4 * arguments.pairs {
        tries += 1;
        let mut round = Vec::new();
        for subject in &subjects {
            let quiet = arguments.no_gate || gate::is_quiet();
            let time = (subject.run)(arguments.messages);
            if quiet && (arguments.no_gate || gate::is_quiet()) {
                round.push(time.as_nanos() as f64 / arguments.messages as f64);
            } else {
                break;
            }
        }
        if round.len() == subjects.len() {
            for (times, time) in times.iter_mut().zip(round) {
                times.push(time);
            }
        }
    }
    let is_base = |subject: &&Subject| arguments.base.as_deref() == Some(subject.name);
    let base = subjects.iter().position(is_base).unwrap_or(0);
    for (subject, own) in subjects.iter().zip(&times) {
        let summary = Summary::of(own, &times[base]);
        println!(
            "{:<20} {:<28} {:>8.1} {:>8.1} {:>8.1}  {:>6.2} {:>6.2} ... {:>4.2}  {}/{}",
            shape,
            subject.name,
            summary.median,
            summary.min,
            summary.max,
            summary.ratio,
            summary.low,
            summary.high,
            own.len(),
            tries
        );
    }
}
