//! Settings of Claude Code, and the options of its SDK.

use crate::config::{
    imports::{
        prohibitions,
        translation::{ForeignFormat, TranslatedFileBuilder},
    },
    tree::{
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
    },
};
use toolstead_domain::Effect;

pub(super) const FORMAT: ForeignFormat = ForeignFormat { keys: &["permissions"], take };

fn take(made: &mut TranslatedFileBuilder<'_>, member: Member) -> Option<Member> {
    let Member { name, origin, node } = member;
    match (name.as_str(), node.content) {
        ("permissions", NodeContent::Table(members)) => members.into_iter().for_each(|one| permission(made, one)),
        ("allowedTools", content) => made.rules(&name, Effect::Allow, content, &node.origin),
        ("disallowedTools", content) => made.rules(&name, Effect::Deny, content, &node.origin),
        ("additionalDirectories", content) => made.folders(&name, content, &node.origin),
        ("permissionMode", content) => mode(made, content, &node.origin),
        ("disabledMcpjsonServers", content) => {
            for (server, origin) in made.texts(&name, content, &node.origin) {
                made.derived_rule(Effect::Deny, format!("mcp__{server}"), format!("`{server}` of `{name}`"), &origin);
            }
        }
        (_, content) => return Some(Member { name, origin, node: Node { content, ..node } }),
    }
    None
}

/// Translates one member of `permissions`.
fn permission(made: &mut TranslatedFileBuilder<'_>, member: Member) {
    let Member { name, origin, node } = member;
    match name.as_str() {
        "allow" => made.rules(&name, Effect::Allow, node.content, &node.origin),
        "ask" => made.rules(&name, Effect::Ask, node.content, &node.origin),
        "deny" => made.rules(&name, Effect::Deny, node.content, &node.origin),
        "defaultMode" => mode(made, node.content, &node.origin),
        "additionalDirectories" => made.folders(&name, node.content, &node.origin),
        "disableBypassPermissionsMode" if node.content == NodeContent::Text("disable".into()) => {
            made.put("permissions", "disable_bypass", &origin, NodeContent::Boolean(true));
        }
        _ if prohibitions::HARMLESS_PERMISSIONS.contains(&name.as_str()) => {
            made.note(&origin, format!("`permissions.{name}` has no meaning here"));
        }
        _ => made.problems.push(prohibitions::unknown(&format!("permissions.{name}"), &node.content, &origin)),
    }
}

fn mode(made: &mut TranslatedFileBuilder<'_>, content: NodeContent, origin: &Origin) {
    let mode = match &content {
        NodeContent::Text(text) => match text.as_str() {
            "default" => "default",
            "plan" => "plan",
            "acceptEdits" => "accept_edits",
            "dontAsk" => "dont_ask",
            "bypassPermissions" => "bypass",
            // This mode is more lenient than the default mode, which applies without it.
            "auto" => return made.note(origin, "the mode \"auto\" is unknown here and left out"),
            _ => {
                let message = format!("the mode {text:?} is unknown, and may be stricter than any known mode");
                return made.problems.push(Problem::new(origin.clone(), message));
            }
        },
        other => {
            let message = format!("the mode must be a text, got {other}");
            return made.problems.push(Problem::new(origin.clone(), message));
        }
    };
    made.put("permissions", "mode", origin, NodeContent::Text(mode.into()));
}
