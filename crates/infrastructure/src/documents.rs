//! Documents as text with their structure: PDF, docx, xlsx, pptx and notebooks.
//!
//! The parsers run only in a child process; [`DocumentReader`] is the runtime's side.

mod document_error;
mod document_limits;
mod docx;
mod notebook;
mod office;
mod package;
mod pdf;
mod pptx;
mod reading;
mod rendering;
mod selection;
mod xlsx;
mod xml;

pub use crate::documents::{
    document_limits::DocumentLimits,
    reading::{DocumentRange, DocumentReader, DocumentSource, is_document},
    rendering::RenderedDocument,
};

use crate::documents::document_error::DocumentError;
use selection::PartSelection;
use serde::{Deserialize, Serialize};
use std::{
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Name of the helper that reads documents.
pub(crate) const HELPER: &str = "documents";
/// Maximum number of bytes of text of one document. A larger document must be read in parts.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// Maximum number of characters of a document's title, and of the label of a part.
const MAX_NAME: usize = 200;

/// The requested content of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Document {
    kind: DocumentKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Requested parts, in the order of the document; one for a docx.
    parts: Vec<DocumentPart>,
    /// Number of parts of the whole document.
    total_parts: u64,
    /// Notes for the model, each a sentence without a full stop.
    notes: Vec<String>,
}

/// Type of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// PDF with pages.
    Pdf,
    /// Word document.
    Docx,
    /// Excel workbook with sheets.
    Xlsx,
    /// PowerPoint presentation with slides.
    Pptx,
    /// Jupyter notebook with cells.
    Notebook,
}

/// A page, sheet, slide or cell; or the whole, if a document has no parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DocumentPart {
    /// Number in the document, from 1.
    number: u64,
    /// Name with its number: ``sheet 2 `BudgetKind` ``.
    label: String,
    text: String,
}

impl DocumentKind {
    /// Returns the noun for one part of a document of this kind; `None` if it has no parts.
    fn part_noun(self) -> Option<&'static str> {
        match self {
            Self::Pdf => Some("page"),
            Self::Docx => None,
            Self::Xlsx => Some("sheet"),
            Self::Pptx => Some("slide"),
            Self::Notebook => Some("cell"),
        }
    }

    /// Returns the name of the kind for a model.
    fn name(self) -> &'static str {
        match self {
            Self::Pdf => "PDF",
            Self::Docx => "docx document",
            Self::Xlsx => "xlsx spreadsheet",
            Self::Pptx => "pptx presentation",
            Self::Notebook => "notebook",
        }
    }
}

impl Document {
    fn new(kind: DocumentKind, total_parts: u64) -> Self {
        Self { kind, title: None, parts: Vec::new(), total_parts, notes: Vec::new() }
    }

    /// Adds a part, without control characters. Cuts its text where the document would exceed [`MAX_TEXT_BYTES`], and
    /// adds a note about the cut.
    fn push(&mut self, number: u64, label: impl Into<String>, text: &str) {
        let used: usize = self.parts.iter().map(|part| part.text.len()).sum();
        let room = text.floor_char_boundary(MAX_TEXT_BYTES.saturating_sub(used));
        let label = shortened(label.into());
        if room < text.len() {
            self.notes.push(format!("the text of {label} is too long to read at once, and its end is missing"));
        }
        let is_shown = |char: &char| matches!(char, '\n' | '\t') || !char.is_control();
        self.parts.push(DocumentPart { number, label, text: text[..room].chars().filter(is_shown).collect() });
    }
}

/// Shortens a name from a document.
fn shortened(mut name: String) -> String {
    if let Some((at, _)) = name.char_indices().nth(MAX_NAME) {
        name.truncate(at);
        name.push('…');
    }
    name
}

/// Request to the child process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DocumentParseOptions {
    pages: Option<PartSelection>,
    limits: DocumentLimits,
}

/// Reply of the child process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DocumentReply {
    Document(Document),
    Refused(DocumentError),
}

/// Reads a document, as the work of the child process: parses the request `order` and the bytes of the document, and
/// returns a [`DocumentReply`] as JSON.
pub(crate) fn answer(order: &str, input: &mut dyn Read) -> Vec<u8> {
    let reply = match serde_json::from_str::<DocumentParseOptions>(order) {
        Ok(order) => catch_unwind(AssertUnwindSafe(|| parsed(&order, input)))
            .unwrap_or_else(|_| Err(DocumentError::Damaged("the reader crashed on it".into()))),
        Err(error) => Err(DocumentError::Damaged(format!("the request is invalid: {error}"))),
    };
    let reply = reply.map_or_else(DocumentReply::Refused, |document| {
        DocumentReply::Document(Document { title: document.title.map(shortened), ..document })
    });
    serde_json::to_vec(&reply).unwrap_or_default()
}

/// Parses a document by its content alone, because names are unreliable.
fn parsed(order: &DocumentParseOptions, input: &mut dyn Read) -> Result<Document, DocumentError> {
    let limit = order.limits.document_bytes;
    let mut bytes = Vec::new();
    input
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| DocumentError::Damaged(format!("it could not be read to its end: {error}")))?;
    if bytes.len() as u64 > limit {
        return Err(DocumentError::TooLarge(format!("it has more than {limit} bytes")));
    }
    match &bytes[..] {
        [b'P', b'K', 3, 4, ..] => office::read(bytes, order),
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ..] => Err(office::compound_file(&bytes)),
        _ if pdf::is_pdf(&bytes) => pdf::read(&bytes, order.pages.as_ref()),
        _ => notebook::read(&bytes, order.pages.as_ref()),
    }
}

#[cfg(test)]
mod tests;
