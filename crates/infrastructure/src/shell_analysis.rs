//! From a bash command line to the accesses that permission rules judge: every simple command in it, and every file
//! that it redirects to (`docs/shell-analysis.md`).
//!
//! The analysis is pure. What it cannot prove it calls opaque: no allow rule with a pattern covers that, and every deny
//! rule on commands catches it.

mod analysis;
pub mod catalogue;
mod folders;
mod judging;
mod limits;
pub(crate) mod processor_time;
mod reading;
mod word;

pub use self::analysis::{Analysis, Touch, TouchOrigin};
use self::{
    analysis::shown,
    folders::Folders,
    limits::{Limits, MAX_TEXT},
    reading::{syntax, walk::Walk},
};
use std::path::Path;
use toolstead_domain::unseen::is_unseen;

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
    let analysis = Walk::new(text, folders, limits, analyse_inner).run(tree.root_node());
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
        _ if character.is_control() => Some("it holds control characters"),
        // Of those that join, the two that part what looks like one word. What varies a sign stands in many an emoji,
        // and passes: rules compare what is written, not what is seen.
        '\u{200c}' | '\u{200d}' | '\u{2028}' | '\u{2029}' => Some("it holds invisible characters"),
        _ if is_unseen(character) => Some("it holds invisible characters"),
        _ if !character.is_ascii() && character.is_whitespace() => {
            Some("it holds blanks that the shell does not split at")
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
