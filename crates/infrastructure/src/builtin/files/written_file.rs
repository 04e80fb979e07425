//! Messages about changed files that all writing tools share.

use crate::{
    builtin::{
        files::{change_set::ChangedFile, etag::etag},
        text::{
            text_encoding::{TextDetection, detect},
            unified_diff::{one_line, unified_diff, whole_diff},
            wording::counted,
        },
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, write::WriteOptions},
};
use std::borrow::Cow;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind, ports::tool_provider::CONTENT_NOT_SHOWN};

/// Options of an edit.
pub(crate) const EDIT: WriteOptions = WriteOptions { create_folders: true, overwrite: true, mode: None };

/// Returns the one file of a set of one.
///
/// # Errors
/// `internal` if the set is empty: a fault of Toolstead.
pub(crate) fn only(changed: Vec<ChangedFile>) -> Result<ChangedFile, ToolFailure> {
    changed
        .into_iter()
        .next()
        .ok_or_else(|| ToolFailure::new(ErrorKind::Internal, "nothing was written: this is a fault of Toolstead"))
}

/// Returns the failure for a missing file. It looks the path up as a reader does, so that the message names similar
/// paths.
pub(crate) fn missing(files: &GrantedWorkspace, path: &str) -> ToolFailure {
    match files.find(path) {
        Err(error) => error.into(),
        Ok(_) => ToolFailure::new(ErrorKind::StaleFile, format!("`{path}` appeared just now")).next("Try again."),
    }
}

/// Returns the etag of the new content; empty for a deleted file.
pub(crate) fn etag_of(changed: &ChangedFile) -> String {
    changed.after.as_ref().map(|state| etag(&state.digest)).unwrap_or_default()
}

/// Returns the change of a file as a diff for the user; `None` if it cannot be shown, as for a new, deleted or binary
/// file. The diff of a dry run is complete, because the approver sees nothing else: it also shows new files, and
/// mentions content that cannot be shown.
pub(crate) fn diff_of(changed: &ChangedFile, dry_run: bool) -> Option<String> {
    let compare = if dry_run { whole_diff } else { unified_diff };
    let diff = lines_of(changed, compare);
    if !dry_run || diff.is_some() || !changed.is_change() {
        return diff;
    }
    let new = changed.new.as_deref().unwrap_or_default();
    let whole = text_of(new).filter(|_| changed.before.is_none());
    let whole = whole.and_then(|text| whole_diff(&changed.shown, "", &text));
    let name = one_line(&changed.shown);
    whole.or_else(|| Some(format!("b/{name}: {}, {CONTENT_NOT_SHOWN}\n", counted(new.len(), "byte"))))
}

/// Compares the old with the new text by `compare`, in lines with their real endings, so that a change of the endings
/// is visible; `None` if either is missing or is not text.
fn lines_of(changed: &ChangedFile, compare: fn(&str, &str, &str) -> Option<String>) -> Option<String> {
    let (old, new) = (text_of(changed.old.as_deref()?)?, text_of(changed.new.as_deref()?)?);
    match !old.contains('\n') && old.contains('\r') {
        true => compare(&changed.shown, &old.replace('\r', "\n"), &new.replace('\r', "\n")),
        false => compare(&changed.shown, &old, &new),
    }
}

/// Returns the text of a file, if it is valid text.
pub(crate) fn text_of(bytes: &[u8]) -> Option<String> {
    match detect(bytes, true) {
        TextDetection::Text(encoding) => encoding.decode_exactly(&bytes[encoding.mark_bytes()..]).map(Cow::into_owned),
        TextDetection::Binary(_) => None,
    }
}

/// Returns notes on side effects of a change: other hard links, a lost owner or group, and a failed sync to the disk.
pub(crate) fn notes(changed: &ChangedFile) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(written) = &changed.written {
        if written.other_links > 0 {
            let names = match written.other_links {
                1 => "1 other name (hard link), which still holds the old content".to_owned(),
                more => format!("{more} other names (hard links), which still hold the old content"),
            };
            notes.push(format!("The file had {names}."));
        }
        if written.rights.owner_changed {
            notes.push("The file belonged to another user and now belongs to this one.".into());
        }
        if written.rights.group_changed {
            let note = "Its group or access list could not be preserved: the access that they granted is lost.";
            notes.push(note.into());
        }
    }
    if let Some(error) = &changed.unsafe_because {
        notes.push(format!(
            "The change is made, but syncing it to the disk failed ({error}): a power failure may undo it."
        ));
    }
    notes
}

/// Returns the note for an edit in a file that another program has changed in other places.
pub(crate) fn changed_elsewhere(path: &str) -> String {
    format!(
        "`{path}` has changed since you read it; the text to replace was unchanged, so the \
         edit was applied. Read the file again before you rely on its other parts."
    )
}

/// Adds to a failure to find text that the file has changed since it was read, and makes it `stale_file`; returns other
/// failures unchanged.
pub(crate) fn stale(failure: ToolFailure, path: &str) -> ToolFailure {
    match failure.kind {
        ErrorKind::NoMatch | ErrorKind::AmbiguousMatch => {
            let message = format!("`{path}` has changed since you read it: {}", failure.message);
            ToolFailure { kind: ErrorKind::StaleFile, message, ..failure }
                .next("Nothing was changed; read the file again, and repeat the edit.")
        }
        _ => failure,
    }
}
