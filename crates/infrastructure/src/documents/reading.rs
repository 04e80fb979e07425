//! Reads documents in a child process, the runtime's side.

use crate::{
    documents::{
        DocumentParseOptions, DocumentReply, HELPER,
        document_error::DocumentError,
        document_limits::DocumentLimits,
        pdf,
        rendering::{DocumentRenderOptions, RenderedDocument, render},
        selection::PartSelection,
    },
    helper_port::{HelperCall, HelperError, HelperLimits, HelperPort, counted_seconds},
    sandbox::helper::HelperLauncher,
};
use std::{fmt, time::Instant};
use toolstead_domain::{StoredContent, Suggestion, ToolFailure, error_kind::ErrorKind};

/// Maximum number of bytes of the child process's answer: the document's text as JSON.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// A document to read from its beginning.
pub struct DocumentSource {
    /// Content in bytes.
    pub content: Box<dyn StoredContent>,
    /// Path as a model knows it.
    pub path: String,
    /// Size in bytes, as far as it is known.
    pub size_bytes: u64,
}

impl fmt::Debug for DocumentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentSource").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Requested parts of a document.
#[derive(Debug, Default)]
pub struct DocumentRange {
    /// Pages, sheets, slides or cells, like "3", "1-5" or "2,4-6".
    pub pages: Option<String>,
    /// First line of the text of these parts, from 1; a negative number counts from the end.
    pub offset: i64,
    /// Maximum number of lines.
    pub limit: u64,
}

/// Returns `true` if a file is a document, by its beginning. The content of a zip archive or JSON file is fully known
/// only after it is read, so the name counts, too.
pub fn is_document(beginning: &[u8], path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    let has = |word: &[u8]| beginning.windows(word.len()).any(|window| window == word);
    match beginning {
        [b'P', b'K', 3, 4, ..] => {
            let is_open_document =
                beginning.get(30..).is_some_and(|rest| rest.starts_with(b"mimetypeapplication/vnd.oasis"));
            is_open_document || has(b"[Content_Types].xml") || ["docx", "xlsx", "pptx"].contains(&extension.as_str())
        }
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ..] => {
            ["doc", "xls", "ppt", "docx", "xlsx", "pptx"].contains(&extension.as_str())
        }
        _ if pdf::is_pdf(beginning) => true,
        _ => extension == "ipynb" && beginning.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{'),
    }
}

/// Reads documents for one call.
#[derive(Debug, Clone, Copy)]
pub struct DocumentReader<'a> {
    /// Launcher of the processes that parse the documents.
    pub helpers: &'a HelperLauncher,
    /// Limits of each document.
    pub limits: &'a DocumentLimits,
    /// Deadline of the call.
    pub deadline: Instant,
    /// Maximum number of characters of the result, with its notes.
    pub output_characters: usize,
}

