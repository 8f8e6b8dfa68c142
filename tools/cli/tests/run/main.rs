//! `waystage run`, `log` and `dead` as people use them: the built command, real files, exit codes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panics too")]

mod account;
#[cfg(target_os = "linux")]
mod agree;
mod books;
mod damage;
mod dead;
#[cfg(target_os = "linux")]
mod disks;
mod durable;
mod endings;
mod environment;
mod input;
mod journal;
mod json;
mod keeping;
mod logs;
mod next;
mod pacing;
#[cfg(target_os = "linux")]
mod patterns;
mod refusals;
#[cfg(target_os = "linux")]
mod stops;
mod strange_logs;
mod support;
