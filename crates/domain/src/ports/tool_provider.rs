//! Something that lists tools, says what a call would touch, and runs it.

use crate::{
    access::Access,
    client_profile::ClientProfile,
    error_kind::ErrorKind,
    labels::Labels,
    permission::grant::Grant,
    ports::{
        caller::{Caller, InputRequest, InputResponses, SilentCaller},
        calls::{Calls, NoCalls},
        output_store::{NoOutputs, OutputStore},
    },
    principal::Principal,
    provider_identity::ProviderIdentity,
    task_request::TaskRequest,
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

/// The end of a line in a [preview](ToolProvider::preview), outside of its hunks, that names a content which the preview
/// does not include. Such a call can be approved only once.
pub const CONTENT_NOT_SHOWN: &str = "which are not shown";

/// The built-in tools, one MCP server, or a team's own tools.
///
/// Implementers guarantee:
/// - [`list`](Self::list) answers from what is known, within seconds, also when the other side is down;
/// - [`accesses`](Self::accesses) changes nothing, anywhere;
/// - [`call`](Self::call) touches nothing beyond the accesses it named and what the grant allows while running, and
///   cleans up after itself when its future is dropped (processes end, an upstream hears `notifications/cancelled`).
#[async_trait]
pub trait ToolProvider: Send + Sync {
    /// The provider's name: `built-in`, or the server's name. Unique among the registered providers.
    fn name(&self) -> &str;

    /// Its identity from run to run: its catalogue is kept under this.
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity::of_program(self.name())
    }

    /// The tools, in any order, names unique.
    ///
    /// # Errors
    /// [`ProviderError`] when nothing is known yet and the provider failed.
    async fn list(&self) -> Result<Vec<Tool>, ProviderError>;

    /// Members of its list beside the tools (`_meta`, those that nobody here knows), for clients that see its tools alone.
    /// Never blocks.
    fn list_members(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Returns when [`list`](Self::list) may answer differently from its last answer; never, if it cannot.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Finds out what [`list`](Self::list) is to answer now, also where that means to start something; returns when that is
    /// done, well or badly. Nothing, where the list is always true.
    async fn refresh(&self) {}

    /// Its version, if it has one of its own.
    fn version(&self) -> Option<String> {
        None
    }

    /// The state of the provider. Never blocks.
    fn state(&self) -> ProviderState {
        ProviderState::Ready
    }

    /// Tells whether every value of this provider's schemas is to be checked as ours are: `format` asserted and defaults
    /// filled. MCP servers say no: their schemas are taken as they came.
    fn owns_schemas(&self) -> bool {
        true
    }

    /// Tells whether a result over the budget of text goes under a handle. A provider says no where its results are to go
    /// on whole.
    fn bounds_output(&self) -> bool {
        true
    }

    /// Tells whether what this tool asks goes to people in the provider's own words, without the name of its server before
    /// them. So it is where names stand as they are.
    fn asks_in_own_words(&self, tool: &Tool) -> bool {
        tool.name() != tool.rule_name()
    }

    /// The accesses of the call: real paths, hosts, commands. Empty: nothing that a rule could judge.
    ///
    /// # Errors
    /// [`ToolFailure`] when the arguments cannot be understood, or name a place that does not exist.
    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure>;

    /// The time that the call asks to run, by its arguments; `None`: as long as calls of its tool do. The path cuts it to
    /// its own limit.
    fn time_wanted(&self, call: &ToolCall) -> Option<Duration> {
        let _ = call;
        None
    }

    /// Tells what the call would change, as a unified diff for the person who is asked about it; `None` where that is not
    /// known before. Changes nothing, and reads nothing but the files that the call would write. A content that is missing
    /// is named in a line that ends with [`CONTENT_NOT_SHOWN`]. The preview is made again after the approval; if it differs,
    /// the new one requires approval.
    ///
    /// # Errors
    /// The failure that the call would end in, so that nobody is asked about what cannot work.
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
    /// [`ToolFailure`] when it did not do what was asked. A failure that a tool reports in its own result is `Ok` with
    /// `isError`.
    async fn call<'s, 'c, 'r, 'x>(
        &'s self,
        call: &'c ToolCall,
        context: &'r CallContext<'x>,
    ) -> Result<CallOutcome, ToolFailure>;

    /// Answers a request about a task that a call of its became, with the members of MCP's result. Only providers that
    /// answer calls with [tasks](ToolResult::task) have some.
    ///
    /// # Errors
    /// [`ToolFailure`]; `not_found` for a task that there is not.
    async fn task<'s, 'c, 'r, 'x>(
        &'s self,
        request: &'c TaskRequest,
        context: &'r CallContext<'x>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        let _ = (request, context);
        Err(ToolFailure::new(ErrorKind::NotFound, "Failed to retrieve task: Task not found"))
    }

    /// A session is over: what belongs to it alone is ended. Returns without waiting for that.
    async fn session_ended(&self, principal: &Principal, session: &str) {
        let _ = (principal, session);
    }

    /// Ends what the provider started. Called once, at shutdown or when it is unregistered.
    async fn close(&self) {}
}

/// Members of a call's request beside the call itself, for providers that pass them on to a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// Its `_meta`, without what belongs to one hop, as in [`ToolCall::meta`]; `None`: it had none.
    pub meta: Option<&'a Map<String, Value>>,
    /// Members of its parameters that nobody here knows, in their order.
    pub params: &'a [(String, Value)],
}

