//! Events for subscribers: consoles, logs, programs.

use crate::{
    conversation::ConversationId, error_kind::ErrorKind, model::usage::TokenUsage, ports::clock::Timestamp,
    principal::Principal, todo::TodoList, tool_call::CallId,
};
use serde_json::{Map, Value, json};
use std::{path::PathBuf, sync::Arc, time::Duration};
use uuid::Uuid;

/// One event. Its arguments are redacted as in the audit log, and only [`EventKind::ToolCallDetails`] contains outputs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Id of the event; a version 7 UUID.
    pub id: Uuid,
    /// Time of the event.
    pub at: Timestamp,
    /// Call or session that it belongs to.
    pub origin: EventOrigin,
    /// Kind of the event.
    pub kind: EventKind,
}

/// Call or session that an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventOrigin {
    /// Owner of the call or task; `None` for events of the runtime as a whole.
    pub principal: Option<Principal>,
    /// Session of the call or task.
    pub session: Option<Arc<str>>,
    /// Id of the call.
    pub call: Option<CallId>,
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A permitted call is about to run.
    ToolCallStarted {
        /// Canonical name of the tool.
        tool: String,
        /// Arguments, as the audit log stores them.
        arguments: Value,
    },
    /// A running call reports its progress.
    ToolCallProgress {
        /// Current value. Rises with every event.
        progress: f64,
        /// Value at the end of the call, if it is known.
        total: Option<f64>,
        /// Current step, for users.
        message: Option<String>,
    },
    /// A call succeeded.
    ToolCallCompleted {
        /// Canonical name of the tool.
        tool: String,
        /// Time from the arrival of the call to its end.
        duration: Duration,
        /// Size of the result on the wire, in bytes.
        result_bytes: u64,
    },
    /// A call waits for input of its client, which arrives with a retry.
    ToolCallSuspended {
        /// Canonical name of the tool.
        tool: String,
    },
    /// The tool of a call asks the client a question.
    QuestionAsked {
        /// Canonical name of the tool.
        tool: String,
        /// MCP method.
        method: String,
        /// Source of the question: the server, or another provider of tools.
        source: String,
    },
    /// A question to the client was closed.
    QuestionClosed {
        /// Canonical name of the tool.
        tool: String,
        /// MCP method.
        method: String,
        /// Outcome as one word: `answered`, `declined`, `cancelled`, `unanswered`.
        outcome: &'static str,
    },
    /// A call failed, was cancelled, or could not be made.
    ToolCallFailed {
        /// Canonical name of the tool, or the name as it was called.
        tool: String,
        /// Kind of the failure.
        error: ErrorKind,
        /// Message of the failure.
        message: String,
        /// Time from the arrival of the call to its end.
        duration: Duration,
    },
    /// A call was not permitted, and did not run.
    ToolCallDenied {
        /// Canonical name of the tool.
        tool: String,
        /// Reason for the denial.
        reason: String,
    },
    /// A call needs approval.
    PermissionRequested {
        /// Canonical name of the tool.
        tool: String,
        /// Reason why it needs approval.
        reason: String,
        /// Accesses of the call.
        accesses: Vec<String>,
    },
    /// An approval request was answered, or was left unanswered.
    PermissionResolved {
        /// Canonical name of the tool.
        tool: String,
        /// `true` if the call may run.
        granted: bool,
    },
    /// Arguments and result of a call. Sent only if the configuration enables it, after the event of the call's end.
    ToolCallDetails {
        /// Canonical name of the tool.
        tool: String,
        /// Arguments, as the audit log stores them.
        input: Value,
        /// Result as the caller receives it, without secrets and shortened; for a call without a result, its error
        /// message.
        response: Value,
        /// `true` if the call failed or could not be made.
        is_error: bool,
    },
    /// A model answered.
    Usage {
        /// Conversation of the answer; `None` if a tool requested it in a session without a conversation.
        conversation: Option<ConversationId>,
        /// Model, by its name in the configuration.
        model: String,
        /// Tokens of the request and of the answer to it.
        usage: TokenUsage,
        /// Cost in US dollars, if prices are known.
        cost: Option<f64>,
    },
    /// A file tool changed a file. Changes by programs are not reported.
    FileChanged {
        /// Tool that changed the file.
        tool: String,
        /// Real path of the file.
        path: PathBuf,
        /// Kind of change.
        change: FileChangeKind,
        /// Number of added lines; `None` if they are not counted: the file is not a text, or too large.
        lines_added: Option<usize>,
        /// Number of removed lines; `None` as for `lines_added`.
        lines_removed: Option<usize>,
    },
    /// The plan of a session changed.
    TodoUpdated {
        /// Complete new plan.
        todos: TodoList,
    },
    /// A background task began, which may outlive its call.
    TaskStarted {
        /// Id of the task.
        task: String,
        /// Title of the task, for users.
        title: String,
    },
    /// A task wrote output. The text itself is in the output of the task.
    TaskOutput {
        /// Id of the task.
        task: String,
        /// Number of bytes that were written since the previous event of this kind.
        bytes: u64,
    },
    /// A task ended.
    TaskFinished {
        /// Id of the task.
        task: String,
        /// Outcome, for users.
        outcome: String,
    },
    /// The state of an upstream MCP server, or of another provider, changed.
    McpServerState {
        /// Name of the server or provider.
        server: String,
        /// State as a short text, such as `ready` or `needs authorization`.
        state: &'static str,
    },
    /// The set of tools changed.
    RegistryChanged {
        /// Version of the new set.
        version: u64,
        /// Number of tools.
        tools: usize,
    },
}

