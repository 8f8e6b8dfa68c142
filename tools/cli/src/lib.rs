//! The command `waystage` as a library, so that its tests and fuzzers reach every part.
//!
//! [`flow`] reads a flow file into plain data and says what is wrong with it; [`run`] turns that
//! into a bus, feeds it and reports; [`inspect`] checks a flow; [`log`] looks
//! into logs, [`dead`] at dead letters. [`arguments`] is the command line,
//! [`environment`] what stands in for it, [`exit`] the codes it ends with; [`files`] tells files
//! apart, [`patterns`] finds them; [`shell`] writes commands down;
//! [`words`] and [`style`] are how text looks.

pub mod arguments;
pub mod dead;
pub mod environment;
pub mod exit;
pub mod files;
pub mod flow;
pub mod inspect;
pub mod log;
pub mod patterns;
pub mod run;
pub mod shell;
pub mod style;
pub mod words;
