//! From a bash command line to the accesses that permission rules judge: every simple command in it, and every file
//! that it redirects to (`sandbox.md` 2.1, 3.8, 4.4; `docs/shell-analysis.md`).
//!
//! The analysis is pure. What it cannot prove it calls opaque: no allow rule with a pattern covers that, and every deny
//! rule on commands catches it.

mod assignments;
pub(crate) mod builtins;
mod command;
mod folders;
mod inputs;
mod interpreters;
mod limits;
mod operands;
mod programs;
mod redirections;
mod risks;
mod sed;
mod simple_command;
mod subcommands;
mod syntax;
mod walk;
mod word;
mod wrappers;

use self::{folders::Folders, limits::Limits, walk::Walk};
use std::path::{Path, PathBuf};
use toolstead_domain::access::{Clarity, CommandAccess};

/// The longest text that is looked at, in bytes.
const MAX_TEXT: usize = 64 * 1024;

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
    fn opaque(text: &str, reason: &str) -> Self {
        Self { commands: vec![CommandAccess::opaque(text, reason)], touches: Vec::new() }
    }

    /// Whether some of it cannot be told.
    pub fn is_opaque(&self) -> bool {
        self.commands.iter().any(|command| matches!(command.clarity, Clarity::Opaque(_)))
    }
}

/// Whether this option of that interpreter (`node`, `python3`) takes the next word; `None` where that is not known.
pub fn takes_next_word(interpreter: &str, option: &str) -> Option<bool> {
    interpreters::takes_next_word(interpreter, option)
}

/// What this text would do if bash ran it in that folder, an absolute path without links.
pub fn analyse(text: &str, folder: &Path) -> Analysis {
    analyse_inner(text, Folders::start(folder), Limits::default())
}

/// What these bytes would do. Bytes that are no text are opaque.
pub fn analyse_bytes(text: &[u8], folder: &Path) -> Analysis {
    match std::str::from_utf8(text) {
        Ok(text) => analyse(text, folder),
        Err(_) => Analysis::opaque(&String::from_utf8_lossy(text), "it is not UTF-8 text"),
    }
}

fn analyse_inner(text: &str, folders: Folders, limits: Limits) -> Analysis {
    if text.len() > MAX_TEXT {
        limits.spend();
        return Analysis::opaque(shown(text), "it is longer than 64 KiB");
    }
    if limits.exhausted() {
        limits.spend();
        return Analysis::opaque(text, "too many shells start each other");
    }
    if !limits.take_bytes(text.len()) {
        return Analysis::opaque(shown(text), "the texts within it are too long together");
    }
    if let Some(reason) = unreadable(text) {
        return Analysis::opaque(text, reason);
    }
    let Some(tree) = syntax::parse(text, &limits) else {
        return Analysis::opaque(text, "it takes too long to read");
    };
    let analysis = Walk::new(text, folders, limits).run(tree.root_node());
    if analysis.commands.is_empty() && analysis.touches.is_empty() {
        return Analysis::opaque(text, "there is no command in it");
    }
    analysis
}

/// Characters that bash and a reader take for different things.
fn unreadable(text: &str) -> Option<&'static str> {
    text.chars().find_map(|character| match character {
        '\n' | '\t' => None,
        '\r' => Some("it holds a carriage return"),
        '\0' => Some("it holds a NUL character"),
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
            Some("it holds invisible characters")
        }
        _ if character.is_control() => Some("it holds control characters"),
        _ if !character.is_ascii() && character.is_whitespace() => {
            Some("it holds blanks that the shell does not split at")
        }
        _ => None,
    })
}

/// The beginning of a text, for messages.
fn shown(text: &str) -> &str {
    const SHOWN: usize = 60;
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests;