/// Kinds of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileChangeKind {
    /// The file was created.
    Created,
    /// Its content or its permission bits changed.
    Modified,
    /// The file was deleted.
    Deleted,
}

impl FileChangeKind {
    /// Returns the kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

impl EventOrigin {
    /// Creates the origin of an event of a call.
    pub fn call(principal: &Principal, session: &Arc<str>, call: CallId) -> Self {
        Self { principal: Some(principal.clone()), session: Some(session.clone()), call: Some(call) }
    }
}

impl Event {
    /// Creates an event.
    pub fn new(id: Uuid, at: Timestamp, origin: EventOrigin, kind: EventKind) -> Self {
        Self { id, at, origin, kind }
    }

    /// Returns the event as one flat object: `type`, `id`, `time` (microseconds since 1970), `call`, `session`,
    /// `principal`, and the members of its kind.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                object.insert(name.to_owned(), value);
            }
        };
        put("type", self.kind.label().into());
        put("id", self.id.to_string().into());
        put("time", self.at.0.into());
        put("principal", json!(self.origin.principal.as_ref().map(Principal::id)));
        put("session", json!(self.origin.session.as_deref()));
        put("call", json!(self.origin.call.map(|call| call.to_string())));
        if let EventKind::ToolCallDetails { .. } = self.kind {
            put("conversationId", json!(self.origin.session.as_deref()));
            put("toolUseId", json!(self.origin.call.map(|call| call.to_string())));
        }
        if let Value::Object(members) = self.kind.members() {
            members.into_iter().for_each(|(name, value)| put(&name, value));
        }
        Value::Object(object)
    }
}

