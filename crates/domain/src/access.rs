//! Accesses of a call, said by its provider before it runs. Permission rules judge accesses, so a rule means
//! the same for every tool.

use crate::server_name::ServerName;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// One thing that a call would touch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Access {
    /// Reads a file or a folder's entries.
    ReadPath(PathAccess),
    /// Creates, changes or deletes a file or folder.
    WritePath(PathAccess),
    /// Runs one simple command, as it was found in a command line.
    RunCommand(CommandAccess),
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
    /// Runs a tool of this name that does not declare what it touches.
    Undeclared(Arc<str>),
    /// Reads a resource, or completes the URI of a template.
    ReadResource {
        /// The MCP server, or the provider of this program.
        server: ServerName,
        /// The URI or the template, as the server knows it.
        uri: Arc<str>,
    },
    /// Gets a prompt, or completes its arguments.
    GetPrompt {
        /// The MCP server, or the provider of this program.
        server: ServerName,
        /// The prompt's name, as the server knows it.
        prompt: Arc<str>,
    },
    /// Hands work to an agent of this name.
    RunAgent(Arc<str>),
    /// Gives a program that the call runs the means to call tools: their canonical name, or a pattern of such names with
    /// `*`. Each call that the program then makes is judged for itself.
    OfferTools(Arc<str>),
}

/// One simple command that a call would run. A command line is as many accesses as it holds simple commands, so each
/// part needs a rule of its own; files that it redirects to are accesses of their own as well.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CommandAccess {
    /// The whole command line as the caller wrote it. A rule without wildcards that equals it covers all of its parts.
    pub whole: Arc<str>,
    /// This part as it was written, for people.
    pub text: Arc<str>,
    /// Its words without quotes, the program first, after assignments and wrappers that change nothing: what allow
    /// rules are compared with. Empty where it is [opaque](Clarity::Opaque).
    pub words: Arc<[Arc<str>]>,
    /// Further readings, as words, that deny and ask rules are compared with as well: behind each wrapper, by the
    /// program's bare name, without the options that stand before a subcommand.
    pub readings: Arc<[Arc<[Arc<str>]>]>,
    /// The files that its words name and that it changes or reads itself, as far as that can be told (`rm x`). An allow
    /// rule on the command covers them; deny and ask rules on paths catch them.
    pub operands: Arc<[Access]>,
    /// The same of files that every command may open, whatever the roots are (a `/tmp` of its own, devices, what all read
    /// of the system), where it redirects to them as well.
    pub free: Arc<[Access]>,
    /// Its program does nothing but change the files that it names.
    pub only_changes_files: bool,
    /// The degree to which it is understood.
    pub clarity: Clarity,
    /// Built-in rule that allows it if no deny rule, ask rule or mode applies.
    #[cfg_attr(feature = "serde", serde(default))]
    pub built_in_rule: Option<BuiltInRule>,
    /// Extent of a rule with wildcards beyond this command; `None` where only a rule with the exact command is offered.
    #[cfg_attr(feature = "serde", serde(default))]
    pub widening: Option<Widening>,
}

/// A rule that is part of the program: it allows commands that touch nothing which a rule could be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum BuiltInRule {
    /// `true`, `:` and `exit`.
    Status,
    /// `echo` and `printf`, which print their arguments.
    Print,
    /// `head`, `sort` and their like, which read a pipe and name no file.
    PipeFilter,
}

impl BuiltInRule {
    /// All built-in rules.
    pub const ALL: &[Self] = &[Self::Status, Self::Print, Self::PipeFilter];

    /// The reason for which the rule allows a command, with its name.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Status => "the built-in rule `status` allows `true`, `:` and `exit`",
            Self::Print => "the built-in rule `print` allows commands that print known texts",
            Self::PipeFilter => "the built-in rule `pipe filter` allows programs that only filter a pipe",
        }
    }
}

/// Extent of a rule with wildcards beyond one command, in words at its beginning that the rule must contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Widening {
    /// Fewest words that a rule which a user writes must begin with. At least 1.
    pub least: u8,
    /// Words in front of the wildcard of the rule that is offered; `None` where the command alone is offered.
    pub offered: Option<u8>,
}

/// The degree to which a command is understood, and so how far an allow rule may go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Clarity {
    /// Plain words of a plain program: a pattern may cover it.
    Plain,
    /// Plain words, one of which makes the program run or write something else (`find -exec`), or a program that
    /// cannot be told apart from its namesakes. No pattern covers it, only a rule that says all of it. The reason.
    Exact(Arc<str>),
    /// Nobody can tell what would run. A rule on the whole command line or on every command covers it, and every other
    /// deny and ask rule on commands catches it. The reason.
    Opaque(Arc<str>),
}

impl Clarity {
    /// The reason why it is not plain; `None` where it is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Exact(reason) | Self::Opaque(reason) => Some(reason),
        }
    }
}

