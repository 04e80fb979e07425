//! `tasks/get`, `tasks/update` and `tasks/cancel` (MCP's extension `io.modelcontextprotocol/tasks`).

use super::{
    McpServer,
    answer::SerializedResponse,
    call_tool::ClientContext,
    forward_request::without_result,
    protocol_error::{invalid_params, method_not_found},
    trace_context,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_application::{CancelSignal, ExecuteToolCommand, ForwardTaskCommand};
use toolstead_domain::{
    Caller, ProtocolGeneration, TaskMethod, ToolFailure,
    error_kind::ErrorKind,
    task_request::{takes_tasks, tasks_declared},
};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

/// A parsed `tasks/get`, `tasks/update` or `tasks/cancel`.
#[derive(Debug)]
pub(super) struct ClientTaskMethodRequest {
    method: TaskMethod,
    task: String,
    params: Map<String, Value>,
    meta: Map<String, Value>,
}

impl ClientTaskMethodRequest {
    /// Parses the parameters of the method.
    ///
    /// # Errors
    /// -32602 if the name of the task is missing, or if the answers are not an object.
    pub(super) fn parse(
        method: TaskMethod,
        params: &mut Map<String, Value>,
        meta: Map<String, Value>,
    ) -> Result<Self, RpcError> {
        let Some(Value::String(task)) = params.shift_remove("taskId") else {
            return Err(invalid_params("`taskId` must be the name of a task, as a text"));
        };
        if params.get("inputResponses").is_some_and(|answers| !answers.is_object()) {
            return Err(invalid_params("`inputResponses` must be an object"));
        }
        Ok(Self { method, task, params: std::mem::take(params), meta })
    }
}

impl McpServer {
    /// Answers the request. Returns `None` if the client cancelled it and expects no answer.
    pub(super) async fn task(
        &self,
        id: &RequestId,
        request: ClientTaskMethodRequest,
        client: ClientContext,
        caller: Arc<dyn Caller>,
        cancel: CancelSignal,
    ) -> Option<SerializedResponse> {
        let ClientTaskMethodRequest { method, task, params, meta } = request;
        if client.generation() == ProtocolGeneration::Legacy {
            return Some(SerializedResponse::error(id, &method_not_found(method.as_str())));
        }
        let failed =
            |failure: &ToolFailure| SerializedResponse::failure(id, failure, self.app.execute_tool.suggestions());
        if !takes_tasks(&client.profile) {
            let missing = ToolFailure::new(ErrorKind::MissingCapability, "Missing required client capability");
            return Some(failed(&missing.with_data(json!({"requiredCapabilities": tasks_declared()}))));
        }
        let call = ExecuteToolCommand::new(method.as_str(), Value::Null).within(client.scope);
        let labels = trace_context::labels(&meta);
        let call = ExecuteToolCommand { labels, meta, client: client.profile, caller, cancel, ..call };
        Some(match self.app.forward_task.handle(ForwardTaskCommand { method, task, params, call }).await {
            Ok(members) => {
                let mut result = Map::from_iter([("resultType".to_owned(), Value::from("complete"))]);
                result.extend(members.into_iter().filter(|(name, _)| name != "resultType"));
                SerializedResponse::result(id, &result)
            }
            Err(error) => return without_result(id, error, failed),
        })
    }
}
