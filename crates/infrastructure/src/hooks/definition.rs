//! One configured hook.

use super::{filter::HookFilter, matcher::Matcher};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The moments of this runtime at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Before a call is judged.
    PreToolUse,
    /// After a call that succeeded.
    PostToolUse,
    /// After a call that failed or was taken back.
    PostToolUseFailure,
    /// Before somebody is asked whether a call may run.
    PermissionRequest,
    /// After a call that rules or a person refused.
    PermissionDenied,
    /// A person's prompt is about to be sent to a model.
    UserPromptSubmit,
    /// An agent is about to end because its model is done.
    Stop,
    /// An agent that was handed work is about to begin.
    SubagentStart,
    /// Such an agent is about to end because its model is done.
    SubagentStop,
    /// A conversation is about to be summarized.
    PreCompact,
    /// A person is told something, or waited for.
    Notification,
    /// Before the first prompt or call of a session.
    SessionStart,
    /// At the end of the runtime, for each session that had a prompt or a call.
    SessionEnd,
}

impl HookEvent {
    /// All of them, in the order of a session's life.
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

    /// The name, as Claude Code spells it.
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

    /// The moment of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.as_str() == text)
    }

    /// Tells whether it is about a tool, so that matchers speak of tools' names.
    pub fn is_of_tool(self) -> bool {
        !self.is_of_agent() && !matches!(self, Self::SessionStart | Self::SessionEnd)
    }

    /// Tells whether it is about an agent's run.
    pub fn is_of_agent(self) -> bool {
        self.is_of_subagent()
            || matches!(self, Self::UserPromptSubmit | Self::Stop | Self::PreCompact | Self::Notification)
    }

    /// Tells whether it is about an agent that was handed work.
    pub fn is_of_subagent(self) -> bool {
        matches!(self, Self::SubagentStart | Self::SubagentStop)
    }

    /// Tells whether a hook of it may be a gate: without its yes, what is about to happen does not.
    pub fn may_be_gate(self) -> bool {
        matches!(self, Self::PreToolUse | Self::UserPromptSubmit)
    }
}

/// One hook.
#[derive(Debug, Clone)]
pub struct HookDefinition {
    /// Its name, for refusals: that of its table, or `FILE:LINE`.
    pub name: String,
    /// The place where it was written.
    pub origin: String,
    /// The event that it runs at.
    pub event: HookEvent,
    /// For which tools; of a compaction and a notification for which of them, of an agent that was handed work for which one.
    pub matcher: Matcher,
    /// For which of their calls.
    pub filter: Option<HookFilter>,
    /// The program that is run.
    pub program: HookProgram,
    /// The folder that it starts in, which its `CLAUDE_PROJECT_DIR` names, too; `None`: where all start. A hook of a
    /// project's file starts in that project, wherever the call is made.
    pub start: Option<PathBuf>,
    /// Variables beside those that every hook gets.
    pub environment: BTreeMap<String, String>,
    /// The time that it may take, waiting for its turn included.
    pub timeout: Duration,
    /// Without its yes nothing goes on.
    pub gate: bool,
    /// The consequence when it breaks before a call.
    pub on_error: OnError,
    /// It is not waited for, and what it answers does not count.
    pub in_background: bool,
}

/// The program of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookProgram {
    /// A line for `bash`, or `sh` where there is no `bash`.
    Shell(String),
    /// A program with its arguments, without a shell.
    Direct(String, Vec<String>),
}

/// The consequence when a hook breaks before a call: it cannot be started, is late, crashes, or answers nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The call goes on, and the person is told.
    #[default]
    Allow,
    /// Somebody is asked.
    Ask,
    /// The call is refused.
    Deny,
}

impl OnError {
    /// The word for it in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The meaning of that word.
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
