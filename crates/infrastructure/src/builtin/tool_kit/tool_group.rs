//! Tools of an embedding application that are grouped under a name, like those of an MCP server.

use crate::builtin::{
    names_and_aliases,
    tool_kit::{
        built_in_tool::AnyTool,
        into_tool::IntoTool,
        provider::{InProcessTools, InvalidInProcessTools},
        tool_environment::ToolEnvironment,
    },
};
use std::sync::Arc;
use toolstead_domain::{InvalidServerName, ServerName};

/// A group of tools under one name. The runtime makes a provider of it.
#[derive(Debug, Clone)]
pub struct ToolGroup {
    name: ServerName,
    /// Version that lists of providers show; `None` for the tools of the application itself, which have their own
    /// names.
    version: Option<String>,
    tools: Vec<Arc<dyn AnyTool>>,
}

/// Creates a group of tools in this process. Lists, rules and the audit log name its tools `mcp__{name}__{tool}`, and
/// it is listed with its version beside the MCP servers.
///
/// # Errors
/// [`InvalidServerName`] when the name is not valid for a server.
pub fn tool_group<T: AnyTool + 'static>(
    name: &str,
    version: impl Into<String>,
    tools: impl IntoIterator<Item = T>,
) -> Result<ToolGroup, InvalidServerName> {
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn AnyTool>).collect();
    Ok(ToolGroup { name: ServerName::parse(name)?, version: Some(version.into()), tools })
}

impl ToolGroup {
    /// Creates the group of tools that an application adds under their own names.
    pub fn for_application(name: ServerName, tools: Vec<Arc<dyn AnyTool>>) -> Self {
        Self { name, version: None, tools }
    }

    /// Returns the name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns `true` if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Adds a tool.
    #[must_use]
    pub fn with<F>(mut self, tool: impl IntoTool<F>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Removes the tool of this name; returns `None` if there is none.
    #[must_use]
    pub fn without(mut self, tool: &str) -> Option<Self> {
        let count = self.tools.len();
        self.tools.retain(|other| other.name() != tool);
        (self.tools.len() < count).then_some(self)
    }

    /// Returns `true` if the tools have their own names.
    pub fn has_own_names(&self) -> bool {
        self.version.is_none()
    }

    /// Creates the provider of the tools, in an environment that another provider owns.
    ///
    /// # Errors
    /// [`InvalidInProcessTools`] when a name of a tool is not valid in MCP, not unique, or a name of a built-in tool.
    pub fn provider(&self, environment: ToolEnvironment) -> Result<InProcessTools, InvalidInProcessTools> {
        let tools = self.tools.iter().cloned();
        let provider = match &self.version {
            Some(version) => InProcessTools::named(&self.name, tools, environment)?.with_version(version),
            None => {
                // `Read` must remain the built-in tool, for callers and for rules.
                let known = names_and_aliases();
                if let Some(tool) = self.tools.iter().find(|tool| known.contains(&tool.name())) {
                    return Err(InvalidInProcessTools::BuiltInName(tool.name().to_owned()));
                }
                InProcessTools::for_application(&self.name, tools, environment)?
            }
        };
        Ok(provider.with_shared_environment())
    }
}
