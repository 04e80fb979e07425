//! Error of building an application.

use crate::config::tree::problem::ConfigError;
use toolstead_application::{ContextRegistrationError, RegistryError};
use toolstead_domain::{ServerName, StoreError};
use toolstead_infrastructure::{
    builtin::{InvalidInProcessTools, context::InvalidBuiltInContext},
    models::InvalidModel,
    sandbox::workspace::OpenWorkspaceError,
    sqlite::OpenError,
    web::address::InvalidAddress,
};

/// Error of building an application.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A root cannot be used.
    #[error("a root of the workspace cannot be used")]
    Workspace(#[from] OpenWorkspaceError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// An added tool cannot be used.
    #[error("a tool cannot be used")]
    Tools(#[from] InvalidInProcessTools),
    /// A provider cannot be registered.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A provider of resources and prompts cannot be registered.
    #[error(transparent)]
    ContextRegistry(#[from] ContextRegistrationError),
    /// The proxy cannot be used.
    #[error("`[web] proxy` cannot be used")]
    Proxy(#[from] InvalidAddress),
    /// The built-in resources and prompts cannot be used.
    #[error(transparent)]
    Context(#[from] InvalidBuiltInContext),
    /// The embeddings that rank tools cannot be used.
    #[error("`[tools.search] embeddings` cannot be used")]
    Embeddings(#[from] InvalidModel),
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Child processes cannot be started.
    #[error("the launcher of child processes cannot be started")]
    Launcher(#[source] std::io::Error),
    /// A required server is unavailable.
    #[error("the MCP server `{server}` is required and is {state}")]
    RequiredServer {
        /// Name of the server.
        server: ServerName,
        /// State of the server.
        state: String,
    },
}

impl StartupError {
    /// Returns `true` if the user can correct the error by changing the configuration or the command line.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Workspace(_)
            | Self::Tools(_)
            | Self::Proxy(_)
            | Self::Embeddings(_)
            | Self::ContextRegistry(_)
            | Self::RequiredServer { .. } => true,
            Self::Registry(error) => !matches!(error, RegistryError::Store(_)),
            Self::Context(_) | Self::Database(_) | Self::Store(_) | Self::Launcher(_) => false,
        }
    }
}
