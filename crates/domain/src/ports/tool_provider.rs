//! A provider that lists tools, reports the accesses of calls, and runs them.

use crate::{
    access::Access,
    client_profile::ClientProfile,
    error_kind::ErrorKind,
    labels::CallLabels,
    permission::grant::CallPermissions,
    pinning::ServerPinningSettings,
    ports::{
        caller::{Caller, InputRequest, InputResponses, SilentCaller},
        calls::{Calls, NoCalls},
        output_store::{NoOutputs, OutputStore},
    },
    principal::Principal,
    provider_identity::ProviderIdentity,
    task_request::TaskMethodRequest,
    tool::Tool,
    tool_call::{CallId, ToolCall},
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// End of a line in a [preview](ToolProvider::preview), outside of its hunks, that names a content which the preview
/// does not include. An approval of a call with such a line applies to this call only.
pub const CONTENT_NOT_SHOWN: &str = "which are not shown";

/// Built-in tools, one MCP server, or an embedding application's own tools.
///
/// Implementers guarantee:
/// - [`list`](Self::list) answers from what is known, within seconds, even if the upstream server is unavailable;
/// - [`accesses`](Self::accesses) changes nothing, anywhere;
/// - [`call`](Self::call) touches nothing beyond the accesses it returned and what the grant allows while running, and
///   cleans up when its future is dropped (processes end, an upstream server receives `notifications/cancelled`).
#[async_trait]
pub trait ToolProvider: Send + Sync {
    /// Returns the name of the provider: `built-in`, or the name of the server. It is unique among the registered
    /// providers.
    fn name(&self) -> &str;

    /// Returns the identity under which the tools of the provider are stored between runs.
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity::of_program(self.name())
    }

    /// Returns the settings for pinning its definitions; `None` if no server controls them.
    fn pinning(&self) -> Option<ServerPinningSettings> {
        None
    }

    /// Returns the tools, in any order, with unique names.
    ///
    /// # Errors
    /// [`ProviderListError`] if nothing is known yet and the provider failed.
    async fn list(&self) -> Result<Vec<Tool>, ProviderListError>;

    /// Returns the members of its list beside the tools (`_meta` and unknown ones), for clients that see only its
    /// tools. Never blocks.
    fn list_members(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Returns when [`list`](Self::list) may return different tools than last time. Never returns if they cannot
    /// change.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Updates the tools that [`list`](Self::list) returns, and starts the server if necessary. Returns when that has
    /// succeeded or failed. Does nothing if the list is always current.
    async fn refresh(&self) {}

    /// Returns the version of the provider, such as that of an MCP server; `None` if it has no version of its own.
    fn version(&self) -> Option<String> {
        None
    }

    /// Returns the state of the provider. Never blocks.
    fn state(&self) -> ProviderState {
        ProviderState::Ready
    }

    /// Returns `true` if values are validated against its schemas as strictly as for built-in tools: `format` is
    /// asserted, and defaults are filled in. `false` for MCP servers, whose schemas are used as received.
    fn owns_schemas(&self) -> bool {
        true
    }

    /// Returns `true` if a result over the text limit is stored under a handle. `false` if the provider's results must
    /// be passed on whole.
    fn bounds_output(&self) -> bool {
        true
    }

    /// Returns `true` if questions of this tool are passed to users without the name of its server before them. By
    /// default this is so for tools whose names have no server prefix.
    fn asks_in_own_words(&self, tool: &Tool) -> bool {
        tool.name() != tool.rule_name()
    }

    /// Returns the accesses of the call: real paths, hosts, commands. Empty if no rule could apply to it.
    ///
    /// # Errors
    /// [`ToolFailure`] if the arguments are invalid, or name a place that does not exist.
    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure>;

    /// Returns the timeout that the arguments of the call request; `None` for that of its tool. A configured maximum
    /// still applies.
    fn requested_time(&self, call: &ToolCall) -> Option<Duration> {
        let _ = call;
        None
    }

    /// Returns the change that the call would make, as a unified diff for the approver; `None` if it is not known in
    /// advance. Changes nothing, and reads only the files that the call would write. A content that is left out is
    /// named in a line that ends with [`CONTENT_NOT_SHOWN`]. The preview is made again after the approval; if it
    /// differs, the new one requires approval.
    ///
    /// # Errors
    /// The failure in which the call would end, so that no approval is requested for a call that cannot succeed.
    async fn preview<'s, 'c, 'r, 'x>(
        &'s self,
        call: &'c ToolCall,
        context: &'r CallContext<'x>,
    ) -> Result<Option<String>, ToolFailure> {
        let _ = (call, context);
        Ok(None)
    }

    /// Runs the call.
    ///
    /// # Errors
    /// [`ToolFailure`] if it failed. A failure that a tool reports in its own result is `Ok` with `isError`.
    async fn call<'s, 'c, 'r, 'x>(
        &'s self,
        call: &'c ToolCall,
        context: &'r CallContext<'x>,
    ) -> Result<CallOutcome, ToolFailure>;

    /// Answers a request about a task that one of its calls became, with the members of the MCP result. Only providers
    /// that answer calls with [tasks](ToolResult::task) have tasks.
    ///
    /// # Errors
    /// [`ToolFailure`]; `not_found` for an unknown task.
    async fn task<'s, 'c, 'r, 'x>(
        &'s self,
        request: &'c TaskMethodRequest,
        context: &'r CallContext<'x>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        let _ = (request, context);
        Err(ToolFailure::new(ErrorKind::NotFound, "Failed to retrieve task: Task not found"))
    }

    /// Ends everything that belongs to this session alone. Returns without waiting for that.
    async fn session_ended(&self, principal: &Principal, session: &str) {
        let _ = (principal, session);
    }

    /// Ends everything that the provider started. Called once, at shutdown or when the provider is unregistered.
    async fn close(&self) {}
}

/// Members of a call's request beside the call itself, for providers that forward them to a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForwardedMembers<'a> {
    /// `_meta` of the request without the members for a single connection, as in [`ToolCall::meta`]; `None` if it had
    /// none.
    pub meta: Option<&'a Map<String, Value>>,
    /// Unknown members of the parameters, in their order.
    pub params: &'a [(String, Value)],
}

