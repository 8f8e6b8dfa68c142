//! The command `waystage` as a library, so that its tests and fuzzers reach every part.
//!
//! [`flow`] reads a flow file into plain data and says what is wrong with it; [`run`] turns that
//! into a bus, feeds it and reports.

pub mod flow;
