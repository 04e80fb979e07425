//! One permission rule: `Tool` or `Tool(spec)`.

use crate::{
    access::{Access, AccessKind, PathAccess},
    category::Category,
    permission::{
        command_pattern::{CommandPattern, Outline},
        host_pattern::host_matches,
        path_pattern::{PathPattern, PatternBase, Reach},
    },
    tool::{Tool, ToolSource},
    tool_selection::wildcard_match,
    workspace_roots::WorkspaceRoots,
};
use serde_json::{Map, Value};
use std::{fmt, path::PathBuf};

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Lets a call run.
    Allow,
    /// Has somebody asked.
    Ask,
    /// Stops a call.
    Deny,
}

impl Effect {
    /// The effect as one word, also the key of its list in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOrigin {
    /// In a configuration file, at this line (from 1).
    File(PathBuf, usize),
    /// On the command line.
    CommandLine,
    /// In the environment variable.
    Environment(String),
    /// In the program that embeds Toolstead, or in Toolstead itself.
    Program,
    /// Approved by a person, for as long as the session lasts.
    Session,
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Most paths are text, and are told with every call.
            Self::File(path, line) => match path.to_str() {
                Some(path) => write!(f, "{path}:{line}"),
                None => write!(f, "{}:{line}", path.display()),
            },
            Self::CommandLine => f.write_str("the command line"),
            Self::Environment(name) => write!(f, "the environment variable {name}"),
            Self::Program => f.write_str("the program"),
            Self::Session => f.write_str("what was approved in this session"),
        }
    }
}

/// What a rule is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSubject {
    /// Commands.
    Command,
    /// Paths.
    Path,
    /// Hosts.
    Host,
    /// Names of tools.
    ToolName,
    /// Arguments of a call.
    Arguments,
}

/// A rule, parsed.
///
/// The head names an access kind of any tool (`Read`, `Write` = `Edit`, `Bash`, `WebFetch`) or a tool. Path rules judge
/// the lexical and the real path: allow needs both to fit, deny and ask either.
#[derive(Debug, Clone)]
pub struct PermissionRule {
    /// What it does.
    pub effect: Effect,
    /// The rule as it was written.
    pub text: String,
    /// Where it was written.
    pub origin: RuleOrigin,
    head: Head,
    spec: Spec,
}

impl PartialEq for PermissionRule {
    fn eq(&self, other: &Self) -> bool {
        (self.effect, &self.text, &self.origin) == (other.effect, &other.text, &other.origin)
    }
}

#[derive(Debug, Clone)]
enum Head {
    Kind(AccessKind),
    Tool(String),
}

#[derive(Debug, Clone)]
enum Spec {
    Any,
    Path(PathPattern),
    Domain(String),
    Command(CommandPattern),
    /// `parameter:value` of a tool, for deny and ask.
    Parameter(String, String),
    /// Behind a name that may be that of a tool which takes command lines: with each call its definition says.
    OfTool(Box<Readings>),
}

/// What stands behind a tool's name, in both readings.
#[derive(Debug, Clone)]
struct Readings {
    /// For a tool that takes command lines; why it is none there.
    command: Result<Spec, String>,
    /// For any other.
    other: Spec,
}

