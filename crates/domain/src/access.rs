//! Accesses of a call, reported by its provider before it runs. Permission rules apply to accesses, so a rule means the
//! same for every tool.

use crate::server_name::ServerName;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// One resource that a call would touch.
///
/// ```
/// use toolstead_domain::access::{Access, AccessKind, AccessPath};
///
/// let tree = Access::ReadPath(AccessPath::plain("/srv").whole_tree());
/// assert!(tree.covers(&Access::ReadPath(AccessPath::plain("/srv/a.txt"))));
/// assert!(!tree.covers(&Access::WritePath(AccessPath::plain("/srv/a.txt"))));
/// assert_eq!(Access::ReachHost("example.com".into()).kind(), AccessKind::Reach);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Access {
    /// Reads a file or the entries of a folder.
    ReadPath(AccessPath),
    /// Creates, changes or deletes a file or folder.
    WritePath(AccessPath),
    /// Runs one simple command of a command line.
    RunCommand(CommandAccess),
    /// Connects to a host (lower case, without port).
    ReachHost(Arc<str>),
    /// Sends something to a recipient: a mail, an invitation. The text names the recipient.
    Send(Arc<str>),
    /// Passes the call to an MCP server.
    CallUpstream {
        /// Name of the server.
        server: ServerName,
        /// Name of the tool on the server.
        tool: Arc<str>,
    },
    /// Runs the tool with this name, which does not declare its accesses.
    Undeclared(Arc<str>),
    /// Reads a resource, or completes the URI of a template.
    ReadResource {
        /// Name of the MCP server, or of the in-process provider.
        server: ServerName,
        /// URI or template, as the server defines it.
        uri: Arc<str>,
    },
    /// Gets a prompt, or completes its arguments.
    GetPrompt {
        /// Name of the MCP server, or of the in-process provider.
        server: ServerName,
        /// Name of the prompt, as the server defines it.
        prompt: Arc<str>,
    },
    /// Delegates work to the agent with this name.
    RunAgent(Arc<str>),
    /// Enables a program that the call runs to call tools: their canonical name, or a pattern of such names with `*`.
    /// Each call by the program is checked by itself.
    OfferTools(Arc<str>),
}

/// One simple command that a call would run. A command line has one access for each of its simple commands, so each
/// part needs a rule; files that a command redirects to are separate accesses as well.
///
/// ```
/// use toolstead_domain::access::{ParseConfidence, CommandAccess};
///
/// let command = CommandAccess::program(["git", "log", "two words"]);
/// assert_eq!(command.to_string(), "git log 'two words'");
/// assert_eq!(command.clarity, ParseConfidence::Plain);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CommandAccess {
    /// Whole command line as the caller wrote it. A rule without wildcards that equals it covers all of its parts.
    pub whole: Arc<str>,
    /// This part as it was written, for users.
    pub text: Arc<str>,
    /// Words of the command without quotes, from the program on: assignments and wrappers that change nothing are left
    /// out. Allow rules are compared with them. Empty if the command is [opaque](ParseConfidence::Opaque).
    pub words: Arc<[Arc<str>]>,
    /// Further readings of the words, with which deny and ask rules are compared as well: those after each wrapper,
    /// with the bare name of the program, and without the options before a subcommand.
    pub readings: Arc<[Arc<[Arc<str>]>]>,
    /// Files that its words name and that it changes or reads itself, as far as that can be determined (`rm x`). An
    /// allow rule on the command covers them; deny and ask rules on paths catch them.
    pub operands: Arc<[Access]>,
    /// Files that the command opens, redirections included, and that no allow rule has to cover: its private `/tmp`,
    /// devices, and system files readable by all.
    pub free: Arc<[Access]>,
    /// `true` if the program of the command has no effect other than changing the files that it names.
    pub only_changes_files: bool,
    /// Degree to which it could be parsed.
    pub clarity: ParseConfidence,
    /// Built-in rule for the command; `None` if there is none. [`allowing_rule`](Self::allowing_rule) decides if it
    /// applies.
    #[cfg_attr(feature = "serde", serde(default))]
    pub built_in_rule: Option<BuiltInAllowRule>,
    /// Numbers of leading words that a rule with wildcards must share with this command; `None` where only a rule with
    /// the exact command is offered.
    #[cfg_attr(feature = "serde", serde(default))]
    pub widening: Option<RuleWideningLimits>,
}

/// Built-in rule, which allows commands without an access that a rule could apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum BuiltInAllowRule {
    /// `true`, `:` and `exit`.
    Status,
    /// `echo` and `printf`, which print their arguments.
    Print,
    /// `head`, `sort` and similar programs that read a pipe and name no file.
    PipeFilter,
}

impl BuiltInAllowRule {
    /// All built-in rules.
    pub const ALL: &[Self] = &[Self::Status, Self::Print, Self::PipeFilter];

