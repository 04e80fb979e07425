//! The command that calls a tool.

use super::nesting::NestedCallPosition;
use crate::{cancel_signal::CancelSignal, context_registry::context_request_target::ContextRequestTarget};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use toolstead_domain::{CallId, CallLabels, Caller, ClientProfile, InputResponses, RequestScope, SilentCaller};

/// Command that calls a tool.
pub struct ExecuteToolCommand {
    /// Name or alias of the tool.
    pub tool: String,
    /// Arguments of the call. A value other than an object is malformed; `Null` is an empty object.
    pub arguments: Value,
    /// `_meta` of the request, without the members that concern only one connection.
    pub meta: Map<String, Value>,
    /// Unknown members of the request's parameters in their order, for the upstream server of the tool.
    pub params: Vec<(String, Value)>,
    /// Principal, session and view of the call.
    pub scope: RequestScope,
    /// Labels of the audit record.
    pub labels: CallLabels,
    /// Capabilities of the client.
    pub client: Arc<ClientProfile>,
    /// Channel to the client.
    pub caller: Arc<dyn Caller>,
    /// Answers to questions: those of the call that `request_state` names, or else answers for the tool's provider.
    pub answers: Option<InputResponses>,
    /// State of the call that this retry resumes (MCP 2026-07-28, `requestState`).
    pub request_state: Option<String>,
    /// Timeout, at most the configured maximum; `None`: the default.
    pub timeout: Option<Duration>,
    /// Signal that cancels the call.
    pub cancel: CancelSignal,
    /// Position below the calling call; `None`: the call is not nested.
    pub parent: Option<NestedCallPosition>,
    /// Id of the call that started the detached work to which this call belongs.
    pub began_by: Option<CallId>,
    /// Provider of the answer to a request that is not a call of a tool
    /// ([`forward_request`](crate::forward_request)); `None`: the tool of that name.
    pub answered_by: Option<ContextRequestTarget>,
}

impl ExecuteToolCommand {
    /// Creates a call by the user of this machine, in the session `program`, whose caller answers no questions. Set the
    /// fields that differ.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            meta: Map::new(),
            params: Vec::new(),
            scope: RequestScope::default(),
            labels: CallLabels::default(),
            client: Arc::new(ClientProfile::without_protocol("program")),
            caller: Arc::new(SilentCaller),
            answers: None,
            request_state: None,
            timeout: None,
            cancel: CancelSignal::new(),
            parent: None,
            began_by: None,
            answered_by: None,
        }
    }

    /// Sets the scope.
    #[must_use]
    pub fn within(self, scope: RequestScope) -> Self {
        Self { scope, ..self }
    }

    /// Sets the labels.
    #[must_use]
    pub fn labelled(self, labels: CallLabels) -> Self {
        Self { labels, ..self }
    }
}

impl std::fmt::Debug for ExecuteToolCommand {
    /// Omits the arguments, which may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecuteToolCommand")
            .field("tool", &self.tool)
            .field("session", &self.scope.session)
            .finish_non_exhaustive()
    }
}
