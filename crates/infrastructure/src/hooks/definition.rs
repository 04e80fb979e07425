//! Definition of one hook.

use super::{filter::HookFilter, matcher::Matcher};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// Events at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Before the permission decision on a call.
    PreToolUse,
    /// After a successful call.
    PostToolUse,
    /// After a failed or cancelled call.
    PostToolUseFailure,
    /// Before the user is asked to approve a call.
    PermissionRequest,
    /// After a call was refused by a rule or the user.
    PermissionDenied,
    /// Before a user's prompt is sent to a model.
    UserPromptSubmit,
    /// Before an agent ends because its model has finished.
    Stop,
    /// Before a subagent begins.
    SubagentStart,
    /// Before a subagent ends because its model has finished.
    SubagentStop,
    /// Before a conversation is summarized.
    PreCompact,
    /// Notification of the user, or an agent that waits for the user.
    Notification,
    /// Before the first prompt or call of a session.
    SessionStart,
    /// At shutdown, for each session that had a prompt or call.
    SessionEnd,
}

impl HookEvent {
    /// All events, in the order of a session.
    pub const ALL: &[Self] = &[
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PermissionDenied,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::Notification,
        Self::Stop,
        Self::SessionEnd,
    ];

    /// Returns the name in Claude Code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// Returns the event with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.as_str() == text)
    }

    /// Returns `true` if the event is about a tool, so that matchers are compared with tool names.
    pub fn is_of_tool(self) -> bool {
        !self.is_of_agent() && !matches!(self, Self::SessionStart | Self::SessionEnd)
    }

    /// Returns `true` if the event is about an agent's run.
    pub fn is_of_agent(self) -> bool {
        self.is_of_subagent()
            || matches!(self, Self::UserPromptSubmit | Self::Stop | Self::PreCompact | Self::Notification)
    }

    /// Returns `true` if the event is about a subagent.
    pub fn is_of_subagent(self) -> bool {
        matches!(self, Self::SubagentStart | Self::SubagentStop)
    }

    /// Returns `true` if hooks of the event may be gates. A gate blocks the action unless it explicitly approves.
    pub fn may_be_gate(self) -> bool {
        matches!(self, Self::PreToolUse | Self::UserPromptSubmit)
    }
}

/// Definition of a hook: its event, its filters, its program and the consequence of a fault.
#[derive(Debug, Clone)]
pub struct HookDefinition {
    /// Name for messages: the name of its table, or `FILE:LINE`.
    pub name: String,
    /// Source of the definition, such as a configuration file.
    pub origin: String,
    /// Event at which the hook runs.
    pub event: HookEvent,
    /// Names for which the hook runs: tools; for compactions and notifications, their kinds; for subagents, the agents.
    pub matcher: Matcher,
    /// Filter for calls of the matched tools; `None` if the hook runs for all of them.
    pub filter: Option<HookFilter>,
    /// Program to run.
    pub program: HookProgram,
    /// Working folder, which is also the hook's `CLAUDE_PROJECT_DIR`. `None` for the default. A hook from a project
    /// file starts in its project, regardless of the call.
    pub start: Option<PathBuf>,
    /// Environment variables in addition to those of every hook.
    pub environment: BTreeMap<String, String>,
    /// Timeout, including the wait for a free slot.
    pub timeout: Duration,
    /// `true` if the action requires the hook's explicit approval.
    pub gate: bool,
    /// Consequence of a fault before a call.
    pub on_error: FailurePolicy,
    /// `true` to run the hook in the background and ignore its answer.
    pub in_background: bool,
}

/// Program of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookProgram {
    /// Command line for `bash`, or for `sh` if there is no `bash`.
    Shell(String),
    /// Program with its arguments, without a shell.
    Direct(String, Vec<String>),
}

/// Consequence of a fault before a call: the hook cannot be started, times out, crashes or returns an invalid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// The call continues, and the user is notified.
    #[default]
    Allow,
    /// The user is asked to approve.
    Ask,
    /// The call is refused.
    Deny,
}

impl FailurePolicy {
    /// Returns the value in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Returns the consequence for a configuration value.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Ask, Self::Deny].into_iter().find(|one| one.as_str() == text)
    }
}

impl std::fmt::Display for HookProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shell(line) => f.write_str(line),
            Self::Direct(program, arguments) => {
                f.write_str(program)?;
                arguments.iter().try_for_each(|argument| write!(f, " {argument:?}"))
            }
        }
    }
}
