//! Calls that continue as tasks of their server (MCP's extension `io.modelcontextprotocol/tasks`).

use crate::mcp::client::{
    Upstream,
    calls::outcome::CallTarget,
    connection::{
        foreign_text::shown,
        own_members,
        request::{ForwardedRequest, RequestParams},
        request_error::RequestError,
    },
};
use serde_json::{Map, Value};
use toolstead_domain::{
    CallContext, ClientCapability, ClientProfile, InputRequest, ProtocolGeneration, TaskMethod, TaskMethodRequest,
    ToolFailure,
    error_kind::ErrorKind,
    task_request::{takes_tasks, tasks_declared},
};

/// Adds the capability for tasks to the capabilities to declare, if the client supports tasks.
pub(in crate::mcp::client) fn with_tasks(
    mut capabilities: Map<String, Value>,
    client: &ClientProfile,
) -> Map<String, Value> {
    if takes_tasks(client) {
        capabilities.extend(tasks_declared());
    }
    capabilities
}

impl Upstream {
    /// Sends a request about a task to its server, and returns the checked response. Fails for a server of the legacy
    /// generation, which has no tasks.
    pub(in crate::mcp::client) async fn send_task_request(
        &self,
        called: CallTarget<'_>,
        request: &TaskMethodRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        let may_ask = self.capabilities_of(context.client);
        let mut params = Map::from_iter([("taskId".to_owned(), Value::from(request.id.as_str()))]);
        params.extend(request.params.clone().into_iter().filter(|(name, _)| name != "taskId"));
        let forwarded = ForwardedRequest {
            method: request.method.as_str(),
            name: Some(&request.id),
            params: RequestParams::Members(&params),
            capabilities: &with_tasks(may_ask.clone(), context.client),
            meta: &request.meta,
            answers: None,
            log_level: None,
            progress: false,
            principal: Some(context.principal),
        };
        let (answer, generation) = self.forward(&forwarded, context).await.map_err(|error| called.failure(error))?;
        if generation == ProtocolGeneration::Legacy {
            let message = format!("Failed to retrieve task: the MCP server `{}` has none", called.server);
            return Err(ToolFailure::new(ErrorKind::NotFound, message));
        }
        let malformed = |what: &str| called.failure(RequestError::Malformed(what.to_owned()));
        match answer.into_outcome() {
            Ok(Ok(Value::Object(result))) => checked(result, request.method, &may_ask).map_err(malformed),
            Ok(Ok(_)) => Err(malformed("its answer about a task is not an object")),
            Ok(Err(error)) => Err(called.failure(RequestError::Rpc(error))),
            Err(error) => Err(malformed(&shown(&error.to_string(), 300))),
        }
    }
}

/// Checks a server's response about a task and removes members that only Toolstead may set.
fn checked(
    mut result: Map<String, Value>,
    method: TaskMethod,
    may_ask: &Map<String, Value>,
) -> Result<Map<String, Value>, &'static str> {
    own_members::take_out(&mut result);
    result.shift_remove("resultType");
    if method != TaskMethod::Get {
        return Ok(result);
    }
    if !result.get("status").is_some_and(Value::is_string) {
        return Err("its answer about a task has no status");
    }
    match result.get_mut("result") {
        None | Some(Value::Null) => {}
        Some(Value::Object(done)) => own_members::take_out_of_result(done),
        Some(_) => return Err("the result of its task is not an object"),
    }
    match result.get_mut("inputRequests") {
        None | Some(Value::Null) => {}
        Some(Value::Object(asked)) if asked.iter().all(|(key, one)| may_be_asked(key, one, may_ask)) => {
            for params in asked.values_mut().filter_map(|one| one.get_mut("params")?.as_object_mut()) {
                own_members::take_out(params);
            }
        }
        Some(_) => return Err("its task asks for input that the server may not ask for"),
    }
    Ok(result)
}

fn may_be_asked(key: &str, question: &Value, may_ask: &Map<String, Value>) -> bool {
    let method = question.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let params = question.get("params").cloned().unwrap_or_default();
    let capability = ClientCapability::of(&InputRequest { method, params });
    !own_members::is_own(key) && capability.is_some_and(|capability| capability.is_declared(may_ask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn task_questions_are_limited_to_permitted_kinds_and_reserved_metadata_is_removed() {
        let may_ask = Map::from_iter([("elicitation".to_owned(), json!({}))]);
        let text_of = |key: &str, question: Value| {
            let task = json!({"status": "input_required", "inputRequests": {key: question}});
            let task = task.as_object().cloned().unwrap_or_default();
            checked(task, TaskMethod::Get, &may_ask).map(|task| task["inputRequests"].clone())
        };
        let form = |meta: Value| json!({"method": "elicitation/create", "params": {"message": "m", "_meta": meta}});
        let taken = text_of("q", form(json!({"Toolstead/x": 1, "a": 2})));
        assert_eq!(taken, Ok(json!({"q": form(json!({"a": 2}))})));
        assert!(text_of("toolstead/approval", form(json!({}))).is_err());
        assert!(text_of("q", json!({"method": "sampling/createMessage", "params": {}})).is_err());
    }
}