impl PermissionRule {
    /// Parses a rule. Behind the name of a tool that [takes command lines](Tool::takes_command_lines) stands a command
    /// pattern, as behind `Bash`: also where only the definition of the tool that is called says so.
    ///
    /// # Errors
    /// [`InvalidRule`] with what is wrong and what to write instead.
    pub fn parse(effect: Effect, text: &str, origin: RuleOrigin, base: &PatternBase) -> Result<Self, InvalidRule> {
        let wrong = |reason: String| InvalidRule { rule: text.into(), origin: origin.clone(), reason };
        let trimmed = text.trim();
        let (head, spec) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((head, rest)) => match rest.strip_suffix(')') {
                Some(spec) => (head.trim(), Some(spec.trim())),
                None => return Err(wrong("the closing parenthesis is missing".into())),
            },
        };
        let head = Head::parse(head, effect).map_err(&wrong)?;
        let spec = match spec {
            None | Some("*") => Spec::Any,
            Some("") => {
                return Err(wrong(
                    "the parentheses are empty and would never match: leave them out to mean every call".into(),
                ));
            }
            Some(spec) => Spec::parse(&head, spec, effect, base).map_err(&wrong)?,
        };
        Ok(Self { effect, text: trimmed.into(), origin, head, spec })
    }

    /// What stands behind the head, for this tool.
    ///
    /// # Errors
    /// Why it means nothing for that tool.
    fn spec_for(&self, tool: &Tool) -> Result<&Spec, &str> {
        match &self.spec {
            Spec::OfTool(readings) if tool.takes_command_lines => readings.command.as_ref().map_err(String::as_str),
            _ => Ok(self.spec()),
        }
    }

    /// What stands behind the head, where no tool is known.
    fn spec(&self) -> &Spec {
        match &self.spec {
            Spec::OfTool(readings) => &readings.other,
            spec => spec,
        }
    }

    /// Why what stands behind the head means nothing for this tool, if it names that tool: for checking rules against
    /// what exists. Such a deny or ask rule catches every call of the tool, such an allow rule covers none.
    pub fn unreadable_for(&self, tool: &Tool) -> Option<&str> {
        let Head::Tool(pattern) = &self.head else { return None };
        self.spec_for(tool).err().filter(|_| names(pattern, tool))
    }

    /// The tool's name that the head must name, if it is a plain name: for checking rules against what exists.
    /// `None` for access kinds, globs and names of MCP tools.
    pub fn named_tool(&self) -> Option<&str> {
        match &self.head {
            Head::Tool(name) if !name.contains('*') && !name.starts_with("mcp__") => Some(name),
            Head::Tool(_) | Head::Kind(_) => None,
        }
    }

    /// The tool, if it is a plain name, and the parameter that a rule on parameters looks at, without what lies deeper:
    /// for checking rules against what exists.
    pub fn named_parameter(&self) -> Option<(&str, &str)> {
        match self.spec() {
            Spec::Parameter(path, _) => Some((self.named_tool()?, path.split('.').next().unwrap_or(path))),
            _ => None,
        }
    }

    /// What the rule is compared with; of a rule without parentheses, what its head names.
    pub fn subject(&self) -> RuleSubject {
        match (self.spec(), &self.head) {
            (Spec::Command(_), _) | (Spec::Any, Head::Kind(AccessKind::Run)) => RuleSubject::Command,
            (Spec::Path(_), _) | (Spec::Any, Head::Kind(AccessKind::Read | AccessKind::Write)) => RuleSubject::Path,
            (Spec::Domain(_), _) | (Spec::Any, Head::Kind(AccessKind::Reach)) => RuleSubject::Host,
            (Spec::Parameter(..), _) => RuleSubject::Arguments,
            (Spec::Any | Spec::OfTool(_), _) => RuleSubject::ToolName,
        }
    }

    /// Whether the rule is about parts of a call, and not about its tool or its arguments.
    pub(super) fn is_about_parts(&self) -> bool {
        !matches!(self.subject(), RuleSubject::ToolName | RuleSubject::Arguments)
    }

    /// Whether the rule says which paths it is about.
    pub(super) fn names_paths(&self) -> bool {
        matches!(self.spec(), Spec::Path(_))
    }

    /// Whether the rule meets accesses of these kinds, whatever tool they are of: every one of them for an allow rule,
    /// some one for the others. For trying a rule out.
    pub fn meets(&self, accesses: &[Access], roots: &WorkspaceRoots) -> bool {
        match self.effect {
            Effect::Allow => {
                !accesses.is_empty() && accesses.iter().all(|access| self.covers_access(self.spec(), access, roots))
            }
            Effect::Ask | Effect::Deny => accesses.iter().any(|access| self.catches_access(self.spec(), access, roots)),
        }
    }

    /// Whether the rule meets a call with these arguments, for rules on parameters. For trying a rule out.
    pub fn meets_arguments(&self, arguments: &Map<String, Value>) -> bool {
        let Spec::Parameter(name, value) = self.spec() else { return false };
        parameter(arguments, name).is_some_and(|given| is_value(value, given))
    }

    /// Whether the rule's head is, or fits, the name of a tool. For trying a rule out.
    pub fn meets_name(&self, name: &str) -> bool {
        matches!(&self.head, Head::Tool(pattern) if fits(pattern, name))
    }

    /// Whether this allow rule lets any program run, where this says which tools
    /// [take command lines](Tool::takes_command_lines).
    pub fn allows_any_program(&self, takes_command_lines: impl FnOnce(&str) -> bool) -> bool {
        let any = match (&self.head, self.spec()) {
            (Head::Kind(AccessKind::Run), Spec::Any) => true,
            (Head::Tool(name), Spec::Any) => takes_command_lines(name),
            (_, Spec::Command(pattern)) => pattern.fits_any_program(),
            _ => false,
        };
        any && self.effect == Effect::Allow
    }

    /// Of an allow rule on commands with wildcards: what stands in all that it may cover.
    pub fn outline(&self) -> Option<Outline> {
        match self.spec() {
            Spec::Command(pattern) if self.effect == Effect::Allow => pattern.outline(),
            _ => None,
        }
    }

    /// Whether this allow rule is about paths outside of every root alone, so that it covers nothing.
    pub fn is_outside(&self, roots: &WorkspaceRoots) -> bool {
        let Spec::Path(pattern) = self.spec() else { return false };
        self.effect == Effect::Allow && !roots.all().any(|root| pattern.may_reach_into(root))
    }

    /// Whether this allow rule says the access, and a wildcard of it does not cover what is not plain.
    pub(super) fn misses(&self, tool: &Tool, access: &Access) -> bool {
        let head = match &self.head {
            Head::Kind(kind) => access.kind() == *kind,
            Head::Tool(pattern) => names(pattern, tool),
        };
        let Ok(Spec::Command(pattern)) = self.spec_for(tool) else { return false };
        head && matches!(access, Access::RunCommand(command) if pattern.misses(command))
    }

    /// Whether the rule lets this one access of the tool happen. For allow rules.
    pub fn allows(&self, tool: &Tool, access: &Access, roots: &WorkspaceRoots) -> bool {
        // Who lets every command run lets it write where it redirects to.
        if self.names_whole_kind(AccessKind::Run) && is_shell(tool) && access.path().is_some() {
            return true;
        }
        let head = match &self.head {
            Head::Kind(kind) => access.kind() == *kind,
            // Sending is never covered by a pattern.
            Head::Tool(pattern) => {
                names(pattern, tool) && (access.kind() != AccessKind::Send || !pattern.contains('*'))
            }
        };
        head && self.spec_for(tool).is_ok_and(|spec| self.covers_access(spec, access, roots))
    }

    /// For allow, the tool aside.
    fn covers_access(&self, spec: &Spec, access: &Access, roots: &WorkspaceRoots) -> bool {
        let head = match &self.head {
            Head::Kind(kind) => access.kind() == *kind,
            Head::Tool(_) => true,
        };
        head && match spec {
            Spec::Any => true,
            Spec::Path(pattern) => access.path().is_some_and(|path| pattern.covers(path, roots)),
            Spec::Domain(host) => matches!(access, Access::ReachHost(reached) if host_matches(host, reached)),
            Spec::Command(pattern) => matches!(access, Access::RunCommand(command) if pattern.covers(command)),
            Spec::Parameter(..) | Spec::OfTool(_) => false,
        }
    }

    /// Whether the rule names every call of the tool that has no accesses at all. For allow rules.
    pub fn allows_whole(&self, tool: &Tool) -> bool {
        matches!((&self.head, &self.spec), (Head::Tool(pattern), Spec::Any) if allows_name(pattern, tool))
    }

    /// Whether the rule catches this call, and by which access. For deny and ask rules.
    pub fn catches<'a>(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        accesses: &'a [Access],
        roots: &WorkspaceRoots,
    ) -> Option<Option<&'a Access>> {
        match &self.head {
            Head::Tool(pattern) if !names_in_any_spelling(pattern, tool) => return None,
            Head::Tool(_) if matches!(self.spec, Spec::Any) => return Some(None),
            Head::Tool(_) | Head::Kind(_) => {}
        }
        // Nothing that it could be about gets past a rule that means nothing for the tool.
        let Ok(spec) = self.spec_for(tool) else { return Some(None) };
        if let Spec::Parameter(name, value) = spec {
            let given = parameter(arguments, name).or_else(|| default_of(tool, name));
            return given.is_some_and(|given| is_value(value, given)).then_some(None);
        }
        accesses.iter().find(|access| self.catches_access(spec, access, roots)).map(Some)
    }

    fn catches_access(&self, spec: &Spec, access: &Access, roots: &WorkspaceRoots) -> bool {
        if let Access::RunCommand(command) = access
            && command.files().any(|file| self.catches_access(spec, file, roots))
        {
            return true;
        }
        let head = match (&self.head, access.kind()) {
            (Head::Tool(_), _) => true,
            // What may not be read may not be written either; asking stays with what it names.
            (Head::Kind(AccessKind::Read), AccessKind::Write) => {
                self.effect == Effect::Deny && !matches!(spec, Spec::Any)
            }
            (Head::Kind(kind), other) => *kind == other,
        };
        head && match spec {
            Spec::Any => true,
            Spec::Path(pattern) => access.path().is_some_and(|path| pattern.touches(path, roots)),
            Spec::Domain(host) => matches!(access, Access::ReachHost(reached) if host_matches(host, reached)),
            Spec::Command(pattern) => matches!(access, Access::RunCommand(command) if pattern.catches(command)),
            Spec::Parameter(..) | Spec::OfTool(_) => false,
        }
    }

    /// Whether the rule catches an access of this kind, which is one to paths, to anything below a folder by this tool, as
    /// far as that can be told without the names there. For deny and ask rules.
    pub(super) fn may_catch_below(
        &self,
        tool: &Tool,
        kind: AccessKind,
        folder: &PathAccess,
        roots: &WorkspaceRoots,
    ) -> bool {
        let head = match &self.head {
            Head::Kind(named) => *named == kind,
            Head::Tool(pattern) => names(pattern, tool),
        };
        head && match self.spec_for(tool) {
            Ok(Spec::Any) | Err(_) => true,
            Ok(Spec::Path(pattern)) => pattern.may_touch_below(folder, roots),
            Ok(_) => false,
        }
    }

    /// Whether the rule catches the reading of a path, if [it may](Self::may_catch_below).
    pub(super) fn catches_reading(&self, tool: &Tool, path: &PathAccess, roots: &WorkspaceRoots) -> bool {
        match self.spec_for(tool) {
            Ok(Spec::Any) | Err(_) => true,
            Ok(Spec::Path(pattern)) => pattern.touches(path, roots),
            Ok(_) => false,
        }
    }

    /// Whether no call of the tool can escape this deny rule, whatever its arguments.
    pub fn denies_whole(&self, tool: &Tool) -> bool {
        matches!((&self.head, &self.spec), (Head::Tool(pattern), Spec::Any) if names_in_any_spelling(pattern, tool))
    }

    /// Whether the rule names every access of this kind, whatever it touches.
    pub fn names_whole_kind(&self, kind: AccessKind) -> bool {
        matches!((&self.head, &self.spec), (Head::Kind(named), Spec::Any) if *named == kind)
    }
}

