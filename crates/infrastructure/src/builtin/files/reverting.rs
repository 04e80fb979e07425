//! Reverts the file changes of a call: the common part of `undo` and `redo`.
//!
//! An undo is recorded as a change that names the call that it reverts, and can be undone itself. That is what `redo`
//! does.

mod history;
pub(crate) mod planned_reverts;
mod restoring;

use crate::{
    builtin::{
        files::{
            change_set::{ChangedFile, recording::ChangeRecorder},
            reverting::{
                history::{CallReference, ChangeHistory},
                restoring::{JournalEntryFile, JournalEntryRestoreOutcome, files_of, path_text, restore, untouched},
            },
            written_file::notes,
        },
        text::{
            text_encoding::{TextDetection, detect},
            unified_diff::unified_diff,
            wording::counted,
        },
        tool_kit::{answer::answer, tool_context::ToolContext, tool_environment::ToolEnvironment},
    },
    sandbox::workspace::granted_workspace::GrantedWorkspace,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use toolstead_domain::{
    Access, Availability, CallId, FileChange, JournalEntry, StoreError, ToolCall, ToolFailure, ToolResult,
    error_kind::ErrorKind,
};

/// Maximum number of a session's changes that are searched.
const LOOKED_THROUGH: usize = 1000;
/// Maximum number of calls or files that a message names.
const NAMED: usize = 5;
/// Maximum number of bytes of the diff that a message shows of each file's later changes.
const SHOWN_BYTES: usize = 1500;

/// Direction of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RevertDirection {
    Undo,
    Redo,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id of the call, from its result, or the beginning or the end of the id (8 digits or more). Without it
    /// the last one of this session is meant.
    #[schemars(extend("x-advertised" = "Its id."))]
    call: Option<String>,
    /// Change nothing, and show what would change.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The call whose changes were undone.
    call: String,
    /// The tool that it called.
    tool: String,
    /// `true` for `dry_run`: nothing was changed.
    dry_run: bool,
    files: Vec<RevertedFile>,
    /// The changes as a unified diff; absent if too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct RevertedFile {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    action: FileRevertAction,
}

/// The change of a file.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FileRevertAction {
    Restored,
    Deleted,
    BroughtBack,
    Unchanged,
}

impl RevertDirection {
    fn verb(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    /// Returns the first words of the result: "Undid" or "Redid", and for a dry run "Would undo" or "Would redo".
    fn done(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Undo, false) => "Undid",
            (Self::Undo, true) => "Would undo",
            (Self::Redo, false) => "Redid",
            (Self::Redo, true) => "Would redo",
        }
    }

    /// Returns the opposite direction.
    fn opposite(self) -> Self {
        match self {
            Self::Undo => Self::Redo,
            Self::Redo => Self::Undo,
        }
    }
}

/// Returns the availability: nothing can be reverted without a journal.
pub(crate) fn availability(world: &ToolEnvironment) -> Availability {
    match world.files().journal().keeps() {
        true => Availability::Available,
        false => Availability::Unavailable("no journal of file changes is stored".into()),
    }
}

/// Selects the journal entry to revert, stores it for the run of the call, and returns the accesses to the entry's
/// files.
pub(crate) async fn accesses(
    direction: RevertDirection,
    input: &Input,
    call: &ToolCall,
    world: &ToolEnvironment,
) -> Result<Vec<Access>, ToolFailure> {
    let (entry, _) = select_entry(direction, input, call, world).await?;
    world.files().planned_reverts().insert(call.id, entry.call);
    let mut accesses = Vec::new();
    for file in files_of(&entry) {
        let path = world.access(path_text(&file.path)?).await?;
        accesses.extend([Access::ReadPath(path.clone()), Access::WritePath(path)]);
    }
    Ok(accesses)
}

/// Undoes or redoes a call.
pub(crate) async fn run(
    direction: RevertDirection,
    input: &Input,
    run: &ToolContext<'_>,
) -> Result<ToolResult, ToolFailure> {
    let world = run.environment();
    let (entry, history) = load_planned_entry(run.call(), world).await?;
    let mut files = files_of(&entry);
    for file in &mut files {
        if let Some(before) = file.before {
            file.content = world.files().journal().content(before.digest).await.map_err(unreadable)?;
        }
    }
    let (recording, limit) = (ChangeRecorder::of(run).reverting(entry.call), world.files().limits().result_bytes);
    let (restored, dry_run, changed_nothing) = (files.clone(), input.dry_run, entry.is_note());
    let work = move |granted: &GrantedWorkspace| match changed_nothing {
        // Later changes of the files do not matter, because the call changed nothing.
        true => Ok(untouched(granted, &restored)),
        false => restore(granted, restored, &recording, limit, dry_run),
    };
    match run.on_files(work).await? {
        JournalEntryRestoreOutcome::Done(done) => {
            if !dry_run && done.iter().all(|(_, changed)| changed.is_none()) {
                record_unchanged(&entry, &files, run).await?;
            }
            format_result(direction, &entry, done, dry_run, run.call().id)
        }
        JournalEntryRestoreOutcome::Stale(stale) => {
            Err(stale_files_failure(&entry, &history, &files, stale, world).await?)
        }
    }
}