/// All that accompanies a call.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// The call's id.
    pub id: CallId,
    /// The one who calls.
    pub principal: &'a Principal,
    /// The session's id.
    pub session: &'a str,
    /// The end of the call, later by what it has [waited](Caller::waited) for answers. A tool that can returns what
    /// it has until then.
    pub deadline: Instant,
    /// The policy as it goes along with the call.
    pub grant: &'a Grant,
    /// The abilities of the client.
    pub client: &'a ClientProfile,
    /// Members of the request beside the call.
    pub beside: Beside<'a>,
    /// Labels of the call, those of hooks included.
    pub labels: &'a Labels,
    /// Answers to what the provider's [`InputRequired`] asked about this call before.
    pub answers: Option<&'a Answers>,
    /// The way back to the client.
    pub caller: &'a dyn Caller,
    /// Calls other tools, within the scope of this call.
    pub calls: &'a dyn Calls,
    /// The store of large outputs.
    pub outputs: &'a dyn OutputStore,
    /// As many characters of the result's text reach the model. A tool that gives pages makes them fit, so that nothing
    /// is cut out of their middle.
    pub output_characters: usize,
}

impl<'a> CallContext<'a> {
    /// The context of a call whose caller is silent, with nowhere to keep outputs and the usual budget of text. All that
    /// is otherwise is set afterwards.
    pub fn new(call: &'a ToolCall, grant: &'a Grant, client: &'a ClientProfile, deadline: Instant) -> Self {
        static NO_LABELS: Labels = Labels::EMPTY;
        Self {
            id: call.id,
            principal: &call.principal,
            session: &call.session,
            deadline,
            grant,
            client,
            beside: Beside { meta: Some(&call.meta), params: &[] },
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

/// The end of a call, as far as its provider can say.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// It is done.
    Done(ToolResult),
    /// It needs answers from the client first (MCP 2026-07-28, `InputRequiredResult`).
    InputRequired(InputRequired),
}

/// Questions that must be answered before a call can go on.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// The questions, by key.
    pub requests: BTreeMap<String, InputRequest>,
    /// A text that comes back to the provider unread, and reaches nobody else.
    pub state: Option<String>,
}

/// The answers that a provider gets for its [`InputRequired`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// The answers, by the keys of their questions.
    pub responses: InputResponses,
    /// [`InputRequired::state`], as it was.
    pub state: Option<String>,
}

/// The state of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderState {
    /// On its way. Tools may be known from an earlier run.
    Connecting,
    /// At work.
    Ready,
    /// At rest: the next use starts it.
    Idle,
    /// Down; it is tried again by itself.
    Failed {
        /// The cause, for the operator.
        reason: String,
    },
    /// Its server wants a login.
    NeedsAuthorization {
        /// The way to go on.
        reason: String,
    },
    /// Ended.
    Closed,
}

impl ProviderState {
    /// The state as one word.
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
    /// The word, and the reason where there is one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed { reason } | Self::NeedsAuthorization { reason } => write!(f, "{}: {reason}", self.label()),
            Self::Connecting | Self::Ready | Self::Idle | Self::Closed => f.write_str(self.label()),
        }
    }
}

/// A provider that could not list its tools.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{provider}` could not list its tools: {reason}")]
pub struct ProviderError {
    /// The provider.
    pub provider: Arc<str>,
    /// The cause.
    pub reason: String,
}