impl Head {
    fn parse(text: &str, effect: Effect) -> Result<Self, String> {
        let kind = match text {
            "Read" => Some(AccessKind::Read),
            "Write" | "Edit" => Some(AccessKind::Write),
            "Bash" => Some(AccessKind::Run),
            "WebFetch" => Some(AccessKind::Reach),
            _ => None,
        };
        if let Some(kind) = kind {
            return Ok(Self::Kind(kind));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
        if text.is_empty() || !text.chars().all(allowed) {
            return Err(format!("`{text}` is no name of a tool: a rule is `Tool` or `Tool(spec)`"));
        }
        let Some(qualified) = text.strip_prefix("mcp__") else {
            if text.contains('*') && effect == Effect::Allow {
                return Err("an allow rule may use `*` only after `mcp__server__`: name the tool".into());
            }
            return Ok(Self::Tool(text.into()));
        };
        match qualified.split_once("__") {
            // `mcp__server` is every tool of the server.
            None if !qualified.contains('*') => Ok(Self::Tool(format!("{text}__*"))),
            None if effect == Effect::Allow => Err("an allow rule must name the server: `mcp__server__*`".into()),
            None => Ok(Self::Tool(text.into())),
            Some((server, _)) if server.contains('*') && effect == Effect::Allow => {
                Err("an allow rule must name the server without `*`: `mcp__server__tool`".into())
            }
            Some((_, "")) => {
                Err("the tool's name is missing after the server's: write `mcp__server__*` for all".into())
            }
            Some(_) => Ok(Self::Tool(text.into())),
        }
    }
}

impl Spec {
    fn parse(head: &Head, text: &str, effect: Effect, base: &PatternBase) -> Result<Self, String> {
        let reach = if effect == Effect::Allow { Reach::Anchored } else { Reach::AnyDepth };
        let path = || PathPattern::parse(text, base, reach).map(Self::Path).map_err(|error| error.to_string());
        let command = || CommandPattern::parse(text, effect).map(Self::Command);
        match head {
            Head::Kind(AccessKind::Read | AccessKind::Write) => path(),
            Head::Kind(AccessKind::Run) => command(),
            Head::Kind(AccessKind::Reach) => match text.strip_prefix("domain:").map(str::trim) {
                Some(host) if !host.is_empty() && !host.contains(['/', ' ', ':']) => {
                    Ok(Self::Domain(host.to_ascii_lowercase()))
                }
                _ => Err("write `WebFetch(domain:example.com)` or `WebFetch(domain:*.example.com)`".into()),
            },
            Head::Kind(AccessKind::Send | AccessKind::Upstream) => Err("no rule names this kind of access".into()),
            Head::Tool(name) if base.command_tools.contains(&name.as_str()) => command(),
            Head::Tool(_) => {
                let other = match text.split_once(':') {
                    Some(("domain", host)) if !host.is_empty() => Ok(Self::Domain(host.trim().to_ascii_lowercase())),
                    Some((name, value)) if is_parameter(name) => match effect {
                        Effect::Allow => Err("`parameter:value` works in deny and ask rules only: values can be \
                                              rewritten to slip past"
                            .into()),
                        Effect::Ask | Effect::Deny => Ok(Self::Parameter(name.into(), value.trim().into())),
                    },
                    _ => path(),
                }?;
                Ok(Self::OfTool(Box::new(Readings { command: command(), other })))
            }
        }
    }
}

fn is_parameter(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

/// The value at a dotted path of the arguments.
fn parameter<'a>(arguments: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = arguments.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// What the tool's schema says that an absent parameter means.
fn default_of<'a>(tool: &'a Tool, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = tool.input_schema().get("properties")?.get(parts.next()?)?;
    parts.try_fold(first, |schema, part| schema.get("properties")?.get(part))?.get("default")
}

/// Whether a value, or one item of a list, is what the rule says. Numbers are compared as numbers.
fn is_value(pattern: &str, given: &Value) -> bool {
    match given {
        Value::String(text) => wildcard_match(pattern, text),
        Value::Bool(flag) => wildcard_match(pattern, if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            wildcard_match(pattern, &number.to_string())
                || pattern.parse::<f64>().is_ok_and(|wanted| number.as_f64() == Some(wanted))
        }
        Value::Array(items) => items.iter().any(|item| is_value(pattern, item)),
        Value::Null | Value::Object(_) => false,
    }
}

/// Whether the tool runs command lines.
fn is_shell(tool: &Tool) -> bool {
    tool.category == Category::Shell && matches!(tool.source(), ToolSource::BuiltIn)
}

/// For allow: a server's tool by its qualified name alone, whatever name its server gave it.
fn allows_name(pattern: &str, tool: &Tool) -> bool {
    match tool.source() {
        ToolSource::McpServer { .. } => fits(pattern, tool.rule_name().as_str()),
        ToolSource::BuiltIn | ToolSource::Embedded(_) => names(pattern, tool),
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    if pattern.contains('*') { wildcard_match(pattern, name) } else { pattern == name }
}

/// By any name that it bears.
fn names(pattern: &str, tool: &Tool) -> bool {
    let fits = |name: &str| fits(pattern, name);
    fits(tool.name().as_str())
        || (tool.server().is_some() && fits(tool.rule_name().as_str()))
        || tool.aliases.iter().any(|alias| fits(alias.name))
}

/// For deny and ask: also by the spellings of other clients, with which a server's tool may be called.
fn names_in_any_spelling(pattern: &str, tool: &Tool) -> bool {
    let is_upstream = |spellings: [String; 3]| spellings.iter().any(|spelling| fits(pattern, spelling));
    names(pattern, tool) || tool.upstream_spellings().is_some_and(is_upstream)
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the permission rule `{rule}` in {origin} cannot be used: {reason}")]
pub struct InvalidRule {
    /// The rule as it was written.
    pub rule: String,
    /// Where it was written.
    pub origin: RuleOrigin,
    /// What is wrong with it, and what to write instead.
    pub reason: String,
}

#[cfg(test)]
mod tests;
