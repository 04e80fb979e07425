//! The store of what is known of tools between runs.

use crate::{
    ports::clock::Timestamp,
    provider_identity::ProviderIdentity,
    tool::{DefinitionPart, Tool},
};
use async_trait::async_trait;

/// A failed store. The cause is for the operator.
#[derive(Debug, thiserror::Error)]
#[error("could not {operation}")]
pub struct StoreError {
    /// The operation that failed: "read the tools of `git`".
    pub operation: String,
    /// The cause.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A tool that is there under its old name, and whose definition says something else than before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DefinitionChange {
    /// The tool's name.
    pub tool: String,
    /// Which parts, in the order of [`DefinitionPart::ALL`].
    pub parts: Vec<DefinitionPart>,
    /// The time when it was seen first.
    pub at: Timestamp,
}

/// A provider's tools, as they were saved last.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Catalogue {
    /// The tools, sorted by name. Aliases are not stored and come back empty.
    pub tools: Vec<Tool>,
    /// The last change of each tool that has changed since it was seen first, sorted by name.
    pub changes: Vec<DefinitionChange>,
}

/// The last known catalogue of each provider, and which tools an operator switched off.
///
/// Several processes share one repository; each method is one transaction.
#[async_trait]
pub trait ToolRepository: Send + Sync {
    /// The tools that a provider had when it was last saved; empty if it never was. One that differs in any part of its
    /// identity is another. Of one that was started in many ways the store may forget those that were saved longest ago.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn catalogue(&self, provider: &ProviderIdentity) -> Result<Catalogue, StoreError>;

    /// Makes `catalogue` the one of the provider. Tools that are gone are forgotten; `enabled` of the given tools is
    /// not looked at, and what [`set_enabled`](Self::set_enabled) said stays.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written; then nothing was.
    async fn save_catalogue(
        &self,
        provider: &ProviderIdentity,
        catalogue: &Catalogue,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Switches a tool on or off, whether or not it is known yet. The name is the canonical one.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written.
    async fn set_enabled(&self, tool: &str, enabled: bool) -> Result<(), StoreError>;

    /// The names of all tools that are switched off, sorted.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn disabled(&self) -> Result<Vec<String>, StoreError>;
}
