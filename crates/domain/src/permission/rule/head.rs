//! The head of a rule, before its parentheses: a kind of access, or a tool.

use super::{
    Effect,
    kind::{AccessHeadDefinition, access_head},
};
use crate::{
    access::AccessKind,
    server_name::ServerName,
    tool::{Tool, ToolSource},
    tool_selection::wildcard_match,
};

#[derive(Debug, Clone)]
pub(super) enum RuleHead {
    /// Kind of access, of any tool.
    Access(&'static AccessHeadDefinition),
    /// Name of a tool, or a pattern of names.
    Tool(String),
}

impl RuleHead {
    pub(super) fn parse(text: &str, effect: Effect) -> Result<Self, String> {
        if let Some(head) = access_head(text) {
            return Ok(Self::Access(head));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
        if text.is_empty() || !text.chars().all(allowed) {
            return Err(format!("`{text}` is not a tool name: a rule is `Tool` or `Tool(spec)`"));
        }
        let Some(qualified) = text.strip_prefix("mcp__") else {
            if text.contains('*') && effect == Effect::Allow {
                return Err("an allow rule may use `*` only after `mcp__server__`: name the tool".into());
            }
            return Ok(Self::Tool(text.into()));
        };
        match qualified.split_once("__") {
            // `mcp__server` is every tool of the server.
            None if !qualified.contains('*') => Ok(Self::Tool(format!("{text}__*"))),
            None if effect == Effect::Allow => Err("an allow rule must name the server: `mcp__server__*`".into()),
            None => Ok(Self::Tool(text.into())),
            Some((server, _)) if server.contains('*') && effect == Effect::Allow => {
                Err("an allow rule must name the server without `*`: `mcp__server__tool`".into())
            }
            Some((_, "")) => {
                Err("the tool's name is missing after the server's: write `mcp__server__*` for all".into())
            }
            Some(_) => Ok(Self::Tool(text.into())),
        }
    }
}

impl RuleHead {
    /// Returns `true` for the heads `Resource` and `Prompt`.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Self::Access(head) if matches!(head.access, AccessKind::Resource | AccessKind::Prompt))
    }

    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Access(head) => head.name,
            Self::Tool(name) => name,
        }
    }
}

/// Returns `true` if the pattern covers everything of the tool's server: `mcp__server`, `mcp__server__*`.
pub(super) fn names_server(pattern: &str, tool: &Tool) -> bool {
    let everything = pattern.strip_suffix('*').map(|rest| rest.trim_end_matches('*'));
    let name = everything.and_then(|name| name.strip_prefix("mcp__")?.strip_suffix("__"));
    name.is_some() && tool.server().map(ServerName::as_str) == name
}

/// Returns `true` if an allow rule with this pattern matches the tool: a tool of a server only by its qualified name,
/// whatever its server calls it.
pub(super) fn allows_name(pattern: &str, tool: &Tool) -> bool {
    match tool.source() {
        ToolSource::McpServer { .. } => fits(pattern, tool.rule_name().as_str()),
        ToolSource::BuiltIn | ToolSource::Embedded(_) => names(pattern, tool),
    }
}

pub(super) fn fits(pattern: &str, name: &str) -> bool {
    if pattern.contains('*') { wildcard_match(pattern, name) } else { pattern == name }
}

/// Returns `true` if the pattern matches any name of the tool.
pub(super) fn names(pattern: &str, tool: &Tool) -> bool {
    let fits = |name: &str| fits(pattern, name);
    fits(tool.name().as_str())
        || (tool.server().is_some() && fits(tool.rule_name().as_str()))
        || tool.aliases.iter().any(|alias| fits(alias.name))
}

/// Returns `true` if a deny or ask rule with this pattern matches the tool: also by the names that other clients use
/// for the tools of a server.
pub(super) fn matches_any_name(pattern: &str, tool: &Tool) -> bool {
    let is_upstream = |spellings: [String; 3]| spellings.iter().any(|spelling| fits(pattern, spelling));
    names(pattern, tool) || tool.upstream_aliases().is_some_and(is_upstream)
}
