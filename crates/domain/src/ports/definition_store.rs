//! Store of the versions of definitions that servers offer.

use crate::{
    pinning::item::{DefinitionVersion, ItemKey, PinnedServerKey, VersionApproval},
    ports::tool_repository::StoreError,
};
use async_trait::async_trait;

/// Versions of the definitions of each server, for [pinned definitions](crate::pinning).
///
/// Several processes share one store; each method is one transaction.
///
/// ```
/// use toolstead_domain::{PinnedDefinitionStore, PinnedServerKey, StoreError};
///
/// async fn is_known(store: &dyn PinnedDefinitionStore, server: &PinnedServerKey) -> Result<bool, StoreError> {
///     Ok(!store.versions(server).await?.is_empty())
/// }
/// ```
#[async_trait]
pub trait PinnedDefinitionStore: Send + Sync {
    /// Returns the stored versions of a server, sorted by key and number. Of an item with many versions, the store may
    /// have deleted old ones, but never the latest approved one. It may also have deleted prompts, resources and
    /// templates that the server removed, if these are very many.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn versions(&self, server: &PinnedServerKey) -> Result<Vec<DefinitionVersion>, StoreError>;

    /// Adds versions. A version whose key and number are already stored is ignored.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written; nothing was then changed.
    async fn add(&self, server: &PinnedServerKey, versions: &[DefinitionVersion]) -> Result<(), StoreError>;

    /// Approves these versions. Existing approvals do not change. Unknown versions are ignored.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written; nothing was then changed.
    async fn approve(
        &self,
        server: &PinnedServerKey,
        versions: &[(ItemKey, u32)],
        approval: &VersionApproval,
    ) -> Result<(), StoreError>;
}
