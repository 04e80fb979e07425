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
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::{refresh_tools::{RefreshToolsCommand, RefreshToolsHandler}, tool_registry::ToolRegistry};
/// use toolstead_domain::testing::{
///     fixed_clock::FixedClock,
///     in_memory_tool_repository::InMemoryToolRepository,
///     samples::START,
///     scripted_provider::{ScriptedProvider, scripted_tool::ScriptedTool},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Arc::new(FixedClock::at(START));
/// let registry = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock).await?;
/// registry.register(Arc::new(ScriptedProvider::new("team").with(ScriptedTool::named("greet")))).await?;
///
/// let handler = RefreshToolsHandler::new(registry);
/// handler.handle(&RefreshToolsCommand { provider: Some("team".into()) }).await?;
/// assert!(handler.handle(&RefreshToolsCommand { provider: Some("nobody".into()) }).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RefreshToolsHandler {
    registry: Arc<ToolRegistry>,
}

impl RefreshToolsHandler {
    /// Creates a handler on this registry.
    pub fn new(registry: Arc<ToolRegistry>) -> Self {
        Self { registry }
    }

    /// Reads the tool lists again, and waits until the providers have answered. The known tools of an unavailable
    /// provider remain.
    ///
    /// # Errors
    /// [`RegistryError::UnknownProvider`].
    pub async fn handle(&self, command: &RefreshToolsCommand) -> Result<(), RegistryError> {
        self.registry.refresh(command.provider.as_deref()).await
    }
}
