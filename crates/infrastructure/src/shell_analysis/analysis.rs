//! The result of an analysis.

use std::path::PathBuf;
use toolstead_domain::access::{Clarity, CommandAccess};

/// What a command line would do, as far as it can be told before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command, and what cannot be told, as opaque commands. Never empty together with `touches`.
    pub commands: Vec<CommandAccess>,
    /// The files that it opens or names itself.
    pub touches: Vec<Touch>,
}

/// A file that a command line reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// Absolute. `.` and `..` are kept, because the system and not the text decides where they lead.
    pub path: PathBuf,
    /// It is created, changed or deleted, not only read.
    pub writes: bool,
    /// With everything below.
    pub tree: bool,
    /// What names it.
    pub origin: TouchOrigin,
}

/// What names a file in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchOrigin {
    /// A redirection: the shell itself opens it.
    Redirection {
        /// The place of the command that it stands at, or of one that comes next.
        command: usize,
    },
    /// An operand of `mkdir`, `touch`, `rm`, `rmdir`, `mv` or `cp`: a command that is judged as well changes it, or runs
    /// one that does.
    Operand {
        /// The place of that command among all.
        command: usize,
    },
}

impl Analysis {
    pub(super) fn opaque(text: &str, reason: &str) -> Self {
        Self { commands: vec![CommandAccess::opaque(text, reason)], touches: Vec::new() }
    }

    /// Whether some of it cannot be told.
    pub fn is_opaque(&self) -> bool {
        self.commands.iter().any(|command| matches!(command.clarity, Clarity::Opaque(_)))
    }
}

/// The beginning of a text, for messages.
pub(super) fn shown(text: &str) -> &str {
    const SHOWN: usize = 60;
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}
