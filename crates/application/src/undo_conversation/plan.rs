//! Selection of the file changes that belong to the undone events.

use super::{SkippedCall, changing};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};
use toolstead_domain::{
    CallId, ContentDigest, ConversationEvent, ConversationEventKind, JournalEntry, conversation::transcript::counted,
    ports::change_journal::undone,
};

/// The steps of undoing.
#[derive(Debug)]
pub(super) struct UndoPlan {
    /// The changes to undo, newest first.
    pub(super) entries: Vec<JournalEntry>,
    /// The changes that cannot be undone according to the journal.
    pub(super) left: Vec<SkippedCall>,
}

/// Returns the ended calls of a conversation, each with the number of the event that records its end.
pub(super) fn calls(events: &[ConversationEvent]) -> impl Iterator<Item = (u64, CallId)> {
    events.iter().filter_map(|event| match event.kind {
        ConversationEventKind::CallEnded { call: Some(call), .. } => Some((event.number, call)),
        _ => None,
    })
}

/// Selects the changes to undo, so that event `to` is the last one, from the journal entries of the conversation and
/// its subagents, newest first. `roots` maps the call of each entry to its ancestor in the conversation. The first
/// `copied` events, with their calls, belong to another conversation.
pub(super) fn plan(
    events: &[ConversationEvent],
    to: u64,
    copied: u64,
    entries: &[JournalEntry],
    roots: &HashMap<CallId, CallId>,
) -> UndoPlan {
    let known: HashSet<CallId> = calls(events).map(|(_, call)| call).collect();
    let counting: HashSet<u64> = counted(events).into_iter().map(|event| event.number).collect();
    let ends = |number: u64| number > to.max(copied) && counting.contains(&number);
    let ending: HashSet<CallId> = calls(events).filter(|(number, _)| ends(*number)).map(|(_, call)| call).collect();
    // The time of the last event to retain, in milliseconds, as in the ids of calls.
    let stays =
        events.iter().rfind(|event| event.number <= to).map_or(0, |event| event.at.0.max(0).unsigned_abs() / 1000);
    let is_meant = |entry: &JournalEntry| {
        let root = roots.get(&entry.call).copied().unwrap_or(entry.call);
        match known.contains(&root) {
            true => ending.contains(&root),
            // Its process was killed before it could record the end of the call.
            false => entry.reverts.is_none() && began(root) >= stays,
        }
    };
    let undone = undone(entries);
    let meant: Vec<&JournalEntry> = entries.iter().filter(|entry| is_meant(entry)).collect();
    let ids: HashSet<CallId> = meant.iter().map(|entry| entry.call).collect();
    let still_holds = |entry: &&JournalEntry| {
        let is_settled = undone.contains_key(&entry.call) || entry.is_note();
        // It reverts an entry that is undone as well: together the two change nothing.
        !is_settled && entry.reverts.is_none_or(|target| !ids.contains(&target))
    };
    let (mut chosen, mut left) = (Vec::new(), Vec::new());
    // The content of each file after the entries selected so far are undone.
    let mut files: HashMap<&Path, Option<ContentDigest>> = HashMap::new();
    for entry in meant.into_iter().filter(still_holds) {
        let changed = entry.changes.iter().rev().find(|change| {
            let after = change.after.map(|state| state.digest);
            let expected = files.insert(&change.path, change.before.map(|state| state.digest));
            expected.is_some_and(|expected| expected != after)
        });
        match changed.map(|change| change.path.display().to_string()) {
            None => chosen.push(entry.clone()),
            Some(path) => {
                let why = format!("`{path}` was changed outside of these calls before a later call changed it, too");
                left.push(SkippedCall { call: changing(entry), why });
            }
        }
    }
    UndoPlan { entries: chosen, left }
}

