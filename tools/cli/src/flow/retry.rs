//! The setting `retry`: attempts, pauses, and whether others may overtake.
//!
//! A back-off means delayed retries; without one they are in place. A stage's `retry` replaces
//! that of the defaults as a whole.

use std::time::Duration;

use toml::de::{DeFloat, DeInteger};
use waystage::{Retry, StageSettings};

use super::problem::Problem;
use super::reader::{Item, Reader};

const KEYS: &[&str] = &["attempts", "backoff", "jitter", "place"];

/// The spread of pauses when a back-off is given without one.
const JITTER_DEFAULT: f64 = 0.2;

/// What `place` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    InPlace,
    Delayed,
}

const PLACES: &[(&str, Place)] = &[("in-place", Place::InPlace), ("delayed", Place::Delayed)];

impl Reader<'_> {
    /// Attempts, and where a failed envelope waits for the next.
    pub(super) fn retry(&mut self, item: &Item<'_>) -> Option<(u16, Retry)> {
        let table = self.table(item, "a table, like { attempts = 3, backoff = \"50ms..5s\" }")?;
        let before = self.problems.len();
        let items = self.items("`retry`", table, KEYS);
        let (mut attempts, mut pauses, mut jitter, mut place) = (None, None, None, None);
        for item in &items {
            match item.key {
                "attempts" => attempts = self.attempts(item),
                "backoff" => pauses = self.backoff(item),
                "jitter" => jitter = self.jitter(item),
                _ => place = self.choice(item, PLACES),
            }
        }
        self.retry_agrees(item, &items, place);
        if self.problems.len() > before {
            return None;
        }
        let retry = pauses.map_or(Retry::InPlace, |(first, max)| Retry::Delayed {
            first,
            max,
            jitter: jitter.unwrap_or(JITTER_DEFAULT),
        });
        Some((attempts?, retry))
    }

    /// Whether the keys of `retry` agree with each other.
    fn retry_agrees(&mut self, item: &Item<'_>, items: &[Item<'_>], place: Option<Place>) {
        let find = |key: &str| items.iter().find(|item| item.key == key);
        if find("attempts").is_none() {
            let problem = Problem::error(item.span(), "`retry` does not say how many attempts");
            self.report(problem.label("`attempts` is missing").help("add `attempts = 3`"));
        }
        let backoff = find("backoff");
        if place == Some(Place::Delayed) && backoff.is_none() {
            let problem = Problem::error(item.span(), "a delayed retry needs pauses");
            self.report(problem.label("`backoff` is missing").help("add `backoff = \"50ms..5s\"`"));
            return;
        }
        let in_place = match place {
            Some(place) => place == Place::InPlace,
            None => backoff.is_none(),
        };
        for extra in [backoff, find("jitter")].into_iter().flatten().filter(|_| in_place) {
            let message = format!("`{}` has no effect on retries in place", extra.key);
            let problem = Problem::error(extra.key_span.clone(), message);
            let help = match place {
                Some(_) => "remove it, or write `place = \"delayed\"`",
                None => "add `backoff = \"50ms..5s\"`, or remove it",
            };
            self.report(problem.label("only delayed retries pause").help(help));
        }
    }

    fn attempts(&mut self, item: &Item<'_>) -> Option<u16> {
        let attempts = self.integer(item)?;
        let trial = StageSettings { attempts, ..StageSettings::default() };
        if let Err(error) = trial.validate() {
            self.out_of_range(item, error.must);
            return None;
        }
        Some(attempts)
    }

    /// `50ms..5s`: from the first pause to the longest; `50ms`: always the same.
    fn backoff(&mut self, item: &Item<'_>) -> Option<(Duration, Duration)> {
        let text = self.text(item)?;
        let (first, max) = match text.split_once("..") {
            Some((first_text, max_text)) => {
                let span = self.part(item, text, 0..first_text.len());
                let first = self.duration_in(first_text, span);
                let span = self.part(item, text, first_text.len() + 2..text.len());
                (first?, self.duration_in(max_text, span)?)
            }
            None => {
                let pause = self.duration_in(text, item.span())?;
                (pause, pause)
            }
        };
        if max < first {
            let problem = Problem::error(item.span(), "`backoff` ends below its begin");
            self.report(problem.label("the longest pause is shorter than the first"));
            return None;
        }
        let retry = Retry::Delayed { first, max, jitter: JITTER_DEFAULT };
        if let Err(error) = (StageSettings { retry, ..StageSettings::default() }).validate() {
            self.out_of_range(item, error.must);
            return None;
        }
        Some((first, max))
    }

    fn jitter(&mut self, item: &Item<'_>) -> Option<f64> {
        let value = item.value.get_ref();
        let float = value.as_float().map(DeFloat::as_str);
        let Some(text) = float.or_else(|| value.as_integer().map(DeInteger::as_str)) else {
            self.mismatch(item, "a number from 0 to 1");
            return None;
        };
        match text.parse::<f64>() {
            Ok(jitter) if (0.0..=1.0).contains(&jitter) => Some(jitter),
            _ => {
                self.out_of_range(item, "0 to 1");
                None
            }
        }
    }
}
