//! Asking providers for their tools again.

use crate::tool_registry::{RegistryError, ToolRegistry};
use std::sync::Arc;

/// Asks one provider, or all, for its tools.
#[derive(Debug, Clone, Default)]
pub struct RefreshToolsCommand {
    /// The provider; `None`: all.
    pub provider: Option<String>,
}

/// Carries out [`RefreshToolsCommand`].
#[derive(Debug)]
pub struct RefreshToolsHandler {
    registry: Arc<ToolRegistry>,
}

impl RefreshToolsHandler {
    /// Refreshes the registry.
    pub fn new(registry: Arc<ToolRegistry>) -> Self {
        Self { registry }
    }

    /// Returns when the providers have answered. A provider that is down keeps the tools that were known.
    ///
    /// # Errors
    /// [`RegistryError::UnknownProvider`].
    pub async fn handle(&self, command: &RefreshToolsCommand) -> Result<(), RegistryError> {
        self.registry.refresh(command.provider.as_deref()).await
    }
}
