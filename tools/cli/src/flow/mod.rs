//! The flow file: what it says, as plain data, and everything that is wrong with it at once.

pub mod model;

pub use model::Flow;
