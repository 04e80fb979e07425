//! The store of tool data between runs.

use crate::{
    ports::clock::Timestamp,
    provider_identity::ProviderIdentity,
    tool::{DefinitionPart, Tool},
};
use async_trait::async_trait;

/// Failure of a store. The cause is for the operator.
#[derive(Debug, thiserror::Error)]
#[error("could not {operation}")]
pub struct StoreError {
    /// Operation that failed: "read the tools of `git`".
    pub operation: String,
    /// Cause of the failure.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Changed definition of a tool whose name is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DefinitionChange {
    /// The tool's name.
    pub tool: String,
    /// Changed parts, in the order of [`DefinitionPart::ALL`].
    pub parts: Vec<DefinitionPart>,
    /// Time at which the change was first seen.
    pub at: Timestamp,
}

/// Tools of a provider, as saved last.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StoredToolCatalogue {
    /// Tools, sorted by name. Aliases are not stored and are empty when read back.
    pub tools: Vec<Tool>,
    /// Last change of each tool that has changed since it was first seen, sorted by name.
    pub changes: Vec<DefinitionChange>,
}

/// Last known catalogue of each provider, and the tools that an operator disabled.
///
/// Several processes share one repository; each method is one transaction.
#[async_trait]
pub trait ToolRepository: Send + Sync {
    /// Returns the tools of a provider, and their last changes, when it was last saved; empty if it never was.
    /// Providers that differ in any part of their identity are different. If one provider was started in many ways, the
    /// store may delete those that were saved longest ago.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn catalogue(&self, provider: &ProviderIdentity) -> Result<StoredToolCatalogue, StoreError>;

    /// Replaces the catalogue of the provider. Tools that are missing are deleted; `enabled` of the given tools is
    /// ignored, and settings made with [`set_enabled`](Self::set_enabled) remain.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written; nothing was then changed.
    async fn save_catalogue(
        &self,
        provider: &ProviderIdentity,
        catalogue: &StoredToolCatalogue,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Enables or disables a tool, even one that is not known yet. The name is the canonical one.
    ///
    /// # Errors
    /// [`StoreError`] if it could not be written.
    async fn set_enabled(&self, tool: &str, enabled: bool) -> Result<(), StoreError>;

    /// Returns the names of all disabled tools, sorted.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn disabled(&self) -> Result<Vec<String>, StoreError>;
}
