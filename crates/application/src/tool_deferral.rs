//! Deferral of tools: above a threshold, a list contains only some tools, and models find the others with
//! `tool_search`.
//!
//! The decision depends only on the tools and the policy of one scope, so no state is stored between requests.

use std::collections::BTreeSet;
use toolstead_domain::{PermissionPolicy, ServerName, Tool, ToolSource};

/// Names of the tools that search and call deferred tools.
pub const SEARCH_TOOLS: [&str; 2] = ["tool_search", "call_tool"];

/// Bytes of a definition that count as one token.
const BYTES_PER_TOKEN: usize = 4;

/// Threshold above which lists are deferred, and the tools that every list contains nevertheless.
///
/// ```
/// use toolstead_application::tool_deferral::ToolDeferral;
///
/// let deferral = ToolDeferral { above_tools: Some(100), above_tokens: Some(15_000), ..ToolDeferral::default() };
/// assert_ne!(deferral, ToolDeferral::never());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolDeferral {
    /// Maximum number of tools in a whole list; `None`: no limit.
    pub above_tools: Option<usize>,
    /// Maximum size of a whole list in tokens, of four bytes each; `None`: no limit.
    pub above_tokens: Option<usize>,
    /// Servers whose tools are in each list.
    pub loaded_servers: BTreeSet<ServerName>,
    /// Names of built-in tools that are in each list.
    pub loaded_tools: BTreeSet<String>,
}

/// Form of a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolListForm {
    /// All tools, without those that search and call deferred tools.
    #[default]
    Whole,
    /// All tools, or if they exceed the threshold, some tools with those that search and call the others.
    Deferred,
    /// All tools, with those that search and call deferred tools, for callers that apply [`ToolDeferral`] themselves.
    WithSearchTools,
}

impl ToolDeferral {
    /// Returns the settings that defer no tools.
    pub fn never() -> Self {
        Self::default()
    }

    /// Returns the tools of a list in this form, in their order. `tool` returns the tool of an item, and `bytes` the
    /// size of its definition.
    pub(crate) fn apply<T>(
        &self,
        form: ToolListForm,
        mut tools: Vec<T>,
        policy: &PermissionPolicy,
        tool: impl Fn(&T) -> &Tool,
        bytes: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let is_search_tool = |one: &T| is_search_tool(tool(one));
        let is_deferred = match form {
            ToolListForm::Whole => false,
            ToolListForm::WithSearchTools => return tools,
            // Without both tools, deferred ones could not be called.
            ToolListForm::Deferred => {
                tools.iter().filter(|one| is_search_tool(one)).count() == SEARCH_TOOLS.len()
                    && self.is_exceeded(tools.iter().filter(|one| !is_search_tool(one)).map(bytes))
            }
        };
        match is_deferred {
            true => tools.retain(|one| is_search_tool(one) || self.is_loaded(tool(one), policy)),
            false => tools.retain(|one| !is_search_tool(one)),
        }
        tools
    }

    /// Returns `true` if tools with definitions of these sizes exceed the threshold.
    fn is_exceeded(&self, sizes: impl Iterator<Item = usize>) -> bool {
        let (mut tools, mut bytes) = (0_usize, 0_usize);
        for size in sizes {
            tools += 1;
            bytes = bytes.saturating_add(size);
            let is_above = |limit: Option<usize>, size: usize| limit.is_some_and(|limit| size > limit);
            if is_above(self.above_tools, tools) || is_above(self.above_tokens, bytes.div_ceil(BYTES_PER_TOKEN)) {
                return true;
            }
        }
        false
    }

    /// Returns `true` if deferred lists contain the tool, too: the settings name it or its server, or the policy
    /// selects it by its literal name.
    fn is_loaded(&self, tool: &Tool, policy: &PermissionPolicy) -> bool {
        let is_of_loaded_server = match tool.source() {
            ToolSource::BuiltIn => self.loaded_tools.contains(tool.own_name().as_str()),
            ToolSource::McpServer { server, .. } | ToolSource::Embedded(server) => self.loaded_servers.contains(server),
        };
        is_of_loaded_server || policy.selects_literally(tool)
    }
}

/// Returns `true` for the tools that search and call deferred tools.
pub(crate) fn is_search_tool(tool: &Tool) -> bool {
    matches!(tool.source(), ToolSource::BuiltIn) && SEARCH_TOOLS.contains(&tool.own_name().as_str())
}

#[cfg(test)]
mod tests;
