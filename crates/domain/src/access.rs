//! What a call would touch, said by its provider before it runs. Permission rules judge accesses, so a rule means
//! the same for every tool.

use crate::server_name::ServerName;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// One thing that a call would touch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads a file or a folder's entries.
    ReadPath(PathAccess),
    /// Creates, changes or deletes a file or folder.
    WritePath(PathAccess),
    /// Runs a command line.
    RunCommand(Arc<str>),
    /// Connects to a host (lower case, without port).
    ReachHost(Arc<str>),
    /// Sends something to somebody: a mail, an invitation. The text names the receiver.
    Send(Arc<str>),
    /// Hands the call to an MCP server.
    CallUpstream {
        /// The server.
        server: ServerName,
        /// The tool's name over there.
        tool: Arc<str>,
    },
}

/// A path that a call would touch. Rules judge both forms: a link must not lead past a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathAccess {
    /// The path as asked for: absolute, without `.` and `..`.
    pub lexical: PathBuf,
    /// Where it leads: absolute, links resolved as far as it exists.
    pub real: PathBuf,
    /// Whether everything below is touched as well.
    pub tree: bool,
}

/// What kind of access a rule speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// `Read`.
    Read,
    /// `Write`, `Edit`.
    Write,
    /// `Bash`.
    Run,
    /// `WebFetch`.
    Reach,
    /// Sending; no rule head names it, because no broad rule may cover it.
    Send,
    /// Calling an MCP server's tool; rules name the tool itself.
    Upstream,
}

impl Access {
    /// The kind of access.
    pub fn kind(&self) -> AccessKind {
        match self {
            Self::ReadPath(_) => AccessKind::Read,
            Self::WritePath(_) => AccessKind::Write,
            Self::RunCommand(_) => AccessKind::Run,
            Self::ReachHost(_) => AccessKind::Reach,
            Self::Send(_) => AccessKind::Send,
            Self::CallUpstream { .. } => AccessKind::Upstream,
        }
    }

    /// The path, for accesses that have one.
    pub fn path(&self) -> Option<&PathAccess> {
        match self {
            Self::ReadPath(path) | Self::WritePath(path) => Some(path),
            Self::RunCommand(_) | Self::ReachHost(_) | Self::Send(_) | Self::CallUpstream { .. } => None,
        }
    }

    /// Whether having this access includes having `other`: the same thing, or a path below a tree.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ReadPath(tree), Self::ReadPath(path)) | (Self::WritePath(tree), Self::WritePath(path)) => {
                tree.holds(path)
            }
            _ => self == other,
        }
    }

    /// Whether having this access includes reading that path.
    pub fn covers_reading(&self, path: &PathAccess) -> bool {
        matches!(self, Self::ReadPath(tree) if tree.holds(path))
    }
}

impl PathAccess {
    /// A path whose lexical and real form are the same.
    pub fn plain(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { lexical: path.clone(), real: path, tree: false }
    }

    /// The same path with everything below it.
    #[must_use]
    pub fn whole_tree(mut self) -> Self {
        self.tree = true;
        self
    }

    /// Whether this is that path, or a tree around it.
    fn holds(&self, path: &Self) -> bool {
        self == path || (self.tree && path.real.starts_with(&self.real) && path.lexical.starts_with(&self.lexical))
    }

    /// Both forms, once where they are equal.
    pub fn forms(&self) -> impl Iterator<Item = &Path> {
        let real = (self.real != self.lexical).then_some(self.real.as_path());
        std::iter::once(self.lexical.as_path()).chain(real)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadPath(path) => write!(f, "read {path}"),
            Self::WritePath(path) => write!(f, "write {path}"),
            Self::RunCommand(text) => write!(f, "run {text}"),
            Self::ReachHost(host) => write!(f, "reach {host}"),
            Self::Send(receiver) => write!(f, "send to {receiver}"),
            Self::CallUpstream { server, tool } => write!(f, "call {tool} of the MCP server {server}"),
        }
    }
}

impl fmt::Display for PathAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.lexical.display())?;
        if self.tree {
            f.write_str(" and everything below")?;
        }
        if self.real != self.lexical {
            write!(f, " (which is {})", self.real.display())?;
        }
        Ok(())
    }
}
