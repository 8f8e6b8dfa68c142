//! One letter after the other: at a rate, with a bar on a terminal, until Ctrl-C.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use waystage::clock::{Clock as _, SystemClock};

use crate::arguments::Global;
use crate::run::options::Rate;
use crate::run::schedule::Schedule;
use crate::run::signals::Interrupt;

/// How long nobody looks whether it was interrupted.
const LOOK_NS: u64 = 50_000_000;

/// The pace of a change.
#[derive(Debug)]
pub struct Pace {
    rate: Option<Rate>,
    schedule: Schedule,
    clock: SystemClock,
    bar: Option<ProgressBar>,
    interrupt: Interrupt,
}

impl Pace {
    /// Begins; from now on Ctrl-C asks to stop.
    ///
    /// # Errors
    /// The system refused to watch signals.
    pub fn begin(rate: Option<Rate>, count: usize, global: &Global) -> io::Result<Self> {
        let interrupt = Interrupt::watch()?;
        interrupt.ask_first();
        let clock = SystemClock::new();
        let schedule = Schedule::from(clock.monotonic_ns());
        let is_shown = !global.quiet && !global.json && io::stderr().is_terminal();
        let bar = is_shown.then(|| bar(count as u64));
        Ok(Self { rate, schedule, clock, bar, interrupt })
    }

    /// Waits until the next one is due; false when it is interrupted. So many were done before.
    pub fn next(&mut self, done: usize) -> bool {
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
        }
        if let Some(rate) = self.rate {
            let due = self.schedule.next(rate);
            while !self.was_interrupted() {
                let left = due.saturating_sub(self.clock.monotonic_ns());
                if left == 0 {
                    break;
                }
                std::thread::park_timeout(Duration::from_nanos(left.min(LOOK_NS)));
            }
        }
        !self.was_interrupted()
    }

    /// Whether somebody wants it to end.
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        self.interrupt.came()
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(count: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24}  {human_pos}/{human_len}  {eta} left")
        .expect("the template is a constant that indicatif accepts")
        .progress_chars("\u{2588}\u{2593}\u{2591}");
    let bar = ProgressBar::new(count);
    bar.set_style(style);
    bar
}
