//! The progress bar: on standard error, on a terminal only.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::Ordering;

use indicatif::{ProgressBar, ProgressStyle};

use super::ledger::Ledger;
use super::sources::Source;
use crate::words::{count, rate};

/// A bar over the bytes of all inputs; a counter when their sizes are not known.
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
        let (bar, template) = match bytes {
            Some(bytes) => {
                (ProgressBar::new(bytes), "{prefix}  {bar:24}  {percent:>3} %  {msg}  {eta} left")
            }
            None => (ProgressBar::no_length(), "{prefix}  {spinner}  {bytes}  {msg}  {elapsed}"),
        };
        let style = ProgressStyle::with_template(template)
            .expect("the template is a constant that indicatif accepts")
            .progress_chars("\u{2588}\u{2593}\u{2591}");
        bar.set_style(style);
        bar.set_prefix(name.to_owned());
        Self(Some(bar))
    }

    /// Draws how far the run is.
    pub fn show(&self, ledger: &Ledger, settled: u64) {
        let Some(bar) = &self.0 else {
            return;
        };
        let sent = ledger.sent.load(Ordering::Relaxed);
        let per_second = settled as f64 / bar.elapsed().as_secs_f64().max(0.001);
        let (settled, sent) = (count(settled), count(sent));
        bar.set_message(format!("{settled}/{sent} records  {}/s", rate(per_second)));
        bar.set_position(ledger.bytes.load(Ordering::Relaxed));
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
