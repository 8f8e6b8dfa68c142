//! The progress bar: on standard error, on a terminal only.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::Ordering;

use indicatif::{ProgressBar, ProgressStyle};

use super::ledger::Ledger;
use super::sources::Source;
use crate::words::{count, rate, shortened};

/// A narrower terminal gets numbers only.
const COLUMNS_FOR_A_BAR: u16 = 64;
/// The longest name of a flow before the bar.
const NAME_CHARACTERS_MAX: usize = 16;

/// A bar over the bytes of all inputs, as far as their records have ended; a counter when their
/// sizes are not known. What does not fit into the terminal's line is cut off.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar, when it is wanted and there is a terminal.
    #[must_use]
    pub fn new(wanted: bool, name: &str, sources: &[Source]) -> Self {
        if !wanted || !io::stderr().is_terminal() {
            return Self(None);
        }
        let bytes = sources.iter().map(|source| source.bytes).sum::<Option<u64>>();
        let columns = terminal_size::terminal_size_of(io::stderr()).map_or(0, |size| size.0.0);
        let is_narrow = columns < COLUMNS_FOR_A_BAR;
        let (bar, template) = match bytes {
            Some(bytes) if is_narrow => {
                (ProgressBar::new(bytes), "{prefix}  {percent:>3} %  {wide_msg}")
            }
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{prefix}  {bar:16}  {percent:>3} %  {eta} left  {wide_msg}",
            ),
            None => (ProgressBar::no_length(), "{prefix}  {spinner}  {bytes}  {wide_msg}"),
        };
        let style = ProgressStyle::with_template(template)
            .expect("the template is a constant that indicatif accepts")
            .progress_chars("\u{2588}\u{2593}\u{2591}");
        bar.set_style(style);
        bar.set_prefix(shortened(name, NAME_CHARACTERS_MAX));
        Self(Some(bar))
    }

    /// Draws how far the run is.
    pub fn show(&self, ledger: &Ledger, settled: u64) {
        let Some(bar) = &self.0 else {
            return;
        };
        let lines = ledger.lines();
        let per_second = settled as f64 / bar.elapsed().as_secs_f64().max(0.001);
        let (done, sent) = (count(settled), count(lines.accepted));
        bar.set_message(format!("{done}/{sent} records  {}/s", rate(per_second)));
        let bytes = ledger.bytes.load(Ordering::Relaxed);
        // Lines differ in length: never back.
        bar.set_position(ended(bytes, settled + lines.ended(), lines.read).max(bar.position()));
    }

    /// Does something on the terminal without the bar in the way.
    pub fn aside(&self, act: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(act),
            None => act(),
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// The bytes of the lines that have ended, when this many were read: their share.
fn ended(bytes: u64, ended: u64, read: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(ended.min(read)) / u128::from(read.max(1));
    u64::try_from(share).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use indicatif::ProgressBar;

    use super::{Progress, ended};
    use crate::run::ledger::Ledger;

    #[test]
    fn the_bar_follows_what_has_ended_not_what_was_read() {
        let bar = ProgressBar::hidden();
        bar.set_length(1000);
        let progress = Progress(Some(bar.clone()));
        let ledger = Ledger::new();
        ledger.bytes.store(1000, Ordering::Relaxed);
        ledger.read.store(10, Ordering::Relaxed);
        ledger.sent.store(9, Ordering::Relaxed);
        progress.show(&ledger, 0);
        assert_eq!(bar.position(), 0, "all was read, and nothing has ended");
        ledger.refused.store(1, Ordering::Relaxed);
        progress.show(&ledger, 4);
        assert_eq!(bar.position(), 500, "a refused line has ended too");
        progress.show(&ledger, 9);
        assert_eq!(bar.position(), 1000);
    }

    #[test]
    fn shares() {
        assert_eq!(
            [ended(10, 0, 0), ended(10, 5, 0), ended(9, 1, 3), ended(9, 5, 3)],
            [0, 0, 3, 9]
        );
        assert_eq!(ended(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
    }
}
