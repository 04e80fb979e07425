//! Limits for reading documents.

use serde::{Deserialize, Serialize};

/// Limits of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentLimits {
    /// Maximum size of a document in bytes.
    pub document_bytes: u64,
    /// Maximum processor time to read it, in seconds.
    pub document_seconds: u64,
    /// Maximum address space of the process that reads it, in bytes.
    pub document_memory_bytes: u64,
    /// Maximum number of entries of a zip archive, such as a docx.
    pub zip_entries: u64,
    /// Maximum size of one unpacked entry, in bytes.
    pub zip_entry_bytes: u64,
    /// Maximum size of all unpacked entries together, in bytes.
    pub zip_total_bytes: u64,
    /// Maximum ratio of the unpacked size of an entry to its packed size.
    pub zip_ratio: u64,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
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
