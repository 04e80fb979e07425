//! PDF: the text of the requested pages.

use crate::documents::{
    Document, DocumentKind,
    document_error::DocumentError,
    selection::{PartSelection, select_parts},
};
use pdf_extract::{Dictionary, Document as Pdf, Error, Object, PlainTextOutput, decode_text_string, output_doc_page};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Number of bytes at the beginning that contain the header.
const HEADER_BYTES: usize = 1024;

/// Returns `true` if the beginning contains a PDF header.
pub(super) fn is_pdf(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(HEADER_BYTES)].windows(5).any(|window| window == b"%PDF-")
}

/// Reads the requested pages; does not read the others.
pub(super) fn read(bytes: &[u8], pages: Option<&PartSelection>) -> Result<Document, DocumentError> {
    // A document that only restricts printing and similar actions opens with the empty password.
    let pdf = Pdf::load_mem(bytes).map_err(|error| match error {
        Error::InvalidPassword | Error::Decryption(_) => DocumentError::Encrypted,
        error => DocumentError::Damaged(error.to_string()),
    })?;
    if pdf.is_encrypted() {
        return Err(DocumentError::Encrypted);
    }
    let total = pdf.get_pages().len() as u64;
    if total == 0 {
        return Err(DocumentError::Damaged("it has no pages".into()));
    }
    let mut document = Document::new(DocumentKind::Pdf, total);
    document.title = title(&pdf);
    let (mut without_text, mut unreadable) = (Vec::new(), Vec::new());
    for number in select_parts(pages, DocumentKind::Pdf, total)? {
        // The library panics on many faults in a page; the other pages are still worth reading.
        let text = catch_unwind(AssertUnwindSafe(|| page_text(&pdf, number))).ok().flatten();
        match text.as_deref() {
            None => unreadable.push(number),
            Some("") => without_text.push(number),
            Some(_) => {}
        }
        document.push(number, format!("page {number}"), &text.unwrap_or_default());
    }
    let read = document.parts.len();
    if unreadable.len() == read {
        return Err(DocumentError::Damaged("the reader failed on every requested page".into()));
    }
    if without_text.len() == read {
        document.notes.push(
            "none of these pages has a text layer: they are scans or drawings and require text recognition".into(),
        );
    } else if !without_text.is_empty() {
        document.notes.push(format!("without text, so scanned or empty: page {}", list(&without_text)));
    }
    if !unreadable.is_empty() {
        document.notes.push(format!("damaged and omitted: page {}", list(&unreadable)));
    }
    Ok(document)
}

fn page_text(pdf: &Pdf, number: u64) -> Option<String> {
    let mut text = String::new();
    let number = u32::try_from(number).ok()?;
    output_doc_page(pdf, &mut PlainTextOutput::new(&mut text), number).ok()?;
    Some(tidied(&text))
}

/// Letters that print as one piece, from U+FB00 on.
const LIGATURES: [&str; 7] = ["ff", "fi", "fl", "ffi", "ffl", "st", "st"];

/// Replaces ligatures by letters, removes blanks at both ends of lines, and reduces several blank lines to one.
fn tidied(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let ligature = |char: char| u32::from(char).checked_sub(0xfb00).and_then(|at| LIGATURES.get(at as usize));
    let spelled = |char: char| ligature(char).map_or_else(|| char.to_string(), ToString::to_string);
    let text: String = text.chars().map(spelled).collect();
    for line in text.lines().map(str::trim) {
        if !line.is_empty() || !(tidied.is_empty() || tidied.ends_with("\n\n")) {
            tidied.push_str(line);
            tidied.push('\n');
        }
    }
    tidied.truncate(tidied.trim_end().len());
    tidied
}

fn title(pdf: &Pdf) -> Option<String> {
    let info = pdf.trailer.get(b"Info").ok()?;
    let info: &Dictionary = match info {
        Object::Reference(id) => pdf.get_object(*id).ok()?.as_dict().ok()?,
        other => other.as_dict().ok()?,
    };
    let title = decode_text_string(info.get(b"Title").ok()?).ok()?;
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(title).filter(|title| !title.is_empty())
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
