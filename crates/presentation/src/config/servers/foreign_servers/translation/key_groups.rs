//! Keys of other programs with the same meaning.

use crate::config::tree::node::NodeContent;

/// The keys that list the tools a server may offer: kodelet, Gemini CLI, Codex.
pub(super) const ONLY_TOOLS: &[&str] = &[
    "tool_white_list",
    "includeTools",
    "enabledTools",
    "only_tools",
    "enabled_tools",
    "allowedTools",
    "allowed_tools",
];

/// The keys that list the tools a server may not offer: Roo Code, Gemini CLI, Codex.
pub(super) const DENY_TOOLS: &[&str] =
    &["disabledTools", "disabled_tools", "excludeTools", "disallowedTools", "tool_black_list", "deny_tools"];

/// Keys that describe a server for people, or for the program that installed it.
pub(super) const HARMLESS: &[&str] = &["description", "dev", "gallery", "name", "source", "version"];

/// Keys that let tools run without approval.
const WIDENING: &[&str] =
    &["alwaysAllow", "always_allow", "autoApprove", "auto_approve", "default_tools_approval_mode", "trust"];

/// Returns `true` if the key lets tools run without approval, and has a value that does so.
pub(super) fn widens(key: &str, content: &NodeContent) -> bool {
    let is_off = match content {
        NodeContent::Boolean(is_on) => !is_on,
        NodeContent::List(items) => items.is_empty(),
        NodeContent::Text(mode) => mode == "prompt",
        _ => false,
    };
    WIDENING.contains(&key) && !is_off
}

/// Returns `true` if other programs use this key for the transport of a server.
pub(super) fn is_transport(key: &str) -> bool {
    matches!(key, "type" | "transport" | "transportType" | "server_type")
}
