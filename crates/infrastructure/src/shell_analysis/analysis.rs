//! The result of an analysis.

use std::path::PathBuf;
use toolstead_domain::{CommandAccess, ParseConfidence};

/// Accesses of a command line, as far as they are known before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command. Parts that are not understood are opaque commands. Never empty together with
    /// `file_accesses`.
    pub commands: Vec<CommandAccess>,
    /// Files that the command line opens or names itself.
    pub file_accesses: Vec<FileAccess>,
}

/// A file that a command line reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAccess {
    /// Absolute path. `.` and `..` are not resolved, because their target depends on the symbolic links in the file
    /// system.
    pub path: PathBuf,
    /// `true` if the file is created, changed or deleted; `false` if it is only read.
    pub writes: bool,
    /// `true` if the access includes everything below the path.
    pub tree: bool,
    /// Part of the command line that names the file.
    pub origin: FileAccessOrigin,
}

/// Part of a command line that names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccessOrigin {
    /// A redirection: the shell itself opens the file.
    Redirection {
        /// Index in [`Analysis::commands`] of the command with the redirection, or of the next command if it has none.
        command: usize,
    },
    /// An operand of `mkdir`, `touch`, `rm`, `rmdir`, `mv` or `cp`. The file is changed by that command or by a program
    /// that the command starts; rules are also applied to the command itself.
    Operand {
        /// Index of the command in [`Analysis::commands`].
        command: usize,
    },
}

impl Analysis {
    pub(super) fn opaque(text: &str, reason: &str) -> Self {
        Self { commands: vec![CommandAccess::opaque(text, reason)], file_accesses: Vec::new() }
    }

    /// Returns `true` if at least one part is not understood.
    pub fn is_opaque(&self) -> bool {
        self.commands.iter().any(|command| matches!(command.clarity, ParseConfidence::Opaque(_)))
    }
}

/// Returns the first 60 characters of a text, for messages.
pub(super) fn shown(text: &str) -> &str {
    const SHOWN: usize = 60;
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}
