//! The environment of the process, read once. No other part of the program reads it.

use crate::config::tree::{
    node::{Member, Node, NodeContent},
    origin::Origin,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Prefix of all variables of Toolstead.
const PREFIX: &str = "TOOLSTEAD_";
/// Variable with the bearer token of the server.
pub const SERVER_TOKEN: &str = "TOOLSTEAD_SERVER_TOKEN";
/// Variable with the log filter, in the syntax of `tracing_subscriber::EnvFilter`.
pub const LOG: &str = "TOOLSTEAD_LOG";

/// Variables that Toolstead sets for hooks. A hook may start Toolstead, and these are not settings.
const OF_HOOKS: &[&str] = &["TOOLSTEAD_PROJECT_DIR", "TOOLSTEAD_HOOK_EVENT", "TOOLSTEAD_SESSION_ID"];
/// Variable with the socket of the tools that a command may call. Such a command may start Toolstead, too.
const TOOLS: &str = "TOOLSTEAD_TOOLS";

/// The environment variables as a value. Variables that are not UTF-8 are omitted.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct EnvironmentVariables {
    variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for EnvironmentVariables {
    /// Prints only the names: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

impl EnvironmentVariables {
    /// Reads the environment of this process. If `HOME` is not an absolute path, the home folder of the user database
    /// replaces it.
    pub fn of_process() -> Self {
        let mut variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        if !variables.get("HOME").is_some_and(|home| Path::new(home).is_absolute()) {
            variables.remove("HOME");
            let home = std::env::home_dir().filter(|home| home.is_absolute());
            variables.extend(home.and_then(|home| Some(("HOME".into(), home.into_os_string().into_string().ok()?))));
        }
        Self { variables }
    }

    /// Creates an environment with these variables.
    pub fn new(variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        Self { variables: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }

    /// Returns the value of a variable; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns the home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute("HOME")
    }

    /// Returns the user's configuration folder (XDG Base Directory Specification 0.8).
    pub fn config_folder(&self) -> Option<PathBuf> {
        self.base_folder("XDG_CONFIG_HOME", ".config")
    }

    /// Returns the folder of the database, the tokens and the trust list (XDG Base Directory Specification 0.8).
    pub fn data_folder(&self) -> Option<PathBuf> {
        self.base_folder("XDG_DATA_HOME", ".local/share")
    }

    fn base_folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let base = self.absolute(variable).or_else(|| Some(self.home()?.join(below_home)))?;
        Some(base.join("toolstead"))
    }

    /// Returns the path in a variable. Relative paths are ignored, as the XDG specification requires.
    fn absolute(&self, variable: &str) -> Option<PathBuf> {
        self.get(variable).map(Path::new).filter(|path| path.is_absolute()).map(Path::to_path_buf)
    }

    /// Returns the settings among the variables: `TOOLSTEAD_LIMITS__PROCESSES` is `limits.processes`.
    pub(in crate::config) fn settings(&self) -> Node {
        let mut root = Vec::new();
        for (variable, value) in &self.variables {
            let Some(path) = variable.strip_prefix(PREFIX) else { continue };
            if [SERVER_TOKEN, LOG, TOOLS].contains(&variable.as_str()) || OF_HOOKS.contains(&variable.as_str()) {
                continue;
            }
            let names: Vec<String> = path.split("__").map(str::to_lowercase).collect();
            put(&mut root, &names, value, &Origin::Environment(variable.as_str().into()));
        }
        Node { content: NodeContent::Table(root), origin: Origin::Default }
    }
}

fn put(members: &mut Vec<Member>, names: &[String], value: &str, origin: &Origin) {
    let Some((name, rest)) = names.split_first() else { return };
    let node = |content| Node { content, origin: origin.clone() };
    if rest.is_empty() {
        let node = node(NodeContent::Untyped(value.to_owned()));
        return members.push(Member { name: name.clone(), origin: origin.clone(), node });
    }
    let table = members.iter().position(|one| one.name == *name && matches!(one.node.content, NodeContent::Table(_)));
    let at = table.unwrap_or_else(|| {
        let node = node(NodeContent::Table(Vec::new()));
        members.push(Member { name: name.clone(), origin: origin.clone(), node });
        members.len() - 1
    });
    if let NodeContent::Table(below) = &mut members[at].node.content {
        put(below, rest, value, origin);
    }
}
