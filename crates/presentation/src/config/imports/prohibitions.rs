//! Keys of other systems that may forbid something and have no equivalent here. A file with such a key is rejected, so
//! that the user does not rely on a prohibition that is not enforced.

use crate::config::tree::{
    node::{Member, NodeContent},
    origin::Origin,
    problem::Problem,
};

/// Keys of `permissions` in files of Claude Code that forbid nothing that exists in Toolstead.
pub(super) const HARMLESS_PERMISSIONS: &[&str] = &["disableAutoMode", "skipDangerousModePermissionPrompt"];

/// Keys of a tool's table that forbid nothing.
pub(super) const HARMLESS_OF_TOOLS: &[&str] = &["category", "description", "name", "tags", "title"];

/// Tables that do not concern tools, or whose member names are not keys. Servers and hooks are read elsewhere.
const OTHERS: &[&str] = &["env", "hooks", "mcpServers"];

/// Names of prohibitions that contain none of [`WORDS`].
const NAMES: &[&str] = &["allowManagedPermissionRulesOnly", "allowedMcpServers"];

/// Words in the names of prohibitions, in any naming style.
const WORDS: &[&str] = &[
    "ban",
    "banned",
    "block",
    "blocked",
    "blocklist",
    "denied",
    "deny",
    "denylist",
    "disallow",
    "disallowed",
    "forbid",
    "forbidden",
    "restrict",
    "restricted",
];

/// Words in the names of further keys that restrict MCP servers.
const WORDS_OF_SERVERS: &[&str] = &[
    "black",
    "blacklist",
    "disable",
    "disabled",
    "exclude",
    "excluded",
    "hide",
    "hidden",
    "include",
    "included",
    "only",
    "readonly",
    "sandbox",
    "white",
    "whitelist",
    "filter",
    "filters",
];

/// Returns a problem if an ignored part of a file contains a prohibition.
pub(super) fn find_prohibition(name: &str, origin: &Origin, content: &NodeContent) -> Option<Problem> {
    if OTHERS.contains(&name) {
        return None;
    }
    if forbids(name, content) {
        return Some(unknown(name, content, origin));
    }
    let below =
        |members: &[Member]| members.iter().find_map(|one| find_prohibition(&one.name, &one.origin, &one.node.content));
    match content {
        NodeContent::Table(members) => below(members),
        NodeContent::List(nodes) => nodes.iter().find_map(|node| match &node.content {
            NodeContent::Table(members) => below(members),
            _ => None,
        }),
        _ => None,
    }
}

/// Returns `true` if the key of an MCP server may remove something: tools, rights or the server itself.
pub(in crate::config) fn may_narrow(name: &str, content: &NodeContent) -> bool {
    has_word(name, content, WORDS) || has_word(name, content, WORDS_OF_SERVERS)
}

/// Returns `true` if the name is that of a prohibition, and the value forbids something.
fn forbids(name: &str, content: &NodeContent) -> bool {
    has_word(name, content, WORDS)
}

fn has_word(name: &str, content: &NodeContent, holds: &[&str]) -> bool {
    let is_off = match content {
        NodeContent::Boolean(is_on) => !is_on,
        NodeContent::List(items) => items.is_empty(),
        NodeContent::Table(members) => members.is_empty(),
        _ => false,
    };
    // `deniedMcpServers`, `denied_servers` and `denied-servers` are split into words in the same way.
    let mut words = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            words.push('-');
        }
        words.push(letter.to_ascii_lowercase());
    }
    !is_off && (NAMES.contains(&name) || words.split(['-', '_', '.']).any(|word| holds.contains(&word)))
}

/// Returns the problem that the key is unknown and the file is therefore not used.
pub(super) fn unknown(key: &str, content: &NodeContent, origin: &Origin) -> Problem {
    let message = format!(
        "`{key}` ({content}) is unknown and may forbid something, so the file is not used: write its prohibitions as \
         `deny` rules, and remove it from the imported file"
    );
    Problem::new(origin.clone(), message)
}
