//! What file tools read and write at most.

use serde::{Deserialize, Serialize};

/// `[files]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLimits {
    /// Bytes of a file that has to be decoded or searched as a whole: one that is edited, or read in UTF-16.
    pub text_bytes: u64,
    /// Bytes that an edit may make of a file.
    pub result_bytes: u64,
    /// Bytes of a document (PDF, docx, xlsx, pptx, notebook).
    pub document_bytes: u64,
    /// Seconds that reading a document takes at most.
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
        Self {
            text_bytes: 10 << 20,
            result_bytes: 50 << 20,
            document_bytes: 50 << 20,
            document_seconds: 60,
            document_memory_bytes: 1 << 30,
            zip_entries: 10_000,
            zip_entry_bytes: 50 << 20,
            zip_total_bytes: 200 << 20,
            zip_ratio: 100,
        }
    }
}
