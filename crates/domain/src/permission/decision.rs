//! The decision on a call, with its reasons.

use crate::{
    access::Access,
    permission::{
        command_pattern,
        path_pattern::{self, PatternContext},
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    suggestion::Suggestion,
    workspace_roots::WorkspaceRoots,
};
use serde_json::{Value, json};
use std::{fmt, path::PathBuf, sync::Arc};

/// Maximum length of all suggested rules together, in bytes.
const LONGEST_SUGGESTION: usize = 2_000;
/// Maximum number of further findings in a refusal.
const MAX_REPORTED_FINDINGS: usize = 4;

/// Verdict, ordered from lenient to strict: the strictest of several wins.
///
/// ```
/// use toolstead_domain::permission::decision::Verdict;
///
/// let verdicts = [Verdict::Allow, Verdict::Deny, Verdict::Ask];
/// assert_eq!(verdicts.iter().max(), Some(&Verdict::Deny));
/// assert_eq!(Verdict::Ask.as_str(), "ask");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The call needs approval first.
    Ask,
    /// The call does not run.
    Deny,
}

impl Verdict {
    /// Returns the verdict as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Decision on one call: the verdict, the decisive finding, and all other findings.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Allow, ask or deny.
    pub verdict: Verdict,
    /// Finding that decided.
    pub decisive: Finding,
    /// All findings: first on the call as a whole, if there is one, then on each access in their order.
    pub trace: Vec<Finding>,
}

/// Result of one rule, mode or default for one part of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Verdict on the part.
    pub verdict: Verdict,
    /// Access that the finding applies to; `None` for the call as a whole.
    pub part: Option<Access>,
    /// Reason for the verdict.
    pub cause: Cause,
    /// Allow rule that matches the part but does not cover it.
    pub near_miss: Option<NearMiss>,
}

/// Allow rule that matches a part of a call without effect.
#[derive(Debug, Clone, PartialEq)]
pub enum NearMiss {
    /// A wildcard of the rule would have to cover a command that is not plain.
    NotPlain(Arc<PermissionRule>),
    /// The path is in no root.
    Outside(Arc<PermissionRule>),
    /// The rule is in a file that is not trusted yet.
    Waiting(Arc<PermissionRule>),
    /// The rule names a tool of a server, and the request is for a resource or prompt.
    OfTools(Arc<PermissionRule>),
}

/// Reason for a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// A permission rule.
    Rule(Arc<PermissionRule>),
    /// A default, described by this text.
    Default(&'static str),
    /// The mode, described by this text.
    Mode(&'static str),
    /// The tool is not among those selected with `--tools`.
    NotSelected,
    /// The tool is not part of the restricted view through which it is called.
    OutsideWindow,
    /// The path is in no root.
    OutsideRoots,
    /// The workspace has no root.
    NoRoots,
    /// The path belongs to Toolstead's own data.
    Forbidden,
    /// The root is read-only.
    ReadOnlyRoot,
    /// A hook requires approval.
    Hook {
        /// Name of the hook.
        by: String,
        /// Reason of the hook, which may be different each time.
        reason: String,
    },
    /// The definition of the tool is new or has changed, and is not approved; with the reason.
    Definition(String),
}

impl Cause {
    /// Returns how hard the cause is to change, from 0 to 3. Of equally strict findings, the one with the greatest
    /// weight decides.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::Forbidden
            | Self::NoRoots
            | Self::OutsideRoots
            | Self::ReadOnlyRoot
            | Self::NotSelected
            | Self::OutsideWindow => 3,
            Self::Rule(_) => 2,
            Self::Hook { .. } | Self::Definition(_) | Self::Mode(_) => 1,
            Self::Default(_) => 0,
        }
    }
}

impl Decision {
    /// Returns the reason as one sentence for the audit log and for refusals: the rule with its origin, and the part
    /// that it matched.
    pub fn reason(&self) -> String {
        let would_be_asked = match &self.decisive.cause {
            Cause::Rule(rule) => rule.effect == Effect::Ask,
            Cause::Default(_) | Cause::Hook { .. } | Cause::Definition(_) => true,
            _ => false,
        };
        match would_be_asked && self.verdict == Verdict::Deny {
            true => format!("{}; the mode `dont_ask` denies what would need approval", self.decisive),
            false => self.decisive.to_string(),
        }
    }

