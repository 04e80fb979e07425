//! What is kept of tools between runs.

use crate::{ports::clock::Timestamp, tool::Tool};
use async_trait::async_trait;

/// A failed store. The cause is for the operator.
#[derive(Debug, thiserror::Error)]
#[error("could not {operation}")]
pub struct StoreError {
    /// What was tried: "read the tools of `git`".
    pub operation: String,
    /// The cause.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The last known catalogue of each provider, and which tools an operator switched off.
///
/// Several processes share one repository; each method is one transaction.
#[async_trait]
pub trait ToolRepository: Send + Sync {
    /// The tools that a provider had when it was last saved, sorted by name; empty if it never was. Aliases are not
    /// stored and come back empty.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn catalogue(&self, provider: &str) -> Result<Vec<Tool>, StoreError>;

    /// Makes `tools` the catalogue of the provider. Tools that are gone are forgotten; `enabled` of the given tools is
    /// not looked at, and what [`set_enabled`](Self::set_enabled) said stays.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written; then nothing was.
    async fn save_catalogue(&self, provider: &str, tools: &[Tool], now: Timestamp) -> Result<(), StoreError>;

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
