//! Dead letters of a log, whatever their payloads are: listed, shown, purged, re-driven.
//!
//! [`Letters`] looks at a log that may be written to meanwhile, and changes nothing;
//! [`OpenLetters`] has it open, so nobody else does. Each letter that is re-driven or purged is one
//! record: what a crash interrupts leaves the rest of the letters, and the same call goes on there.
//! A bus does the same with the letters of its own log under the lock of its journal.
//!
//! A re-drive claims its id like a publish: where that is on its way the letter stays, where it is
//! remembered as completed the letter goes, and is counted as a duplicate.
//!
//! `filter` (which letters), `plan` (what becomes of them), `claim` (whether one may come in),
//! `form` (what the log has of an envelope), `look` and `open`.

mod claim;
mod filter;
mod form;
mod look;
mod open;
mod plan;

pub(crate) use claim::{Claim, claim};
pub use filter::LetterFilter;
pub(crate) use filter::Looks;
pub(crate) use form::Form;
pub(crate) use look::would;
pub use look::{Content, Letters, Share};
pub use open::OpenLetters;
pub use plan::{Redrive, Redriven};
