//! Default timeouts of single tools and servers.

use std::{collections::BTreeMap, time::Duration};
use toolstead_domain::{ServerName, Tool};

/// Default timeouts of single tools (`[tools.NAME] timeout`) and of all tools of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolTimeouts {
    /// Timeouts by name or alias of the tool.
    pub by_tool: BTreeMap<String, Duration>,
    /// Timeouts by server.
    pub by_server: BTreeMap<ServerName, Duration>,
}

impl ToolTimeouts {
    /// Returns the timeout of the tool, or else that of its server.
    pub(super) fn of(&self, tool: &Tool) -> Option<Duration> {
        if self.by_tool.is_empty() && self.by_server.is_empty() {
            return None;
        }
        let named = |name: &str| self.by_tool.get(name).copied();
        named(tool.name().as_str())
            .or_else(|| named(tool.rule_name().as_str()))
            .or_else(|| tool.aliases.iter().find_map(|alias| named(alias.name)))
            .or_else(|| self.by_server.get(tool.server()?).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Alias, Category, Dialect, ToolName, ToolSource};

    #[test]
    fn a_timeout_of_a_tool_under_any_of_its_names_overrides_that_of_its_server() {
        let server = ServerName::parse("git").unwrap();
        let source = ToolSource::McpServer { server: server.clone(), tool: "log".into() };
        let mut tool = Tool::new(ToolName::for_plain_upstream("log"), Default::default(), Category::Mcp, source);
        tool.aliases = vec![Alias::new("history", Dialect("other"), &[])];
        let seconds = Duration::from_secs;
        let mut timeouts = ToolTimeouts::default();
        assert_eq!(timeouts.of(&tool), None);
        timeouts.by_server.insert(server, seconds(1));
        assert_eq!(timeouts.of(&tool), Some(seconds(1)));
        for (name, time) in [("history", 2), ("mcp__git__log", 3), ("log", 4)] {
            timeouts.by_tool.insert(name.into(), seconds(time));
            assert_eq!(timeouts.of(&tool), Some(seconds(time)), "{name}");
        }
    }
}
