//! One upstream MCP server as a tool provider.

mod authorized_endpoint;
mod calls;
mod catalogue;
pub mod config;
pub mod connection;
mod context;
mod routing;
pub mod transport;

use crate::mcp::client::{
    calls::{outcome::CallTarget, tasks},
    catalogue::identity,
    config::{OutputSizePolicy, UpstreamConfig},
    connection::{
        UpstreamDeps, profile_advice, question_kind,
        request::{ForwardedRequest, RequestParams},
        request_error::RequestError,
    },
    routing::supervisor::{self, SharedUpstreamState},
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::{
    Access, CallContext, CallOutcome, DefaultSuggestions, PinnedServerKey, Principal, ProtocolVersion,
    ProviderIdentity, ProviderListError, ProviderState, ServerName, ServerPinningSettings, Suggestion,
    SuggestionFormatter, TaskMethodRequest, Tool, ToolCall, ToolFailure, ToolName, ToolProvider, ToolSource,
    error_kind::ErrorKind, suggestion::SUGGESTION, task_request::takes_tasks,
};

/// Maximum number of texts of an error to search for something that the server's profile blocked.
const ADVISED_TEXTS: usize = 8;

/// One MCP server. A task of its own keeps it connected; a slow or failed server blocks no other.
#[derive(Debug)]
pub struct Upstream {
    shared: Arc<SharedUpstreamState>,
    identity: ProviderIdentity,
    /// Version of the tools that [`ToolProvider::list`] returned most recently.
    seen: AtomicU64,
    /// Ends the connection if this value is dropped without `close`.
    _supervisor: AbortOnDropHandle<()>,
}

/// Status of a server, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Name of the server in Toolstead.
    pub name: ServerName,
    /// `stdio`, `http`, `sse` or `in-process`.
    pub transport: &'static str,
    /// State of the server.
    pub state: ProviderState,
    /// Negotiated protocol version; `None` while the server is down.
    pub protocol: Option<ProtocolVersion>,
    /// The server's own name and version.
    pub server: Option<String>,
    /// Current or last known number of tools; `None` if they were never listed.
    pub tools: Option<usize>,
    /// Number of open connections: the catalogue connection and those of the pool.
    pub connections: usize,
    /// Notes about what was omitted, skipped or unexpected, one sentence each.
    pub notes: Vec<String>,
    /// Last lines of the server's standard error, oldest first.
    pub stderr: Vec<String>,
}

impl Upstream {
    /// Starts to connect to the server and returns at once. Must be called within a tokio runtime.
    pub fn start(config: UpstreamConfig, deps: UpstreamDeps) -> Arc<Self> {
        Self::begin(config, deps, ProviderState::Connecting)
    }

    /// Like [`start`](Self::start), but connects at the first use. For a server whose tools are known from an earlier
    /// run.
    pub fn start_when_used(config: UpstreamConfig, deps: UpstreamDeps) -> Arc<Self> {
        Self::begin(config, deps, ProviderState::Idle)
    }

    fn begin(config: UpstreamConfig, deps: UpstreamDeps, state: ProviderState) -> Arc<Self> {
        let identity = deps.identity_of(&config);
        let shared = Arc::new(SharedUpstreamState::new(config, deps, state));
        let supervisor = tokio::spawn(supervisor::supervise(shared.clone()));
        Arc::new(Self { shared, identity, seen: AtomicU64::new(0), _supervisor: AbortOnDropHandle::new(supervisor) })
    }

    fn pinned_by_configuration(&self) -> ServerPinningSettings {
        let config = &self.shared.config;
        ServerPinningSettings {
            server: PinnedServerKey::from(&self.identity),
            on_change: config.on_change,
            launch: identity::launch(config),
        }
    }

