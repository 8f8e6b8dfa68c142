//! The public surface, one binary.

mod smoke;
