//! The audit record of one call.

use crate::{error_kind::ErrorKind, labels::CallLabels, ports::clock::Timestamp, tool_call::CallId};
use serde_json::Value;

/// Audit record of one call. Its texts contain what an operator needs to understand it later without the current
/// configuration.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolExecution {
    /// Id of the call.
    pub id: CallId,
    /// Call that made this call while it ran; `None` for a call from outside.
    pub parent: Option<CallId>,
    /// Kind of request.
    pub kind: AuditedRequestKind,
    /// Canonical name of the tool, or the name as it was called if there is no such tool; for requests other than tool
    /// calls, the name by which rules match them.
    pub tool: String,
    /// Name that the caller used: also a URI, or the name of a prompt.
    pub called_as: String,
    /// [`crate::tool::ToolSource::label`]; empty when the tool is unknown.
    pub source: String,
    /// [`crate::principal::Principal::id`].
    pub principal: String,
    /// Id of the session.
    pub session: String,
    /// Name and version of the client.
    pub client: String,
    /// Arguments, redacted and limited according to the configuration; `Null` if they are not stored.
    pub arguments: Value,
    /// SHA-256 of the full arguments as compact JSON, in lower-case hex.
    pub arguments_digest: String,
    /// Accesses of the call, as texts such as `write /srv/a.txt`.
    pub accesses: Vec<String>,
    /// Decision on the call and its reason; `None` if the call ended before it.
    pub decision: Option<RecordedDecision>,
    /// Time at which the call arrived.
    pub started: Timestamp,
    /// Time at which the call ended; `None` while it runs, and if its end was not observed.
    pub ended: Option<Timestamp>,
    /// Outcome of the call.
    pub outcome: ExecutionOutcome,
    /// Size of the result on the wire, in bytes.
    pub result_bytes: u64,
    /// SHA-256 of the result as compact JSON, in lower-case hex; `None` without a result.
    pub result_digest: Option<String>,
    /// Structured content of the result, redacted and limited according to the configuration; `Null` if there is none
    /// or it is not stored.
    pub metadata: Value,
    /// Labels of embedding applications and hooks for finding the record, redacted like other texts.
    pub labels: CallLabels,
}

/// Members of a [`ToolExecution`], borrowed. A log that writes them at once needs no copy.
#[derive(Debug, Clone, Copy)]
pub struct BorrowedToolExecution<'a> {
    /// [`ToolExecution::id`].
    pub id: CallId,
    /// [`ToolExecution::parent`].
    pub parent: Option<CallId>,
    /// [`ToolExecution::kind`].
    pub kind: AuditedRequestKind,
    /// [`ToolExecution::tool`].
    pub tool: &'a str,
    /// [`ToolExecution::called_as`].
    pub called_as: &'a str,
    /// [`ToolExecution::source`].
    pub source: &'a str,
    /// [`ToolExecution::principal`].
    pub principal: &'a str,
    /// [`ToolExecution::session`].
    pub session: &'a str,
    /// [`ToolExecution::client`].
    pub client: &'a str,
    /// [`ToolExecution::arguments`].
    pub arguments: ParsedOrRawJsonRef<'a>,
    /// [`ToolExecution::arguments_digest`].
    pub arguments_digest: &'a str,
    /// [`ToolExecution::accesses`].
    pub accesses: &'a [String],
    /// [`ToolExecution::decision`].
    pub decision: Option<RecordedDecisionRef<'a>>,
    /// [`ToolExecution::started`].
    pub started: Timestamp,
    /// [`ToolExecution::ended`].
    pub ended: Option<Timestamp>,
    /// [`ToolExecution::outcome`].
    pub outcome: &'a ExecutionOutcome,
    /// [`ToolExecution::result_bytes`].
    pub result_bytes: u64,
    /// [`ToolExecution::result_digest`].
    pub result_digest: Option<&'a str>,
    /// [`ToolExecution::metadata`].
    pub metadata: ParsedOrRawJsonRef<'a>,
    /// [`ToolExecution::labels`].
    pub labels: &'a CallLabels,
}

/// JSON value, parsed or as compact text.
#[derive(Debug, Clone, Copy)]
pub enum ParsedOrRawJsonRef<'a> {
    /// Parsed value.
    Value(&'a Value),
    /// Compact text.
    Text(&'a str),
}

impl ParsedOrRawJsonRef<'_> {
    /// Returns the value; the text itself if the parser rejects it, for example because it is nested too deeply.
    pub fn to_value(self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Text(text) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        }
    }
}

/// Members of a [`RecordedDecision`], borrowed.
#[derive(Debug, Clone, Copy)]
pub struct RecordedDecisionRef<'a> {
    /// [`RecordedDecision::verdict`].
    pub verdict: &'a str,
    /// [`RecordedDecision::reason`].
    pub reason: &'a str,
    /// [`RecordedDecision::approved_by`].
    pub approved_by: Option<&'a str>,
    /// [`RecordedDecision::trace`].
    pub trace: ParsedOrRawJsonRef<'a>,
}

impl BorrowedToolExecution<'_> {
    /// Copies the members.
    pub fn to_execution(&self) -> ToolExecution {
        ToolExecution {
            id: self.id,
            parent: self.parent,
            kind: self.kind,
            tool: self.tool.into(),
            called_as: self.called_as.into(),
            source: self.source.into(),
            principal: self.principal.into(),
            session: self.session.into(),
            client: self.client.into(),
            arguments: self.arguments.to_value(),
            arguments_digest: self.arguments_digest.into(),
            accesses: self.accesses.to_vec(),
            decision: self.decision.map(|decision| RecordedDecision {
                verdict: decision.verdict.into(),
                reason: decision.reason.into(),
                approved_by: decision.approved_by.map(Into::into),
                trace: decision.trace.to_value(),
            }),
            started: self.started,
            ended: self.ended,
            outcome: self.outcome.clone(),
            result_bytes: self.result_bytes,
            result_digest: self.result_digest.map(Into::into),
            metadata: self.metadata.to_value(),
            labels: self.labels.clone(),
        }
    }
}

