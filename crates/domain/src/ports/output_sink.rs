//! Where results go that are too large for a model.

use crate::{principal::Principal, tool_call::CallId};
use async_trait::async_trait;

/// A result kept in full, named by a handle (`o17`) whose content never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// The handle.
    pub handle: String,
    /// The size, in bytes.
    pub bytes: u64,
}

/// Keeps large outputs.
#[async_trait]
pub trait OutputSink: Send + Sync {
    /// Stores the text and returns its handle; `None` where outputs are not kept, which the cut then says.
    async fn store(&self, principal: &Principal, call: CallId, text: &str) -> Option<StoredOutput>;
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOutputs;

#[async_trait]
impl OutputSink for NoOutputs {
    async fn store(&self, _: &Principal, _: CallId, _: &str) -> Option<StoredOutput> {
        None
    }
}
