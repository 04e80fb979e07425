//! Appends text to a file.

use crate::builtin::{
    files::change_set::ChangeSet,
    text::{
        text_edit::lacking,
        text_encoding::{TextDetection, TextEncoding, detect},
    },
};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// New content of a file, with the appended text.
pub(crate) struct AppendedContent {
    pub(crate) content: Vec<u8>,
    /// Size of the file in bytes before the text was appended; `None` if there was no file.
    pub(crate) before: Option<usize>,
    /// Notes on line endings: the old last line had none, or the new text has others than the file.
    pub(crate) notes: Vec<String>,
}

/// Returns the content of the only file of `set` with `added` appended in the file's encoding. It writes nothing. The
/// old content may have at most `limit` bytes.
///
/// # Errors
/// `unsupported_type` when the file is not text, `invalid_input` for characters that its encoding lacks.
pub(crate) fn append_text(set: &ChangeSet<'_>, added: &str, limit: u64) -> Result<AppendedContent, ToolFailure> {
    let Some(before) = set.content(0, limit)? else {
        return Ok(AppendedContent { content: added.into(), before: None, notes: Vec::new() });
    };
    let encoding = match detect(&before, true) {
        TextDetection::Text(encoding) => encoding,
        TextDetection::Binary(what) => {
            let message = format!("`{}` is not text: it looks like {what}", set.shown(0));
            return Err(ToolFailure::new(ErrorKind::UnsupportedType, message).next("Nothing was changed."));
        }
    };
    let bytes = encoding.encode(added).map_err(|_| lacking(encoding, added))?;
    let notes = notes_on(&before, encoding, added);
    Ok(AppendedContent { content: [&before[..], &bytes].concat(), before: Some(before.len()), notes })
}

fn notes_on(before: &[u8], encoding: TextEncoding, added: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let (text, _) = encoding.decode(&before[encoding.mark_bytes()..]);
    if !text.is_empty() && !text.ends_with(['\n', '\r']) && !added.starts_with(['\n', '\r']) {
        notes.push("The last line had no line ending, so the new text continues that line.".into());
    }
    let crlf = |text: &str| text.contains("\r\n");
    let lf = |text: &str| text.replace("\r\n", "").contains('\n');
    if crlf(&text) && !lf(&text) && lf(added) {
        notes.push("The file's lines end in CRLF, and those of the new text in LF, as they were given.".into());
    }
    notes
}