    /// Returns the reason why the rule allows a command, with its name.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Status => "the built-in rule `status` allows `true`, `:` and `exit`",
            Self::Print => "the built-in rule `print` allows commands that print known texts",
            Self::PipeFilter => "the built-in rule `pipe filter` allows programs that only filter a pipe",
        }
    }
}

/// Numbers of leading words of a command in a rule with wildcards: the required minimum, and that of the offered rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RuleWideningLimits {
    /// Minimum number of words with which a rule of the user must begin. At least 1.
    pub least: u8,
    /// Number of leading words before the wildcard of the rule that is offered to the user; `None` if only a rule with
    /// the exact command is offered.
    pub offered: Option<u8>,
}

/// Degree to which a command could be parsed, which limits the allow rules that can cover it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ParseConfidence {
    /// Plain words of a plain program: a pattern may cover it.
    Plain,
    /// Plain words, one of which makes the program run or write something else (`find -exec`), or a program that cannot
    /// be distinguished from others of its name. No pattern covers it, only a rule with its complete text. Holds the
    /// reason.
    Exact(Arc<str>),
    /// Command that cannot be determined. A rule on the whole command line or on every command covers it, and every
    /// other deny and ask rule on commands catches it. Holds the reason.
    Opaque(Arc<str>),
}

impl ParseConfidence {
    /// Returns the reason why the command is not plain; `None` if it is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Exact(reason) | Self::Opaque(reason) => Some(reason),
        }
    }
}

/// Path that a call would touch. Rules check both forms, so that a link cannot bypass a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AccessPath {
    /// Requested path: absolute, without `.` and `..`.
    pub lexical: PathBuf,
    /// Real path: absolute, with links resolved as far as it exists.
    pub real: PathBuf,
    /// `true` if everything below is touched as well.
    pub tree: bool,
}

/// Kind of access that a rule applies to. Each variant lists the heads of its rules, such as `Read` in `Read(src/**)`.
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
    /// Call of a tool of an MCP server; rules name the tool itself.
    Upstream,
    /// Run of a tool that does not declare its accesses; rules name the tool itself.
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
    /// Returns the kind of access.
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

    /// Returns the path of a read or write access; `None` for every other access, also for commands that open files.
    pub fn path(&self) -> Option<&AccessPath> {
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

    /// Returns `true` if this access includes `other`: the same access, or a path below a tree.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ReadPath(tree), Self::ReadPath(path)) | (Self::WritePath(tree), Self::WritePath(path)) => {
                tree.holds(path)
            }
            _ => self == other,
        }
    }

    /// Returns `true` if this access includes reading the path.
    pub(crate) fn covers_reading(&self, path: &AccessPath) -> bool {
        matches!(self, Self::ReadPath(tree) if tree.holds(path))
    }
}

impl CommandAccess {
    /// Returns every file that the command is known to open, which deny and ask rules on paths catch.
    pub fn files(&self) -> impl Iterator<Item = &Access> {
        self.operands.iter().chain(self.free.iter())
    }

    /// Returns the built-in rule that allows the command; `None` if the command opens a file, even one that every
    /// command may open, or could not be parsed.
    pub fn allowing_rule(&self) -> Option<BuiltInAllowRule> {
        let opens_nothing = self.files().next().is_none() && !matches!(self.clarity, ParseConfidence::Opaque(_));
        self.built_in_rule.filter(|_| opens_nothing)
    }

    /// Creates the access for a program with its arguments that a tool starts without a shell.
    pub fn program<S: Into<Arc<str>>>(words: impl IntoIterator<Item = S>) -> Self {
        let words: Arc<[Arc<str>]> = words.into_iter().map(Into::into).collect();
        // Quoted, so that the text shows the ends of words.
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
            clarity: ParseConfidence::Plain,
            built_in_rule: None,
            widening: None,
        }
    }

    /// Creates the access for a command line about which nothing is known.
    pub fn opaque(whole: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        let whole = whole.into();
        let clarity = ParseConfidence::Opaque(reason.into());
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

/// Quotes a word for a shell, if necessary.
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
            ParseConfidence::Plain => f.write_str(&self.text),
            ParseConfidence::Exact(reason) | ParseConfidence::Opaque(reason) => write!(f, "{} ({reason})", self.text),
        }
    }
}

impl AccessPath {
    /// Creates a path whose lexical and real form are the same.
    pub fn plain(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { lexical: path.clone(), real: path, tree: false }
    }

    /// Extends the path to everything below it.
    #[must_use]
    pub fn whole_tree(mut self) -> Self {
        self.tree = true;
        self
    }

    /// Returns `true` if the other path is this path, or below it in this tree.
    fn holds(&self, path: &Self) -> bool {
        self == path || (self.tree && path.real.starts_with(&self.real) && path.lexical.starts_with(&self.lexical))
    }

    /// Returns both forms of the path, or one if they are equal.
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

impl fmt::Display for AccessPath {
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
