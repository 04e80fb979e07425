//! The order of changes: which is the last one, and which are undone.

use std::collections::HashMap;
use toolstead_domain::{CallId, JournalEntry, ports::change_journal::undone};

/// Minimum number of hexadecimal digits that name a call.
const MIN_DIGITS: usize = 8;

/// Changes of a session, newest first.
#[derive(Debug)]
pub(super) struct ChangeHistory {
    pub(super) entries: Vec<JournalEntry>,
    /// Entries of other sessions that these entries revert, directly or through others.
    pub(super) foreign_entries: Vec<JournalEntry>,
}

/// Name of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallReference {
    /// Its whole id.
    Whole(CallId),
    /// First or last digits of its id.
    Part(String),
}

impl CallReference {
    /// Parses an id with or without hyphens; `None` if the text is not an id, or is too short.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        match digits.len() {
            32 => digits.parse().ok().map(|id| Self::Whole(CallId(id))),
            MIN_DIGITS..32 => Some(Self::Part(digits)),
            _ => None,
        }
    }
}

impl ChangeHistory {
    /// Returns the calls that are undone, each with the call that undid it.
    pub(super) fn undone(&self) -> HashMap<CallId, CallId> {
        undone(&self.entries)
    }

    /// Returns the last change that is not undone. A redo is a change as well, and is the last one then.
    pub(super) fn last_change(&self) -> Option<&JournalEntry> {
        let undone = self.undone();
        self.entries.iter().find(|entry| !self.is_undo(entry) && !undone.contains_key(&entry.call))
    }

    /// Returns the last undo that is neither redone nor a note that nothing was changed.
    pub(super) fn last_undo(&self) -> Option<&JournalEntry> {
        let undone = self.undone();
        self.entries.iter().find(|entry| self.is_undo(entry) && !undone.contains_key(&entry.call) && !entry.is_note())
    }

    /// Returns the entries whose call id begins or ends with these digits. Ids of the same minute have the same
    /// beginning.
    pub(super) fn named(&self, digits: &str) -> Vec<&JournalEntry> {
        let is_named = |entry: &&JournalEntry| {
            let id = entry.call.0.simple().to_string();
            id.starts_with(digits) || id.ends_with(digits)
        };
        self.entries.iter().filter(is_named).collect()
    }

    /// Returns `true` if an entry undoes a change. Reverting an undo is a redo.
    pub(super) fn is_undo(&self, entry: &JournalEntry) -> bool {
        let mut steps = 0;
        let mut target = entry.reverts;
        // An entry reverts an older one, so the loop ends; the bound protects against an inconsistent journal.
        while let Some(call) = target.filter(|_| steps <= self.entries.len() + self.foreign_entries.len()) {
            steps += 1;
            target = self
                .entries
                .iter()
                .chain(&self.foreign_entries)
                .find(|other| other.call == call)
                .and_then(|other| other.reverts);
        }
        steps % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Principal, testing::samples};

    fn entry(number: u32, reverts: Option<u32>) -> JournalEntry {
        JournalEntry {
            call: samples::call_id(number),
            principal: Principal::local(),
            session: "s".into(),
            tool: "edit_file".into(),
            at: samples::START,
            changes: Vec::new(),
            reverts: reverts.map(samples::call_id),
        }
    }

    /// Each call is `+` or `-` and the number of the call that it reverts.
    #[track_caller]
    fn check(story: &str, last_change: Option<u32>, last_undo: Option<u32>) {
        let entry =
            |(index, word): (usize, &str)| entry(index as u32 + 1, word.strip_prefix('-').map(|n| n.parse().unwrap()));
        let mut entries: Vec<JournalEntry> = story.split_whitespace().enumerate().map(entry).collect();
        entries.reverse();
        let history = ChangeHistory { entries, foreign_entries: Vec::new() };
        let found = |entry: Option<&JournalEntry>| entry.map(|entry| entry.call);
        assert_eq!(found(history.last_change()), last_change.map(samples::call_id), "{story}");
        assert_eq!(found(history.last_undo()), last_undo.map(samples::call_id), "{story}");
    }

    #[test]
    fn undo_and_redo_go_back_and_forth_through_the_changes() {
        check("", None, None);
        check("+ +", Some(2), None);
        check("+ + -2", Some(1), Some(3));
        check("+ + -2 -1", None, Some(4));
        check("+ + -2 -1 -4", Some(5), Some(3));
        check("+ + -2 -1 -4 -3", Some(6), None);
        check("+ + -2 -1 -4 -3 -6", Some(5), Some(7));
        check("+ + -2 +", Some(4), Some(3));
        // An undo of a redo is an undo.
        check("+ -1 -2 -3", None, Some(4));
        // Changes that another session undid are not known here.
        check("+ -9", Some(1), Some(2));
    }

    #[test]
    fn a_call_is_identified_by_its_whole_id_or_by_a_long_enough_prefix_or_suffix() {
        let id = samples::call_id(1);
        assert_eq!(CallReference::parse(&id.to_string()), Some(CallReference::Whole(id)));
        assert_eq!(CallReference::parse(&id.0.simple().to_string()), Some(CallReference::Whole(id)));
        assert_eq!(CallReference::parse(" 0199-01FF "), Some(CallReference::Part("019901ff".into())));
        for bad in ["", "019901f", "last", &"0".repeat(33), "0199011g"] {
            assert_eq!(CallReference::parse(bad), None, "{bad}");
        }
        let history = ChangeHistory { entries: vec![entry(2, None), entry(1, None)], foreign_entries: Vec::new() };
        assert_eq!(history.named("0199").len(), 2);
        assert_eq!(history.named(&id.0.simple().to_string()[..12]).len(), 1);
        assert_eq!(history.named(&id.0.simple().to_string()[24..]), [&history.entries[1]]);
    }
}
