//! What a configuration is loaded from, besides files.

use crate::config::{
    ADMINISTRATOR_FOLDER,
    environment::Environment,
    node::{Content, Member, Node},
    origin::Origin,
};
use std::{io, path::PathBuf};

/// What a configuration is loaded from.
#[derive(Debug, Clone)]
pub struct Request {
    /// The environment.
    pub environment: Environment,
    /// Where the program was started.
    pub start: PathBuf,
    /// The administrator's folder: [`crate::config::ADMINISTRATOR_FOLDER`], save in tests.
    pub administrator: PathBuf,
    /// `--config`: this file alone instead of those that would be found. It is trusted.
    pub file: Option<PathBuf>,
    /// The flags.
    pub flags: Flags,
}

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Flags {
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

impl Request {
    /// What a program loads that was started here, with the environment of this process and without flags.
    ///
    /// # Errors
    /// The operating system's, when the current folder is gone.
    pub fn of_process() -> io::Result<Self> {
        Ok(Self {
            environment: Environment::of_process(),
            start: std::env::current_dir()?,
            administrator: PathBuf::from(ADMINISTRATOR_FOLDER),
            file: None,
            flags: Flags::default(),
        })
    }
}

impl Flags {
    /// The flags as a layer's tree.
    pub(super) fn settings(&self) -> Node {
        let node = |content, flag| Node { content, origin: Origin::Flag(flag) };
        let member = |name: &str, flag, content| Member {
            name: name.into(),
            origin: Origin::Flag(flag),
            node: node(content, flag),
        };
        let list = |texts: &[String], flag| {
            Content::List(texts.iter().map(|text| node(Content::Text(text.clone()), flag)).collect())
        };
        let mut root = Vec::new();
        let mut put = |section, name, flag, content| {
            root.push(member(section, flag, Content::Table(vec![member(name, flag, content)])));
        };
        if !self.roots.is_empty() {
            put("workspace", "roots", "--root", list(&self.roots, "--root"));
        }
        if !self.allow.is_empty() {
            put("permissions", "allow", "--allow", list(&self.allow, "--allow"));
        }
        if let Some(tools) = &self.tools {
            put("tools", "select", "--tools", Content::Text(tools.clone()));
        }
        if let Some(dialect) = &self.dialect {
            put("dialect", "name", "--dialect", Content::Text(dialect.clone()));
        }
        if let Some(listen) = &self.listen {
            put("server", "listen", "--listen", Content::Text(listen.clone()));
        }
        node(Content::Table(root), "")
    }
}
