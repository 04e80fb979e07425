//! Tools and providers that an embedding application adds.

use std::sync::Arc;
use toolstead_domain::{ContextProvider, ServerName, ToolProvider};
use toolstead_infrastructure::{
    builtin::{AnyTool, ToolGroup},
    mcp::client::config::UpstreamConfig,
};

/// Tools and providers that an embedding application adds, beside those of the configuration.
pub(super) struct AddedProviders {
    /// Name of the embedding application, as the source of its own tools.
    pub(super) program_name: ServerName,
    /// Tools under their own names.
    pub(super) tools: Vec<Arc<dyn AnyTool>>,
    /// Groups of tools, each offered like a server within this process.
    pub(super) groups: Vec<ToolGroup>,
    /// Providers of tools.
    pub(super) providers: Vec<Arc<dyn ToolProvider>>,
    /// Providers of resources and prompts.
    pub(super) context_providers: Vec<Arc<dyn ContextProvider>>,
    /// MCP servers.
    pub(super) upstreams: Vec<UpstreamConfig>,
}

impl Default for AddedProviders {
    fn default() -> Self {
        let (tools, groups, providers, context_providers, upstreams) = Default::default();
        Self { program_name: ServerName::program(), tools, groups, providers, context_providers, upstreams }
    }
}

impl AddedProviders {
    /// Returns the groups of tools that run in this process. The first one holds the tools under their own names.
    pub(super) fn tool_groups(&self) -> Vec<ToolGroup> {
        let own = ToolGroup::for_application(self.program_name.clone(), self.tools.clone());
        std::iter::once(own).chain(self.groups.iter().cloned()).collect()
    }

    /// Returns `true` if a tool may have any name, because its provider lists it only at run time.
    pub(super) fn may_offer_any_name(&self) -> bool {
        !self.providers.is_empty() || !self.upstreams.is_empty()
    }

    /// Returns `true` if an added MCP server has this name.
    pub(super) fn has_upstream(&self, name: &str) -> bool {
        self.upstreams.iter().any(|upstream| upstream.name.as_str() == name)
    }
}
