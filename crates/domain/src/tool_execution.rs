//! One row of the audit trail.

use crate::{error_kind::ErrorKind, labels::Labels, ports::clock::Timestamp, tool_call::CallId};
use serde_json::Value;

/// What is recorded of one call. Texts are what an operator needs to understand it later without today's
/// configuration.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolExecution {
    /// The call.
    pub id: CallId,
    /// The call that made it while it ran; `None`: it came from outside.
    pub parent: Option<CallId>,
    /// What was asked for.
    pub kind: RequestKind,
    /// The tool's canonical name, or the name as it was called when nothing bears it; of requests for what is no tool the
    /// name by which rules know them.
    pub tool: String,
    /// The name the caller used: also a URI, or the name of a prompt.
    pub called_as: String,
    /// [`crate::tool::ToolSource::label`]; empty when the tool is unknown.
    pub source: String,
    /// [`crate::principal::Principal::id`].
    pub principal: String,
    /// The session's id.
    pub session: String,
    /// The client's name and version.
    pub client: String,
    /// The arguments, redacted and capped as the configuration says; `Null` when they are not kept.
    pub arguments: Value,
    /// SHA-256 of the full arguments as compact JSON, in lower-case hex.
    pub arguments_digest: String,
    /// What the call would touch, as an array of texts such as `write /srv/a.txt`.
    pub accesses: Vec<String>,
    /// What was decided and why; `None` when the call did not get that far.
    pub decision: Option<RecordedDecision>,
    /// When it came.
    pub started: Timestamp,
    /// When it ended; `None` while it runs, and where nobody saw it end.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// Size of the result on the wire, in bytes.
    pub result_bytes: u64,
    /// SHA-256 of the result as compact JSON, in lower-case hex; `None` without a result.
    pub result_digest: Option<String>,
    /// The structured content of the result, redacted and capped as the configuration says; `Null` where there is none or
    /// it is not kept.
    pub metadata: Value,
    /// What programs and hooks want it to be found by, redacted as texts are.
    pub labels: Labels,
}

/// The members of a [`ToolExecution`], borrowed. A log that writes them at once needs no copy.
#[derive(Debug, Clone, Copy)]
pub struct ExecutionRef<'a> {
    /// [`ToolExecution::id`].
    pub id: CallId,
    /// [`ToolExecution::parent`].
    pub parent: Option<CallId>,
    /// [`ToolExecution::kind`].
    pub kind: RequestKind,
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
    pub arguments: JsonRef<'a>,
    /// [`ToolExecution::arguments_digest`].
    pub arguments_digest: &'a str,
    /// [`ToolExecution::accesses`].
    pub accesses: &'a [String],
    /// [`ToolExecution::decision`].
    pub decision: Option<DecisionRef<'a>>,
    /// [`ToolExecution::started`].
    pub started: Timestamp,
    /// [`ToolExecution::ended`].
    pub ended: Option<Timestamp>,
    /// [`ToolExecution::outcome`].
    pub outcome: &'a Outcome,
    /// [`ToolExecution::result_bytes`].
    pub result_bytes: u64,
    /// [`ToolExecution::result_digest`].
    pub result_digest: Option<&'a str>,
    /// [`ToolExecution::metadata`].
    pub metadata: JsonRef<'a>,
    /// [`ToolExecution::labels`].
    pub labels: &'a Labels,
}

/// A JSON value, parsed or as compact text.
#[derive(Debug, Clone, Copy)]
pub enum JsonRef<'a> {
    /// The value.
    Value(&'a Value),
    /// Its compact text.
    Text(&'a str),
}

impl JsonRef<'_> {
    /// Returns the value; the text itself if the parser rejects it, for example because it is nested too deeply.
    pub fn to_value(self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Text(text) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        }
    }
}

/// The members of a [`RecordedDecision`], borrowed.
#[derive(Debug, Clone, Copy)]
pub struct DecisionRef<'a> {
    /// [`RecordedDecision::verdict`].
    pub verdict: &'a str,
    /// [`RecordedDecision::reason`].
    pub reason: &'a str,
    /// [`RecordedDecision::approved_by`].
    pub approved_by: Option<&'a str>,
    /// [`RecordedDecision::trace`].
    pub trace: &'a Value,
}

