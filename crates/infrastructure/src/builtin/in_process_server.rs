//! Tools of a program that stand together under a name, as those of an MCP server do.

use crate::builtin::{
    built_in_tool::AnyBuiltInTool,
    into_tool::IntoTool,
    provider::{BuiltInTools, InvalidBuiltInTools},
    spellings,
    world::World,
};
use std::sync::Arc;
use toolstead_domain::server_name::{InvalidServerName, ServerName};

/// Tools under one name. A value: whoever runs it makes a provider of it.
#[derive(Debug, Clone)]
pub struct InProcessServer {
    name: ServerName,
    /// `None` for the tools of a program itself, which bear their own names.
    version: Option<String>,
    tools: Vec<Arc<dyn AnyBuiltInTool>>,
}

/// A server within this program. Lists, rules and the audit trail know its tools as `mcp__{name}__{tool}`, and it is
/// listed with its version beside the MCP servers.
///
/// # Errors
/// [`InvalidServerName`] when the name breaks the rule for names of servers.
pub fn in_process_server<T: AnyBuiltInTool + 'static>(
    name: &str,
    version: impl Into<String>,
    tools: impl IntoIterator<Item = T>,
) -> Result<InProcessServer, InvalidServerName> {
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn AnyBuiltInTool>).collect();
    Ok(InProcessServer { name: ServerName::parse(name)?, version: Some(version.into()), tools })
}

impl InProcessServer {
    /// The tools that a program adds under their own names.
    pub fn of_program(name: ServerName, tools: Vec<Arc<dyn AnyBuiltInTool>>) -> Self {
        Self { name, version: None, tools }
    }

    /// Its name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Tells whether it has no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Adds a tool.
    #[must_use]
    pub fn with<F>(mut self, tool: impl IntoTool<F>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Without the tool of this name; `None` if there is none.
    #[must_use]
    pub fn without(mut self, tool: &str) -> Option<Self> {
        let count = self.tools.len();
        self.tools.retain(|other| other.name() != tool);
        (self.tools.len() < count).then_some(self)
    }

    /// Tells whether its tools bear their own names.
    pub fn bears_own_names(&self) -> bool {
        self.version.is_none()
    }

    /// Offers them in a world that somebody else has charge of.
    ///
    /// # Errors
    /// [`InvalidBuiltInTools`] when a tool's name breaks MCP's rule, is there twice, or leads to a built-in tool.
    pub fn provider(&self, world: World) -> Result<BuiltInTools, InvalidBuiltInTools> {
        let tools = self.tools.iter().cloned();
        let provider = match &self.version {
            Some(version) => BuiltInTools::named(&self.name, tools, world)?.with_version(version),
            None => {
                // Who says `Read` means the built-in tool, and so do rules.
                let known = spellings();
                if let Some(tool) = self.tools.iter().find(|tool| known.contains(&tool.name())) {
                    return Err(InvalidBuiltInTools::Spelling(tool.name().to_owned()));
                }
                BuiltInTools::of_program(&self.name, tools, world)?
            }
        };
        Ok(provider.in_world_of_another())
    }
}