/// Returns the journal entry that was selected when the call was decided, and the session's current changes. Fails if
/// the entry has been undone since.
async fn load_planned_entry(
    call: &ToolCall,
    world: &ToolEnvironment,
) -> Result<(JournalEntry, ChangeHistory), ToolFailure> {
    let stale_failure =
        |message: String| ToolFailure::new(ErrorKind::StaleFile, message).next("Nothing was changed; call again.");
    let entry = world
        .files()
        .planned_reverts()
        .take(call.id)
        .ok_or_else(|| stale_failure("the change that this call was checked for is no longer known".into()))?;
    let entries =
        world.files().journal().of_session(&call.principal, &call.session, LOOKED_THROUGH).await.map_err(unreadable)?;
    let history = ChangeHistory { entries, foreign_entries: Vec::new() };
    if let Some(by) = history.undone().get(&entry) {
        return Err(stale_failure(format!("the call {entry} has been undone meanwhile by the call {by}")));
    }
    let found = world.files().journal().find(&call.principal, entry).await.map_err(unreadable)?;
    Ok((found.ok_or_else(|| unknown(&entry.to_string(), &history))?, history))
}

/// Returns the journal entry to revert, and the session's changes before the call.
async fn select_entry(
    direction: RevertDirection,
    input: &Input,
    call: &ToolCall,
    world: &ToolEnvironment,
) -> Result<(JournalEntry, ChangeHistory), ToolFailure> {
    let mut entries =
        world.files().journal().of_session(&call.principal, &call.session, LOOKED_THROUGH).await.map_err(unreadable)?;
    // Excludes calls that began later, because the caller cannot have meant them. Ids sort by the start of calls. A
    // note that a change was not made may be recorded at any time.
    entries.retain(|entry| entry.call.0 < call.id.0 || (entry.reverts.is_some() && entry.is_note()));
    let mut history = ChangeHistory { entries, foreign_entries: Vec::new() };
    let entry = match (&input.call, direction) {
        (None, RevertDirection::Undo) => {
            history.last_change().cloned().ok_or_else(|| nothing_to_revert(direction, &history))?
        }
        (None, RevertDirection::Redo) => {
            history.last_undo().cloned().ok_or_else(|| nothing_to_revert(direction, &history))?
        }
        (Some(text), _) => {
            let named = find_named_entry(text, call, world, &history).await?;
            let mut target = named.reverts;
            while let Some(id) = target.filter(|_| history.foreign_entries.len() < LOOKED_THROUGH) {
                let Some(other) = world.files().journal().find(&call.principal, id).await.map_err(unreadable)? else {
                    break;
                };
                target = other.reverts;
                history.foreign_entries.push(other);
            }
            let undone = history.undone();
            match (undone.get(&named.call), direction) {
                (None, RevertDirection::Undo) => named,
                (None, RevertDirection::Redo) if history.is_undo(&named) => named,
                (Some(undo), RevertDirection::Redo) => {
                    let undo = history.entries.iter().find(|entry| entry.call == *undo);
                    undo.cloned().ok_or_else(|| nothing_to_revert(direction, &history))?
                }
                (Some(undo), RevertDirection::Undo) => {
                    let message = format!("the call {} is already undone, by the call {undo}", named.call);
                    return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
                        .next("To redo it, use `redo` with the same id."));
                }
                (None, RevertDirection::Redo) => {
                    let message = format!("the call {} is not undone, so there is nothing to redo", named.call);
                    return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
                        .next("To undo it, use `undo` with the same id."));
                }
            }
        }
    };
    Ok((entry, history))
}

async fn find_named_entry(
    text: &str,
    call: &ToolCall,
    world: &ToolEnvironment,
    history: &ChangeHistory,
) -> Result<JournalEntry, ToolFailure> {
    match CallReference::parse(text) {
        None => {
            let shown: String = text.chars().take(40).collect();
            let message = format!("`{}` is not a valid id of a call", shown.escape_debug());
            Err(ToolFailure::new(ErrorKind::InvalidInput, message).next(format!(
                "An id has 32 hexadecimal digits, of which the first or the last 8 or more are enough.{}",
                list_recent_changes(history)
            )))
        }
        Some(CallReference::Whole(id)) => {
            let found = world.files().journal().find(&call.principal, id).await.map_err(unreadable)?;
            found.ok_or_else(|| unknown(&id.to_string(), history))
        }
        Some(CallReference::Part(digits)) => match &history.named(&digits)[..] {
            [] => Err(unknown(&digits, history)),
            [only] => Ok((*only).clone()),
            several => {
                let ids: Vec<String> = several.iter().take(NAMED).map(|entry| describe_entry(entry)).collect();
                let message = format!("the ids of {} begin or end with `{digits}`", counted(several.len(), "call"));
                Err(ToolFailure::new(ErrorKind::AmbiguousMatch, message)
                    .next(format!("Give more digits:\n{}", ids.join("\n"))))
            }
        },
    }
}

