//! `waystage run` as people use it: the built command, real files, exit codes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panics too")]

mod account;
mod books;
mod endings;
mod environment;
mod input;
mod json;
mod keeping;
mod pacing;
mod refusals;
mod support;