impl ExecutionRef<'_> {
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
                trace: decision.trace.clone(),
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

impl<'a> From<&'a ToolExecution> for ExecutionRef<'a> {
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
            arguments: JsonRef::Value(&execution.arguments),
            arguments_digest: &execution.arguments_digest,
            accesses: &execution.accesses,
            decision: execution.decision.as_ref().map(|decision| DecisionRef {
                verdict: &decision.verdict,
                reason: &decision.reason,
                approved_by: decision.approved_by.as_deref(),
                trace: &decision.trace,
            }),
            started: execution.started,
            ended: execution.ended,
            outcome: &execution.outcome,
            result_bytes: execution.result_bytes,
            result_digest: execution.result_digest.as_deref(),
            metadata: JsonRef::Value(&execution.metadata),
            labels: &execution.labels,
        }
    }
}

/// What a row is about. Requests for what is no tool take the path of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum RequestKind {
    /// A call of a tool.
    #[default]
    Tool,
    /// The reading of a resource.
    Resource,
    /// The getting of a prompt.
    Prompt,
    /// The completion of an argument.
    Completion,
    /// A question about a call that goes on as a task.
    Task,
    /// A question of a tool to the client that called it. Its tool is MCP's method.
    Question,
}

impl RequestKind {
    /// Every kind.
    pub const ALL: &[Self] = &[Self::Tool, Self::Resource, Self::Prompt, Self::Completion, Self::Task, Self::Question];

    /// The kind as one word.
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

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// A decision as it was at the time of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RecordedDecision {
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    /// Why: the rule with its file and line, or the default, and the part of the call that it met.
    pub reason: String,
    /// Who answered, if somebody was asked.
    pub approved_by: Option<String>,
    /// What was found on each part of the call, as [`crate::permission::decision::Decision::trace_json`] gives it;
    /// `Null` in rows of versions that did not keep it.
    pub trace: Value,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// It has not.
    Running,
    /// The tool answered.
    Succeeded,
    /// The tool failed, or answered with `isError`.
    Failed(ErrorKind, String),
    /// It never ran: unknown tool, invalid arguments, or no permission.
    Refused(ErrorKind, String),
    /// It was taken back, ran out of time, or the runtime shut down.
    Cancelled(CancelReason),
    /// It waits for answers from the client, and goes on when they come.
    InputRequired,
    /// The process died while it ran.
    Interrupted,
}

/// An outcome without its details, to filter by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// [`Outcome::Running`].
    Running,
    /// [`Outcome::Succeeded`].
    Succeeded,
    /// [`Outcome::Failed`].
    Failed,
    /// [`Outcome::Refused`].
    Refused,
    /// [`Outcome::Cancelled`].
    Cancelled,
    /// [`Outcome::InputRequired`].
    InputRequired,
    /// [`Outcome::Interrupted`].
    Interrupted,
}

impl OutcomeKind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Refused,
        Self::Cancelled,
        Self::InputRequired,
        Self::Interrupted,
    ];

    /// The kind as one word.
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

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// Why a call was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// The client took it back, or went away.
    Client,
    /// The deadline passed.
    Deadline,
    /// The runtime shuts down.
    Shutdown,
}

impl CancelReason {
    /// The reason as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Deadline => "deadline",
            Self::Shutdown => "shutdown",
        }
    }

    /// The reason of that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Client, Self::Deadline, Self::Shutdown].into_iter().find(|reason| reason.as_str() == text)
    }
}

impl Outcome {
    /// The outcome without its details.
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

    /// The kind of the error, where there is one.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Failed(kind, _) | Self::Refused(kind, _) => Some(*kind),
            Self::Cancelled(CancelReason::Deadline) => Some(ErrorKind::Timeout),
            Self::Cancelled(_) => Some(ErrorKind::Cancelled),
            Self::Running | Self::Succeeded | Self::InputRequired | Self::Interrupted => None,
        }
    }

    /// Whether nothing can follow.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Running | Self::InputRequired)
    }
}
