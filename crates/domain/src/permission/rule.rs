//! Permission rules: `Tool` or `Tool(spec)`.

mod head;
mod kind;

pub use crate::permission::rule_origin::RuleOrigin;

use crate::{
    access::{Access, AccessKind, AccessPath},
    category::Category,
    context,
    permission::{command_pattern::CommandPatternOutline, path_pattern::PatternContext},
    tool::{Tool, ToolSource},
    workspace_roots::WorkspaceRoots,
};
use head::{RuleHead, allows_name, fits, matches_any_name, names, names_server};
use kind::RuleMatcher;
use serde_json::{Map, Value};
use std::{fmt, sync::Arc};

/// Effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Allows a call.
    Allow,
    /// Requires approval of a call.
    Ask,
    /// Denies a call.
    Deny,
}

impl Effect {
    /// Returns the effect as one word, which is also the key of its list in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Part of a call that a rule is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSubject {
    /// Commands.
    Command,
    /// Paths.
    Path,
    /// Hosts.
    Host,
    /// Names of agents, and of tools that programs may call.
    Name,
    /// Resources of servers.
    Resource,
    /// Prompts of servers.
    Prompt,
    /// Names of tools.
    ToolName,
    /// Arguments of a call.
    Arguments,
}

/// Parsed permission rule.
///
/// The head names an access kind of any tool (`Read`, `Write` = `Edit`, `Bash`, `WebFetch`) or a tool. Path rules check
/// the lexical and the real path: an allow rule must match both, a deny or ask rule either.
///
/// ```
/// use toolstead_domain::{
///     access::Access,
///     permission::{
///         path_pattern::PatternContext,
///         rule::{Effect, PermissionRule, RuleOrigin},
///     },
///     workspace_roots::WorkspaceRoots,
/// };
///
/// let base = PatternContext::default();
/// let text = "WebFetch(domain:*.example.com)";
/// let rule = PermissionRule::parse(Effect::Allow, text, RuleOrigin::CommandLine, &base)?;
/// assert!(rule.meets(&[Access::ReachHost("docs.example.com".into())], &WorkspaceRoots::default()));
/// assert!(!rule.meets(&[Access::ReachHost("example.org".into())], &WorkspaceRoots::default()));
/// # Ok::<(), toolstead_domain::permission::rule::InvalidRule>(())
/// ```
#[derive(Debug, Clone)]
pub struct PermissionRule {
    /// Effect of the rule.
    pub effect: Effect,
    /// Rule as it was written.
    pub text: String,
    /// Place where it was written.
    pub origin: RuleOrigin,
    /// Entry of a file that the rule was derived from, such as "`rm` of `denied_commands`"; `None` if the file contains
    /// the rule itself.
    pub entry: Option<String>,
    head: RuleHead,
    spec: RuleParentheses,
}

impl PartialEq for PermissionRule {
    fn eq(&self, other: &Self) -> bool {
        (self.effect, &self.text, &self.origin) == (other.effect, &other.text, &other.origin)
    }
}

impl fmt::Display for PermissionRule {
    /// Writes the rule with its origin and, if it was derived, the entry of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} rule `{}` in {}", self.effect.as_str(), self.text, self.origin)?;
        self.entry.as_ref().map_or(Ok(()), |entry| write!(f, " (the entry {entry})"))
    }
}

#[derive(Debug, Clone)]
enum RuleParentheses {
    /// No parentheses, or only `*` in them.
    Any,
    One(Arc<dyn RuleMatcher>),
    /// Spec after a name that may be that of a tool which takes command lines. The definition of the called tool
    /// decides.
    OfTool {
        /// Spec for a tool that takes command lines; the reason if it is not valid there.
        command: Result<Arc<dyn RuleMatcher>, String>,
        /// Spec for any other tool.
        other: Arc<dyn RuleMatcher>,
    },
}