    /// Returns the status of the server. Never blocks.
    pub fn status(&self) -> UpstreamStatus {
        let current = self.shared.current();
        let config = &self.shared.config;
        let mut notes = current.notes.clone();
        notes.extend(current.catalogue.iter().flat_map(|catalogue| catalogue.notes.iter().cloned()));
        let mut stderr = current.stderr.clone();
        if let Some(connection) = &current.connection {
            let peer = connection.transport.peer();
            for (count, what) in [
                (peer.noise(), "lines of its output that were not messages"),
                (peer.unexpected_answers(), "answers without a pending request"),
            ] {
                if count > 0 {
                    notes.push(format!("{what}: {count}"));
                }
            }
            stderr = connection.transport.stderr();
        }
        UpstreamStatus {
            name: config.name.clone(),
            transport: current
                .connection
                .as_ref()
                .and_then(|connection| connection.transport.label())
                .unwrap_or_else(|| config.transport.label()),
            state: self.state(),
            protocol: current.connection.as_ref().map(|connection| connection.card.version),
            server: current.connection.as_ref().and_then(|connection| connection.card.name.clone()),
            tools: current.catalogue.as_ref().map(|catalogue| catalogue.tools.len()),
            connections: usize::from(current.connection.is_some()) + self.shared.pool.count(),
            notes,
            stderr,
        }
    }

    /// Lists the tools again, or connects to a server that is not connected. Returns when that has succeeded or failed;
    /// at once if the server is closed, or down for less than the pause between attempts.
    pub async fn refresh(&self) {
        let _used = self.shared.usage.begin();
        let mut lists = self.shared.lists();
        lists.mark_unchanged();
        let current = self.shared.current();
        match &current.state {
            ProviderState::Ready => self.shared.request_list(),
            ProviderState::Connecting | ProviderState::Idle => {}
            ProviderState::Failed { .. } | ProviderState::NeedsAuthorization { .. }
                if self.shared.request_connection(&current) => {}
            ProviderState::Failed { .. } | ProviderState::NeedsAuthorization { .. } | ProviderState::Closed => return,
        }
        // Every attempt ends by itself. The timeout is for an attempt that ends with the tokio runtime.
        let _ = timeout(2 * self.shared.config.timeouts.connect, lists.changed()).await;
    }

    /// Suggests a sign-in, if the call failed for lack of credentials and principals can sign in to the server.
    fn with_sign_in(&self, failure: ToolFailure, principal: &Principal) -> ToolFailure {
        let can_sign_in = self.shared.config.credentials.as_ref().is_some_and(|own| own.can_sign_in);
        if failure.kind != ErrorKind::AuthRequired || !can_sign_in {
            return failure;
        }
        let principal = Some(principal).filter(|principal| **principal != Principal::local());
        ToolFailure { next: None, ..failure }.suggest(Suggestion::SignIn {
            grant: format!("server:{}", self.shared.config.name),
            principal: principal.map(ToString::to_string),
        })
    }

    /// Adds a suggestion to an outcome that shows that the server's profile blocked an access.
    fn advised(&self, outcome: Result<CallOutcome, ToolFailure>) -> Result<CallOutcome, ToolFailure> {
        let config = &self.shared.config;
        let advice = |said: &str| profile_advice::of_call(config, said);
        match outcome {
            Ok(CallOutcome::Done(result)) if result.is_error() => {
                let texts = result.content().iter().filter_map(|block| block.get("text")?.as_str());
                let advice = texts.take(ADVISED_TEXTS).find_map(advice);
                Ok(CallOutcome::Done(match advice {
                    Some(advice) => {
                        let text = format!(
                            "(Toolstead: the profile of `{}` may close files to it; ask your user.)",
                            config.name
                        );
                        let mut result = result.with_block(json!({"type": "text", "text": text}));
                        let suggestion = DefaultSuggestions.format(&Suggestion::ChangeSettings(advice));
                        result.insert_meta(SUGGESTION, suggestion.into());
                        result
                    }
                    None => result,
                }))
            }
            Err(failure) => Err(match advice(&failure.message) {
                Some(advice) if failure.next.is_none() => failure.suggest(Suggestion::ChangeSettings(advice)),
                Some(_) | None => failure,
            }),
            outcome => outcome,
        }
    }
}

#[async_trait]
impl ToolProvider for Upstream {
    fn name(&self) -> &str {
        self.shared.config.name.as_str()
    }

    fn identity(&self) -> ProviderIdentity {
        self.identity.clone()
    }

