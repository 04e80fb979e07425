//! Refresh of the tool lists of providers.

use crate::tool_registry::{RegistryError, ToolRegistry};
use std::sync::Arc;

/// Reads the tool list of one provider, or of all, again.
#[derive(Debug, Clone, Default)]
pub struct RefreshToolsCommand {
    /// Name of the provider; `None`: all providers.
    pub provider: Option<String>,
}

/// Handles a [`RefreshToolsCommand`].
#[derive(Debug)]
pub struct RefreshToolsHandler {
    registry: Arc<ToolRegistry>,
}

impl RefreshToolsHandler {
    /// Creates a handler on this registry.
    pub fn new(registry: Arc<ToolRegistry>) -> Self {
        Self { registry }
    }

    /// Waits until the providers have answered. The known tools of an unavailable provider remain.
    ///
    /// # Errors
    /// [`RegistryError::UnknownProvider`].
    pub async fn handle(&self, command: &RefreshToolsCommand) -> Result<(), RegistryError> {
        self.registry.refresh(command.provider.as_deref()).await
    }
}
