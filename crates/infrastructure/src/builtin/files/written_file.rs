//! What all writing tools say of a file that they changed.

use crate::{
    builtin::{
        files::{change_set::Changed, etag::etag},
        text::{
            text_encoding::{Detected, detect},
            unified_diff::{one_line, unified_diff, whole_diff},
            wording::counted,
        },
    },
    sandbox::workspace::{granted::GrantedWorkspace, write::WriteOptions},
};
use std::borrow::Cow;
use toolstead_domain::{error_kind::ErrorKind, ports::tool_provider::CONTENT_NOT_SHOWN, tool_failure::ToolFailure};

/// How an edit writes.
pub(crate) const EDIT: WriteOptions = WriteOptions { create_folders: true, overwrite: true, mode: None };

/// The one file of a set of one.
///
/// # Errors
/// A fault of ours, if there is none.
pub(crate) fn only(changed: Vec<Changed>) -> Result<Changed, ToolFailure> {
    changed
        .into_iter()
        .next()
        .ok_or_else(|| ToolFailure::new(ErrorKind::Internal, "nothing was written: this is a fault of Toolstead"))
}

/// Why there is no file of that path: looked for as a reader does, so that the answer names what is near.
pub(crate) fn missing(files: &GrantedWorkspace, path: &str) -> ToolFailure {
    match files.find(path) {
        Err(error) => error.into(),
        Ok(_) => ToolFailure::new(ErrorKind::StaleFile, format!("`{path}` appeared just now")).next("Try again."),
    }
}

/// Stands for the new content; empty for a file that is gone.
pub(crate) fn etag_of(changed: &Changed) -> String {
    changed.after.as_ref().map(|state| etag(&state.digest)).unwrap_or_default()
}

/// What changed, for the person. Of a dry run everything: whoever is asked about the call sees that alone, so a new file
/// stands there as well, and of a change that is no diff is said that it is not shown.
pub(crate) fn diff_of(changed: &Changed, dry_run: bool) -> Option<String> {
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

/// The change by lines with their real endings, so that a change of these shows.
fn lines_of(changed: &Changed, compare: fn(&str, &str, &str) -> Option<String>) -> Option<String> {
    let (old, new) = (text_of(changed.old.as_deref()?)?, text_of(changed.new.as_deref()?)?);
    match !old.contains('\n') && old.contains('\r') {
        true => compare(&changed.shown, &old.replace('\r', "\n"), &new.replace('\r', "\n")),
        false => compare(&changed.shown, &old, &new),
    }
}

/// The text of a file, as far as it is one.
pub(crate) fn text_of(bytes: &[u8]) -> Option<String> {
    match detect(bytes, true) {
        Detected::Text(encoding) => encoding.decode_exactly(&bytes[encoding.mark_bytes()..]).map(Cow::into_owned),
        Detected::Binary(_) => None,
    }
}

/// What is not as one might expect of a change.
pub(crate) fn notes(changed: &Changed) -> Vec<String> {
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
            notes.push("The file belonged to somebody else, and belongs to this user now.".into());
        }
        if written.rights.group_changed {
            let note = "Its group or access list could not be kept: what they allowed is not allowed any more.";
            notes.push(note.into());
        }
    }
    if let Some(error) = &changed.unsafe_because {
        notes
            .push(format!("The change is made; that a power failure cannot undo it could not be made sure ({error})."));
    }
    notes
}

/// What to say of an edit in a file that somebody else changed elsewhere.
pub(crate) fn changed_elsewhere(path: &str) -> String {
    format!(
        "`{path}` was changed by somebody else since you read it; the text to replace stood there unchanged, so the \
         edit was applied. Read the file again before you rely on its other parts."
    )
}

/// A failure to find text in a file that changed since it was read: that is why.
pub(crate) fn stale(failure: ToolFailure, path: &str) -> ToolFailure {
    match failure.kind {
        ErrorKind::NoMatch | ErrorKind::AmbiguousMatch => {
            let message = format!("`{path}` was changed by somebody else since you read it: {}", failure.message);
            ToolFailure { kind: ErrorKind::StaleFile, message, ..failure }
                .next("Nothing was changed; read the file again, and make the edit anew.")
        }
        _ => failure,
    }
}
