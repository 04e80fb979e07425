//! Restores files to the state before a call.

use crate::{
    builtin::files::{
        change_set::{ChangeSet, ChangedFile, recording::ChangeRecorder},
        etag::digest_of,
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, write::WriteOptions},
};
use std::{collections::HashSet, path::PathBuf};
use toolstead_domain::{ContentDigest, FileState, JournalEntry, ToolFailure, error_kind::ErrorKind};

/// One file of an entry, whatever the number of steps in which the call changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalEntryFile {
    /// Real path.
    pub(super) path: PathBuf,
    /// State before the call; `None`: no file.
    pub(super) before: Option<FileState>,
    /// State after the call; `None`: no file.
    pub(super) after: Option<FileState>,
    /// All contents during the call, including the first and the last; `None`: no file. A crash may have left any of
    /// them.
    on_the_way: HashSet<Option<ContentDigest>>,
    /// Number of folders above the file that the call created.
    made_folders: usize,
    /// Content before the call, if it is stored.
    pub(super) content: Option<Vec<u8>>,
}

/// Result of restoring.
#[derive(Debug)]
pub(super) enum JournalEntryRestoreOutcome {
    /// Shown path of each file with its change, in the order of the given files; `None` if the file already had the
    /// state.
    Done(Vec<(String, Option<ChangedFile>)>),
    /// Nothing was changed, because these files have a content that they did not have during the call: the shown path, the index, and the
    /// current content; `None` if the file is gone, or too large.
    Stale(Vec<(String, usize, Option<Vec<u8>>)>),
}

/// Returns the files of an entry, the last one first, without their contents.
pub(super) fn files_of(entry: &JournalEntry) -> Vec<JournalEntryFile> {
    let mut files: Vec<JournalEntryFile> = Vec::new();
    for change in &entry.changes {
        let states = [change.before, change.after].map(|state| state.map(|state| state.digest));
        match files.iter_mut().find(|file| file.path == change.path) {
            Some(file) => {
                file.after = change.after;
                file.made_folders = file.made_folders.max(change.made_folders);
                file.on_the_way.extend(states);
            }
            None => files.push(JournalEntryFile {
                path: change.path.clone(),
                before: change.before,
                after: change.after,
                on_the_way: states.into(),
                made_folders: change.made_folders,
                content: None,
            }),
        }
    }
    files.reverse();
    files
}

/// Restores all files to their state before the call, or none: if a file is not as the call left it, it changes nothing
/// and returns [`JournalEntryRestoreOutcome::Stale`]. With `dry_run` it also changes nothing.
pub(super) fn restore(
    granted: &GrantedWorkspace,
    files: Vec<JournalEntryFile>,
    recording: &ChangeRecorder,
    limit: u64,
    dry_run: bool,
) -> Result<JournalEntryRestoreOutcome, ToolFailure> {
    let paths: Vec<&str> = files.iter().map(|file| path_text(&file.path)).collect::<Result<_, _>>()?;
    let mut set = ChangeSet::take(granted, &paths)?;
    let shown: Vec<String> = (0..files.len()).map(|index| set.shown(index).to_owned()).collect();
    let mut stale = Vec::new();
    let mut is_planned = Vec::new();
    for (index, file) in files.into_iter().enumerate() {
        let now = match set.content(index, limit) {
            Ok(now) => now.map(|content| content.into_owned()),
            // The content after the call was small enough to be stored.
            Err(failure) if failure.kind == ErrorKind::TooLarge => {
                stale.push((shown[index].clone(), index, None));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let digest = now.as_deref().map(digest_of);
        if set.path(index).real != file.path || !file.on_the_way.contains(&digest) {
            stale.push((shown[index].clone(), index, now));
            continue;
        }
        is_planned.push(plan(&mut set, index, file, now)?);
    }
    if !stale.is_empty() {
        return Ok(JournalEntryRestoreOutcome::Stale(stale));
    }
    let mut changed = set.commit(recording, dry_run)?.into_iter();
    let done = shown.into_iter().zip(is_planned).map(|(shown, is_planned)| {
        let changed = if is_planned { changed.next() } else { None };
        (shown, changed.filter(|changed| changed.before != changed.after))
    });
    Ok(JournalEntryRestoreOutcome::Done(done.collect()))
}

/// Returns the result for a call that changed nothing.
pub(super) fn untouched(granted: &GrantedWorkspace, files: &[JournalEntryFile]) -> JournalEntryRestoreOutcome {
    JournalEntryRestoreOutcome::Done(files.iter().map(|file| (granted.workspace().shown(&file.path), None)).collect())
}

/// Plans the change that restores the file; `false` if the file is already gone as required.
fn plan(
    set: &mut ChangeSet<'_>,
    index: usize,
    file: JournalEntryFile,
    now: Option<Vec<u8>>,
) -> Result<bool, ToolFailure> {
    let Some(before) = file.before else {
        if now.is_some() {
            set.delete_with_folders(index, file.made_folders);
        }
        return Ok(now.is_some());
    };
    // Permission bits that the call did not change keep their current value.
    let mode_was_kept = now.is_some() && file.after.is_none_or(|after| after.mode == before.mode);
    let mode = (!mode_was_kept).then_some(before.mode);
    let is_there = now.as_deref().map(digest_of) == Some(before.digest);
    let Some(content) = now.filter(|_| is_there).or(file.content) else {
        let message = format!("what `{}` contained before is no longer stored", set.shown(index));
        return Err(ToolFailure::new(ErrorKind::NotFound, message).next("Nothing was changed."));
    };
    set.put(index, content, WriteOptions { create_folders: true, overwrite: true, mode });
    Ok(true)
}

/// Returns the path as an argument of tools.
pub(super) fn path_text(path: &std::path::Path) -> Result<&str, ToolFailure> {
    path.to_str().ok_or_else(|| {
        let message = format!("the name of `{}` is not valid UTF-8, and cannot be used", path.display());
        ToolFailure::new(ErrorKind::UnsupportedType, message)
    })
}
