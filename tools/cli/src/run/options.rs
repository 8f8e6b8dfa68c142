//! What the command line adds to a flow, and the units it is written in.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use jsonptr::PointerBuf;

use crate::environment::Environment;
use crate::shell::Typed;

/// What the command line says about a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The flow file as it was named, for the command proposed at the end.
    pub flow_file: PathBuf,
    /// The command as it was given, to be proposed again.
    pub command: Typed,
    /// Relative output paths start here instead of the flow file's folder.
    pub out: Option<PathBuf>,
    /// What an earlier run of a durable flow left goes first.
    pub fresh: bool,
    /// Questions are answered with yes.
    pub yes: bool,
    /// Records are sent at this rate, on intended times.
    pub rate: Option<Rate>,
    /// No more records than this are sent.
    pub limit: Option<u64>,
    /// The run is stopped after this time.
    pub duration: Option<Duration>,
    /// Inputs instead of those of the flow.
    pub inputs: Vec<OsString>,
    /// Which of all these came from the environment.
    pub environment: Environment,
    /// Where a record's id is, instead of what the flow says.
    pub id: Option<PointerBuf>,
    /// Workers instead of those of the flow.
    pub workers: Option<usize>,
    /// Whether a progress bar may be drawn.
    pub progress: bool,
    /// How long a stopped run may go on with what it took in.
    pub drain: Duration,
    /// Whether records that did not arrive are a failure.
    pub fail_on: FailOn,
    /// JSON instead of the table.
    pub json: bool,
    /// The columns of the terminal that gets the report, if one does.
    pub width: Option<usize>,
    /// Nothing on standard error but errors.
    pub quiet: bool,
    /// What the run is made of is said before it starts.
    pub verbose: bool,
}

impl Options {
    /// What a run does without any flag.
    #[must_use]
    pub fn new(flow_file: &Path) -> Self {
        Self {
            flow_file: flow_file.to_owned(),
            command: Typed::new([OsStr::new("run"), flow_file.as_os_str()]),
            out: None,
            fresh: false,
            yes: false,
            rate: None,
            limit: None,
            duration: None,
            inputs: Vec::new(),
            environment: Environment::default(),
            id: None,
            workers: None,
            progress: false,
            drain: Duration::from_secs(30),
            fail_on: FailOn::Dead,
            json: false,
            width: None,
            quiet: false,
            verbose: false,
        }
    }
}

/// Which endings are exit code 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Dead letters, and records that were refused, dropped or expired.
    Dead,
    /// None: they are reported only.
    Never,
}

/// Records per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(f64);

impl Rate {
    /// Records per second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        self.0
    }

    /// When record number `index` is due, in nanoseconds after the start.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    pub fn due_ns(self, index: u64) -> u64 {
        (index as f64 * 1e9 / self.0) as u64
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write a rate like 500/s, 5k/s, 1.5M/s or 90/m".to_owned();
        let (count, seconds) = match text.trim().rsplit_once('/') {
            None => (text.trim(), 1.0),
            Some((count, "s")) => (count, 1.0),
            Some((count, "m" | "min")) => (count, 60.0),
            Some((count, "h")) => (count, 3600.0),
            Some(_) => return Err(wrong()),
        };
        let (digits, factor) = match count.trim_end().strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1e3),
            None => match count.trim_end().strip_suffix('M') {
                Some(digits) => (digits, 1e6),
                None => (count, 1.0),
            },
        };
        let digits = digits.trim().replace('_', "");
        // "inf" and "nan" are numbers to the parser, and no rates.
        if !digits.contains(|c: char| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: f64 = digits.parse().map_err(|_ignored| wrong())?;
        let rate = number * factor / seconds;
        // Below one record in 30 years the schedule would leave the range of its clock.
        if !(1e-9..=1e9).contains(&rate) {
            return Err("out of range: a rate is above zero, from one record in 30 years to \
                        1,000M/s"
                .to_owned());
        }
        Ok(Self(rate))
    }
}

/// How many records to send: a run of none would only empty its outputs.
///
/// # Errors
/// In words, when it is no number, or zero.
pub fn limit(text: &str) -> Result<u64, String> {
    let number = text.trim().replace('_', "").parse::<u64>();
    match number.map_err(|error| format!("{error}; write a number like 1000"))? {
        0 => {
            Err("it must be at least 1; `waystage check` looks at a flow without running it"
                .to_owned())
        }
        number => Ok(number),
    }
}

/// A time above zero.
///
/// # Errors
/// As [`time`], and when it is zero: such a run would end before it began.
pub fn some_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("it must be above zero; `waystage check` looks at a flow without \
                               running it"
            .to_owned()),
        time => Ok(time),
    }
}

/// A time such as `30s`, `250ms` or `1h 30m`.
///
/// # Errors
/// In words, when it is none, or negative.
pub fn time(text: &str) -> Result<Duration, String> {
    let parsed = text.trim().parse::<jiff::SignedDuration>();
    let time = parsed.ok().and_then(|signed| Duration::try_from(signed).ok());
    time.ok_or_else(|| "write a time with its unit, like 250ms, 30s or 1h 30m".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Rate, limit, some_time, time};

    #[test]
    fn rates() {
        for (text, want) in [
            ("5k/s", Some(5000.0)),
            ("100", Some(100.0)),
            ("1.5M/s", Some(1.5e6)),
            ("1_000/s", Some(1000.0)),
            ("90/m", Some(1.5)),
            ("7200/h", Some(2.0)),
            ("0/s", None),
            ("-5/s", None),
            ("fast", None),
            ("5/d", None),
            ("", None),
            ("nan", None),
            ("inf/s", None),
            ("1e99/s", None),
        ] {
            assert_eq!(text.parse::<Rate>().ok().map(Rate::per_second), want, "{text}");
        }
    }

    #[test]
    fn a_rate_out_of_range_says_so() {
        for text in ["1e99/s", "1e999", "0/s", "-5/s", "2000M/s", "1e-12/s"] {
            let words = text.parse::<Rate>().unwrap_err();
            assert!(words.starts_with("out of range: a rate is above zero"), "{text}: {words}");
        }
        for text in ["fast", "nan", "inf/s", "5/d"] {
            let words = text.parse::<Rate>().unwrap_err();
            assert!(words.starts_with("write a rate like 500/s"), "{text}: {words}");
        }
    }

    #[test]
    fn nothing_at_all_is_no_run() {
        assert_eq!((limit("1"), limit("1_000")), (Ok(1), Ok(1000)));
        assert_eq!(some_time("1ms"), Ok(Duration::from_millis(1)));
        assert!(limit("0").unwrap_err().contains("at least 1"));
        assert!(limit("-1").is_err() && limit("few").is_err() && limit("").is_err());
        assert!(some_time("0s").unwrap_err().contains("above zero"));
        assert!(some_time("soon").is_err());
    }

    #[test]
    fn a_schedule_does_not_drift() {
        let rate: Rate = "3/s".parse().unwrap();
        assert_eq!(rate.due_ns(0), 0);
        assert_eq!(rate.due_ns(1), 333_333_333);
        assert_eq!(rate.due_ns(3_000_000), 1_000_000_000_000_000);
    }

    #[test]
    fn times() {
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        for wrong in ["", "30", "-1s", "soon"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