/// A path that a call would touch. Rules judge both forms: a link must not lead past a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PathAccess {
    /// The path as asked for: absolute, without `.` and `..`.
    pub lexical: PathBuf,
    /// The path that it leads to: absolute, links resolved as far as it exists.
    pub real: PathBuf,
    /// Everything below is touched as well.
    pub tree: bool,
}

/// The kind of access that a rule speaks of.
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
    /// Running a tool that does not declare what it touches; rules name the tool itself.
    Undeclared,
    /// `Resource`.
    Resource,
    /// `Prompt`.
    Prompt,
    /// `Agent`, `Task`.
    Agent,
    /// `Tools`.
    Offer,
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
            Self::Undeclared(_) => AccessKind::Undeclared,
            Self::ReadResource { .. } => AccessKind::Resource,
            Self::GetPrompt { .. } => AccessKind::Prompt,
            Self::RunAgent(_) => AccessKind::Agent,
            Self::OfferTools(_) => AccessKind::Offer,
        }
    }

    /// The path, for accesses that have one.
    pub fn path(&self) -> Option<&PathAccess> {
        match self {
            Self::ReadPath(path) | Self::WritePath(path) => Some(path),
            Self::RunCommand(_)
            | Self::ReachHost(_)
            | Self::Send(_)
            | Self::CallUpstream { .. }
            | Self::Undeclared(_)
            | Self::ReadResource { .. }
            | Self::GetPrompt { .. }
            | Self::RunAgent(_)
            | Self::OfferTools(_) => None,
        }
    }

    /// Tells whether having this access includes having `other`: the same thing, or a path below a tree.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ReadPath(tree), Self::ReadPath(path)) | (Self::WritePath(tree), Self::WritePath(path)) => {
                tree.holds(path)
            }
            _ => self == other,
        }
    }

    /// Tells whether having this access includes reading that path.
    pub(crate) fn covers_reading(&self, path: &PathAccess) -> bool {
        matches!(self, Self::ReadPath(tree) if tree.holds(path))
    }
}

impl CommandAccess {
    /// Every file that is known to be opened by it or for it: what deny and ask rules on paths catch.
    pub fn files(&self) -> impl Iterator<Item = &Access> {
        self.operands.iter().chain(self.free.iter())
    }

    /// Returns the built-in rule that allows it. What opens a file, also one that every command may open, has none, nor
    /// has what is not understood.
    pub fn allowing_rule(&self) -> Option<BuiltInRule> {
        let opens_nothing = self.files().next().is_none() && !matches!(self.clarity, Clarity::Opaque(_));
        self.built_in_rule.filter(|_| opens_nothing)
    }

    /// A program with its arguments, as tools start it that use no shell.
    pub fn program<S: Into<Arc<str>>>(words: impl IntoIterator<Item = S>) -> Self {
        let words: Arc<[Arc<str>]> = words.into_iter().map(Into::into).collect();
        // With quotes, so that the text says where a word ends.
        let text: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let text: Arc<str> = text.join(" ").into();
        Self {
            whole: text.clone(),
            text,
            words,
            readings: Arc::default(),
            operands: Arc::default(),
            free: Arc::default(),
            only_changes_files: false,
            clarity: Clarity::Plain,
            built_in_rule: None,
            widening: None,
        }
    }

    /// A command line of which nothing can be said.
    pub fn opaque(whole: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        let whole = whole.into();
        let clarity = Clarity::Opaque(reason.into());
        Self {
            text: whole.clone(),
            whole,
            words: Arc::default(),
            readings: Arc::default(),
            operands: Arc::default(),
            free: Arc::default(),
            only_changes_files: false,
            clarity,
            built_in_rule: None,
            widening: None,
        }
    }
}

/// A word as a shell would have to read it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+^".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl fmt::Display for CommandAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.clarity {
            Clarity::Plain => f.write_str(&self.text),
            Clarity::Exact(reason) | Clarity::Opaque(reason) => write!(f, "{} ({reason})", self.text),
        }
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

    /// Tells whether this is that path, or a tree around it.
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
            Self::RunCommand(command) => write!(f, "run {command}"),
            Self::ReachHost(host) => write!(f, "reach {host}"),
            Self::Send(receiver) => write!(f, "send to {receiver}"),
            Self::CallUpstream { server, tool } => write!(f, "call {tool} of the MCP server {server}"),
            Self::Undeclared(tool) => write!(f, "run {tool}, which does not declare what it touches"),
            Self::ReadResource { server, uri } => write!(f, "read the resource {uri} of {server}"),
            Self::GetPrompt { server, prompt } => write!(f, "get the prompt {prompt} of {server}"),
            Self::RunAgent(agent) => write!(f, "hand work to the agent {agent}"),
            Self::OfferTools(tools) => write!(f, "let the program call {tools}"),
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
