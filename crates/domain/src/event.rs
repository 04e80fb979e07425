//! Events for those who watch: consoles, logs, programs.

use crate::{
    conversation::ConversationId, error_kind::ErrorKind, model::usage::Usage, ports::clock::Timestamp,
    principal::Principal, todo::TodoList, tool_call::CallId,
};
use serde_json::{Map, Value, json};
use std::{path::PathBuf, sync::Arc, time::Duration};
use uuid::Uuid;

/// One thing that happened. Arguments in it are redacted as in the audit trail, and outputs only in [`EventKind::ToolCallDetails`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Names this event; a version 7 UUID.
    pub id: Uuid,
    /// Its time.
    pub at: Timestamp,
    /// To what it belongs.
    pub origin: EventOrigin,
    /// Its kind.
    pub kind: EventKind,
}

/// To what an event belongs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventOrigin {
    /// Whose call or task it is; `None` for what happens to the runtime as a whole.
    pub principal: Option<Principal>,
    /// In which session.
    pub session: Option<Arc<str>>,
    /// The call.
    pub call: Option<CallId>,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A call is about to run: it is permitted.
    ToolCallStarted {
        /// The tool's canonical name.
        tool: String,
        /// As the audit trail keeps them.
        arguments: Value,
    },
    /// A call that runs tells how far it is.
    ToolCallProgress {
        /// Rises.
        progress: f64,
        /// The value at its end, if that is known.
        total: Option<f64>,
        /// The step at work, for people.
        message: Option<String>,
    },
    /// A call answered.
    ToolCallCompleted {
        /// The tool's canonical name.
        tool: String,
        /// From its coming to its end.
        duration: Duration,
        /// Bytes of the result on the wire.
        result_bytes: u64,
    },
    /// A call waits for input of its client, which comes with a retry.
    ToolCallSuspended {
        /// The tool's canonical name.
        tool: String,
    },
    /// The tool of a call asks the client.
    QuestionAsked {
        /// The tool's canonical name.
        tool: String,
        /// MCP's method.
        method: String,
        /// The one who asks: the server, or another source of tools.
        source: String,
    },
    /// Such a question is over.
    QuestionClosed {
        /// The tool's canonical name.
        tool: String,
        /// MCP's method.
        method: String,
        /// The outcome, as one word: `answered`, `declined`, `cancelled`, `unanswered`.
        outcome: &'static str,
    },
    /// A call failed, was taken back, or never could be made.
    ToolCallFailed {
        /// The tool's canonical name, or the name as it was called.
        tool: String,
        /// The kind of the failure.
        error: ErrorKind,
        /// In words.
        message: String,
        /// From its coming to its end.
        duration: Duration,
    },
    /// A call was not permitted, and did not run.
    ToolCallDenied {
        /// The tool's canonical name.
        tool: String,
        /// The reason.
        reason: String,
    },
    /// Somebody is asked whether a call may run.
    PermissionRequested {
        /// The tool's canonical name.
        tool: String,
        /// The reason why it is asked.
        reason: String,
        /// The accesses of the call.
        accesses: Vec<String>,
    },
    /// The question is answered, or nobody answers it.
    PermissionResolved {
        /// The tool's canonical name.
        tool: String,
        /// The call may run.
        granted: bool,
    },
    /// The arguments of a call, and its answer. Told only where the configuration asks for it, after the event of the
    /// call's end.
    ToolCallDetails {
        /// The tool's canonical name.
        tool: String,
        /// As the audit trail keeps them.
        input: Value,
        /// The result as the one who called gets it, without secrets and cut; of a call without one its error in words.
        response: Value,
        /// The call failed, or never could be made.
        is_error: bool,
    },
    /// A model answered.
    Usage {
        /// In which conversation; `None`: a tool asked it in a session that is none.
        conversation: Option<ConversationId>,
        /// The model, by its name in the configuration.
        model: String,
        /// Its tokens.
        usage: Usage,
        /// In US dollars, where prices are known.
        cost: Option<f64>,
    },
    /// A file tool changed a file. What programs change is not seen.
    FileChanged {
        /// The tool that did.
        tool: String,
        /// The real path.
        path: PathBuf,
        /// The kind of change.
        change: FileChangeKind,
        /// Lines that are new; `None` where they are not counted: no text, or too large.
        lines_added: Option<usize>,
        /// Lines that are gone, likewise.
        lines_removed: Option<usize>,
    },
    /// The plan of a session is another one.
    TodoUpdated {
        /// All of it.
        todos: TodoList,
    },
    /// Work began that may outlive its call.
    TaskStarted {
        /// The task's id.
        task: String,
        /// Its title, for people.
        title: String,
    },
    /// A task wrote something. The text itself is in the task's output.
    TaskOutput {
        /// The task's id.
        task: String,
        /// Bytes that were written since the last such event.
        bytes: u64,
    },
    /// A task is over.
    TaskFinished {
        /// The task's id.
        task: String,
        /// Its end, for people.
        outcome: String,
    },
    /// An MCP server behind the runtime, or another provider, is in another state.
    McpServerState {
        /// Its name.
        server: String,
        /// The state as one word.
        state: &'static str,
    },
    /// The set of tools is another one.
    RegistryChanged {
        /// Its version.
        version: u64,
        /// The number of tools.
        tools: usize,
    },
}

/// The kinds of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileChangeKind {
    /// There was none.
    Created,
    /// Its content or its permission bits are others.
    Modified,
    /// It is gone.
    Deleted,
}

impl FileChangeKind {
    /// The kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

impl EventOrigin {
    /// Of a call.
    pub fn call(principal: &Principal, session: &Arc<str>, call: CallId) -> Self {
        Self { principal: Some(principal.clone()), session: Some(session.clone()), call: Some(call) }
    }
}

impl Event {
    /// Something that happened.
    pub fn new(id: Uuid, at: Timestamp, origin: EventOrigin, kind: EventKind) -> Self {
        Self { id, at, origin, kind }
    }

    /// The event as one flat object: `type`, `id`, `time` (microseconds since 1970), `call`, `session`, `principal`, and
    /// the members of its kind.
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
    /// The kind as one word.
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

    /// The same with other texts, where it tells people something. Names, ids and paths stay, and arguments.
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
            // The names of this kind are those of hooks of agents elsewhere; [`Event::to_json`] adds whose they are.
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
