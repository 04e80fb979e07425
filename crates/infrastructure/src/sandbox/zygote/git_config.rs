//! Detects git settings that a command made in a repository and that it must not make.

mod keys;
mod parse;

pub(super) use parse::{GitSetting, settings};
use std::collections::BTreeSet;

/// Maximum size of a settings file. A larger one is rejected as a whole.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// Maximum number of removed keys that are listed in a message.
const TOLD_KEYS: usize = 8;

/// Result of checking a settings file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GitConfigCheckResult {
    /// The file may stay unchanged.
    Fine,
    /// The file must be replaced by this text, from which the settings `out` were removed.
    Without { text: Vec<u8>, out: Vec<GitSetting> },
    /// Git cannot read the file, or may read it in another way.
    Unreadable,
}

/// Removes refused settings from a text.
pub(super) fn without(text: &[u8], is_refused: &dyn Fn(&GitSetting) -> bool) -> GitConfigCheckResult {
    let Some(found) = settings(text) else { return GitConfigCheckResult::Unreadable };
    let (refused, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(|placed| is_refused(&placed.setting));
    if refused.is_empty() {
        return GitConfigCheckResult::Fine;
    }
    let mut cleaned = Vec::with_capacity(text.len());
    let mut at = 0;
    for placed in &refused {
        cleaned.extend_from_slice(&text[at..placed.start]);
        // Text before the setting on its line, such as a header, keeps a line of its own.
        let blanks = cleaned.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let line = cleaned.len() - blanks;
        match cleaned[..line].last() {
            None | Some(b'\n') => cleaned.truncate(line),
            _ => cleaned.push(b'\n'),
        }
        at = placed.end;
    }
    cleaned.extend_from_slice(&text[at..]);
    let is_rest = settings(&cleaned)
        .is_some_and(|left| left.iter().map(|placed| &placed.setting).eq(kept.iter().map(|placed| &placed.setting)));
    if !is_rest {
        return GitConfigCheckResult::Unreadable;
    }
    GitConfigCheckResult::Without { text: cleaned, out: refused.into_iter().map(|placed| placed.setting).collect() }
}

/// Returns the keys of settings for a message: each once, and at most [`TOLD_KEYS`].
pub(super) fn keys(settings: &[GitSetting]) -> String {
    let names: BTreeSet<String> = settings.iter().map(GitSetting::shown).collect();
    let mut keys = names.iter().take(TOLD_KEYS).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > TOLD_KEYS {
        keys.push_str(&format!(" and {} more", names.len() - TOLD_KEYS));
    }
    keys
}

#[cfg(test)]
mod tests;
