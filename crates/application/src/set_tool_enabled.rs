//! Enabling and disabling of a tool for all callers.

use crate::tool_registry::{ToolRegistry, snapshot::ResolveError};
use std::sync::Arc;
use toolstead_domain::StoreError;

/// Enables (`EnableTool`) or disables (`DisableTool`) a tool, by canonical name or alias.
#[derive(Debug, Clone)]
pub struct SetToolEnabledCommand {
    /// Canonical name or alias of the tool.
    pub name: String,
    /// `true` to enable the tool, `false` to disable it.
    pub enabled: bool,
}

/// The reason why a tool was not enabled or disabled.
#[derive(Debug, thiserror::Error)]
pub enum SetToolEnabledError {
    /// The name does not lead to exactly one tool.
    #[error("no tool is called `{0}`")]
    Unknown(String, ResolveError),
    /// The change could not be stored.
    #[error("could not switch the tool")]
    Store(#[from] StoreError),
}

/// Handles a [`SetToolEnabledCommand`]. Clients are notified that the list has changed.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::{set_tool_enabled::{SetToolEnabledCommand, SetToolEnabledHandler}, tool_registry::ToolRegistry};
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
/// let handler = SetToolEnabledHandler::new(registry.clone());
/// handler.handle(&SetToolEnabledCommand { name: "greet".into(), enabled: false }).await?;
/// assert!(registry.resolve("greet").is_ok_and(|greet| !greet.tool.is_callable()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SetToolEnabledHandler {
    registry: Arc<ToolRegistry>,
}

impl SetToolEnabledHandler {
    /// Creates a handler on this registry.
    pub fn new(registry: Arc<ToolRegistry>) -> Self {
        Self { registry }
    }

    /// Enables or disables the tool.
    ///
    /// # Errors
    /// [`SetToolEnabledError`]; nothing has changed then.
    pub async fn handle(&self, command: &SetToolEnabledCommand) -> Result<(), SetToolEnabledError> {
        let found = self
            .registry
            .resolve(&command.name)
            .map_err(|why| SetToolEnabledError::Unknown(command.name.clone(), why))?;
        Ok(self.registry.set_enabled(found.tool.name().as_str(), command.enabled).await?)
    }
}
