//! `waystage run` as people use it: the built command, real files, exit codes.

mod books;
mod endings;
mod input;
mod json;
mod pacing;
mod refusals;
mod support;
