//! Causes of death as stable numbers.

use super::REASON_BYTES_MAX;
use crate::envelope::Cause;

/// A [`Cause`] without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants are those of `Cause`")]
pub enum CauseCode {
    HandlerFailed = 1,
    HandlerPanicked = 2,
    NoRoute = 3,
    NoConsumer = 4,
    NextStageFull = 5,
    HopLimit = 6,
    StageClosed = 7,
    Uncertain = 8,
    NotLogged = 9,
}

impl CauseCode {
    /// All codes.
    pub const ALL: [Self; 9] = [
        Self::HandlerFailed,
        Self::HandlerPanicked,
        Self::NoRoute,
        Self::NoConsumer,
        Self::NextStageFull,
        Self::HopLimit,
        Self::StageClosed,
        Self::Uncertain,
        Self::NotLogged,
    ];

    /// The number on the medium.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The code with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        self.cause("").name()
    }

    /// The code of a cause and its reason, cut to what an entry holds.
    ///
    /// ```
    /// use waystage::{Cause, log::entry::CauseCode};
    /// let cause = Cause::HandlerFailed("no such event".into());
    /// let (code, reason) = CauseCode::of(&cause);
    /// assert_eq!((code.number(), reason), (1, "no such event"));
    /// assert_eq!(code.cause(reason), cause);
    /// ```
    pub fn of(cause: &Cause) -> (Self, &str) {
        match cause {
            Cause::HandlerFailed(reason) => (Self::HandlerFailed, bounded(reason)),
            Cause::HandlerPanicked(reason) => (Self::HandlerPanicked, bounded(reason)),
            Cause::NoRoute => (Self::NoRoute, ""),
            Cause::NoConsumer => (Self::NoConsumer, ""),
            Cause::NextStageFull => (Self::NextStageFull, ""),
            Cause::HopLimit => (Self::HopLimit, ""),
            Cause::StageClosed => (Self::StageClosed, ""),
            Cause::Uncertain(reason) => (Self::Uncertain, bounded(reason)),
            Cause::NotLogged => (Self::NotLogged, ""),
        }
    }

    /// The cause with this code.
    pub fn cause(self, reason: &str) -> Cause {
        match self {
            Self::HandlerFailed => Cause::HandlerFailed(reason.to_owned()),
            Self::HandlerPanicked => Cause::HandlerPanicked(reason.to_owned()),
            Self::NoRoute => Cause::NoRoute,
            Self::NoConsumer => Cause::NoConsumer,
            Self::NextStageFull => Cause::NextStageFull,
            Self::HopLimit => Cause::HopLimit,
            Self::StageClosed => Cause::StageClosed,
            Self::Uncertain => Cause::Uncertain(reason.to_owned()),
            Self::NotLogged => Cause::NotLogged,
        }
    }
}

/// The beginning of a text, as far as an entry holds it.
fn bounded(text: &str) -> &str {
    let end = (0..=REASON_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}
