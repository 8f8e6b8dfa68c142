//! `waystage run` as people use it: the built command, real files, exit codes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panics too")]

mod books;
mod endings;
mod input;
mod json;
mod pacing;
mod refusals;
mod support;
