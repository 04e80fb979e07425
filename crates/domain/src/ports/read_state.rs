//! Known versions of files by session. A session that changes a file learns if it is no longer in its known version.

use crate::{content_digest::ContentDigest, ports::tool_repository::StoreError, principal::Principal};
use async_trait::async_trait;
use std::path::Path;

/// Last content of each file that a session has read or written.
///
/// Implementers guarantee:
/// - sessions do not share known versions;
/// - the known version of a file is the one that was recorded last;
/// - the store is bounded: the oldest versions are deleted first, and a file without a version counts as never read.
///
/// A test of an implementation runs the contract:
///
/// ```
/// use toolstead_domain::testing::{in_memory_read_state::InMemoryReadState, read_state_contract::read_state_contract};
///
/// # async fn test() {
/// read_state_contract(&InMemoryReadState::new()).await;
/// # }
/// ```
#[async_trait]
pub trait ReadState: Send + Sync {
    /// Records this content as the session's known version of the file at a real path.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be stored. The previous version is then still known.
    async fn record_version(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
        digest: ContentDigest,
    ) -> Result<(), StoreError>;

    /// Deletes the session's known version of the file, because the file is deleted or too large.
    ///
    /// # Errors
    /// [`StoreError`] if the version is still known.
    async fn forget(&self, principal: &Principal, session: &str, real: &Path) -> Result<(), StoreError>;

    /// Returns the session's known version of the file; `None` if no version is stored, so that the file counts as
    /// never read.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn known(
        &self,
        principal: &Principal,
        session: &str,
        real: &Path,
    ) -> Result<Option<ContentDigest>, StoreError>;
}
