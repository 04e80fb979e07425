//! Switching a tool on or off for everybody.

use crate::tool_registry::{ToolRegistry, snapshot::Unresolved};
use std::sync::Arc;
use toolstead_domain::ports::tool_repository::StoreError;

/// Switches a tool on (`EnableTool`) or off (`DisableTool`), by canonical name or alias.
#[derive(Debug, Clone)]
pub struct SetToolEnabledCommand {
    /// The name.
    pub name: String,
    /// On or off.
    pub enabled: bool,
}

/// A tool that could not be switched.
#[derive(Debug, thiserror::Error)]
pub enum SetToolEnabledError {
    /// No single tool is called so.
    #[error("no tool is called `{0}`")]
    Unknown(String, Unresolved),
    /// It could not be kept.
    #[error("could not switch the tool")]
    Store(#[from] StoreError),
}

/// Carries out [`SetToolEnabledCommand`]; clients are told that the list changed.
#[derive(Debug)]
pub struct SetToolEnabledHandler {
    registry: Arc<ToolRegistry>,
}

impl SetToolEnabledHandler {
    /// Switches tools of the registry.
    pub fn new(registry: Arc<ToolRegistry>) -> Self {
        Self { registry }
    }

    /// Switches.
    ///
    /// # Errors
    /// [`SetToolEnabledError`]; then nothing changed.
    pub async fn handle(&self, command: &SetToolEnabledCommand) -> Result<(), SetToolEnabledError> {
        let found = self
            .registry
            .resolve(&command.name)
            .map_err(|why| SetToolEnabledError::Unknown(command.name.clone(), why))?;
        Ok(self.registry.set_enabled(found.tool.name().as_str(), command.enabled).await?)
    }
}