fn unreadable(error: StoreError) -> ToolFailure {
    ToolFailure::new(ErrorKind::Io, "the journal of changes could not be read").caused_by(error)
}

fn unknown(id: &str, history: &ChangeHistory) -> ToolFailure {
    let message = format!(
        "no change by the call `{id}` is known: it changed no file, the change is too old, or another principal made it"
    );
    ToolFailure::new(ErrorKind::NotFound, message).next(list_recent_changes(history).trim_start())
}

fn nothing_to_revert(direction: RevertDirection, history: &ChangeHistory) -> ToolFailure {
    let message = match direction {
        RevertDirection::Undo if history.entries.is_empty() => {
            "this session has changed no files, so there is nothing to undo"
        }
        RevertDirection::Undo => "all changes of this session are already undone",
        RevertDirection::Redo => "nothing in this session is undone, so there is nothing to redo",
    };
    let next = match direction {
        RevertDirection::Undo => "The changes of another session are undone by the id of the call: give it as `call`.",
        RevertDirection::Redo => "Use `undo` first.",
    };
    ToolFailure::new(ErrorKind::NotFound, message).next(next)
}

/// Returns the last changes of the session as text, for a message about an invalid or unknown id of a call.
fn list_recent_changes(history: &ChangeHistory) -> String {
    if history.entries.is_empty() {
        return " This session has changed no files.".into();
    }
    let last: Vec<String> = history.entries.iter().take(NAMED).map(describe_entry).collect();
    format!(" The last changes of this session, newest first:\n{}", last.join("\n"))
}

/// Returns an entry on one line.
fn describe_entry(entry: &JournalEntry) -> String {
    let names: Vec<String> = entry
        .changes
        .iter()
        .filter_map(|change| Some(change.path.file_name()?.to_string_lossy().escape_debug().to_string()))
        .take(3)
        .collect();
    let more = if entry.changes.len() > names.len() { ", …" } else { "" };
    let nothing = if entry.is_note() { ", changed nothing" } else { "" };
    format!("{} {} ({}{more}{nothing})", entry.call, entry.tool, names.join(", "))
}

/// Records an undo that had nothing to do, so that the next one selects the change before.
async fn record_unchanged(
    entry: &JournalEntry,
    files: &[JournalEntryFile],
    run: &ToolContext<'_>,
) -> Result<(), ToolFailure> {
    let change = |file: &JournalEntryFile| FileChange {
        path: file.path.clone(),
        before: file.before,
        after: file.before,
        made_folders: 0,
    };
    let note = JournalEntry {
        call: run.call().id,
        principal: run.call().principal.clone(),
        session: run.call().session.to_string(),
        tool: run.call().tool.name().to_string(),
        at: run.environment().now(),
        changes: files.iter().map(change).collect(),
        reverts: Some(entry.call),
    };
    run.environment().files().journal().record(note, Vec::new()).await.map_err(|error| {
        ToolFailure::new(ErrorKind::Io, "the journal of changes could not be written").caused_by(error)
    })
}

