//! The table of a server as TOML.

use crate::config::tree::{
    format::ConfigFormat,
    node::{Node, NodeContent},
    origin::Origin,
    value::{TextItem, ValidatedConfigValue},
};
use serde_json::Value as Json;
use std::{collections::BTreeSet, path::Path, sync::Arc};
use toolstead_domain::ServerName;

/// Order of the keys in the table of an imported server. Other keys follow them.
const ORDER: [&str; 13] = [
    "command",
    "args",
    "cwd",
    "env",
    "env_file",
    "url",
    "type",
    "headers",
    "only_tools",
    "deny_tools",
    "connect_timeout_seconds",
    "timeout_seconds",
    "disabled",
];

/// Key with the path of the file for secrets, which depends on the name of the server.
const ENV_FILE: &str = "env_file";

/// Text in place of a secret.
const MASK: &str = "…";

/// Table `[mcp_servers.NAME]` of a server to import.
#[derive(Debug, Clone)]
pub(super) struct ImportedServerTable {
    name: ServerName,
    values: Vec<(String, ValidatedConfigValue)>,
    /// Places of secrets: the key, and the name or index within it.
    secrets: BTreeSet<(String, String)>,
    comment: String,
}

impl ImportedServerTable {
    pub(super) fn new(
        name: ServerName,
        mut values: Vec<(String, ValidatedConfigValue)>,
        secrets: BTreeSet<(String, String)>,
        owner: &str,
        origin: &Origin,
    ) -> Self {
        values.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key).unwrap_or(ORDER.len()));
        let comment: String =
            format!("From {owner}, {}", origin.place()).chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Self { name, values, secrets, comment }
    }

    /// Returns the command with its arguments, or the URL, without secrets.
    pub(super) fn what(&self) -> String {
        let mut words = Vec::new();
        for (key, value) in &self.values {
            match (key.as_str(), value) {
                ("command" | "url", ValidatedConfigValue::Text(text)) => {
                    words.push(self.masked(key, "", text).to_owned())
                }
                ("args", ValidatedConfigValue::List(items)) => {
                    let shown = items.iter().enumerate();
                    words.extend(shown.map(|(at, item)| self.masked(key, &at.to_string(), &item.text).to_owned()));
                }
                _ => {}
            }
        }
        words.join(" ")
    }

    /// Returns the table as TOML, with `…` in place of each secret.
    pub(super) fn shown(&self) -> String {
        self.written(|key, name, text| self.masked(key, name, text))
    }

    /// Returns the table as it is written to the file, with secrets.
    pub(super) fn text(&self) -> String {
        format!("# {}\n{}", self.comment, self.written(|_, _, text| text))
    }

    /// Returns the keys of the server as JSON, with secrets; `null` if the table is not valid TOML.
    pub(super) fn to_json(&self) -> Json {
        tables(&self.text()).ok().and_then(|tables| tables.get(self.name.as_str()).cloned()).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns `true` if both tables have the same keys and values. Names of servers and `env_file` are ignored.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
        let described = |block: &Self| -> Vec<(String, Json)> {
            let values = block.values.iter().filter(|(key, _)| key != ENV_FILE);
            values.map(|(key, value)| (key.clone(), value.to_json())).collect()
        };
        described(self) == described(other)
    }

    fn masked<'t>(&self, key: &str, name: &str, text: &'t str) -> &'t str {
        if self.secrets.contains(&(key.to_owned(), name.to_owned())) { MASK } else { text }
    }

    fn written<'t>(&'t self, shown: impl Fn(&str, &str, &'t str) -> &'t str) -> String {
        let mut text = format!("[mcp_servers.{}]\n", self.name);
        for (key, value) in &self.values {
            let value = match value {
                ValidatedConfigValue::Map(members) => {
                    let member = |(name, item): &'t (String, TextItem)| {
                        format!("{} = {}", quoted_key(name), quoted(shown(key, name, &item.text)))
                    };
                    format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
                }
                ValidatedConfigValue::List(items) => {
                    let item = |(at, item): (usize, &'t TextItem)| quoted(shown(key, &at.to_string(), &item.text));
                    format!("[{}]", items.iter().enumerate().map(item).collect::<Vec<_>>().join(", "))
                }
                ValidatedConfigValue::Text(value) => quoted(shown(key, "", value)),
                other => other.to_string(),
            };
            text.push_str(&format!("{key} = {value}\n"));
        }
        text
    }
}

/// Returns the keys of each server in a TOML text, by name of the server; `null` if it has no table `mcp_servers`.
///
/// # Errors
/// The reason why the text is not valid.
pub(super) fn tables(text: &str) -> Result<Json, String> {
    let root =
        ConfigFormat::Toml.read(text, &Arc::from(Path::new("config.toml"))).map_err(|problem| problem.message)?;
    Ok(section(&root).map(NodeContent::to_json).unwrap_or_default())
}

fn section(root: &Node) -> Option<&NodeContent> {
    let NodeContent::Table(members) = &root.content else { return None };
    members.iter().find(|member| member.name == "mcp_servers").map(|member| &member.node.content)
}

/// Returns the line of a variable in an `env_file`; `None` if such a line cannot hold it.
pub(super) fn env_line(name: &str, value: &str) -> Option<String> {
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '=' || c == '#');
    // References are not replaced in such a file.
    if !is_name || value.contains(['\n', '\r', '\0']) || value.contains("${") {
        return None;
    }
    match (value.contains('\''), value.contains('"')) {
        (false, _) => Some(format!("{name}='{value}'\n")),
        (true, false) => Some(format!("{name}=\"{value}\"\n")),
        (true, true) => None,
    }
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn quoted_key(name: &str) -> String {
    toml_edit::Key::new(name).to_string()
}
