//! The few styles of text on a terminal. Streams strip them where they are not wanted.

use anstyle::{AnsiColor, Style};

/// Errors, and books that do not add up.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What went other than hoped.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Labels.
pub const STRONG: Style = Style::new().bold();
