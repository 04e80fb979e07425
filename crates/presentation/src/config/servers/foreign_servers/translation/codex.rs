//! Keys that only Codex has.

use super::{MAX_CONNECT_SECONDS, MAX_SECONDS, Translator, member_of, narrows};
use crate::config::{
    imports::prohibitions,
    tree::{
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
    },
};

/// Returns `true` if [`take`] translates this key.
pub(super) fn is_key(key: &str) -> bool {
    matches!(
        key,
        "bearer_token"
            | "bearer_token_env_var"
            | "env_http_headers"
            | "env_vars"
            | "required"
            | "startup_timeout_ms"
            | "startup_timeout_sec"
            | "tool_timeout_sec"
            | "tools"
    )
}

/// Translates one key of Codex and adds the result to `translator`. A value of an unsuitable type is recorded as
/// ignored.
///
/// # Errors
/// A [`Problem`] if a setting of a single tool may restrict it and has no equivalent.
pub(super) fn take(
    translator: &mut Translator<'_>,
    key: &str,
    content: NodeContent,
    origin: &Origin,
) -> Result<(), Problem> {
    match (key, content) {
        ("bearer_token", NodeContent::Text(token)) => authorization(translator, &token, origin),
        ("bearer_token_env_var", NodeContent::Text(name)) => authorization(translator, &format!("${{{name}}}"), origin),
        ("env_http_headers", NodeContent::Table(members)) => {
            let header = |member: Member| match &member.node.content {
                NodeContent::Text(name) => {
                    let reference = NodeContent::Text(format!("${{{name}}}"));
                    member_of(&member.name, reference, &member.origin)
                }
                _ => member,
            };
            translator.headers.extend(members.into_iter().map(header));
        }
        ("env_vars", NodeContent::List(names)) => {
            translator.env.extend(names.into_iter().filter_map(|node| {
                let name = variable(&node)?;
                let reference = NodeContent::Text(format!("${{{name}}}"));
                Some(member_of(&name, reference, &node.origin))
            }));
        }
        ("required", content) => translator.is_required |= content == NodeContent::Boolean(true),
        ("startup_timeout_ms", content) => {
            translator.seconds("connect_timeout_seconds", key, content, 1, MAX_CONNECT_SECONDS, origin);
        }
        ("startup_timeout_sec", content) => {
            translator.seconds("connect_timeout_seconds", key, content, 1000, MAX_CONNECT_SECONDS, origin);
        }
        ("tool_timeout_sec", content) => {
            translator.seconds("timeout_seconds", key, content, 1000, MAX_SECONDS, origin);
        }
        ("tools", NodeContent::Table(tools)) => {
            let mut denied = Vec::new();
            for tool in tools {
                if is_denied(translator, &tool)? {
                    denied.push(Node { content: NodeContent::Text(tool.name), origin: tool.origin });
                }
            }
            if !denied.is_empty() {
                deny(translator, denied, origin);
            }
        }
        (key, _) => translator.ignored.push(format!("`{key}`")),
    }
    Ok(())
}

fn authorization(translator: &mut Translator<'_>, token: &str, origin: &Origin) {
    let value = NodeContent::Text(format!("Bearer {token}"));
    translator.headers.push(member_of("Authorization", value, origin));
}

/// Returns the name of a variable: a text, or the `name` of a table.
fn variable(node: &Node) -> Option<String> {
    match &node.content {
        NodeContent::Text(name) => Some(name.clone()),
        NodeContent::Table(members) => {
            members.iter().find(|one| one.name == "name").and_then(|one| variable(&one.node))
        }
        _ => None,
    }
}

/// Returns `true` if the settings of a tool switch it off. Records in `translator` the settings that have no
/// equivalent, and fails if one may restrict the tool.
fn is_denied(translator: &mut Translator<'_>, tool: &Member) -> Result<bool, Problem> {
    let NodeContent::Table(settings) = &tool.node.content else { return Ok(false) };
    let mut is_denied = false;
    for setting in settings {
        let key = format!("tools.{}.{}", tool.name, setting.name);
        match (setting.name.as_str(), &setting.node.content) {
            ("enabled", NodeContent::Boolean(is_on)) => is_denied |= !is_on,
            // Without an allow rule every call requires approval here.
            ("approval_mode", NodeContent::Text(mode)) if mode == "prompt" => {}
            ("approval_mode", _) => translator.widening.push(format!("`{key}`")),
            (name, content) if prohibitions::may_narrow(name, content) => {
                return Err(narrows(&key, setting.origin.clone()));
            }
            _ => translator.ignored.push(format!("`{key}`")),
        }
    }
    Ok(is_denied)
}

/// Adds tools to `deny_tools`, which `disabled_tools` may have set.
fn deny(translator: &mut Translator<'_>, tools: Vec<Node>, origin: &Origin) {
    let known = translator.keys.iter_mut().find(|key| key.name == "deny_tools");
    match known.map(|key| &mut key.node.content) {
        Some(NodeContent::List(denied)) => denied.extend(tools),
        _ => translator.put("deny_tools", NodeContent::List(tools), origin),
    }
}
