//! The tools of the program that embeds Toolstead, which come and go while it runs.

use super::StartupError;
use std::sync::Arc;
use tokio::sync::Mutex;
use toolstead_application::tool_registry::{RegistryError, ToolRegistry};
use toolstead_infrastructure::builtin::{
    in_process_server::InProcessServer,
    into_tool::IntoTool,
    provider::{BuiltInTools, InvalidBuiltInTools},
    world::World,
};

/// Adds and removes tools while the program runs. Whoever listens hears that the list changed; calls that run go on. A
/// name that is taken is an error, and nothing is changed then.
#[derive(Debug)]
pub struct ProgramTools {
    registry: Arc<ToolRegistry>,
    shop: Shop,
    /// The program's own tools come first.
    servers: Mutex<Vec<InProcessServer>>,
}

/// Tools that could not be added or removed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeToolsError {
    /// They cannot be offered.
    #[error(transparent)]
    Tools(#[from] InvalidBuiltInTools),
    /// A name is taken.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// There is no such server.
    #[error("this program has no server named `{0}`: `serve` adds one")]
    UnknownServer(String),
    /// There is no such tool.
    #[error("`{server}` has no tool named `{tool}`")]
    UnknownTool {
        /// The server, or the name of the program.
        server: String,
        /// The tool, as its author named it.
        tool: String,
    },
}

impl From<ChangeToolsError> for StartupError {
    /// None but the first two happens at the start.
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

/// What providers are made with.
#[derive(Debug)]
pub(super) struct Shop {
    pub(super) world: World,
    pub(super) shows_output_schemas: bool,
}

impl Shop {
    /// The provider of a server's tools.
    pub(super) fn provider(&self, server: &InProcessServer) -> Result<BuiltInTools, InvalidBuiltInTools> {
        let provider = server.provider(self.world.clone())?;
        Ok(if self.shows_output_schemas { provider.with_output_schemas() } else { provider })
    }
}

impl ProgramTools {
    /// Nothing is offered yet.
    pub(super) fn new(registry: Arc<ToolRegistry>, shop: Shop, servers: Vec<InProcessServer>) -> Self {
        Self { registry, shop, servers: Mutex::new(servers) }
    }

    /// Offers all from now on.
    ///
    /// # Errors
    /// When a name is taken.
    pub(super) async fn open(&self) -> Result<(), ChangeToolsError> {
        let servers = self.servers.lock().await;
        for server in servers.iter().filter(|server| is_offered(server)) {
            self.registry.register(Arc::new(self.shop.provider(server)?)).await?;
        }
        Ok(())
    }

    /// Adds a tool under its own name.
    ///
    /// # Errors
    /// [`ChangeToolsError`] when the name is taken, or leads to a built-in tool.
    pub async fn add<F>(&self, tool: impl IntoTool<F>) -> Result<(), ChangeToolsError> {
        self.change(None, |own| Ok(own.clone().with(tool))).await
    }

    /// Removes a tool that bears its own name.
    ///
    /// # Errors
    /// [`ChangeToolsError::UnknownTool`].
    pub async fn remove(&self, tool: &str) -> Result<(), ChangeToolsError> {
        self.change(None, |own| without(own, tool)).await
    }

    /// Adds a server with its tools.
    ///
    /// # Errors
    /// [`ChangeToolsError`] when its name is taken.
    pub async fn serve(&self, server: InProcessServer) -> Result<(), ChangeToolsError> {
        let mut servers = self.servers.lock().await;
        self.registry.register(Arc::new(self.shop.provider(&server)?)).await?;
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
    /// [`ChangeToolsError`] when there is no such server, or the name is taken.
    pub async fn add_to<F>(&self, server: &str, tool: impl IntoTool<F>) -> Result<(), ChangeToolsError> {
        self.change(Some(server), |server| Ok(server.clone().with(tool))).await
    }

    /// Removes a tool of a server, by the name that its author gave it.
    ///
    /// # Errors
    /// [`ChangeToolsError`] when there is no such server, or no such tool.
    pub async fn remove_from(&self, server: &str, tool: &str) -> Result<(), ChangeToolsError> {
        self.change(Some(server), |server| without(server, tool)).await
    }

    /// Changes a server's tools, or the program's own.
    async fn change(
        &self,
        server: Option<&str>,
        changed: impl FnOnce(&InProcessServer) -> Result<InProcessServer, ChangeToolsError>,
    ) -> Result<(), ChangeToolsError> {
        let mut servers = self.servers.lock().await;
        let at = server.map_or(Ok(0), |name| place(&servers, name))?;
        let changed = changed(&servers[at])?;
        let provider = Arc::new(self.shop.provider(&changed)?);
        match (is_offered(&servers[at]), is_offered(&changed)) {
            (true, true) => self.registry.replace(provider).await?,
            (true, false) => self.registry.unregister(changed.name().as_str()).await?,
            // Not `replace`: whoever bears the program's name meanwhile keeps its place.
            (false, _) => self.registry.register(provider).await?,
        }
        servers[at] = changed;
        Ok(())
    }
}

/// Tells whether it is a provider: the program's own tools are one while there are some.
fn is_offered(server: &InProcessServer) -> bool {
    !server.bears_own_names() || !server.is_empty()
}

/// The place of a server among them; the program's own tools are none.
fn place(servers: &[InProcessServer], name: &str) -> Result<usize, ChangeToolsError> {
    let is_meant = |server: &InProcessServer| server.name().as_str() == name && !server.bears_own_names();
    servers.iter().position(is_meant).ok_or_else(|| ChangeToolsError::UnknownServer(name.to_owned()))
}

fn without(server: &InProcessServer, tool: &str) -> Result<InProcessServer, ChangeToolsError> {
    let unknown = || ChangeToolsError::UnknownTool { server: server.name().to_string(), tool: tool.to_owned() };
    server.clone().without(tool).ok_or_else(unknown)
}
