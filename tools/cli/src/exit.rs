//! How the command ends: the codes that scripts rely on.

/// What the command tells the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Done,
    /// Failed while running: input or output broke.
    Failed,
    /// Command line, flow file or settings wrong; nothing was touched.
    Usage,
    /// Finished, but some records are dead letters, or were refused, dropped or too late.
    Dead,
    /// Stopped before the end.
    Stopped,
    /// The books do not add up: a mistake of this program.
    Bug,
}

/// The code of the second Ctrl-C, set by the signal handler itself.
pub const SECOND_INTERRUPT: i32 = 130;

impl Exit {
    /// The process exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Dead => 3,
            Self::Stopped => 4,
            Self::Bug => 101,
        }
    }

    /// The code in a word, as printed in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Dead => "dead_letters",
            Self::Stopped => "stopped",
            Self::Bug => "bug",
        }
    }
}
