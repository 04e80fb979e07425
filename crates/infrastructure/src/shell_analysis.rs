//! Parses a bash command line into the accesses that permission rules are applied to: each simple command, and each
//! file that the shell itself opens (`docs/internals/shell-analysis.md`).
//!
//! The analysis is pure. A part that it cannot understand with certainty is *opaque*: no allow rule with a pattern
//! covers it, and every deny rule on commands matches it.

mod analysis;
pub mod catalogue;
mod folders;
mod judging;
mod limits;
pub(crate) mod processor_time;
mod reading;
mod word;

pub use self::analysis::{Analysis, FileAccess, FileAccessOrigin};
use self::{
    analysis::shown,
    folders::WorkingFolders,
    limits::{AnalysisBudget, MAX_TEXT},
    reading::{syntax, walk::Walk},
};
use std::path::Path;
use toolstead_domain::invisible_characters::is_removable;

/// Returns the accesses of a text that bash runs in this folder, an absolute path without symbolic links.
pub fn analyse(text: &str, folder: &Path) -> Analysis {
    analyse_inner(text, WorkingFolders::start(folder), AnalysisBudget::default())
}

/// Returns the accesses of a text that bash runs in this folder. A text that is not UTF-8 is opaque.
pub fn analyse_bytes(text: &[u8], folder: &Path) -> Analysis {
    match std::str::from_utf8(text) {
        Ok(text) => analyse(text, folder),
        Err(_) => Analysis::opaque(&String::from_utf8_lossy(text), "it is not UTF-8 text"),
    }
}

fn analyse_inner(text: &str, folders: WorkingFolders, limits: AnalysisBudget) -> Analysis {
    if text.len() > MAX_TEXT {
        limits.mark_exceeded();
        return Analysis::opaque(shown(text), "it is longer than 64 KiB");
    }
    if limits.is_too_deep() {
        limits.mark_exceeded();
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
    let analysis = Walk::new(text, folders, limits, analyse_inner).run(tree.root_node());
    if analysis.commands.is_empty() && analysis.file_accesses.is_empty() {
        return Analysis::opaque(text, "it contains no command");
    }
    analysis
}

/// Returns the reason why a text is rejected: a character that bash and a human reader interpret differently.
fn unreadable(text: &str) -> Option<&'static str> {
    text.chars().find_map(|character| match character {
        '\n' | '\t' => None,
        '\r' => Some("it holds a carriage return"),
        '\0' => Some("it holds a NUL character"),
        _ if character.is_control() => Some("it holds control characters"),
        // Of the joining characters, only these two are rejected, because they split what looks like one word.
        // Variation selectors are part of many emoji and are accepted: rules compare the written characters, not their
        // appearance.
        '\u{200c}' | '\u{200d}' | '\u{2028}' | '\u{2029}' => Some("it holds invisible characters"),
        _ if is_removable(character) => Some("it holds invisible characters"),
        _ if !character.is_ascii() && character.is_whitespace() => {
            Some("it holds blanks that the shell does not split at")
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