impl PermissionRule {
    /// Parses a rule. After the name of a tool that [takes command lines](Tool::takes_command_lines), the parentheses
    /// contain a command pattern, as after `Bash`. This also applies where only the definition of the called tool shows
    /// that it takes command lines.
    ///
    /// # Errors
    /// [`InvalidRule`] with the fault and an alternative to write.
    pub fn parse(effect: Effect, text: &str, origin: RuleOrigin, base: &PatternContext) -> Result<Self, InvalidRule> {
        let wrong = |reason: String| InvalidRule { rule: text.into(), origin: origin.clone(), reason };
        let trimmed = text.trim();
        let (head, spec) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((head, rest)) => match rest.strip_suffix(')') {
                Some(spec) => (head.trim(), Some(spec.trim())),
                None => return Err(wrong("the closing parenthesis is missing".into())),
            },
        };
        let head = RuleHead::parse(head, effect).map_err(&wrong)?;
        let spec = match spec {
            // Only a named server is trusted, as in `mcp__server__*`.
            None | Some("*") if effect == Effect::Allow && head.is_request() => {
                return Err(wrong(format!("an allow rule must name the server: write `{}(SERVER:*)`", head.as_str())));
            }
            None | Some("*") => RuleParentheses::Any,
            Some("") => {
                return Err(wrong(
                    "the parentheses are empty and would never match: leave them out to mean every call".into(),
                ));
            }
            Some(spec) => RuleParentheses::parse(&head, spec, effect, base).map_err(&wrong)?,
        };
        Ok(Self { effect, text: trimmed.into(), origin, entry: None, head, spec })
    }

    /// Sets the [entry](Self::entry).
    #[must_use]
    pub fn derived_from(self, entry: impl Into<String>) -> Self {
        Self { entry: Some(entry.into()), ..self }
    }

    /// Returns the kind of the parentheses for this tool; `None` if the rule applies to everything.
    ///
    /// # Errors
    /// The reason why the parentheses have no meaning for this tool.
    fn spec_for(&self, tool: &Tool) -> Result<Option<&dyn RuleMatcher>, &str> {
        match &self.spec {
            RuleParentheses::OfTool { command: Ok(command), .. } if tool.takes_command_lines => Ok(Some(&**command)),
            RuleParentheses::OfTool { command: Err(reason), .. } if tool.takes_command_lines => Err(reason),
            RuleParentheses::Any | RuleParentheses::One(_) | RuleParentheses::OfTool { .. } => Ok(self.spec()),
        }
    }

    /// Returns the kind of the parentheses where no tool is known.
    fn spec(&self) -> Option<&dyn RuleMatcher> {
        match &self.spec {
            RuleParentheses::Any => None,
            RuleParentheses::One(kind) | RuleParentheses::OfTool { other: kind, .. } => Some(&**kind),
        }
    }

    /// Returns the reason why the parentheses have no meaning for this tool, if the rule names it: for checking rules
    /// against existing tools. Such a deny or ask rule catches every call of the tool, and such an allow rule covers
    /// none.
    pub fn unreadable_for(&self, tool: &Tool) -> Option<&str> {
        let RuleHead::Tool(pattern) = &self.head else { return None };
        self.spec_for(tool).err().filter(|_| names(pattern, tool))
    }

    /// Returns the name of the tool in the head, if it is a plain name: for checking rules against existing tools.
    /// `None` for access kinds, globs and names of MCP tools.
    pub fn named_tool(&self) -> Option<&str> {
        match &self.head {
            RuleHead::Tool(name) if !name.contains('*') && !name.starts_with("mcp__") => Some(name),
            RuleHead::Tool(_) | RuleHead::Access(_) => None,
        }
    }

    /// Returns the tool and the top-level parameter of a rule on parameters; `None` for any other rule, and if the head
    /// is not the plain name of a tool. For checking rules against existing tools.
    pub fn named_parameter(&self) -> Option<(&str, &str)> {
        let path = self.spec()?.parameter()?;
        Some((self.named_tool()?, path.split('.').next().unwrap_or(path)))
    }

    /// Returns the part of a call that the rule is compared with; for a rule without parentheses, the part that its
    /// head names.
    pub fn subject(&self) -> RuleSubject {
        match (self.spec(), &self.head) {
            (Some(kind), _) => kind.subject(),
            (None, RuleHead::Access(head)) => head.subject,
            (None, RuleHead::Tool(_)) => RuleSubject::ToolName,
        }
    }

    /// Returns `true` if the rule applies to parts of a call, as opposed to its tool or its arguments.
    pub(super) fn is_about_parts(&self) -> bool {
        !matches!(self.subject(), RuleSubject::ToolName | RuleSubject::Arguments)
    }

    /// Returns `true` if the parentheses of the rule contain a path pattern.
    pub(super) fn names_paths(&self) -> bool {
        self.spec().is_some_and(|kind| kind.subject() == RuleSubject::Path)
    }

    /// Returns `true` if the rule matches these accesses, made by any tool: all of them for an allow rule, at least one
    /// for other rules. Used to try out a rule.
    pub fn meets(&self, accesses: &[Access], roots: &WorkspaceRoots) -> bool {
        match self.effect {
            Effect::Allow => {
                !accesses.is_empty() && accesses.iter().all(|access| self.covers_access(self.spec(), access, roots))
            }
            Effect::Ask | Effect::Deny => accesses.iter().any(|access| self.catches_access(self.spec(), access, roots)),
        }
    }

    /// Returns `true` if a rule on parameters matches a call with these arguments. Used to try out a rule.
    pub fn meets_arguments(&self, arguments: &Map<String, Value>) -> bool {
        self.spec().is_some_and(|kind| kind.catches_arguments(arguments, None) == Some(true))
    }

    /// Returns `true` if the head of the rule matches the name of a tool. Used to try out a rule.
    pub fn meets_name(&self, name: &str) -> bool {
        matches!(&self.head, RuleHead::Tool(pattern) if fits(pattern, name))
    }

    /// Returns `true` if this allow rule allows any program. `takes_command_lines` returns `true` for the names of
    /// tools that [take command lines](Tool::takes_command_lines).
    pub fn allows_any_program(&self, takes_command_lines: impl FnOnce(&str) -> bool) -> bool {
        let any = match (self.spec(), &self.head) {
            (Some(kind), _) => kind.fits_any_program(),
            (None, RuleHead::Access(head)) => head.access == AccessKind::Run,
            (None, RuleHead::Tool(name)) => takes_command_lines(name),
        };
        any && self.effect == Effect::Allow
    }

    /// Returns `true` for a rule on one command, word for word.
    pub(super) fn is_about_one_command(&self) -> bool {
        self.spec().is_some_and(|kind| kind.is_one_command())
    }

    /// Returns the words that are common to all commands that an allow rule with wildcards may cover; `None` if there
    /// are none, and for other rules.
    pub fn outline(&self) -> Option<CommandPatternOutline> {
        self.spec().filter(|_| self.effect == Effect::Allow)?.outline()
    }

    /// Returns `true` if this allow rule applies only to paths outside of every root, so that it covers nothing.
    pub fn is_outside(&self, roots: &WorkspaceRoots) -> bool {
        self.effect == Effect::Allow && self.spec().is_some_and(|kind| kind.is_outside(roots))
    }

    /// Returns `true` if this allow rule matches the access, but does not cover it because its wildcards cover only
    /// plain commands.
    pub(super) fn misses(&self, tool: &Tool, access: &Access) -> bool {
        let head = match &self.head {
            RuleHead::Access(head) => access.kind() == head.access,
            RuleHead::Tool(pattern) => names(pattern, tool),
        };
        let Ok(Some(kind)) = self.spec_for(tool) else { return false };
        head && matches!(access, Access::RunCommand(command) if kind.misses(command))
    }

    /// Returns `true` if this allow rule allows this one access of the tool.
    pub fn allows(&self, tool: &Tool, access: &Access, roots: &WorkspaceRoots) -> bool {
        // A rule that allows every command also allows the redirections of commands to files.
        if self.names_whole_kind(AccessKind::Run) && is_shell(tool) && access.path().is_some() {
            return true;
        }
        let head = match &self.head {
            RuleHead::Access(head) => access.kind() == head.access,
            RuleHead::Tool(pattern) if tool.stands_for().is_some() => names_server(pattern, tool),
            // Sending always needs approval.
            RuleHead::Tool(pattern) => access.kind() != AccessKind::Send && names(pattern, tool),
        };
        head && self.spec_for(tool).is_ok_and(|spec| self.covers_access(spec, access, roots))
    }

    /// Returns `true` if this allow rule matches the name of the tool that represents requests, and nevertheless covers
    /// no request, because it allows a tool of that name only.
    pub(super) fn names_only_tools(&self, tool: &Tool) -> bool {
        let RuleHead::Tool(pattern) = &self.head else { return false };
        tool.stands_for().is_some() && names(pattern, tool) && !names_server(pattern, tool)
    }

    /// Returns the kind of requests whose name (`read_resource`, `get_prompt`) this allow rule uses as that of a tool,
    /// and the rule that allows such requests instead; `None` for any other rule.
    pub fn named_requests(&self) -> Option<(AccessKind, String)> {
        let RuleHead::Tool(name) = &self.head else { return None };
        let (server, tool) = match name.strip_prefix("mcp__") {
            Some(qualified) => qualified.split_once("__")?,
            None => ("SERVER", name.as_str()),
        };
        let (kind, head) = match tool {
            context::READ_RESOURCE => (AccessKind::Resource, "Resource"),
            context::GET_PROMPT => (AccessKind::Prompt, "Prompt"),
            _ => return None,
        };
        (self.effect == Effect::Allow).then(|| (kind, format!("{head}({server}:*)")))
    }

    /// Returns the pattern of the name of the server whose resources or prompts the rule applies to.
    pub fn named_server(&self) -> Option<&str> {
        self.spec()?.server()
    }

    /// Returns `true` if this deny rule closes everything that the access requests: a resource, a prompt, or every
    /// resource of a template.
    pub(super) fn closes_request(&self, access: &Access, roots: &WorkspaceRoots) -> bool {
        matches!(&self.head, RuleHead::Access(_))
            && self.effect == Effect::Deny
            && self.covers_access(self.spec(), access, roots)
    }

    /// Returns `true` if the rule applies to every request that this tool represents.
    pub(super) fn names_requests_of(&self, tool: &Tool) -> bool {
        let Some(kind) = tool.stands_for() else { return false };
        let covers_server = |kind: &dyn RuleMatcher| tool.server().is_some_and(|one| kind.covers_server(one.as_str()));
        matches!(&self.head, RuleHead::Access(head) if head.access == kind) && self.spec().is_none_or(covers_server)
    }

    /// Returns `true` if an allow rule covers the access, for any tool.
    fn covers_access(&self, spec: Option<&dyn RuleMatcher>, access: &Access, roots: &WorkspaceRoots) -> bool {
        let head = match &self.head {
            RuleHead::Access(head) => access.kind() == head.access,
            RuleHead::Tool(_) => true,
        };
        head && spec.is_none_or(|kind| kind.covers(access, roots))
    }

    /// Returns `true` if this allow rule names every call of the tool that has no accesses.
    pub(super) fn allows_whole(&self, tool: &Tool) -> bool {
        matches!((&self.head, &self.spec), (RuleHead::Tool(pattern), RuleParentheses::Any) if allows_name(pattern, tool))
    }

    /// Returns the access by which this deny or ask rule catches the call; `Some(None)` if it catches the call as a
    /// whole, `None` if it does not catch it.
    pub fn catches<'a>(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        accesses: &'a [Access],
        roots: &WorkspaceRoots,
    ) -> Option<Option<&'a Access>> {
        match &self.head {
            RuleHead::Tool(pattern) if !matches_any_name(pattern, tool) => {
                return accesses.iter().find(|access| self.denies_offering(pattern, access)).map(Some);
            }
            RuleHead::Tool(_) if matches!(self.spec, RuleParentheses::Any) => return Some(None),
            RuleHead::Tool(_) | RuleHead::Access(_) => {}
        }
        // A rule whose parentheses have no meaning for the tool catches everything it could apply to.
        let Ok(spec) = self.spec_for(tool) else { return Some(None) };
        if let Some(caught) = spec.and_then(|kind| kind.catches_arguments(arguments, Some(tool))) {
            return caught.then_some(None);
        }
        accesses.iter().find(|access| self.catches_access(spec, access, roots)).map(Some)
    }

    /// Returns `true` if this deny rule denies every tool that the access offers to a program, so that a program is not
    /// offered tools that no call may use.
    fn denies_offering(&self, pattern: &str, access: &Access) -> bool {
        // A pattern that matches with its stars as literal characters is contained in the pattern of the rule.
        matches!(access, Access::OfferTools(tools) if fits(pattern, tools))
            && self.effect == Effect::Deny
            && matches!(self.spec, RuleParentheses::Any)
    }

    /// Returns this rule, if it denies offering tools to programs, as the rule that denies calls of these tools; `None`
    /// for any other rule.
    pub(super) fn of_offered_tools(&self) -> Option<Self> {
        let RuleHead::Access(head) = &self.head else { return None };
        let pattern = self.spec().map_or(Some("*"), RuleMatcher::names)?;
        let denies = self.effect == Effect::Deny && head.access == AccessKind::Offer;
        denies.then(|| Self { head: RuleHead::Tool(pattern.into()), spec: RuleParentheses::Any, ..self.clone() })
    }

    fn catches_access(&self, spec: Option<&dyn RuleMatcher>, access: &Access, roots: &WorkspaceRoots) -> bool {
        if let Access::RunCommand(command) = access
            && command.files().any(|file| self.catches_access(spec, file, roots))
        {
            return true;
        }
        let head = match &self.head {
            RuleHead::Tool(_) => true,
            // A path that may not be read may not be written either; an ask rule applies only to the access that it
            // names.
            RuleHead::Access(head) if (head.access, access.kind()) == (AccessKind::Read, AccessKind::Write) => {
                self.effect == Effect::Deny && spec.is_some()
            }
            RuleHead::Access(head) => head.access == access.kind(),
        };
        head && spec.is_none_or(|kind| kind.catches(access, roots))
    }

    /// Returns `true` if this deny or ask rule may catch an access of this kind to a path below a folder by this tool,
    /// as far as that can be determined without the names of the entries.
    pub(super) fn may_catch_below(
        &self,
        tool: &Tool,
        kind: AccessKind,
        folder: &AccessPath,
        roots: &WorkspaceRoots,
    ) -> bool {
        let head = match &self.head {
            RuleHead::Access(head) => head.access == kind,
            RuleHead::Tool(pattern) => names(pattern, tool),
        };
        head && match self.spec_for(tool) {
            Ok(None) | Err(_) => true,
            Ok(Some(kind)) => kind.may_catch_below(folder, roots),
        }
    }

    /// Returns `true` if the rule catches reading a path, provided that [it may](Self::may_catch_below).
    pub(super) fn catches_reading(&self, tool: &Tool, path: &AccessPath, roots: &WorkspaceRoots) -> bool {
        match self.spec_for(tool) {
            Ok(None) | Err(_) => true,
            Ok(Some(kind)) => kind.catches_reading(path, roots),
        }
    }

    /// Returns `true` if this deny rule denies every call of the tool, whatever its arguments.
    pub(super) fn denies_whole(&self, tool: &Tool) -> bool {
        matches!((&self.head, &self.spec), (RuleHead::Tool(pattern), RuleParentheses::Any) if matches_any_name(pattern, tool))
    }

    /// Returns `true` if the rule names every access of this kind, and the tool has an alias of that kind: all its
    /// calls have such an access.
    pub(super) fn names_whole_kind_of(&self, kind: AccessKind, tool: &Tool) -> bool {
        let mut names = kind::names(kind);
        self.names_whole_kind(kind) && names.any(|name| tool.aliases.iter().any(|alias| alias.name == name))
    }

    /// Returns `true` if the rule names every access of this kind.
    pub(super) fn names_whole_kind(&self, kind: AccessKind) -> bool {
        matches!((&self.head, &self.spec), (RuleHead::Access(head), RuleParentheses::Any) if head.access == kind)
    }
}

impl RuleParentheses {
    fn parse(head: &RuleHead, text: &str, effect: Effect, base: &PatternContext) -> Result<Self, String> {
        match head {
            RuleHead::Access(head) => (head.parse)(text, effect, base).map(Self::One),
            RuleHead::Tool(name) if base.command_tools.contains(&name.as_str()) => {
                kind::behind_a_command_tool(text, effect, base).map(Self::One)
            }
            RuleHead::Tool(_) => Ok(Self::OfTool {
                other: kind::behind_a_tool(text, effect, base)?,
                command: kind::behind_a_command_tool(text, effect, base),
            }),
        }
    }
}

/// Returns `true` if the tool runs command lines.
fn is_shell(tool: &Tool) -> bool {
    tool.category == Category::Shell && matches!(tool.source(), ToolSource::BuiltIn)
}

/// Text that is not a valid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the permission rule `{rule}` in {origin} cannot be used: {reason}")]
pub struct InvalidRule {
    /// Rule as it was written.
    pub rule: String,
    /// Place where it was written.
    pub origin: RuleOrigin,
    /// Fault, and an alternative to write.
    pub reason: String,
}

#[cfg(test)]
mod tests;
