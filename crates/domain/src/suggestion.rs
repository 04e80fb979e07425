//! Changes by which users make a refused call possible, separate from the text for models.
//!
//! A model with a shell of its own could make such a change itself. A failure therefore has the change as a value: each
//! interface formats it for its users, and a model only reads whom to ask ([`Suggestion::for_model`]).

use crate::permission::rule_origin::RuleOrigin;
use std::{fmt, path::PathBuf};

/// Member of `_meta` with the suggestion for the user of a client.
pub const SUGGESTION: &str = "toolstead/suggestion";

/// Change by which users make a call possible, or the place where its subject is listed.
///
/// ```
/// use toolstead_domain::suggestion::{DefaultSuggestions, Suggestion, SuggestionFormatter};
///
/// let suggestion = Suggestion::AllowRules(vec!["Bash(git push)".into()]);
/// let text = DefaultSuggestions.format(&suggestion);
/// assert_eq!(text.as_deref(), Some("To allow it, allow `Bash(git push)`."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suggestion {
    /// These allow rules together, the narrowest that allow the call; at least one.
    AllowRules(Vec<String>),
    /// The decisive rule must be changed.
    ChangeRule {
        /// Text of the rule.
        rule: String,
        /// Origin of the rule.
        origin: RuleOrigin,
    },
    /// The tool must be among the selected ones.
    SelectTool(String),
    /// The folder must be a root of the workspace, or a writable one.
    AddRoot,
    /// A configuration file must be trusted.
    TrustFile(PathBuf),
    /// The settings must be changed: a clause such as "add `example.com` to `sandbox.network`".
    ChangeSettings(String),
    /// A user must sign in.
    SignIn {
        /// Grant to sign in for.
        grant: String,
        /// Principal that signs in; `None` for the user of this machine.
        principal: Option<String>,
    },
    /// The machine must be prepared, by this step.
    PrepareMachine(String),
    /// The call must be made in a process that outlives it.
    DetachCall,
    /// The tool must be set up: the reason why it is unavailable, as a clause, which may name settings and commands.
    SetUpTool(String),
    /// The state of a server explains the failure.
    InspectServer {
        /// Name of the server.
        server: String,
        /// State of the server, as a clause.
        reason: String,
    },
    /// The user can choose a tool from the list of tools.
    ListTools,
    /// The user can choose a resource from the lists of resources and templates.
    ListResources,
    /// The user can choose a prompt from the list of prompts.
    ListPrompts,
}

impl Suggestion {
    /// Returns a sentence for a model, without a command or a setting that it could carry out by itself.
    pub fn for_model(&self) -> &'static str {
        match self {
            Self::AllowRules(_) | Self::ChangeRule { .. } | Self::TrustFile(_) => "Ask your user whether to allow it.",
            Self::SelectTool(_) => "Ask your user whether to offer it.",
            Self::AddRoot => "Ask your user whether to open the folder.",
            Self::ChangeSettings(_) => "Ask your user, who can change the configuration.",
            Self::SignIn { .. } => "Ask your user to sign in.",
            Self::PrepareMachine(_) => "Tell your user, who can prepare the machine for it.",
            Self::DetachCall => "Run the command in the foreground instead: the call then lasts until it ends.",
            Self::SetUpTool(_) => "Use another tool, or ask your user to set it up.",
            Self::InspectServer { .. } => "Use another tool or try later.",
            Self::ListTools => "Call one of the tools that are listed.",
            Self::ListResources => "Read one of the resources that are listed.",
            Self::ListPrompts => "Use one of the prompts that are listed.",
        }
    }
}

/// Formats suggestions for the users of one interface.
pub trait SuggestionFormatter: Send + Sync + fmt::Debug {
    /// Returns the suggestion as sentences; `None` if users of this interface cannot make the change.
    fn format(&self, suggestion: &Suggestion) -> Option<String>;
}

/// Suggestions for embedding applications: they name rules, roots and settings, and no way to set them.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultSuggestions;

impl SuggestionFormatter for DefaultSuggestions {
    fn format(&self, suggestion: &Suggestion) -> Option<String> {
        Some(match suggestion {
            Suggestion::AllowRules(rules) => {
                let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
                format!("To allow it, allow {}.", rules.join(" and "))
            }
            Suggestion::ChangeRule { rule, origin } => format!("To allow it, change `{rule}` in {origin}."),
            Suggestion::SelectTool(tool) => format!("To offer it, choose `{tool}` as well."),
            Suggestion::AddRoot => "To work there, make the folder a root of the workspace.".into(),
            Suggestion::TrustFile(path) => format!("To use it, trust `{}`.", path.display()),
            Suggestion::ChangeSettings(change) => format!("In the settings, {change}."),
            Suggestion::SignIn { grant, .. } => format!("To continue, sign in for `{grant}`."),
            Suggestion::PrepareMachine(step) => format!("To make it possible, {step}."),
            Suggestion::SetUpTool(reason) => format!("It is unavailable: {reason}."),
            Suggestion::InspectServer { server, reason } => format!("The MCP server `{server}`: {reason}."),
            Suggestion::DetachCall => return None,
            Suggestion::ListTools | Suggestion::ListResources | Suggestion::ListPrompts => {
                return Some(suggestion.for_model().to_owned());
            }
        })
    }
}