    fn pinning(&self) -> Option<ServerPinningSettings> {
        Some(self.pinned_by_configuration())
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        // The version is read first, so that a concurrent change is reported once more rather than missed.
        let version = *self.shared.changes().borrow();
        let current = self.shared.current();
        self.seen.store(version, Ordering::Release);
        self.shared.request_connection(&current);
        if let Some(catalogue) = &current.catalogue {
            let mut tools = catalogue.tools.clone();
            let listed: HashSet<&ToolName> = catalogue.tools.iter().map(Tool::name).collect();
            let elsewhere = self.shared.pooled_tools.tools();
            tools.extend(elsewhere.iter().filter(|tool| !listed.contains(tool.name())).cloned());
            tools.truncate(self.shared.config.limits.tools);
            return Ok(tools);
        }
        let reason = match &current.state {
            ProviderState::Failed { reason } => reason.clone(),
            ProviderState::NeedsAuthorization { reason } => format!("it requires a login: {reason}"),
            ProviderState::Connecting | ProviderState::Ready => "it is not connected yet".into(),
            ProviderState::Idle => "it is started when it is used".into(),
            ProviderState::Closed => "it was closed".into(),
        };
        Err(ProviderListError { provider: self.name().into(), reason })
    }

    fn list_members(&self) -> Map<String, Value> {
        self.shared.current().catalogue.as_ref().map_or_else(Map::new, |catalogue| catalogue.rest.clone())
    }

    async fn changed(&self) {
        let seen = self.seen.load(Ordering::Acquire);
        if self.shared.changes().wait_for(|version| *version != seen).await.is_err() {
            std::future::pending().await
        }
    }

    fn state(&self) -> ProviderState {
        let state = self.shared.current().state.clone();
        match (&state, self.shared.circuit.refusal()) {
            (ProviderState::Ready, Some(reason)) => ProviderState::Failed { reason },
            _ => state,
        }
    }

    async fn refresh(&self) {
        Upstream::refresh(self).await;
    }

    async fn session_ended(&self, principal: &Principal, session: &str) {
        self.shared.pool.session_ended(principal, session);
    }

    fn owns_schemas(&self) -> bool {
        false
    }

    fn bounds_output(&self) -> bool {
        self.shared.config.output == OutputSizePolicy::Bounded
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        let CallTarget { tool, server, .. } = call_target(call)?;
        Ok(vec![Access::CallUpstream { server: server.clone(), tool: tool.into() }])
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let called = call_target(call)?;
        let request = ForwardedRequest {
            method: "tools/call",
            name: Some(called.tool),
            params: RequestParams::Call {
                tool: called.tool,
                arguments: &call.arguments,
                more: context.forwarded.params,
            },
            capabilities: &tasks::with_tasks(self.capabilities_of(context.client), context.client),
            meta: &call.meta,
            answers: context.answers,
            log_level: context.client.log_level,
            progress: context.caller.wants_progress(),
            principal: Some(context.principal),
        };
        let (answer, generation) = self
            .forward(&request, context)
            .await
            .map_err(|error| self.with_sign_in(called.failure(error), context.principal))?;
        let outcome = called.outcome(answer, generation);
        match &outcome {
            Ok(CallOutcome::InputRequired(required)) => {
                question_kind::check(
                    required,
                    &context.client.capabilities,
                    called.server,
                    &self.shared.config.may_ask,
                )?;
            }
            Ok(CallOutcome::Done(result)) if result.is_task() && !takes_tasks(context.client) => {
                let reason = "it created a task for a call whose client does not support tasks";
                return Err(called.failure(RequestError::Malformed(reason.into())));
            }
            _ => {}
        }
        self.advised(outcome)
    }

    async fn task(
        &self,
        request: &TaskMethodRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        self.send_task_request(tool_target(&request.tool)?, request, context).await
    }

    async fn close(&self) {
        // The timeout is longer than closing takes. It is for a supervisor that has ended with the tokio runtime.
        let _ = timeout(self.shared.config.timeouts.close + Duration::from_secs(2), self.shared.close()).await;
    }
}

/// Returns the server and the server's own name of the tool.
fn call_target(call: &ToolCall) -> Result<CallTarget<'_>, ToolFailure> {
    tool_target(&call.tool)
}

fn tool_target(called: &Tool) -> Result<CallTarget<'_>, ToolFailure> {
    match called.source() {
        ToolSource::McpServer { server, tool } => {
            Ok(CallTarget { tool, server, promises_structure: called.output_schema().is_some() })
        }
        ToolSource::BuiltIn | ToolSource::Embedded(_) => {
            let message = format!("`{}` is not a tool of an MCP server", called.name());
            Err(ToolFailure::new(ErrorKind::Internal, message))
        }
    }
}

#[cfg(test)]
mod tests;
