//! Files as sessions have read them: whoever changes one later is told when it is not that any more.

use crate::{content_digest::ContentDigest, ports::tool_repository::StoreError, principal::Principal};
use async_trait::async_trait;
use std::path::Path;

/// The last content of each file that a session has read or written.
///
/// Implementers guarantee:
/// - what one session has seen, another one does not know;
/// - what is known of a file is what was seen last of it;
/// - they are bounded: what was seen longest ago is forgotten first, and a file that is forgotten is one that was never
///   read.
#[async_trait]
pub trait SeenFiles: Send + Sync {
    /// The session knows this content of the file at a real path.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be kept. What was known before is known still.
    async fn saw(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
        digest: ContentDigest,
    ) -> Result<(), StoreError>;

    /// The session knows nothing of the file any more, because it is gone or too large to be known.
    ///
    /// # Errors
    /// [`StoreError`] when it is known still.
    async fn forget(&self, principal: &Principal, session: &str, real: &Path) -> Result<(), StoreError>;

    /// The content that the session knows; `None` if it never read the file.
    ///
    /// # Errors
    /// [`StoreError`] when that cannot be told.
    async fn known(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
    ) -> Result<Option<ContentDigest>, StoreError>;
}
