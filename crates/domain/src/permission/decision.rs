//! What was decided of a call, and why.

use crate::{access::Access, permission::rule::PermissionRule};
use std::{fmt, sync::Arc};

/// The verdict, ordered from lenient to strict: the strictest of several wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// Somebody is asked first.
    Ask,
    /// It does not run.
    Deny,
}

impl Verdict {
    /// The verdict as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The decision on one call: the verdict, what decided it, and every finding on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What was decided.
    pub verdict: Verdict,
    /// The finding that decided.
    pub decisive: Finding,
    /// The findings on each access, in the order of the accesses.
    pub trace: Vec<Finding>,
}

/// What one rule, mode or default says of one part of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it says.
    pub verdict: Verdict,
    /// Of what: one access, or the call as a whole.
    pub part: Option<Access>,
    /// Why.
    pub cause: Cause,
}

/// What a finding rests on.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// A rule.
    Rule(Arc<PermissionRule>),
    /// The defaults, in words.
    Default(&'static str),
    /// The mode, in words.
    Mode(&'static str),
    /// The tool is not among those chosen with `--tools`.
    NotSelected,
    /// The path is in no root.
    OutsideRoots,
    /// There is no root at all.
    NoRoots,
    /// The path belongs to Toolstead's own data.
    Forbidden,
    /// The root may only be read.
    ReadOnlyRoot,
    /// A hook wants somebody to be asked; its name and its reason.
    Hook(String),
}

impl Decision {
    /// Why, as one sentence for the audit trail and for refusals: the rule with its place, and the part it met.
    pub fn reason(&self) -> String {
        self.decisive.to_string()
    }

    /// What would allow the call, as a sentence; `None` where nothing the caller can do would.
    pub fn remedy(&self, tool: &str) -> Option<String> {
        let rule = suggested_rule(self.decisive.part.as_ref(), tool);
        match &self.decisive.cause {
            Cause::Mode(_) | Cause::Hook(_) => None,
            Cause::Default(_) => Some(format!(
                "To allow it, run with `--allow '{rule}'` or add `allow = [\"{rule}\"]` under `[permissions]` in the configuration."
            )),
            Cause::Rule(denying) => Some(format!("To allow it, change `{}` in {}.", denying.text, denying.origin)),
            Cause::NotSelected => Some(format!("To offer it, add `{tool}` to `--tools`.")),
            Cause::OutsideRoots | Cause::NoRoots | Cause::ReadOnlyRoot => Some(
                "To work there, start with `--root DIR` or add the folder to `[workspace] roots` in the configuration."
                    .into(),
            ),
            Cause::Forbidden => None,
        }
    }
}

/// The narrowest rule that would allow this part of a call.
fn suggested_rule(part: Option<&Access>, tool: &str) -> String {
    match part {
        Some(Access::ReadPath(path)) => format!("Read(/{}{})", path.real.display(), if path.tree { "/**" } else { "" }),
        Some(Access::WritePath(path)) => {
            format!("Write(/{}{})", path.real.display(), if path.tree { "/**" } else { "" })
        }
        Some(Access::RunCommand(command)) => format!("Bash({})", command.text),
        Some(Access::ReachHost(host)) => format!("WebFetch(domain:{host})"),
        Some(Access::Send(_) | Access::CallUpstream { .. }) | None => tool.to_owned(),
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Some(part) => write!(f, "{}: to {part}", self.cause),
            None => self.cause.fmt(f),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the {} rule `{}` in {}", rule.effect.as_str(), rule.text, rule.origin),
            Self::Default(words) | Self::Mode(words) => f.write_str(words),
            Self::NotSelected => f.write_str("the tool is not among those chosen with `--tools`"),
            Self::OutsideRoots => f.write_str("outside of the workspace's roots"),
            Self::NoRoots => f.write_str("the workspace has no root"),
            Self::Forbidden => f.write_str("no tool may touch Toolstead's own data"),
            Self::ReadOnlyRoot => f.write_str("the root may only be read"),
            Self::Hook(words) => f.write_str(words),
        }
    }
}
