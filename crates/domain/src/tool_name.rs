//! The name of a tool for callers and rules.

use crate::server_name::ServerName;
use std::{borrow::Borrow, fmt, sync::Arc};

/// Valid tool name: 1 to 128 characters of `A-Z a-z 0-9 _ - .` (MCP 2025-11-25, server/tools, "Tool Names").
///
/// Cheap to clone. Names are case-sensitive.
///
/// ```
/// use toolstead_domain::{server_name::ServerName, tool_name::ToolName};
///
/// let server = ServerName::parse("git").unwrap();
/// assert_eq!(ToolName::for_upstream(&server, "git_status").as_str(), "mcp__git__git_status");
/// assert!(ToolName::parse("a b").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// Maximum length of names that every model provider accepts. Generated names do not exceed it.
const SAFE_LENGTH: usize = 64;

impl ToolName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`InvalidToolName`] with the reason if the text violates the rule of MCP.
    pub fn parse(text: &str) -> Result<Self, InvalidToolName> {
        let wrong = |reason: String| Err(InvalidToolName { name: text.chars().take(160).collect(), reason });
        if text.is_empty() {
            return wrong("it is empty".into());
        }
        if text.len() > 128 {
            return wrong(format!("it has {} bytes, at most 128 are allowed", text.len()));
        }
        match text.chars().find(|c| !is_name_char(*c)) {
            Some(c) => wrong(format!("{c:?} is not among A-Z, a-z, 0-9, `_`, `-` and `.`")),
            None => Ok(Self(text.into())),
        }
    }

    /// Returns the name under which the tool `tool` of the MCP server `server` is offered: `mcp__{server}__{tool}`.
    ///
    /// If this form would be longer than 64 characters or contain a character outside of the rule, it is shortened and
    /// ends in a hash of the original, so that different tools of one server have different names.
    /// [`crate::tool::ToolSource::McpServer`] stores the original name.
    pub fn for_upstream(server: &ServerName, tool: &str) -> Self {
        let prefix = format!("mcp__{server}__");
        Self(Self::fit(&prefix, tool).into())
    }

    /// Returns the name of an upstream tool that is advertised unchanged (`names = "plain"`). A name that violates the
    /// rule of MCP is changed, and ends in a hash of the original.
    pub fn for_plain_upstream(tool: &str) -> Self {
        Self::parse(tool).unwrap_or_else(|_| Self(Self::fit("", tool).into()))
    }

    fn fit(prefix: &str, tool: &str) -> String {
        let clean: String = tool.chars().map(|c| if is_name_char(c) { c } else { '_' }).collect();
        if clean == tool && !tool.is_empty() && prefix.len() + tool.len() <= SAFE_LENGTH {
            return format!("{prefix}{tool}");
        }
        let hash = format!("{:08x}", fnv1a(tool.as_bytes()));
        let room = SAFE_LENGTH.saturating_sub(prefix.len() + hash.len() + 1);
        format!("{prefix}{}-{hash}", &clean[..clean.len().min(room)])
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Returns the FNV-1a hash, folded to 32 bits: stable over releases, unlike the hasher of the standard library.
fn fnv1a(bytes: &[u8]) -> u32 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ (hash >> 32)) as u32
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Text that is not a valid tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a tool name: {reason}")]
pub struct InvalidToolName {
    name: String,
    reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn upstream(server: &str, tool: &str) -> String {
        ToolName::for_upstream(&ServerName::parse(server).unwrap(), tool).to_string()
    }

    #[test]
    fn a_name_follows_the_rule_of_mcp() {
        for good in ["a", "Read", "mcp__git__git_status", "a.b-c_d", &"x".repeat(128)] {
            assert_eq!(ToolName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "ä", "a/b", "a\u{202e}b", "a\0", &"x".repeat(129)] {
            assert!(ToolName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_name_of_an_upstream_tool_is_prefixed_with_its_server() {
        assert_eq!(upstream("git", "git_status"), "mcp__git__git_status");
        assert_eq!(upstream("system-info", "a.b"), "mcp__system-info__a.b");
    }

    #[test]
    fn unusual_and_long_upstream_names_map_to_distinct_valid_names() {
        let odd = ["a b", "a_b", "a\u{202e}b", "А", "A", "", &"n".repeat(300), &"n".repeat(301), "a\0b"];
        let names: std::collections::BTreeSet<String> = odd.iter().map(|tool| upstream("s", tool)).collect();
        assert_eq!(names.len(), odd.len(), "{names:?}");
        for name in names {
            assert!(name.len() <= 64 && ToolName::parse(&name).is_ok(), "{name}");
        }
    }
}
