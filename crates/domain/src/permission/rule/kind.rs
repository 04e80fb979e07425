//! The kinds of rules: what may stand in the parentheses. One kind a file; the two lists here name them all.

mod command;
mod host;
mod name;
mod parameter;
mod path;
mod request;

use super::{Effect, RuleSubject};
use crate::{
    access::{Access, AccessKind, CommandAccess, PathAccess},
    permission::{command_pattern::Outline, path_pattern::PatternBase},
    tool::Tool,
    workspace_roots::WorkspaceRoots,
};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc};

/// The parentheses of a rule, compiled.
///
/// The first three methods say what the rule means. The others answer for kinds that know more.
pub(super) trait RuleKind: fmt::Debug + Send + Sync {
    /// The part of a call that it is compared with.
    fn subject(&self) -> RuleSubject;

    /// Tells whether an allow rule covers the access. What cannot be told is not covered.
    fn covers(&self, access: &Access, roots: &WorkspaceRoots) -> bool;

    /// Tells whether a deny or ask rule catches the access. What cannot be told is caught.
    fn catches(&self, access: &Access, roots: &WorkspaceRoots) -> bool;

    /// Tells whether a deny or ask rule catches a call by its arguments, or by what the tool's schema says that absent
    /// ones mean; `None` for kinds that are about accesses.
    fn catches_arguments(&self, _arguments: &Map<String, Value>, _tool: Option<&Tool>) -> Option<bool> {
        None
    }

    /// Tells whether it catches the reading of a path.
    fn catches_reading(&self, _path: &PathAccess, _roots: &WorkspaceRoots) -> bool {
        false
    }

    /// Tells whether it may catch an access to a path below the folder, as far as that can be told without the names
    /// there.
    fn may_catch_below(&self, _folder: &PathAccess, _roots: &WorkspaceRoots) -> bool {
        false
    }

    /// Tells whether it says the command, and does not cover it because it is not plain.
    fn misses(&self, _command: &CommandAccess) -> bool {
        false
    }

    /// Tells whether it covers commands of any program.
    fn fits_any_program(&self) -> bool {
        false
    }

    /// Returns `true` if it is about one command, word for word.
    fn is_one_command(&self) -> bool {
        false
    }

    /// The words of every command that it covers.
    fn outline(&self) -> Option<Outline> {
        None
    }

    /// Tells whether nothing in a root can be covered by it.
    fn is_outside(&self, _roots: &WorkspaceRoots) -> bool {
        false
    }

    /// The pattern of names that it is about.
    fn names(&self) -> Option<&str> {
        None
    }

    /// The pattern of the name of the server that it is about.
    fn server(&self) -> Option<&str> {
        None
    }

    /// Returns `true` if it covers every request of its kind to the server.
    fn covers_server(&self, _server: &str) -> bool {
        false
    }

    /// The dotted path of the parameter that it looks at.
    fn parameter(&self) -> Option<&str> {
        None
    }
}

/// Reads what stands in the parentheses; the error says what to write instead.
type Parsed = Result<Arc<dyn RuleKind>, String>;

/// A head that names a kind of access, whatever tool it is of.
#[derive(Debug)]
pub(super) struct AccessHead {
    pub(super) name: &'static str,
    pub(super) access: AccessKind,
    /// The part of a call that a rule without parentheses is compared with.
    pub(super) subject: RuleSubject,
    pub(super) parse: fn(&str, Effect, &PatternBase) -> Parsed,
}

const HEADS: &[AccessHead] = &[
    AccessHead { name: "Read", access: AccessKind::Read, subject: RuleSubject::Path, parse: path::parse },
    AccessHead { name: "Write", access: AccessKind::Write, subject: RuleSubject::Path, parse: path::parse },
    AccessHead { name: "Edit", access: AccessKind::Write, subject: RuleSubject::Path, parse: path::parse },
    AccessHead { name: "Bash", access: AccessKind::Run, subject: RuleSubject::Command, parse: command::parse },
    AccessHead { name: "Agent", access: AccessKind::Agent, subject: RuleSubject::Name, parse: name::parse },
    AccessHead { name: "Task", access: AccessKind::Agent, subject: RuleSubject::Name, parse: name::parse },
    AccessHead { name: "Tools", access: AccessKind::Offer, subject: RuleSubject::Name, parse: name::parse },
    AccessHead { name: "WebFetch", access: AccessKind::Reach, subject: RuleSubject::Host, parse: host::parse },
    AccessHead {
        name: "Resource",
        access: AccessKind::Resource,
        subject: RuleSubject::Resource,
        parse: request::parse_resource,
    },
    AccessHead {
        name: "Prompt",
        access: AccessKind::Prompt,
        subject: RuleSubject::Prompt,
        parse: request::parse_prompt,
    },
];

/// The kinds behind the name of a tool, in the order in which they are tried. Each returns `None` for a text that is not
/// its own; what is left is a path.
const BEHIND_A_TOOL: &[fn(&str, Effect) -> Option<Parsed>] = &[host::behind_a_tool, parameter::behind_a_tool];

/// The head of this name, if it names a kind of access.
pub(super) fn access_head(name: &str) -> Option<&'static AccessHead> {
    HEADS.iter().find(|head| head.name == name)
}

/// The names of the heads for this kind of access.
pub(super) fn names(kind: AccessKind) -> impl Iterator<Item = &'static str> {
    HEADS.iter().filter(move |head| head.access == kind).map(|head| head.name)
}

/// Reads what stands behind the name of a tool that takes command lines.
pub(super) fn behind_a_command_tool(text: &str, effect: Effect, base: &PatternBase) -> Parsed {
    command::parse(text, effect, base)
}

/// Reads what stands behind the name of any other tool.
pub(super) fn behind_a_tool(text: &str, effect: Effect, base: &PatternBase) -> Parsed {
    let own = BEHIND_A_TOOL.iter().find_map(|parse| parse(text, effect));
    own.unwrap_or_else(|| path::parse(text, effect, base))
}
