//! What file tools read and write at most.

use serde::Deserialize;

/// `[files]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLimits {
    /// Bytes of a file that has to be decoded or searched as a whole: one that is edited, or read in UTF-16.
    pub text_bytes: u64,
    /// Bytes that an edit may make of a file.
    pub result_bytes: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { text_bytes: 10 << 20, result_bytes: 50 << 20 }
    }
}