impl DocumentReader<'_> {
    /// Reads the requested part of a document in a child process, and renders it for a model.
    ///
    /// # Errors
    /// A failure for the model: a fault of the document or of the request, or of the child process. The document cannot
    /// harm this process, whatever it does to the child.
    pub async fn read(&self, source: DocumentSource, request: &DocumentRange) -> Result<RenderedDocument, ToolFailure> {
        let limits = self.limits;
        let path = source.path;
        let refused = |error: &DocumentError| {
            ToolFailure::new(error.kind(), format!("`{path}` cannot be read: {error}")).next(error.next())
        };
        if source.size_bytes > limits.document_bytes {
            let (size, most) = (source.size_bytes, limits.document_bytes);
            let message = format!("`{path}` has {size} bytes, and documents are read up to {most}");
            return Err(ToolFailure::new(ErrorKind::TooLarge, message)
                .next("Ask for a shorter copy.")
                .suggest(Suggestion::ChangeSettings("`document_bytes` in `[files]` sets the limit".into())));
        }
        let pages = request.pages.as_deref().map(PartSelection::parse).transpose().map_err(|error| refused(&error))?;
        let order = DocumentParseOptions { pages, limits: limits.clone() };
        let call = HelperCall {
            name: HELPER,
            order: HelperCall::order_of(&order).map_err(|error| failed(&path, error))?,
            input: source.content,
            // One more, so that a file that grew is detected.
            input_bytes: limits.document_bytes + 1,
            answer_bytes: MAX_ANSWER_BYTES,
            bounds: HelperLimits { seconds: limits.document_seconds, memory_bytes: limits.document_memory_bytes },
            deadline: Some(self.deadline),
        };
        let answer = self.helpers.call(call).await.map_err(|error| failed(&path, error))?;
        let window = DocumentRenderOptions {
            offset: request.offset,
            limit: request.limit,
            is_selected: order.pages.is_some(),
            characters: room(self.output_characters),
        };
        // The JSON may have megabytes.
        let read = tokio::task::spawn_blocking(move || {
            Ok::<_, serde_json::Error>(match serde_json::from_slice(&answer)? {
                DocumentReply::Document(document) => Ok(render(&document, &window)),
                DocumentReply::Refused(error) => Err(error),
            })
        });
        let read = read.await.map_err(|ended| {
            ToolFailure::new(ErrorKind::Internal, format!("`{path}` cannot be read: the reader ended")).caused_by(ended)
        })?;
        match read {
            Ok(read) => read.map_err(|error| refused(&error)),
            Err(error) => Err(ToolFailure::new(
                ErrorKind::Internal,
                format!("`{path}` cannot be read: the answer of the reader is invalid"),
            )
            .caused_by(error)),
        }
    }
}

/// Returns the number of characters of a document's text in one result. A longer result would be cut in its middle on
/// the way to the model. The notes need the rest.
fn room(output_characters: usize) -> usize {
    output_characters.saturating_sub(2_000).max(output_characters / 2)
}

/// Returns the failure of the call, by the way in which the child ended. Logs the error output of a child that crashed.
fn failed(path: &str, error: HelperError) -> ToolFailure {
    const PARTS: &str = "Request fewer pages with `pages`, or ask for a simpler copy.";
    let used_up: String;
    let (kind, reason, next) = match &error {
        HelperError::NoSandbox => (
            ErrorKind::Unavailable,
            "the embedding application was built without the feature `sandbox`, which reads documents",
            "This affects only documents; other files can be read.",
        ),
        HelperError::NoDoor => (
            ErrorKind::Unavailable,
            "the embedding application does not support it: its `main` does not begin with `enter_if_helper()`",
            "This affects only documents; other files can be read.",
        ),
        HelperError::NotStarted(_) => (
            ErrorKind::Unavailable,
            "the process that reads documents did not start",
            "Try again; if it fails again, the operator finds the reason in Toolstead's log.",
        ),
        HelperError::OutOfProcessorTime(seconds) => {
            used_up = format!("the reader used more than {} of processor time", counted_seconds(*seconds));
            (ErrorKind::Timeout, used_up.as_str(), PARTS)
        }
        HelperError::Late => (ErrorKind::Timeout, "the reader did not answer in time", PARTS),
        HelperError::OutOfMemory => (ErrorKind::TooLarge, "the reader ran out of memory", PARTS),
        HelperError::AnswerTooLarge(_) => (ErrorKind::TooLarge, "its text is too large", PARTS),
        HelperError::Died { .. } => (
            ErrorKind::ExecutionFailed,
            "the reader crashed",
            "The document may be damaged or malicious: do not try again, ask for another copy.",
        ),
        HelperError::Input(_) => (ErrorKind::Io, "the system refused access to its content", "Check the file itself."),
    };
    if let HelperError::Died { exit, stderr } = &error {
        tracing::warn!(%exit, stderr = stderr.trim_end(), "the process that reads a document failed");
    }
    let message = format!("the document `{path}` could not be read: {reason}");
    ToolFailure::new(kind, message).next(next).caused_by(error)
}