    /// Returns the other findings that do not allow the call, as sentences with a blank before each. Lists at most four
    /// and counts the rest; empty if there are none.
    pub fn more(&self) -> String {
        let others: Vec<&Finding> = self.trace.iter().filter(|one| one.verdict != Verdict::Allow).collect();
        let others: Vec<&&Finding> = others.iter().filter(|one| one.part != self.decisive.part).collect();
        let mut text: String = others.iter().take(MAX_REPORTED_FINDINGS).map(|one| format!(" Also: {one}.")).collect();
        if others.len() > MAX_REPORTED_FINDINGS {
            text.push_str(&format!(" And {} more.", others.len() - MAX_REPORTED_FINDINGS));
        }
        text
    }

    /// Returns the accesses that need approval.
    pub fn asked(&self) -> impl Iterator<Item = &Access> {
        let asking = self.trace.iter().filter(|finding| finding.verdict == Verdict::Ask);
        asking.filter_map(|finding| finding.part.as_ref())
    }

    /// Returns the trace as JSON: an array of [`Finding::to_json`].
    pub fn trace_json(&self) -> Value {
        self.trace.iter().map(Finding::to_json).collect()
    }

    /// Returns the narrowest rules that together allow the call; empty if no rules can, they are too long, or none are
    /// needed.
    pub fn suggestions(&self, tool: &str) -> Vec<String> {
        let mut rules = Vec::new();
        for finding in self.trace.iter().filter(|finding| finding.verdict != Verdict::Allow) {
            let rule = match finding.cause {
                Cause::Default(_) => match &finding.part {
                    Some(part) => narrowest_rule(part, tool),
                    None => Some(tool.to_owned()),
                },
                _ => None,
            };
            match rule {
                Some(rule) if rules.contains(&rule) => {}
                Some(rule) => rules.push(rule),
                None => return Vec::new(),
            }
        }
        let bytes: usize = rules.iter().map(String::len).sum();
        if bytes > LONGEST_SUGGESTION { Vec::new() } else { rules }
    }

    /// Returns the change that would allow the call; `None` if no change by its users would.
    pub fn suggestion(&self, tool: &str) -> Option<Suggestion> {
        if let Some(path) = self.decisive.file_to_trust() {
            return Some(Suggestion::TrustFile(path));
        }
        match &self.decisive.cause {
            Cause::Mode(_) | Cause::Hook { .. } | Cause::Definition(_) | Cause::Forbidden | Cause::OutsideWindow => {
                None
            }
            Cause::Default(_) => {
                Some(self.suggestions(tool)).filter(|rules| !rules.is_empty()).map(Suggestion::AllowRules)
            }
            Cause::Rule(rule) => {
                Some(Suggestion::ChangeRule { rule: rule.text.to_string(), origin: rule.origin.clone() })
            }
            Cause::NotSelected => Some(Suggestion::SelectTool(tool.to_owned())),
            Cause::OutsideRoots | Cause::NoRoots | Cause::ReadOnlyRoot => Some(Suggestion::AddRoot),
        }
    }
}

/// Returns the narrowest rule that would allow this part of a call of the tool with this name in rules; `None` if no
/// rule can express it. For an access that only the name of the tool covers, the rule is the tool.
pub fn narrowest_rule(access: &Access, tool: &str) -> Option<String> {
    let (head, spec) = match access {
        Access::ReadPath(path) => ("Read", path_pattern::narrowest(path)?),
        Access::WritePath(path) => ("Write", path_pattern::narrowest(path)?),
        Access::RunCommand(command) => ("Bash", command_pattern::narrowest(command)?),
        Access::ReachHost(host) => ("WebFetch", format!("domain:{host}")),
        // A star would also match other agents.
        Access::RunAgent(agent) if agent.contains('*') => return None,
        Access::RunAgent(agent) => ("Agent", agent.to_string()),
        Access::OfferTools(tools) => ("Tools", tools.to_string()),
        Access::CallUpstream { .. } | Access::Undeclared(_) => return Some(tool.to_owned()),
        // A star would also match other resources and prompts.
        Access::ReadResource { uri: name, .. } | Access::GetPrompt { prompt: name, .. } if name.contains('*') => {
            return None;
        }
        Access::ReadResource { server, uri } => ("Resource", format!("{server}:{uri}")),
        Access::GetPrompt { server, prompt } => ("Prompt", format!("{server}:{prompt}")),
        Access::Send(_) => return None,
    };
    // Blanks around a rule are removed when it is parsed, and it would then match more.
    if spec != spec.trim() {
        return None;
    }
    let text = format!("{head}({spec})");
    // A text with control characters cannot be copied safely from a terminal.
    if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
        return None;
    }
    let rule = PermissionRule::parse(Effect::Allow, &text, RuleOrigin::Program, &PatternContext::default()).ok()?;
    rule.meets(std::slice::from_ref(access), &WorkspaceRoots::default()).then_some(text)
}

