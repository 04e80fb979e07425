//! Limits of file tools.

use crate::documents::DocumentLimits;
use serde::{Deserialize, Serialize};

/// Section `[files]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLimits {
    /// Maximum size in bytes of a file that must be decoded or searched as a whole: one that is edited, or read in
    /// UTF-16.
    pub text_bytes: u64,
    /// Maximum size in bytes of a file after a change, and of all files that one call changes. A larger file is neither
    /// replaced nor deleted, because that could not be undone.
    pub result_bytes: u64,
    /// Maximum length in pixels of the longer side of a shown image.
    pub image_side: u32,
    /// Maximum number of pixels of a shown image.
    pub image_pixels: u64,
    /// Maximum number of base64 characters of a shown image.
    pub image_bytes: u64,
    /// Maximum number of folder entries that a search in files visits.
    pub search_entries: usize,
    /// Maximum number of lines, or files, that a search in files returns.
    pub search_hits: usize,
    /// Maximum duration of a search in files, in seconds.
    pub search_seconds: u64,
    /// Maximum number of folder entries that finding and listing files visits.
    pub list_entries: usize,
    /// Maximum size in bytes of a document (PDF, docx, xlsx, pptx, notebook).
    pub document_bytes: u64,
    /// Maximum processor time to read a document, in seconds.
    pub document_seconds: u64,
    /// Maximum address space in bytes of the process that reads a document.
    pub document_memory_bytes: u64,
    /// Maximum number of entries of a zip archive, such as a docx.
    pub zip_entries: u64,
    /// Maximum size in bytes of one unpacked entry.
    pub zip_entry_bytes: u64,
    /// Maximum size in bytes of all unpacked entries together.
    pub zip_total_bytes: u64,
    /// Maximum ratio of the unpacked size of an entry to its packed size.
    pub zip_ratio: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        let documents = DocumentLimits::default();
        Self {
            text_bytes: 10 << 20,
            result_bytes: 50 << 20,
            image_side: 2000,
            image_pixels: 1_150_000,
            image_bytes: 768 << 10,
            search_entries: 1_000_000,
            search_hits: 10_000,
            search_seconds: 10,
            list_entries: 100_000,
            document_bytes: documents.document_bytes,
            document_seconds: documents.document_seconds,
            document_memory_bytes: documents.document_memory_bytes,
            zip_entries: documents.zip_entries,
            zip_entry_bytes: documents.zip_entry_bytes,
            zip_total_bytes: documents.zip_total_bytes,
            zip_ratio: documents.zip_ratio,
        }
    }
}

impl FileLimits {
    /// Returns the limits for documents.
    pub(crate) fn of_documents(&self) -> DocumentLimits {
        DocumentLimits {
            document_bytes: self.document_bytes,
            document_seconds: self.document_seconds,
            document_memory_bytes: self.document_memory_bytes,
            zip_entries: self.zip_entries,
            zip_entry_bytes: self.zip_entry_bytes,
            zip_total_bytes: self.zip_total_bytes,
            zip_ratio: self.zip_ratio,
        }
    }
}
