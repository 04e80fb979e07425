//! `resources/read`, `prompts/get` and `completion/complete`.

use super::{
    McpServer,
    answer::SerializedResponse,
    call_tool::{ClientContext, closed, input_required, not_recorded, shut_down, take_rest, take_retry},
    protocol_error::{method_not_found, of_failure},
    trace_context,
};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolstead_application::{
    CancelSignal, ContextRequestOutcome, ExecuteToolCommand, ExecuteToolError, ForwardContextRequestCommand,
};
use toolstead_domain::{
    AuditedRequestKind, Caller, CancelReason, ContextRequest, DefaultSuggestions, InputResponses, ProtocolGeneration,
    SuggestionFormatter, ToolFailure, error_kind::ErrorKind,
};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

/// A parsed `resources/read`, `prompts/get` or `completion/complete`.
#[derive(Debug)]
pub(super) struct ParsedContextRequest {
    request: ContextRequest,
    answers: Option<InputResponses>,
    state: Option<String>,
    meta: Map<String, Value>,
    /// Other parameters, which are passed on to the upstream server.
    params: Vec<(String, Value)>,
}

impl ParsedContextRequest {
    /// Parses the parameters of the method.
    ///
    /// # Errors
    /// -32601 for any other method; -32602 for invalid parameters.
    pub(super) fn parse(
        method: &str,
        params: &mut Map<String, Value>,
        meta: Map<String, Value>,
    ) -> Result<Self, RpcError> {
        let kind = match method {
            "resources/read" => AuditedRequestKind::Resource,
            "prompts/get" => AuditedRequestKind::Prompt,
            "completion/complete" => AuditedRequestKind::Completion,
            _ => return Err(method_not_found(method)),
        };
        let (answers, state) = take_retry(params)?;
        let request =
            ContextRequest::parse(kind, params).map_err(|failure| of_failure(&failure, &DefaultSuggestions))?;
        params
            .retain(|name, _| !matches!(name.as_str(), "uri" | "name" | "arguments" | "ref" | "argument" | "context"));
        Ok(Self { request, answers, state, meta, params: take_rest(params) })
    }
}

impl McpServer {
    /// Answers the request. Returns `None` if the client cancelled it and expects no answer.
    pub(super) async fn forward(
        &self,
        id: &RequestId,
        request: ParsedContextRequest,
        client: ClientContext,
        caller: Arc<dyn Caller>,
        cancel: CancelSignal,
    ) -> Option<SerializedResponse> {
        let generation = client.generation();
        let (kind, subject) = (request.request.kind(), request.request.subject().to_owned());
        let command = ForwardContextRequestCommand::new(request.request);
        let is_retry = request.answers.is_some() || request.state.is_some();
        let call = ExecuteToolCommand {
            labels: trace_context::labels(&request.meta),
            meta: request.meta,
            params: request.params,
            scope: client.scope,
            client: client.profile,
            caller,
            answers: request.answers,
            request_state: request.state,
            cancel,
            ..command.call
        };
        let command = ForwardContextRequestCommand { call, ..command };
        let suggestions = self.app.execute_tool.suggestions();
        let failed = |failure: &ToolFailure| failed(id, kind, &subject, failure, generation, suggestions);
        Some(match self.app.forward_request.handle(command).await {
            Ok(ContextRequestOutcome::Answer(members)) => {
                SerializedResponse::result(id, &wire(kind, members, generation, is_retry))
            }
            Ok(ContextRequestOutcome::InputRequired(questions)) => input_required(id, questions),
            Err(error) => return without_result(id, error, failed),
        })
    }
}

/// Returns the answer to a request that failed; `None` if the client cancelled it. `failed` converts a failure.
pub(super) fn without_result(
    id: &RequestId,
    error: ExecuteToolError,
    failed: impl Fn(&ToolFailure) -> SerializedResponse,
) -> Option<SerializedResponse> {
    match error {
        ExecuteToolError::NotCallable(failure)
        | ExecuteToolError::Refused(failure)
        | ExecuteToolError::Failed(failure) => Some(failed(&failure)),
        ExecuteToolError::Cancelled(CancelReason::Client) => None,
        ExecuteToolError::Cancelled(CancelReason::Deadline) => {
            Some(failed(&ToolFailure::new(ErrorKind::Timeout, "The request ran out of time.")))
        }
        ExecuteToolError::Cancelled(CancelReason::Shutdown) => Some(shut_down(id)),
        ExecuteToolError::Closed => Some(closed(id)),
        ExecuteToolError::AuditFailure { what, source } => Some(not_recorded(id, what, &source)),
    }
}

