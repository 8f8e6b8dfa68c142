//! Reading a log while it is written, here or by another process: no lock, no map, nothing changed.
//!
//! A [`Cursor`] walks the records as they stand in the files and stops, without a verdict, where
//! none follows. [`Reader`] shows what is known to be durable, from the directory alone;
//! [`Follower`] shows what an open log acknowledges, and waits for more. Files are copied piece by
//! piece, so one that is shortened or removed meanwhile is an end or an error and never a signal.
//! `README.md` beside the log has the rules, under *Reading*.

mod cursor;
mod follow;
mod locate;
mod lookup;
mod outline;
mod reader;
mod walk;

pub(super) use cursor::{Cursor, Peek};
pub use follow::Follower;
pub(super) use follow::Followers;
pub(super) use locate::numbers;
pub(super) use lookup::lookup;
pub use outline::{Outline, SegmentOutline, outline};
pub use reader::{Reader, Stop};
pub use walk::{Shown, Start};
