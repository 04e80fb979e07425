//! MCP servers of files that the user does not trust yet.

use crate::config::{
    layers::ResolvedSettings,
    tree::{origin::Origin, schema::REACHED_BY},
};

/// A server that is defined in a file and not used until the file is trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct UntrustedServer {
    /// Name of the server in the file.
    pub name: String,
    /// Command with arguments, or URL, as written.
    pub what: String,
    /// Origin of the definition.
    pub origin: Origin,
}

/// Returns the servers that wait for trust, sorted by name.
pub(super) fn untrusted_servers(resolved: &ResolvedSettings) -> Vec<UntrustedServer> {
    let mut servers = Vec::new();
    for (name, keys) in resolved.named("mcp_servers") {
        for waiting in REACHED_BY.iter().filter_map(|key| keys.get(key)).flat_map(|setting| &setting.waiting) {
            let mut what = waiting.value.as_text().unwrap_or_default().to_owned();
            let same_file = |origin: &Origin| match (origin, &waiting.origin) {
                (Origin::File(a, _), Origin::File(b, _)) => a == b,
                (a, b) => a == b,
            };
            let args = keys.get("args").into_iter().flat_map(|setting| &setting.waiting);
            for item in args.filter(|one| same_file(&one.origin)).flat_map(|one| one.value.items()) {
                what.push(' ');
                what.push_str(&item.text);
            }
            servers.push(UntrustedServer { name: name.clone(), what, origin: waiting.origin.clone() });
        }
    }
    servers
}