impl<'a> From<&'a ToolExecution> for BorrowedToolExecution<'a> {
    fn from(execution: &'a ToolExecution) -> Self {
        Self {
            id: execution.id,
            parent: execution.parent,
            kind: execution.kind,
            tool: &execution.tool,
            called_as: &execution.called_as,
            source: &execution.source,
            principal: &execution.principal,
            session: &execution.session,
            client: &execution.client,
            arguments: ParsedOrRawJsonRef::Value(&execution.arguments),
            arguments_digest: &execution.arguments_digest,
            accesses: &execution.accesses,
            decision: execution.decision.as_ref().map(|decision| RecordedDecisionRef {
                verdict: &decision.verdict,
                reason: &decision.reason,
                approved_by: decision.approved_by.as_deref(),
                trace: ParsedOrRawJsonRef::Value(&decision.trace),
            }),
            started: execution.started,
            ended: execution.ended,
            outcome: &execution.outcome,
            result_bytes: execution.result_bytes,
            result_digest: execution.result_digest.as_deref(),
            metadata: ParsedOrRawJsonRef::Value(&execution.metadata),
            labels: &execution.labels,
        }
    }
}

/// Kind of request in an audit record. Requests other than tool calls take the same call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum AuditedRequestKind {
    /// Tool call.
    #[default]
    Tool,
    /// Request to read a resource.
    Resource,
    /// Request to get a prompt.
    Prompt,
    /// Request to complete an argument.
    Completion,
    /// Request about a call that continues as a task.
    Task,
    /// Question of a tool to the client that called it. The tool of its record is the MCP method.
    Question,
}

impl AuditedRequestKind {
    /// All kinds.
    pub const ALL: &[Self] = &[Self::Tool, Self::Resource, Self::Prompt, Self::Completion, Self::Task, Self::Question];

    /// Returns the kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Completion => "completion",
            Self::Task => "task",
            Self::Question => "question",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// Decision at the time of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RecordedDecision {
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    /// Reason: the rule with its file and line, or the default, and the part of the call that it matched.
    pub reason: String,
    /// Name of the approver, if approval was required.
    pub approved_by: Option<String>,
    /// Findings on each part of the call, as in [`crate::permission::decision::Decision::trace_json`]; `Null` in
    /// records of versions that did not store them.
    pub trace: Value,
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ExecutionOutcome {
    /// The call is running.
    Running,
    /// The tool succeeded, or the call continues as a task.
    Succeeded,
    /// The tool failed, or answered with `isError`.
    Failed(ErrorKind, String),
    /// The call never ran, for example because of an unknown tool, invalid arguments, a missing permission or a limit.
    Refused(ErrorKind, String),
    /// The call was cancelled, exceeded its deadline, or the runtime shut down.
    Cancelled(CancelReason),
    /// The call waits for answers from the client, and resumes when they arrive.
    InputRequired,
    /// The process ended while the call ran.
    Interrupted,
}

/// Outcome without its details, for filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// [`ExecutionOutcome::Running`].
    Running,
    /// [`ExecutionOutcome::Succeeded`].
    Succeeded,
    /// [`ExecutionOutcome::Failed`].
    Failed,
    /// [`ExecutionOutcome::Refused`].
    Refused,
    /// [`ExecutionOutcome::Cancelled`].
    Cancelled,
    /// [`ExecutionOutcome::InputRequired`].
    InputRequired,
    /// [`ExecutionOutcome::Interrupted`].
    Interrupted,
}

impl OutcomeKind {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Refused,
        Self::Cancelled,
        Self::InputRequired,
        Self::Interrupted,
    ];

    /// Returns the kind as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::InputRequired => "input_required",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// Reason for which a call was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// The client cancelled the call, or disconnected.
    Client,
    /// The deadline passed.
    Deadline,
    /// The runtime shut down.
    Shutdown,
}

impl CancelReason {
    /// Returns the reason as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Deadline => "deadline",
            Self::Shutdown => "shutdown",
        }
    }

    /// Returns the reason with this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Client, Self::Deadline, Self::Shutdown].into_iter().find(|reason| reason.as_str() == text)
    }
}

impl ExecutionOutcome {
    /// Returns the outcome without its details.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Running => OutcomeKind::Running,
            Self::Succeeded => OutcomeKind::Succeeded,
            Self::Failed(..) => OutcomeKind::Failed,
            Self::Refused(..) => OutcomeKind::Refused,
            Self::Cancelled(_) => OutcomeKind::Cancelled,
            Self::InputRequired => OutcomeKind::InputRequired,
            Self::Interrupted => OutcomeKind::Interrupted,
        }
    }

    /// Returns the kind of the error; for a cancelled call, `Timeout` or `Cancelled`. `None` if the call has not
    /// failed.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Failed(kind, _) | Self::Refused(kind, _) => Some(*kind),
            Self::Cancelled(CancelReason::Deadline) => Some(ErrorKind::Timeout),
            Self::Cancelled(_) => Some(ErrorKind::Cancelled),
            Self::Running | Self::Succeeded | Self::InputRequired | Self::Interrupted => None,
        }
    }

    /// Returns `true` if no other outcome can follow.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Running | Self::InputRequired)
    }
}