/// Environment of a running call.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// Id of the call.
    pub id: CallId,
    /// Principal that makes the call.
    pub principal: &'a Principal,
    /// Id of the session.
    pub session: &'a str,
    /// End of the call. It moves by the time that the call has [waited](Caller::waited) for answers. A tool that can do
    /// so returns its partial result by then.
    pub deadline: Instant,
    /// Policy for this call.
    pub grant: &'a CallPermissions,
    /// Capabilities of the client.
    pub client: &'a ClientProfile,
    /// Members of the request beside the call.
    pub forwarded: ForwardedMembers<'a>,
    /// Labels of the call, those of hooks included.
    pub labels: &'a CallLabels,
    /// Answers to the provider's earlier [`InputRequired`] for this call.
    pub answers: Option<&'a InputAnswers>,
    /// Channel to the client.
    pub caller: &'a dyn Caller,
    /// Calls of other tools, within the scope of this call.
    pub calls: &'a dyn Calls,
    /// Store of large outputs.
    pub outputs: &'a dyn OutputStore,
    /// Maximum number of characters of the result's text that reach the model. A tool that returns pages makes them
    /// fit, so that nothing is cut out of their middle.
    pub output_characters: usize,
}

impl<'a> CallContext<'a> {
    /// Creates the context of a call with a silent caller, no output store and the default text limit. Set other fields
    /// afterwards.
    pub fn new(call: &'a ToolCall, grant: &'a CallPermissions, client: &'a ClientProfile, deadline: Instant) -> Self {
        static NO_LABELS: CallLabels = CallLabels::EMPTY;
        Self {
            id: call.id,
            principal: &call.principal,
            session: &call.session,
            deadline,
            grant,
            client,
            forwarded: ForwardedMembers { meta: Some(&call.meta), params: &[] },
            labels: &NO_LABELS,
            answers: None,
            caller: &SilentCaller,
            calls: &NoCalls,
            outputs: &NoOutputs,
            output_characters: 30_000,
        }
    }
}

impl std::fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext").field("id", &self.id).field("principal", self.principal).finish_non_exhaustive()
    }
}

/// Outcome of a call as reported by its provider.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The call is complete.
    Done(ToolResult),
    /// The call needs answers from the client first (MCP 2026-07-28, `InputRequiredResult`).
    InputRequired(InputRequired),
}

/// Questions that must be answered before a call can continue.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// Questions, by key.
    pub requests: BTreeMap<String, InputRequest>,
    /// Opaque state that is returned to the provider unread, and to nothing else.
    pub state: Option<String>,
}

/// Answers to an [`InputRequired`] of a provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputAnswers {
    /// Answers, by the keys of their questions.
    pub responses: InputResponses,
    /// [`InputRequired::state`], unchanged.
    pub state: Option<String>,
}

/// State of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderState {
    /// Connecting. Tools may be known from an earlier run.
    Connecting,
    /// Ready for calls.
    Ready,
    /// Not running; the next use starts it.
    Idle,
    /// Unavailable; it is retried automatically.
    Failed {
        /// Cause, for the operator.
        reason: String,
    },
    /// The server requires a sign-in.
    NeedsAuthorization {
        /// Next step, for the operator.
        reason: String,
    },
    /// Closed.
    Closed,
}

impl ProviderState {
    /// Returns the state as a short text, such as `ready` or `needs authorization`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Idle => "idle",
            Self::Failed { .. } => "failed",
            Self::NeedsAuthorization { .. } => "needs authorization",
            Self::Closed => "closed",
        }
    }
}

impl std::fmt::Display for ProviderState {
    /// Writes the label, followed by the reason if there is one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed { reason } | Self::NeedsAuthorization { reason } => write!(f, "{}: {reason}", self.label()),
            Self::Connecting | Self::Ready | Self::Idle | Self::Closed => f.write_str(self.label()),
        }
    }
}

/// Failure of a provider to list its tools.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{provider}` could not list its tools: {reason}")]
pub struct ProviderListError {
    /// Name of the provider.
    pub provider: Arc<str>,
    /// Cause of the failure.
    pub reason: String,
}
