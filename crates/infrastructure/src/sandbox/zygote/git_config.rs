//! What a command set in a repository that it must not set.

mod keys;
mod parse;

pub(super) use parse::{Setting, settings};
use std::collections::BTreeSet;

/// Larger settings are not judged but refused as a whole.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// So many of the keys that were taken out are told.
const TOLD_KEYS: usize = 8;

/// What is to be done about a text of settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It may stay.
    Fine,
    /// This may stand there instead of the settings that were taken out.
    Without { text: Vec<u8>, out: Vec<Setting> },
    /// Git cannot read it, or it cannot be told how.
    Unreadable,
}

/// Takes settings out of a text.
pub(super) fn without(text: &[u8], is_refused: &dyn Fn(&Setting) -> bool) -> Judgement {
    let Some(found) = settings(text) else { return Judgement::Unreadable };
    let (refused, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(|placed| is_refused(&placed.setting));
    if refused.is_empty() {
        return Judgement::Fine;
    }
    let mut cleaned = Vec::with_capacity(text.len());
    let mut at = 0;
    for placed in &refused {
        cleaned.extend_from_slice(&text[at..placed.start]);
        // What stands before it on its line, such as a header, keeps a line.
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
        return Judgement::Unreadable;
    }
    Judgement::Without { text: cleaned, out: refused.into_iter().map(|placed| placed.setting).collect() }
}

/// The keys of settings as they are told: each once, and not too many.
pub(super) fn keys(settings: &[Setting]) -> String {
    let names: BTreeSet<String> = settings.iter().map(Setting::shown).collect();
    let mut keys = names.iter().take(TOLD_KEYS).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > TOLD_KEYS {
        keys.push_str(&format!(" and {} more", names.len() - TOLD_KEYS));
    }
    keys
}

#[cfg(test)]
mod tests;
