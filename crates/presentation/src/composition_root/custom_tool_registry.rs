//! Tools of the embedding application, which it can add and remove at run time.

use super::StartupError;
use std::sync::Arc;
use tokio::sync::Mutex;
use toolstead_application::{RegistryError, ToolRegistry};
use toolstead_infrastructure::builtin::{InProcessTools, IntoTool, InvalidInProcessTools, ToolEnvironment, ToolGroup};

/// Tools of the embedding application, which can be added and removed at run time. Subscribers are notified that the
/// list changed, and running calls continue. If a name is in use, the change fails and has no effect.
#[derive(Debug)]
pub struct CustomToolRegistry {
    registry: Arc<ToolRegistry>,
    provider_factory: InProcessProviderFactory,
    /// The first entry holds the embedding application's own tools.
    servers: Mutex<Vec<ToolGroup>>,
}

/// Error of adding or removing tools.
#[derive(Debug, thiserror::Error)]
pub enum ChangeToolsError {
    /// The tools cannot be offered.
    #[error(transparent)]
    Tools(#[from] InvalidInProcessTools),
    /// A name is in use.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No server has this name.
    #[error("this program has no server named `{0}`: `serve` adds one")]
    UnknownServer(String),
    /// No tool has this name.
    #[error("`{server}` has no tool named `{tool}`")]
    UnknownTool {
        /// Name of the server or of the embedding application.
        server: String,
        /// Name of the tool, as its author defined it.
        tool: String,
    },
}

impl From<ChangeToolsError> for StartupError {
    /// Converts the error. Only the first two variants occur at startup.
    fn from(error: ChangeToolsError) -> Self {
        match error {
            ChangeToolsError::Tools(error) => Self::Tools(error),
            ChangeToolsError::Registry(error) => Self::Registry(error),
            ChangeToolsError::UnknownServer(name) | ChangeToolsError::UnknownTool { server: name, .. } => {
                Self::Registry(RegistryError::UnknownProvider(name))
            }
        }
    }
}

/// Inputs from which providers are created.
#[derive(Debug)]
pub(super) struct InProcessProviderFactory {
    pub(super) environment: ToolEnvironment,
    pub(super) shows_output_schemas: bool,
}

impl InProcessProviderFactory {
    /// Returns the provider of a server's tools.
    pub(super) fn provider(&self, server: &ToolGroup) -> Result<InProcessTools, InvalidInProcessTools> {
        let provider = server.provider(self.environment.clone())?;
        Ok(if self.shows_output_schemas { provider.with_output_schemas() } else { provider })
    }
}

impl CustomToolRegistry {
    /// Creates the tools without offering any of them yet.
    pub(super) fn new(
        registry: Arc<ToolRegistry>,
        provider_factory: InProcessProviderFactory,
        servers: Vec<ToolGroup>,
    ) -> Self {
        Self { registry, provider_factory, servers: Mutex::new(servers) }
    }

    /// Registers all tools.
    ///
    /// # Errors
    /// An error if a name is in use.
    pub(super) async fn open(&self) -> Result<(), ChangeToolsError> {
        let servers = self.servers.lock().await;
        for server in servers.iter().filter(|server| is_offered(server)) {
            self.registry.register(Arc::new(self.provider_factory.provider(server)?)).await?;
        }
        Ok(())
    }

    /// Adds a tool under its own name.
    ///
    /// # Errors
    /// [`ChangeToolsError`] if the name is in use, or is an alias of a built-in tool.
    pub async fn add<F>(&self, tool: impl IntoTool<F>) -> Result<(), ChangeToolsError> {
        self.change(None, |own| Ok(own.clone().with(tool))).await
    }

    /// Removes one of the application's own tools, which belong to no server.
    ///
    /// # Errors
    /// [`ChangeToolsError::UnknownTool`].
    pub async fn remove(&self, tool: &str) -> Result<(), ChangeToolsError> {
        self.change(None, |own| without(own, tool)).await
    }

    /// Adds a server with its tools.
    ///
    /// # Errors
    /// [`ChangeToolsError`] if its name is in use.
    pub async fn serve(&self, server: ToolGroup) -> Result<(), ChangeToolsError> {
        let mut servers = self.servers.lock().await;
        self.registry.register(Arc::new(self.provider_factory.provider(&server)?)).await?;
        servers.push(server);
        Ok(())
    }

    /// Removes a server with its tools.
    ///
    /// # Errors
    /// [`ChangeToolsError::UnknownServer`].
    pub async fn withdraw(&self, server: &str) -> Result<(), ChangeToolsError> {
        let mut servers = self.servers.lock().await;
        let at = place(&servers, server)?;
        self.registry.unregister(server).await?;
        servers.remove(at);
        Ok(())
    }

    /// Adds a tool to a server.
    ///
    /// # Errors
    /// [`ChangeToolsError`] if no server has this name, or the tool's name is in use.
    pub async fn add_to<F>(&self, server: &str, tool: impl IntoTool<F>) -> Result<(), ChangeToolsError> {
        self.change(Some(server), |server| Ok(server.clone().with(tool))).await
    }

    /// Removes a tool of a server, by the name that its author defined.
    ///
    /// # Errors
    /// [`ChangeToolsError`] if the server or the tool does not exist.
    pub async fn remove_from(&self, server: &str, tool: &str) -> Result<(), ChangeToolsError> {
        self.change(Some(server), |server| without(server, tool)).await
    }

    /// Changes the tools of a server, or the application's own tools if `server` is `None`.
    async fn change(
        &self,
        server: Option<&str>,
        changed: impl FnOnce(&ToolGroup) -> Result<ToolGroup, ChangeToolsError>,
    ) -> Result<(), ChangeToolsError> {
        let mut servers = self.servers.lock().await;
        let at = server.map_or(Ok(0), |name| place(&servers, name))?;
        let changed = changed(&servers[at])?;
        let provider = Arc::new(self.provider_factory.provider(&changed)?);
        match (is_offered(&servers[at]), is_offered(&changed)) {
            (true, true) => self.registry.replace(provider).await?,
            (true, false) => self.registry.unregister(changed.name().as_str()).await?,
            // Not `replace`, which would displace a provider that has taken this name in the meantime.
            (false, _) => self.registry.register(provider).await?,
        }
        servers[at] = changed;
        Ok(())
    }
}

/// Returns `true` if the server is registered as a provider. For the application's own tools, this is the case only if
/// there are any.
fn is_offered(server: &ToolGroup) -> bool {
    !server.has_own_names() || !server.is_empty()
}

/// Returns the index of a server. Does not find the application's own tools.
fn place(servers: &[ToolGroup], name: &str) -> Result<usize, ChangeToolsError> {
    let is_meant = |server: &ToolGroup| server.name().as_str() == name && !server.has_own_names();
    servers.iter().position(is_meant).ok_or_else(|| ChangeToolsError::UnknownServer(name.to_owned()))
}

fn without(server: &ToolGroup, tool: &str) -> Result<ToolGroup, ChangeToolsError> {
    let unknown = || ChangeToolsError::UnknownTool { server: server.name().to_string(), tool: tool.to_owned() };
    server.clone().without(tool).ok_or_else(unknown)
}