/// Quotes the text as one word for a shell.
pub fn in_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Finding {
    /// Creates a finding on this part of a call.
    pub fn new(verdict: Verdict, part: Option<Access>, cause: Cause) -> Self {
        Self { verdict, part, cause, near_miss: None }
    }

    /// Returns the reason why the matching allow rule does not cover the part, as a clause; `None` if there is no such
    /// rule.
    pub fn missed(&self) -> Option<String> {
        Some(match self.near_miss.as_ref()? {
            NearMiss::NotPlain(rule) => {
                let why = match &self.part {
                    Some(Access::RunCommand(command)) => command.clarity.reason(),
                    _ => None,
                };
                let why = why.unwrap_or("it is not plain");
                format!("{rule} does not cover it, because {why}, and a wildcard never covers that")
            }
            NearMiss::Outside(rule) => {
                format!("{rule} does not allow it, because rules apply only inside the roots")
            }
            NearMiss::OfTools(rule) => {
                format!("{rule} does not cover it, because it allows a tool of that name only")
            }
            NearMiss::Waiting(rule) => format!("{rule} would cover it, but its file is not trusted"),
        })
    }

    /// Returns the file that has an allow rule for the access, which has no effect until the file is trusted.
    fn file_to_trust(&self) -> Option<PathBuf> {
        match self.near_miss.as_ref()? {
            NearMiss::Waiting(rule) => match &rule.origin {
                RuleOrigin::File(path, _) => Some(path.to_path_buf()),
                _ => None,
            },
            NearMiss::NotPlain(_) | NearMiss::Outside(_) | NearMiss::OfTools(_) => None,
        }
    }

    /// Returns the finding as JSON: `verdict`, `part` (null for the call as a whole), `cause` (as text), for a rule
    /// `rule`, `origin` and, if it was derived, `entry`, and `near_miss` if an allow rule matches without effect.
    pub fn to_json(&self) -> Value {
        let part = self.part.as_ref().map(ToString::to_string);
        let mut finding = json!({"verdict": self.verdict.as_str(), "part": part, "cause": self.cause.to_string()});
        if let Cause::Rule(rule) = &self.cause {
            finding["rule"] = rule.text.as_str().into();
            finding["origin"] = rule.origin.to_string().into();
            if let Some(entry) = &rule.entry {
                finding["entry"] = entry.as_str().into();
            }
        }
        if let Some(missed) = self.missed() {
            finding["near_miss"] = missed.into();
        }
        finding
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Some(part) => write!(f, "{}: to {part}", self.cause)?,
            None => self.cause.fmt(f)?,
        }
        self.missed().map_or(Ok(()), |missed| write!(f, "; {missed}"))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::Default(words) | Self::Mode(words) => f.write_str(words),
            Self::NotSelected => f.write_str("the tool is not among the selected ones"),
            Self::OutsideWindow => f.write_str("the tool is not among those that are offered to the caller"),
            Self::OutsideRoots => f.write_str("outside of the workspace's roots"),
            Self::NoRoots => f.write_str("the workspace has no root"),
            Self::Forbidden => f.write_str("no tool may touch Toolstead's own data"),
            Self::ReadOnlyRoot => f.write_str("the root may only be read"),
            Self::Definition(reason) => write!(f, "the tool requires approval: {reason}"),
            Self::Hook { by, reason } => write!(f, "the hook `{by}` requires approval: {reason}"),
        }
    }
}
