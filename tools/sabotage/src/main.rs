//! Damages the code on purpose and demands that a test notices.
//!
//! Each `sabotage/*.patch` is one small fault (a dropped fence, a skipped re-check) with the test
//! that must fail when it is in. The repository is copied to a temporary directory; there each
//! distinct test command has to pass undamaged, and then to fail under each of its patches. A patch
//! that does not apply, does not build or makes the test hang counts as not caught. Nothing in the
//! working tree is touched.
//!
//! Needs `git` (to apply patches) and `timeout` of coreutils.
#![expect(clippy::print_stdout, reason = "printing is what this command is for")]

mod ground;
mod patch;
mod sample;
mod verdict;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use crate::ground::{Ground, Run};
use crate::patch::{Patch, TestCommand};
use crate::verdict::Verdict;

/// Damages the code on purpose and demands that a test notices.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Only the patch of this name (its file name without `.patch`); may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only this many patches, drawn with `--seed`.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// The seed of `--sample`.
    #[arg(long, value_name = "S", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Lists the patches with their tests and reasons, and runs nothing.
    #[arg(long)]
    list: bool,
    /// Seconds that a test may run.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// The repository.
    #[arg(long, value_name = "DIR", default_value_os_t = waystage_tidy::root())]
    root: PathBuf,
}

fn main() -> io::Result<ExitCode> {
    let options = Options::parse();
    let patches = chosen(&options)?;
    if options.list {
        for patch in &patches {
            println!("{}\n  {}\n  {}", patch.name, patch.test, patch.why);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let ground = Ground::new(&options.root, &target_dir(&options.root), options.timeout)?;
    for test in patches.iter().map(|patch| &patch.test).collect::<BTreeSet<_>>() {
        println!("undamaged: {test}");
        if !passes_undamaged(&ground, test)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    let width = patches.iter().map(|patch| patch.name.len()).max().unwrap_or(0).max(4);
    println!("\n{:width$}  {:>7}  caught by", "name", "seconds");
    let (mut reports, mut caught) = (Vec::new(), 0);
    for patch in &patches {
        let start = now();
        let verdict = judge(&ground, patch)?;
        println!("{:width$}  {:7.1}  {verdict}", patch.name, start.elapsed().as_secs_f64());
        match verdict {
            Verdict::Caught(_) => caught += 1,
            other => reports.push(format!("--- {}: {}\n{}", patch.name, patch.why, other.output())),
        }
    }
    println!("\n{caught} of {} caught", patches.len());
    for report in &reports {
        println!("{report}");
    }
    Ok(if reports.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The patches that the options ask for; it is an error when there are none.
fn chosen(options: &Options) -> io::Result<Vec<Patch>> {
    let mut patches = patch::read_all(&options.root.join("sabotage"))?;
    for name in &options.only {
        if !patches.iter().any(|patch| patch.name == *name) {
            return Err(io::Error::other(format!("no patch is named `{name}`; try --list")));
        }
    }
    if !options.only.is_empty() {
        patches.retain(|patch| options.only.contains(&patch.name));
    }
    if let Some(count) = options.sample {
        println!("sample of {count} with seed {}", options.seed);
        patches = sample::draw(patches, count, options.seed);
    }
    if patches.is_empty() {
        return Err(io::Error::other("there are no patches to try"));
    }
    Ok(patches)
}

/// A target directory of our own: damaged artefacts must never pass for fresh ones elsewhere.
fn target_dir(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| root.join("target"), PathBuf::from).join("sabotage")
}

fn passes_undamaged(ground: &Ground, test: &TestCommand) -> io::Result<bool> {
    for run in [ground.build(test)?, ground.test(test)?] {
        if let Run::Failed(output) | Run::TimedOut(output) = run {
            println!("fails on the undamaged tree:\n{}", verdict::tail(&output));
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts the patch in, runs its test, and takes it out again.
fn judge(ground: &Ground, patch: &Patch) -> io::Result<Verdict> {
    if let Err(output) = ground.apply(patch)? {
        return Ok(Verdict::DoesNotApply(output));
    }
    let verdict = match ground.build(&patch.test)? {
        Run::Failed(output) | Run::TimedOut(output) => Verdict::DoesNotBuild(output),
        Run::Passed => match ground.test(&patch.test)? {
            Run::Passed => Verdict::NotCaught,
            Run::TimedOut(output) => Verdict::Hangs(output),
            Run::Failed(output) => Verdict::Caught(verdict::failed_tests(&output)),
        },
    };
    ground.revert(patch)?;
    Ok(verdict)
}

#[expect(clippy::disallowed_methods, reason = "a tool may read the clock")]
fn now() -> Instant {
    Instant::now()
}
