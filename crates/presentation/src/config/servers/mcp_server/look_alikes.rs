//! Servers whose names look alike: `git-hub` and `git_hub`, `ticket1` and `ticketl`.

use super::ConfiguredServer;
use crate::config::{layers::LayerKind, tree::problem::Problem};
use std::collections::BTreeMap;
use toolstead_domain::server_name::folded_name;

/// Returns the servers without those whose names look like that of a server from a more trusted layer, each with a
/// note. Two such servers of equal trust are both rejected, as problems. Disabled servers remain and reject no
/// others.
pub(super) fn reject(
    servers: Vec<ConfiguredServer>,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> Vec<ConfiguredServer> {
    let mut by_name: BTreeMap<String, Vec<(u8, String)>> = BTreeMap::new();
    for server in servers.iter().filter(|server| !server.disabled) {
        let named = (trust(server.launched_by), server.name.to_string());
        by_name.entry(folded_name(server.name.as_str())).or_default().push(named);
    }
    let mut accepted = Vec::new();
    for server in servers {
        let alike = by_name.get(&folded_name(server.name.as_str())).map(Vec::as_slice).unwrap_or_default();
        let own = trust(server.launched_by);
        let mut others = alike.iter().filter(|(_, name)| *name != server.name.as_str());
        let strongest = others.by_ref().filter(|(trust, _)| *trust >= own).max();
        match strongest.filter(|_| !server.disabled) {
            None => accepted.push(server),
            Some((trust, other)) => {
                let message = format!(
                    "`mcp_servers.{}` is rejected: its name looks like that of `mcp_servers.{other}`. Rename one of them",
                    server.name
                );
                let list = if *trust > own { &mut *notes } else { &mut *problems };
                list.push(Problem::new(server.origin.clone(), message));
            }
        }
    }
    accepted
}

/// Returns the rank of a layer: what a project or another program can write is trusted less.
fn trust(layer: LayerKind) -> u8 {
    match layer {
        LayerKind::Foreign(_) => 0,
        LayerKind::Project => 1,
        LayerKind::Local => 2,
        LayerKind::User | LayerKind::Chosen | LayerKind::Environment | LayerKind::Flags => 3,
        LayerKind::Administrator => 4,
    }
}
