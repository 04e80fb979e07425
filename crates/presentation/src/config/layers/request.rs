//! Inputs from which a configuration is loaded, besides files.

use crate::config::{
    ADMINISTRATOR_FOLDER,
    layers::environment::EnvironmentVariables,
    tree::{
        node::{Member, Node, NodeContent},
        origin::Origin,
    },
};
use std::{io, path::PathBuf};

/// Inputs from which a configuration is loaded.
#[derive(Debug, Clone)]
pub struct ConfigRequest {
    /// Environment of the process.
    pub environment: EnvironmentVariables,
    /// Folder in which the program was started.
    pub start: PathBuf,
    /// Folder of the administrator: [`crate::config::ADMINISTRATOR_FOLDER`], except in tests.
    pub administrator: PathBuf,
    /// `--config`: the only file to read, which is trusted.
    pub file: Option<PathBuf>,
    /// Command-line flags.
    pub flags: ConfigFlags,
}

/// Command-line flags that are settings.
#[derive(Debug, Clone, Default)]
pub struct ConfigFlags {
    /// `--root`.
    pub roots: Vec<String>,
    /// `--allow`.
    pub allow: Vec<String>,
    /// `--tools`.
    pub tools: Option<String>,
    /// `--dialect`.
    pub dialect: Option<String>,
    /// `--listen`.
    pub listen: Option<String>,
}

impl ConfigRequest {
    /// Returns the inputs of this process: its current folder and environment, and no flags.
    ///
    /// # Errors
    /// The error of the operating system if the current folder no longer exists.
    pub fn of_process() -> io::Result<Self> {
        Ok(Self {
            environment: EnvironmentVariables::of_process(),
            start: std::env::current_dir()?,
            administrator: PathBuf::from(ADMINISTRATOR_FOLDER),
            file: None,
            flags: ConfigFlags::default(),
        })
    }
}

impl ConfigFlags {
    /// Returns the flags as the tree of a layer.
    pub(in crate::config) fn settings(&self) -> Node {
        let node = |content, flag| Node { content, origin: Origin::Flag(flag) };
        let member = |name: &str, flag, content| Member {
            name: name.into(),
            origin: Origin::Flag(flag),
            node: node(content, flag),
        };
        let list = |texts: &[String], flag| {
            NodeContent::List(texts.iter().map(|text| node(NodeContent::Text(text.clone()), flag)).collect())
        };
        let mut root = Vec::new();
        let mut put = |section, name, flag, content| {
            root.push(member(section, flag, NodeContent::Table(vec![member(name, flag, content)])));
        };
        if !self.roots.is_empty() {
            put("workspace", "roots", "--root", list(&self.roots, "--root"));
        }
        if !self.allow.is_empty() {
            put("permissions", "allow", "--allow", list(&self.allow, "--allow"));
        }
        if let Some(tools) = &self.tools {
            put("tools", "select", "--tools", NodeContent::Text(tools.clone()));
        }
        if let Some(dialect) = &self.dialect {
            put("dialect", "name", "--dialect", NodeContent::Text(dialect.clone()));
        }
        if let Some(listen) = &self.listen {
            put("server", "listen", "--listen", NodeContent::Text(listen.clone()));
        }
        node(NodeContent::Table(root), "")
    }
}
