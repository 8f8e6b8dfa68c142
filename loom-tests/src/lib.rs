//! What the models share: exploring with a report, and a bus of the smallest kind.
//!
//! The models run the crate's own code on loom's types through `waystage::model`. Only what is not
//! under test stands here: an engine that keeps books, and a scheduler that keeps tickets.

#[cfg(not(loom))]
compile_error!("run from `loom-tests`, without RUSTFLAGS: .cargo/config.toml sets `--cfg loom`");

#[cfg(loom)]
mod disk;
#[cfg(loom)]
mod engine;
#[cfg(loom)]
mod explore;
#[cfg(loom)]
mod gate;
#[cfg(loom)]
mod team;

#[cfg(loom)]
pub use disk::HeapDisk;
#[cfg(loom)]
pub use engine::{Books, End, Number, StillClock, Tray, World, small};
#[cfg(loom)]
pub use explore::{Seen, explore};
#[cfg(loom)]
pub use gate::Gate;
#[cfg(loom)]
pub use team::{run_all, work_until};