impl EventKind {
    /// Returns the kind as one word.
    pub fn label(&self) -> &'static str {
        match self {
            Self::ToolCallStarted { .. } => "tool_call_started",
            Self::ToolCallProgress { .. } => "tool_call_progress",
            Self::ToolCallCompleted { .. } => "tool_call_completed",
            Self::ToolCallSuspended { .. } => "tool_call_suspended",
            Self::QuestionAsked { .. } => "question_asked",
            Self::QuestionClosed { .. } => "question_closed",
            Self::ToolCallFailed { .. } => "tool_call_failed",
            Self::ToolCallDenied { .. } => "tool_call_denied",
            Self::PermissionRequested { .. } => "permission_requested",
            Self::PermissionResolved { .. } => "permission_resolved",
            Self::ToolCallDetails { .. } => "tool_call_details",
            Self::Usage { .. } => "usage",
            Self::FileChanged { .. } => "file_changed",
            Self::TodoUpdated { .. } => "todo_updated",
            Self::TaskStarted { .. } => "task_started",
            Self::TaskOutput { .. } => "task_output",
            Self::TaskFinished { .. } => "task_finished",
            Self::McpServerState { .. } => "mcp_server_state",
            Self::RegistryChanged { .. } => "registry_changed",
        }
    }

    /// Replaces each text for users by the result of `change`. Names, ids, paths and arguments remain.
    #[must_use]
    pub fn with_texts(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::ToolCallProgress { progress, total, message } => {
                Self::ToolCallProgress { progress, total, message: message.map(change) }
            }
            Self::ToolCallFailed { tool, error, message, duration } => {
                Self::ToolCallFailed { tool, error, message: change(message), duration }
            }
            Self::ToolCallDenied { tool, reason } => Self::ToolCallDenied { tool, reason: change(reason) },
            Self::PermissionRequested { tool, reason, accesses } => Self::PermissionRequested {
                tool,
                reason: change(reason),
                accesses: accesses.into_iter().map(change).collect(),
            },
            Self::TaskStarted { task, title } => Self::TaskStarted { task, title: change(title) },
            Self::TaskFinished { task, outcome } => Self::TaskFinished { task, outcome: change(outcome) },
            same @ (Self::ToolCallStarted { .. }
            | Self::ToolCallCompleted { .. }
            | Self::ToolCallSuspended { .. }
            | Self::QuestionAsked { .. }
            | Self::QuestionClosed { .. }
            | Self::PermissionResolved { .. }
            | Self::ToolCallDetails { .. }
            | Self::Usage { .. }
            | Self::FileChanged { .. }
            | Self::TodoUpdated { .. }
            | Self::TaskOutput { .. }
            | Self::McpServerState { .. }
            | Self::RegistryChanged { .. }) => same,
        }
    }

    fn members(&self) -> Value {
        let millis = |duration: &Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::ToolCallStarted { tool, arguments } => json!({"tool": tool, "arguments": arguments}),
            Self::ToolCallProgress { progress, total, message } => {
                json!({"progress": progress, "total": total, "message": message})
            }
            Self::ToolCallCompleted { tool, duration, result_bytes } => {
                json!({"tool": tool, "duration_ms": millis(duration), "result_bytes": result_bytes})
            }
            Self::ToolCallSuspended { tool } => json!({"tool": tool}),
            Self::QuestionAsked { tool, method, source } => json!({"tool": tool, "method": method, "source": source}),
            Self::QuestionClosed { tool, method, outcome } => {
                json!({"tool": tool, "method": method, "outcome": outcome})
            }
            Self::ToolCallFailed { tool, error, message, duration } => {
                json!({"tool": tool, "error": error.as_str(), "message": message, "duration_ms": millis(duration)})
            }
            Self::ToolCallDenied { tool, reason } => json!({"tool": tool, "reason": reason}),
            Self::PermissionRequested { tool, reason, accesses } => {
                json!({"tool": tool, "reason": reason, "accesses": accesses})
            }
            Self::PermissionResolved { tool, granted } => json!({"tool": tool, "granted": granted}),
            Self::Usage { conversation, model, usage, cost } => json!({
                "conversation": conversation.map(|id| id.to_string()), "model": model, "input_tokens": usage.input_tokens,
                "cache_read_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens,
                "output_tokens": usage.output_tokens, "cost": cost,
            }),
            // These member names are those of hooks of other agents; [`Event::to_json`] adds the conversation and the
            // id of the call.
            Self::ToolCallDetails { tool, input, response, is_error } => {
                json!({"toolName": tool, "toolInput": input, "toolResponse": response, "isError": is_error})
            }
            Self::FileChanged { tool, path, change, lines_added, lines_removed } => json!({
                "tool": tool, "path": path.to_string_lossy(), "change": change.as_str(),
                "lines_added": lines_added, "lines_removed": lines_removed,
            }),
            Self::TodoUpdated { todos } => json!({"todos": todos.to_json()}),
            Self::TaskStarted { task, title } => json!({"task": task, "title": title}),
            Self::TaskOutput { task, bytes } => json!({"task": task, "bytes": bytes}),
            Self::TaskFinished { task, outcome } => json!({"task": task, "outcome": outcome}),
            Self::McpServerState { server, state } => json!({"server": server, "state": state}),
            Self::RegistryChanged { version, tools } => json!({"version": version, "tools": tools}),
        }
    }
}