/// Returns the time in milliseconds at which a call began: its id is a version 7 UUID.
fn began(call: CallId) -> u64 {
    u64::try_from(call.0.as_u128() >> 80).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use toolstead_domain::{FileChange, FileState, Principal, Timestamp, ToolResultBlock, testing::samples};

    /// One event per word: `cN` is the end of call N, `<N` undoes back to event N, anything else is a prompt.
    fn events(story: &str) -> Vec<ConversationEvent> {
        let kind = |word: &str| match (word.strip_prefix('c'), word.strip_prefix('<')) {
            (Some(call), _) => ConversationEventKind::CallEnded {
                result: ToolResultBlock { id: "x".into(), name: "write".into(), content: Vec::new(), is_error: false },
                call: Some(samples::call_id(call.parse().unwrap())),
                record: Value::Null,
            },
            (_, Some(to)) => ConversationEventKind::TakenBack { to: to.parse().unwrap() },
            _ => ConversationEventKind::UserSaid { blocks: Vec::new() },
        };
        let at = |number: u64| Timestamp(samples::START.0 + i64::try_from(number).unwrap() * 1000);
        (1..)
            .zip(story.split_whitespace())
            .map(|(number, word)| ConversationEvent { number, at: at(number), kind: kind(word) })
            .collect()
    }

    /// The entry of a call: `5:a12` changed the file `a` from content 1 to 2 (0: no file); `7-5:a21` did so to undo 5.
    fn entry(text: &str) -> JournalEntry {
        let (call, changes) = text.split_once(':').unwrap();
        let (call, reverts) = call.split_once('-').map_or((call, None), |(call, reverts)| (call, Some(reverts)));
        let id = |number: &str| samples::call_id(number.parse().unwrap());
        let state = |digit: char| match digit {
            '0' => None,
            digit => Some(FileState { digest: ContentDigest([digit as u8; 32]), mode: 0o644 }),
        };
        let change = |text: &str| {
            let signs: Vec<char> = text.chars().collect();
            let path = format!("/w/{}", signs[0]).into();
            FileChange { path, before: state(signs[1]), after: state(signs[2]), made_folders: 0 }
        };
        JournalEntry {
            call: id(call),
            principal: Principal::local(),
            session: "s".into(),
            tool: "write".into(),
            at: samples::START,
            changes: changes.split(',').map(change).collect(),
            reverts: reverts.map(id),
        }
    }

    /// The journal is written oldest first; `nested` are pairs of a call and its parent.
    #[track_caller]
    fn check_with(
        story: &str,
        to: u64,
        copied: u64,
        journal: &str,
        nested: &[(u32, u32)],
        chosen: &[u32],
        left: &[u32],
    ) {
        let mut entries: Vec<JournalEntry> = journal.split_whitespace().map(entry).collect();
        entries.reverse();
        let mut roots: HashMap<CallId, CallId> = entries.iter().map(|entry| (entry.call, entry.call)).collect();
        roots.extend(nested.iter().map(|(call, root)| (samples::call_id(*call), samples::call_id(*root))));
        let plan = plan(&events(story), to, copied, &entries, &roots);
        let ids = |numbers: &[u32]| numbers.iter().map(|number| samples::call_id(*number)).collect::<Vec<_>>();
        assert_eq!(plan.entries.iter().map(|entry| entry.call).collect::<Vec<_>>(), ids(chosen), "{story}");
        assert_eq!(plan.left.iter().map(|left| left.call.call).collect::<Vec<_>>(), ids(left), "{story}");
    }

    #[track_caller]
    fn check(story: &str, to: u64, journal: &str, chosen: &[u32]) {
        check_with(story, to, 0, journal, &[], chosen, &[]);
    }

    #[test]
    fn changes_of_calls_after_the_event_are_undone_newest_first() {
        let (story, journal) = ("said c2 said c4 c5", "2:a01 4:a12 5:b01");
        check(story, 0, journal, &[5, 4, 2]);
        check(story, 2, journal, &[5, 4]);
        check(story, 4, journal, &[5]);
        check(story, 5, journal, &[]);
        // A call without changes is not in the journal.
        check("said c2 c3", 0, "3:a01", &[3]);
    }

    #[test]
    fn nested_calls_are_undone_together_with_their_parent_call() {
        check_with("said c2 c5", 2, 0, "3:a01 6:b01", &[(3, 2), (6, 5)], &[6], &[]);
        check_with("said c2 c5", 1, 0, "3:a01 6:b01", &[(3, 2), (6, 5)], &[6, 3], &[]);
    }

    #[test]
    fn changes_that_were_already_undone_are_not_undone_again() {
        // The calls that undo are not calls of the conversation.
        check("said c2 <1 said c5", 0, "2:a01 3-2:a10 5:b01", &[5]);
        // The process was killed between the change of the files and the event.
        check("said c2", 1, "2:a01 3-2:a10", &[]);
        // A call that was undone and left unchanged remains undone.
        check("said c2 <1 said c5", 0, "2:a01 5:b01", &[5]);
    }

    #[test]
    fn an_undo_that_the_model_made_is_undone_as_well() {
        // It reverted a change that remains.
        check("said c2 said c4", 2, "2:a01 4-2:a10", &[4]);
        // It reverted a change that is undone, too.
        check("said c2 c3", 1, "2:a01 3-2:a10", &[]);
        // And it redid the change.
        check("said c2 c3 c4", 1, "2:a01 3-2:a10 4-3:a01", &[2]);
    }

    #[test]
    fn a_call_without_a_recorded_end_is_ordered_by_its_start_time() {
        check("said c2 said", 2, "2:a01 5:b01", &[5]);
        check("said c3 said c9", 3, "2:b01 9:a01", &[9]);
    }

    #[test]
    fn calls_copied_from_another_conversation_are_not_undone() {
        check_with("said c2 said c4", 0, 3, "2:b01 4:a01", &[], &[4], &[]);
    }

    #[test]
    fn the_plan_reports_files_that_were_changed_outside_of_the_calls() {
        check_with("said c2 c3", 0, 0, "2:a01 3:a34", &[], &[3], &[2]);
        // Several steps of one call follow each other.
        check_with("said c2 c3", 0, 0, "2:a01,a12 3:a23,b01", &[], &[3, 2], &[]);
        check_with("said c2", 0, 0, "2:a01,a23", &[], &[], &[2]);
        check_with("said c2 c3", 0, 0, "2:a01 3:a10", &[], &[3, 2], &[]);
    }
}
