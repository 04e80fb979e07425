//! Requests that take the call path: for tools, resources, prompts, completions and tasks.

use super::{
    McpServer,
    answer::SerializedResponse,
    call_tool::{ClientContext, ToolCallRequest},
    forward_request::ParsedContextRequest,
    task_request::ClientTaskMethodRequest,
};
use futures::{FutureExt, future::Either};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolstead_application::CancelSignal;
use toolstead_domain::{Caller, TaskMethod};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

/// A parsed request for a tool, a resource, a prompt, a completion or a task.
#[derive(Debug)]
pub(super) enum ClientRequest {
    Tool(ToolCallRequest),
    Forwarded(ParsedContextRequest),
    Task(ClientTaskMethodRequest),
}

impl ClientRequest {
    /// Parses the parameters of the method.
    ///
    /// # Errors
    /// -32601 for any other method; -32602 for invalid parameters.
    pub(super) fn parse(
        method: &str,
        params: &mut Map<String, Value>,
        meta: Map<String, Value>,
    ) -> Result<Self, RpcError> {
        match (method, TaskMethod::parse(method)) {
            ("tools/call", _) => ToolCallRequest::parse(params, meta).map(Self::Tool),
            (_, Some(method)) => ClientTaskMethodRequest::parse(method, params, meta).map(Self::Task),
            (_, None) => ParsedContextRequest::parse(method, params, meta).map(Self::Forwarded),
        }
    }
}

impl McpServer {
    /// Answers a request for a tool, a task, a resource, a prompt or a completion. Returns `None` if the client cancelled
    /// it and expects no answer.
    pub(super) fn call<'a>(
        &'a self,
        id: &'a RequestId,
        request: ClientRequest,
        client: ClientContext,
        caller: Arc<dyn Caller>,
        cancel: CancelSignal,
    ) -> impl Future<Output = Option<SerializedResponse>> + Send + 'a {
        // Boxed because these futures are larger than that of a tool call, and rare.
        match request {
            ClientRequest::Tool(request) => Either::Left(self.call_tool(id, request, client, caller, cancel)),
            ClientRequest::Task(request) => Either::Right(self.task(id, request, client, caller, cancel).boxed()),
            ClientRequest::Forwarded(request) => {
                Either::Right(self.forward(id, request, client, caller, cancel).boxed())
            }
        }
    }
}
