//! The most that is read of a document.

use serde::{Deserialize, Serialize};

/// The bounds of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentLimits {
    /// Bytes of a document.
    pub document_bytes: u64,
    /// Processor time for reading it, in seconds.
    pub document_seconds: u64,
    /// Bytes of address space of the process that reads it.
    pub document_memory_bytes: u64,
    /// Entries of a zip archive, such as a docx is.
    pub zip_entries: u64,
    /// Bytes that one entry unpacks to.
    pub zip_entry_bytes: u64,
    /// Bytes that all entries together unpack to.
    pub zip_total_bytes: u64,
    /// The number of times that an entry may grow by unpacking.
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
