//! The servers in a file of another program, and the lists with which the file switches servers off.

use super::client::ServerConfigDialect;
use crate::config::tree::{
    node::{Member, Node, NodeContent},
    origin::Origin,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The servers of a file, in its order.
#[derive(Debug, Default)]
pub(super) struct ServerList {
    pub(super) servers: Vec<Member>,
    /// Descriptions of the values that an editor asks the user for, by id.
    pub(super) inputs: BTreeMap<String, String>,
    /// `true` if variables of these inputs must not be shared with other servers that have inputs of the same name.
    pub(super) has_own_inputs: bool,
    /// Names of servers that the file switches off, outside of their tables.
    disabled: Vec<String>,
    /// Names of the only servers that the file switches on; `None`: all.
    allowed: Option<Vec<String>>,
}

impl ServerList {
    /// Creates a list of servers with the descriptions of their own inputs.
    pub(super) fn with(servers: Vec<Member>, inputs: BTreeMap<String, String>) -> Self {
        Self { servers, inputs, has_own_inputs: true, ..Self::default() }
    }

    /// Finds the servers in a file, and switches off those that its lists disable or do not allow. `folders` are those
    /// of the project, for files that describe several projects. `stem` is the name of the file without its extension.
    pub(super) fn of(root: Node, dialect: ServerConfigDialect, folders: &[PathBuf], stem: &str) -> Self {
        let mut list = Self::default();
        if dialect == ServerConfigDialect::Clai
            && let NodeContent::Table(members) = &root.content
            && members.iter().any(|member| matches!(member.name.as_str(), "command" | "url"))
        {
            let origin = root.origin.clone();
            list.servers.push(Member { name: stem.to_owned(), origin, node: root });
            return list;
        }
        list.take(root, dialect, folders);
        let is_off = |name: &str| {
            list.disabled.iter().any(|one| one == name)
                || list.allowed.as_ref().is_some_and(|allowed| allowed.iter().all(|one| one != name))
        };
        for server in &mut list.servers {
            if is_off(&server.name) {
                switch_off(server);
            }
        }
        list
    }

    fn take(&mut self, root: Node, dialect: ServerConfigDialect, folders: &[PathBuf]) {
        let NodeContent::Table(members) = root.content else { return };
        for Member { name, node, .. } in members {
            match (name.as_str(), node.content) {
                ("context_servers", NodeContent::Table(servers))
                    if matches!(dialect, ServerConfigDialect::Zed | ServerConfigDialect::General) =>
                {
                    self.servers.extend(servers);
                }
                ("mcp_servers", NodeContent::Table(servers))
                    if matches!(dialect, ServerConfigDialect::Codex | ServerConfigDialect::General) =>
                {
                    self.servers.extend(servers);
                }
                ("mcpServers" | "McpServers" | "servers", NodeContent::Table(servers)) => self.servers.extend(servers),
                // In `mcp`, Gemini CLI has settings for all servers, and VS Code (in its settings file) and kodelet
                // have the servers.
                ("mcp", content) if dialect == ServerConfigDialect::Gemini => {
                    for Member { name, node, .. } in table(content) {
                        match name.as_str() {
                            "allowed" => self.switches("allowMCPServers", node.content),
                            "excluded" => self.switches("excludeMCPServers", node.content),
                            _ => {}
                        }
                    }
                }
                ("mcp", content) => self.take(Node { content, origin: node.origin }, dialect, folders),
                ("projects", NodeContent::Table(projects)) if dialect == ServerConfigDialect::ClaudeCode => {
                    let here = |project: &Member| folders.iter().any(|folder| *folder == *Path::new(&project.name));
                    for project in projects.into_iter().filter(here) {
                        for member in table(project.node.content) {
                            match member.name.as_str() {
                                "mcpServers" => {
                                    let servers = table(member.node.content).into_iter();
                                    self.servers.extend(servers.map(|server| started_in(server, &project.name)));
                                }
                                name => self.switches(name, member.node.content),
                            }
                        }
                    }
                }
                ("inputs", NodeContent::List(inputs)) => self.inputs.extend(inputs.into_iter().filter_map(input)),
                (name, content) => self.switches(name, content),
            }
        }
    }

    /// Adds the names in a list with the key `name` to the disabled or allowed servers. Ignores other keys.
    fn switches(&mut self, name: &str, content: NodeContent) {
        match name {
            "disabledMcpServers" | "disabledMcpjsonServers" | "excludeMCPServers" => {
                self.disabled.extend(texts(content));
            }
            "allowMCPServers" if matches!(content, NodeContent::List(_)) => {
                self.allowed.get_or_insert_default().extend(texts(content));
            }
            _ => {}
        }
    }
}

/// Returns a server of one project, with the folder of the project as `cwd` if it has a command and no `cwd`.
fn started_in(mut server: Member, folder: &str) -> Member {
    let origin = server.origin.clone();
    if let NodeContent::Table(members) = &mut server.node.content
        && members.iter().any(|member| member.name == "command")
        && members.iter().all(|member| member.name != "cwd")
    {
        let node = Node { content: NodeContent::Text(folder.to_owned()), origin: origin.clone() };
        members.push(Member { name: "cwd".into(), origin, node });
    }
    server
}

/// Returns the servers in `.mcp.json` that a file of Claude Code switches off, in general or for a project in
/// `folders`.
pub(super) fn disabled_in_project(root: Node, folders: &[PathBuf]) -> Vec<String> {
    let mut list = ServerList::default();
    list.take(root, ServerConfigDialect::ClaudeCode, folders);
    list.disabled
}

/// Adds `disabled = true` to the table of a server, in place of any other value.
pub(super) fn switch_off(server: &mut Member) {
    let origin = server.origin.clone();
    let NodeContent::Table(members) = &mut server.node.content else { return };
    members.retain(|member| !matches!(member.name.as_str(), "disabled" | "enabled"));
    members.push(boolean("disabled", true, &origin));
}

fn boolean(name: &str, value: bool, origin: &Origin) -> Member {
    let node = Node { content: NodeContent::Boolean(value), origin: origin.clone() };
    Member { name: name.to_owned(), origin: origin.clone(), node }
}

fn table(content: NodeContent) -> Vec<Member> {
    match content {
        NodeContent::Table(members) => members,
        _ => Vec::new(),
    }
}

fn texts(content: NodeContent) -> Vec<String> {
    let NodeContent::List(nodes) = content else { return Vec::new() };
    let text = |node: Node| match node.content {
        NodeContent::Text(text) => Some(text),
        _ => None,
    };
    nodes.into_iter().filter_map(text).collect()
}

/// Returns the id and the description of a value that an editor asks the user for; `None` without an id.
fn input(node: Node) -> Option<(String, String)> {
    let (mut id, mut about) = (None, String::new());
    for Member { name, node, .. } in table(node.content) {
        match (name.as_str(), node.content) {
            ("id", NodeContent::Text(text)) => id = Some(text),
            ("description", NodeContent::Text(text)) => about = text,
            _ => {}
        }
    }
    Some((id?, about))
}
