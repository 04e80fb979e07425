//! Kinds of rules: the possible contents of the parentheses. Each file has one kind; the two lists here contain them
//! all.

mod command;
mod host;
mod name;
mod parameter;
mod path;
mod request;

use super::{Effect, RuleSubject};
use crate::{
    access::{Access, AccessKind, AccessPath, CommandAccess},
    permission::{command_pattern::CommandPatternOutline, path_pattern::PatternContext},
    tool::Tool,
    workspace_roots::WorkspaceRoots,
};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc};

/// Compiled parentheses of a rule.
///
/// The first three methods define the meaning of the rule. Kinds override the others where they apply.
pub(super) trait RuleMatcher: fmt::Debug + Send + Sync {
    /// Returns the part of a call that the rule is compared with.
    fn subject(&self) -> RuleSubject;

    /// Returns `true` if an allow rule covers the access. An access that cannot be determined is not covered.
    fn covers(&self, access: &Access, roots: &WorkspaceRoots) -> bool;

    /// Returns `true` if a deny or ask rule catches the access. An access that cannot be determined is caught.
    fn catches(&self, access: &Access, roots: &WorkspaceRoots) -> bool;

    /// Returns `true` if a deny or ask rule catches a call by its arguments, or by the schema defaults of absent ones;
    /// `None` for kinds that apply to accesses.
    fn catches_arguments(&self, _arguments: &Map<String, Value>, _tool: Option<&Tool>) -> Option<bool> {
        None
    }

    /// Returns `true` if the rule catches reading a path.
    fn catches_reading(&self, _path: &AccessPath, _roots: &WorkspaceRoots) -> bool {
        false
    }

    /// Returns `true` if the rule may catch an access to a path below the folder, as far as that can be determined
    /// without the names of its entries.
    fn may_catch_below(&self, _folder: &AccessPath, _roots: &WorkspaceRoots) -> bool {
        false
    }

    /// Returns `true` if the rule matches the command, but does not cover it because the command is not plain.
    fn misses(&self, _command: &CommandAccess) -> bool {
        false
    }

    /// Returns `true` if the rule covers commands of any program.
    fn fits_any_program(&self) -> bool {
        false
    }

    /// Returns `true` if the rule applies to one command, word for word.
    fn is_one_command(&self) -> bool {
        false
    }

    /// Returns the words that are common to all commands that the rule covers; `None` for a rule without wildcards, for
    /// one that leaves the program open, and for one that does not apply to commands.
    fn outline(&self) -> Option<CommandPatternOutline> {
        None
    }

    /// Returns `true` if the rule can cover nothing in a root.
    fn is_outside(&self, _roots: &WorkspaceRoots) -> bool {
        false
    }

    /// Returns the pattern of names that the rule applies to.
    fn names(&self) -> Option<&str> {
        None
    }

    /// Returns the pattern of the name of the server that the rule applies to.
    fn server(&self) -> Option<&str> {
        None
    }

    /// Returns `true` if the rule covers every request of its kind to the server.
    fn covers_server(&self, _server: &str) -> bool {
        false
    }

    /// Returns the dotted path of the parameter that the rule checks.
    fn parameter(&self) -> Option<&str> {
        None
    }
}

/// Compiled parentheses; the error contains an alternative to write.
type RuleKindResult = Result<Arc<dyn RuleMatcher>, String>;

/// Head that names a kind of access, of any tool.
#[derive(Debug)]
pub(super) struct AccessHeadDefinition {
    pub(super) name: &'static str,
    pub(super) access: AccessKind,
    /// Part of a call that a rule without parentheses is compared with.
    pub(super) subject: RuleSubject,
    pub(super) parse: fn(&str, Effect, &PatternContext) -> RuleKindResult,
}

const HEADS: &[AccessHeadDefinition] = &[
    AccessHeadDefinition { name: "Read", access: AccessKind::Read, subject: RuleSubject::Path, parse: path::parse },
    AccessHeadDefinition { name: "Write", access: AccessKind::Write, subject: RuleSubject::Path, parse: path::parse },
    AccessHeadDefinition { name: "Edit", access: AccessKind::Write, subject: RuleSubject::Path, parse: path::parse },
    AccessHeadDefinition {
        name: "Bash",
        access: AccessKind::Run,
        subject: RuleSubject::Command,
        parse: command::parse,
    },
    AccessHeadDefinition { name: "Agent", access: AccessKind::Agent, subject: RuleSubject::Name, parse: name::parse },
    AccessHeadDefinition { name: "Task", access: AccessKind::Agent, subject: RuleSubject::Name, parse: name::parse },
    AccessHeadDefinition { name: "Tools", access: AccessKind::Offer, subject: RuleSubject::Name, parse: name::parse },
    AccessHeadDefinition {
        name: "WebFetch",
        access: AccessKind::Reach,
        subject: RuleSubject::Host,
        parse: host::parse,
    },
    AccessHeadDefinition {
        name: "Resource",
        access: AccessKind::Resource,
        subject: RuleSubject::Resource,
        parse: request::parse_resource,
    },
    AccessHeadDefinition {
        name: "Prompt",
        access: AccessKind::Prompt,
        subject: RuleSubject::Prompt,
        parse: request::parse_prompt,
    },
];

/// Kinds after the name of a tool, in the order in which they are tried. Each returns `None` for a text that is not its
/// own; any other text is a path.
const BEHIND_A_TOOL: &[fn(&str, Effect) -> Option<RuleKindResult>] = &[host::behind_a_tool, parameter::behind_a_tool];

/// Returns the head with this name, if it names a kind of access.
pub(super) fn access_head(name: &str) -> Option<&'static AccessHeadDefinition> {
    HEADS.iter().find(|head| head.name == name)
}

/// Returns the names of the heads for this kind of access.
pub(super) fn names(kind: AccessKind) -> impl Iterator<Item = &'static str> {
    HEADS.iter().filter(move |head| head.access == kind).map(|head| head.name)
}

/// Parses the parentheses after the name of a tool that takes command lines.
pub(super) fn behind_a_command_tool(text: &str, effect: Effect, base: &PatternContext) -> RuleKindResult {
    command::parse(text, effect, base)
}

/// Parses the parentheses after the name of any other tool.
pub(super) fn behind_a_tool(text: &str, effect: Effect, base: &PatternContext) -> RuleKindResult {
    let own = BEHIND_A_TOOL.iter().find_map(|parse| parse(text, effect));
    own.unwrap_or_else(|| path::parse(text, effect, base))
}