/// Returns the result in the form of the generation.
///
/// A provider may declare how long its resource may be cached. Without such a declaration the resource may change at
/// any time, and a result that depends on answers of the client must never be cached. The result is private to this
/// caller, regardless of the provider's declaration, because rules decide who may read it.
fn wire(
    kind: AuditedRequestKind,
    members: Map<String, Value>,
    generation: ProtocolGeneration,
    is_retry: bool,
) -> Map<String, Value> {
    let mut result = Map::new();
    if generation == ProtocolGeneration::Modern {
        result.insert("resultType".into(), "complete".into());
    }
    result.extend(members.into_iter().filter(|(name, _)| name != "resultType"));
    if generation == ProtocolGeneration::Modern && kind == AuditedRequestKind::Resource {
        let may_be_kept = !is_retry && result.get("ttlMs").is_some_and(Value::is_u64);
        if !may_be_kept {
            result.insert("ttlMs".into(), 0.into());
        }
        result.insert("cacheScope".into(), "private".into());
    }
    result
}

/// Converts the failure of a request for this URI or name to an error response, with the generation's code for a
/// resource that does not exist.
pub(super) fn failed(
    id: &RequestId,
    kind: AuditedRequestKind,
    subject: &str,
    failure: &ToolFailure,
    generation: ProtocolGeneration,
    suggestions: &dyn SuggestionFormatter,
) -> SerializedResponse {
    match not_found(kind, subject, failure, generation, suggestions) {
        Some(error) => SerializedResponse::error(id, &error),
        None => SerializedResponse::failure(id, failure, suggestions),
    }
}

/// Returns the error for a resource that does not exist: -32002 up to 2025-11-25 (server/resources, "Error Handling")
/// and -32602 since 2026-07-28, with the URI in the data; `None` for any other failure. The error of an upstream server
/// is converted to the client's generation; its other members are unchanged.
fn not_found(
    kind: AuditedRequestKind,
    subject: &str,
    failure: &ToolFailure,
    generation: ProtocolGeneration,
    suggestions: &dyn SuggestionFormatter,
) -> Option<RpcError> {
    let says_so = match &failure.upstream {
        Some(error) => match (error.code, &error.data) {
            (RpcError::RESOURCE_NOT_FOUND, _) => true,
            (RpcError::INVALID_PARAMS, Some(data)) => data.get("uri").and_then(Value::as_str) == Some(subject),
            _ => false,
        },
        None => failure.kind == ErrorKind::NotFound,
    };
    if kind != AuditedRequestKind::Resource || !says_so {
        return None;
    }
    let code = match generation {
        ProtocolGeneration::Legacy => RpcError::RESOURCE_NOT_FOUND,
        ProtocolGeneration::Modern => RpcError::INVALID_PARAMS,
    };
    let rpc_error = of_failure(failure, suggestions);
    if failure.upstream.is_some() {
        return Some(RpcError { code, ..rpc_error });
    }
    let mut data = match rpc_error.data {
        Some(Value::Object(data)) => data,
        _ => Map::new(),
    };
    data.insert("uri".into(), subject.into());
    Some(RpcError { code, data: Some(data.into()), ..rpc_error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(members: Value, generation: ProtocolGeneration, is_retry: bool, expected: Value) {
        let result = wire(AuditedRequestKind::Resource, members.as_object().unwrap().clone(), generation, is_retry);
        assert_eq!(Value::Object(result).to_string(), expected.to_string());
    }

    #[test]
    fn a_modern_resource_result_has_its_providers_ttl_and_a_private_scope() {
        let modern = ProtocolGeneration::Modern;
        let private =
            |ttl: u64| json!({"resultType": "complete", "contents": [], "ttlMs": ttl, "cacheScope": "private"});
        check(json!({"contents": []}), modern, false, private(0));
        let hinted = json!({"resultType": "complete", "contents": [], "ttlMs": 60_000, "cacheScope": "public"});
        check(hinted.clone(), modern, false, private(60_000));
        check(hinted, modern, true, private(0));
        check(json!({"contents": [], "ttlMs": -1}), modern, false, private(0));
        check(json!({"contents": []}), ProtocolGeneration::Legacy, false, json!({"contents": []}));
    }
}
