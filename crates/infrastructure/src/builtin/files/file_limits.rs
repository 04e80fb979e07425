//! What file tools read and write at most.

use crate::documents::DocumentLimits;
use serde::{Deserialize, Serialize};

/// `[files]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLimits {
    /// Bytes of a file that has to be decoded or searched as a whole: one that is edited, or read in UTF-16.
    pub text_bytes: u64,
    /// Bytes that an edit may make of a file.
    pub result_bytes: u64,
    /// Pixels of an image's longer side, as it is shown.
    pub image_side: u32,
    /// Pixels of an image in all, as it is shown.
    pub image_pixels: u64,
    /// Characters of base64 that an image is sent in.
    pub image_bytes: u64,
    /// Entries of folders that a search in files looks at.
    pub search_entries: usize,
    /// Lines, or files, that a search in files finds before it ends.
    pub search_hits: usize,
    /// Time that a search in files takes.
    pub search_seconds: u64,
    /// Entries of folders that finding and listing files looks at.
    pub list_entries: usize,
    /// Bytes of a document (PDF, docx, xlsx, pptx, notebook).
    pub document_bytes: u64,
    /// Processor time for reading a document, in seconds.
    pub document_seconds: u64,
    /// Bytes of address space of the process that reads a document.
    pub document_memory_bytes: u64,
    /// Entries of a zip archive, such as a docx is.
    pub zip_entries: u64,
    /// Bytes that one entry unpacks to.
    pub zip_entry_bytes: u64,
    /// Bytes that all entries together unpack to.
    pub zip_total_bytes: u64,
    /// How many times larger an entry may become by unpacking.
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
    /// Those that hold for documents.
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
