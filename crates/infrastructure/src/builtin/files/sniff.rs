//! Recognises the type of a file by its first bytes, then by its name.

use crate::{
    builtin::text::text_encoding::{TextDetection, TextEncoding, detect},
    documents::DocumentKind,
};
use image::ImageFormat;
use std::{borrow::Cow, panic};

/// Type of a file's content, which determines how it is read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FileKindByContent {
    /// Text to read by lines.
    Text(TextEncoding),
    /// A picture that can be decoded.
    Image(ImageFormat),
    /// A document from which text can be extracted.
    Document(DocumentKind),
    /// Any other content, with a description.
    Binary(Cow<'static, str>),
}

impl DocumentKind {
    const OFFICE: &[(&str, Self)] = &[("docx", Self::Docx), ("xlsx", Self::Xlsx), ("pptx", Self::Pptx)];

    /// Returns a description of the document type.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Pdf => "a PDF document",
            Self::Docx => "a Word document",
            Self::Xlsx => "an Excel workbook",
            Self::Pptx => "a PowerPoint presentation",
            Self::Notebook => "a Jupyter notebook",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Pptx => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            Self::Notebook => "application/x-ipynb+json",
        }
    }
}

/// Extensions of text files with media types more specific than plain text.
const TEXT_TYPES: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("tsv", "text/tab-separated-values"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// Recognises the type of a file. `beginning` is all of it, or about its first megabyte.
pub(crate) fn sniff(beginning: &[u8], is_whole: bool, name: &str) -> FileKindByContent {
    if let Some(format) = image_format(beginning) {
        return FileKindByContent::Image(format);
    }
    match detect(beginning, is_whole) {
        TextDetection::Text(_) if extension(name) == "ipynb" && beginning.trim_ascii_start().starts_with(b"{") => {
            FileKindByContent::Document(DocumentKind::Notebook)
        }
        TextDetection::Text(encoding) => FileKindByContent::Text(encoding),
        TextDetection::Binary(_) if beginning.starts_with(b"%PDF-") => FileKindByContent::Document(DocumentKind::Pdf),
        TextDetection::Binary(what) => {
            let known = infer(beginning);
            if let Some(kind) = office(beginning, known, name) {
                return FileKindByContent::Document(kind);
            }
            FileKindByContent::Binary(match known {
                Some(known) if what == "binary data" => Cow::Owned(format!("{} data", known.mime_type())),
                _ => Cow::Borrowed(what),
            })
        }
    }
}

/// Returns the media type of a file of that kind with this beginning.
pub(crate) fn media_type(kind: &FileKindByContent, beginning: &[u8], name: &str) -> &'static str {
    match kind {
        FileKindByContent::Text(_) => {
            let known = TEXT_TYPES.iter().find(|(ending, _)| *ending == extension(name));
            known.map_or("text/plain", |(_, media_type)| media_type)
        }
        FileKindByContent::Image(format) => format.to_mime_type(),
        FileKindByContent::Document(kind) => kind.media_type(),
        FileKindByContent::Binary(_) => infer(beginning).map_or("application/octet-stream", |known| known.mime_type()),
    }
}

fn extension(name: &str) -> String {
    name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default()
}

fn image_format(beginning: &[u8]) -> Option<ImageFormat> {
    let format = image::guess_format(beginning).ok()?;
    match format {
        // The signature of BMP is two letters, which may also begin a text. The size of its second header is one of a
        // few values.
        ImageFormat::Bmp => {
            let is_bitmap = beginning.get(6..10) == Some(&[0; 4])
                && matches!(beginning.get(14..18), Some([12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0]));
            is_bitmap.then_some(format)
        }
        ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP => Some(format),
        _ => None,
    }
}

fn office(beginning: &[u8], known: Option<infer::Type>, name: &str) -> Option<DocumentKind> {
    if !beginning.starts_with(b"PK\x03\x04") {
        return None;
    }
    // A type that is recognised by content takes precedence over the name.
    let found = known.map(|known| known.extension()).filter(|found| *found != "zip");
    let extension = found.map_or_else(|| extension(name), str::to_owned);
    DocumentKind::OFFICE.iter().find(|(ending, _)| *ending == extension).map(|(_, kind)| *kind)
}

/// Recognises a type with the crate `infer`; `None` if it is unknown, or if a parser of the crate panics on hostile
/// bytes.
fn infer(beginning: &[u8]) -> Option<infer::Type> {
    panic::catch_unwind(|| infer::get(beginning)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], name: &str, described: &str, mime: &str) {
        let kind = sniff(bytes, true, name);
        let shown = match &kind {
            FileKindByContent::Text(encoding) => encoding.name(),
            FileKindByContent::Image(format) => format!("{format:?}"),
            FileKindByContent::Document(kind) => kind.describe().to_owned(),
            FileKindByContent::Binary(what) => what.to_string(),
        };
        assert_eq!((shown.as_str(), media_type(&kind, bytes, name)), (described, mime));
    }

    fn zip_of(names: &[&str]) -> Vec<u8> {
        let header = |name: &&str| {
            let mut bytes = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend([0, 0]);
            bytes.extend(name.as_bytes());
            bytes
        };
        names.iter().flat_map(header).collect()
    }

    #[test]
    fn file_type_detection_prefers_content_over_the_name() {
        check(b"x = 1\n", "a.py", "utf-8", "text/plain");
        check(b"{}", "a.JSON", "utf-8", "application/json");
        check(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a.svg", "utf-8", "image/svg+xml");
        check(b"BMW is a car, and this is a text about it", "a.bmp", "utf-8", "text/plain");
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.txt", "Png", "image/png");
        check(b"\xff\xd8\xff\xe0\0\x10JFIF", "", "Jpeg", "image/jpeg");
        check(b"%PDF-1.7\n", "a.txt", "a PDF document", "application/pdf");
        check(b" {\"cells\": []}", "a.ipynb", "a Jupyter notebook", "application/x-ipynb+json");
        check(
            &[&b"\x7fELF\x02\x01\x01\0"[..], &[0; 60]].concat(),
            "a",
            "an ELF program or library",
            "application/x-executable",
        );
        check(b"\x1f\x8b\x08\0", "a.txt", "gzip data", "application/gzip");
        check(b"a\0b", "a.txt", "binary data", "application/octet-stream");
    }

    #[test]
    fn office_documents_are_distinguished_from_other_archives() {
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        let plain = zip_of(&["a/b.txt"]);
        check(&plain, "a.zip", "a ZIP archive, or an office document", "application/zip");
        check(&plain, "a.docx", "a Word document", docx);
        let word = zip_of(&["word/document.xml", "x"]);
        check(&word, "a.xlsx", "a Word document", docx);
    }
}