fn format_result(
    direction: RevertDirection,
    entry: &JournalEntry,
    done: Vec<(String, Option<ChangedFile>)>,
    dry_run: bool,
    this: CallId,
) -> Result<ToolResult, ToolFailure> {
    let changes = done.iter().filter(|(_, changed)| changed.is_some()).count();
    let mut text = match changes {
        0 if entry.is_note() => {
            let next = match direction == RevertDirection::Undo && !dry_run {
                true => " Another `undo` without an id undoes the change before it.",
                false => "",
            };
            format!("Nothing to {}: the call {} changed nothing.{next}", direction.verb(), entry.call)
        }
        0 => format!(
            "Nothing to {}: the files already have their content from before the call {}.",
            direction.verb(),
            entry.call
        ),
        _ => format!("{} `{}`, the call {}:", direction.done(dry_run), entry.tool, entry.call),
    };
    let (mut diff, mut files) = (String::new(), Vec::new());
    for (path, changed) in done {
        let action = action(changed.as_ref());
        let what = match action {
            FileRevertAction::Restored => "has its former content again",
            FileRevertAction::Deleted => "is deleted again",
            FileRevertAction::BroughtBack => "is restored",
            FileRevertAction::Unchanged => "was already in that state",
        };
        if changes > 0 {
            text.push_str(&format!("\n`{path}` {what}"));
            for note in changed.iter().flat_map(notes) {
                text.push_str(&format!(". {}", note.trim_end_matches('.')));
            }
        }
        if let Some(changed) = &changed {
            let (old, new) = (text_of(changed.old.as_deref()), text_of(changed.new.as_deref()));
            diff.push_str(&old.zip(new).and_then(|(old, new)| unified_diff(&path, &old, &new)).unwrap_or_default());
        }
        files.push(RevertedFile { path, action });
    }
    if dry_run && !diff.is_empty() {
        text.push_str(&format!("\n{diff}"));
    }
    if !dry_run && changes > 0 {
        text.push_str(&format!("\nTo revert this: `{}` with the call {this}.", direction.opposite().verb()));
    }
    let diff = (!diff.is_empty()).then_some(diff);
    answer(text.trim_end(), &Output { call: entry.call.to_string(), tool: entry.tool.clone(), dry_run, files, diff })
}

fn action(changed: Option<&ChangedFile>) -> FileRevertAction {
    match changed.map(|changed| (changed.before.is_some(), changed.after.is_some())) {
        None | Some((false, false)) => FileRevertAction::Unchanged,
        Some((true, true)) => FileRevertAction::Restored,
        Some((true, false)) => FileRevertAction::Deleted,
        Some((false, true)) => FileRevertAction::BroughtBack,
    }
}

/// Returns a content as text, for a diff; an empty text if there is no file, `None` if the content is not text.
fn text_of(content: Option<&[u8]>) -> Option<String> {
    let Some(content) = content else { return Some(String::new()) };
    match detect(content, true) {
        TextDetection::Text(encoding) => Some(encoding.decode(&content[encoding.mark_bytes()..]).0.into_owned()),
        TextDetection::Binary(_) => None,
    }
}

/// Returns the failure for files that have changed since the call that is to be reverted: their changes, and the calls
/// that made them.
async fn stale_files_failure(
    entry: &JournalEntry,
    history: &ChangeHistory,
    files: &[JournalEntryFile],
    stale: Vec<(String, usize, Option<Vec<u8>>)>,
    world: &ToolEnvironment,
) -> Result<ToolFailure, ToolFailure> {
    let mut message = format!("the call {} cannot be undone, because files have changed since:\n", entry.call);
    for (shown, index, now) in stale.iter().take(NAMED) {
        let left = files[*index].after;
        let since = match (left, now) {
            (Some(_), None) => "it was deleted, or is too large".to_owned(),
            (None, _) => "it exists again".to_owned(),
            (Some(left), Some(now)) => {
                let then = world.files().journal().content(left.digest).await.map_err(unreadable)?;
                let texts = text_of(then.as_deref()).filter(|_| then.is_some()).zip(text_of(Some(now)));
                let diff = texts.and_then(|(then, now)| unified_diff(shown, &then, &now));
                diff.map_or_else(|| "its content differs".into(), |diff| format!("since then:\n{}", beginning(&diff)))
            }
        };
        message.push_str(&format!("`{shown}`: {}\n", since.trim_end()));
    }
    if stale.len() > NAMED {
        message.push_str(&format!("… and {} more\n", counted(stale.len() - NAMED, "file")));
    }
    let paths: HashSet<_> = stale.iter().map(|(_, index, _)| &files[*index].path).collect();
    let undone = history.undone();
    let later: Vec<String> = history
        .entries
        .iter()
        .take_while(|other| other.call != entry.call)
        .filter(|other| {
            !undone.contains_key(&other.call) && other.changes.iter().any(|change| paths.contains(&change.path))
        })
        .take(NAMED)
        .map(describe_entry)
        .collect();
    let next = match later.is_empty() {
        false => {
            format!("Nothing was changed. Revert the later calls first, newest first:\n{}", later.join("\n"))
        }
        true => {
            "Nothing was changed. Changes from outside this session are the reason: read the files, and revert the \
             rest with `edit_file`."
                .to_owned()
        }
    };
    Ok(ToolFailure::new(ErrorKind::StaleFile, message).next(next))
}

fn beginning(diff: &str) -> String {
    if diff.len() <= SHOWN_BYTES {
        return diff.to_owned();
    }
    let end = diff[..diff.floor_char_boundary(SHOWN_BYTES)].rfind('\n').unwrap_or(0);
    format!("{}\n… [{} more lines]", &diff[..end], diff[end..].lines().count().saturating_sub(1))
}

#[cfg(test)]
mod tests;
