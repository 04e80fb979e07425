//! `tools/call`.

use super::{
    McpServer,
    answer::SerializedResponse,
    protocol_error::{invalid_params, of_kind},
    tool_result_wire::{ToolResultWire, with_error_kind},
    trace_context,
};
use futures::FutureExt;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_application::{AuditFailure, CancelSignal, ExecuteToolCommand, ExecuteToolError};
use toolstead_domain::{
    CallOutcome, Caller, CancelReason, ClientProfile, InputRequest, InputRequired, InputResponse, InputResponses,
    ProtocolGeneration, ProtocolVersion, RequestScope, StoreError, ToolFailure, ToolResult, error_kind::ErrorKind,
};
use toolstead_infrastructure::{
    dialects,
    mcp::wire::{
        message::{RequestId, RpcError},
        meta::PARAMS_OF_ONE_HOP,
    },
};

/// The sender of a request, as known to the transport.
#[derive(Debug, Clone)]
pub(super) struct ClientContext {
    pub(super) scope: RequestScope,
    pub(super) profile: Arc<ClientProfile>,
}

impl ClientContext {
    /// Returns the client with its scope narrowed to the view that the server serves, if it serves one.
    pub(super) fn in_view_of(self, server: &McpServer) -> Self {
        Self { scope: server.in_view(self.scope), ..self }
    }

    pub(super) fn generation(&self) -> ProtocolGeneration {
        self.profile.protocol.map_or(ProtocolGeneration::Legacy, ProtocolVersion::generation)
    }
}

/// The parsed parameters of a `tools/call`.
#[derive(Debug)]
pub(super) struct ToolCallRequest {
    tool: String,
    arguments: Value,
    answers: Option<InputResponses>,
    state: Option<String>,
    meta: Map<String, Value>,
    /// Other parameters, which are passed on to the upstream server of the tool.
    params: Vec<(String, Value)>,
}

impl ToolCallRequest {
    /// Creates a call without answers to questions.
    pub(super) fn first(
        tool: String,
        arguments: Value,
        meta: Map<String, Value>,
        params: Vec<(String, Value)>,
    ) -> Self {
        Self { tool, arguments, answers: None, state: None, meta, params }
    }

    /// Parses the parameters. `arguments` is checked in the call path, which also records calls with invalid arguments.
    ///
    /// # Errors
    /// -32602 if the name of the tool is missing, the answers are not an object, or the state is not a text.
    pub(super) fn parse(params: &mut Map<String, Value>, meta: Map<String, Value>) -> Result<Self, RpcError> {
        let Some(Value::String(tool)) = params.shift_remove("name") else {
            return Err(invalid_params("`name` must be the name of a tool, as a text"));
        };
        let (answers, state) = take_retry(params)?;
        let arguments = params.shift_remove("arguments").unwrap_or_default();
        Ok(Self { tool, arguments, answers, state, meta, params: take_rest(params) })
    }
}

/// Removes and returns the parameters that are passed on to an upstream server unchanged: all remaining ones, except
/// those that concern only this connection.
pub(super) fn take_rest(params: &mut Map<String, Value>) -> Vec<(String, Value)> {
    let rest = std::mem::take(params).into_iter();
    rest.filter(|(name, _)| !PARAMS_OF_ONE_HOP.contains(&name.as_str())).collect()
}

/// Removes and returns the parameters of a retry: answers, and the state that accompanied the questions.
///
/// # Errors
/// -32602 if the answers are not an object, or the state is not a text.
pub(super) fn take_retry(
    params: &mut Map<String, Value>,
) -> Result<(Option<InputResponses>, Option<String>), RpcError> {
    let answers = match params.shift_remove("inputResponses") {
        None | Some(Value::Null) => None,
        Some(Value::Object(answers)) => {
            Some(answers.into_iter().map(|(key, answer)| (key, InputResponse(answer))).collect())
        }
        Some(_) => return Err(invalid_params("`inputResponses` must be an object")),
    };
    match params.shift_remove("requestState") {
        None | Some(Value::Null) => Ok((answers, None)),
        Some(Value::String(state)) => Ok((answers, Some(state))),
        Some(_) => Err(invalid_params("`requestState` must be the text that came with the questions")),
    }
}

impl McpServer {
    /// Makes the call. Returns `None` if the client cancelled it and expects no answer.
    ///
    /// Not an `async fn`: its future would contain the command twice.
    pub(super) fn call_tool<'a>(
        &'a self,
        id: &'a RequestId,
        request: ToolCallRequest,
        client: ClientContext,
        caller: Arc<dyn Caller>,
        cancel: CancelSignal,
    ) -> impl Future<Output = Option<SerializedResponse>> + Send + 'a {
        let generation = client.generation();
        let unknown = dialects::unknown_tool(self.app.dialect, &request.tool);
        let command = ExecuteToolCommand {
            tool: request.tool,
            arguments: request.arguments,
            labels: trace_context::labels(&request.meta),
            meta: request.meta,
            params: request.params,
            scope: self.in_dialect(client.scope),
            client: client.profile,
            caller,
            answers: request.answers,
            request_state: request.state,
            timeout: None,
            cancel,
            parent: None,
            began_by: None,
            answered_by: None,
        };
        let handled = self.app.execute_tool.handle(command);
        handled.map(move |outcome| self.answer_to_call(id, outcome, unknown, generation))
    }

    fn answer_to_call(
        &self,
        id: &RequestId,
        outcome: Result<CallOutcome, ExecuteToolError>,
        unknown: Option<String>,
        generation: ProtocolGeneration,
    ) -> Option<SerializedResponse> {
        let number = |kind| dialects::error_number(self.app.dialect, kind);
        let suggestions = self.app.execute_tool.suggestions();
        let failed = |failure: ToolFailure| {
            let (kind, number) = (failure.kind, dialects::failure_number(self.app.dialect, failure.kind));
            error_result(id, failure.into_result_for_users(suggestions), kind, number, generation)
        };
        Some(match outcome {
            Ok(CallOutcome::Done(result)) => {
                let number = result.error_kind().and_then(|kind| dialects::failure_number(self.app.dialect, kind));
                done(id, result, number, generation)
            }
            Ok(CallOutcome::InputRequired(questions)) => input_required(id, questions),
            Err(ExecuteToolError::NotCallable(mut failure)) => {
                if failure.kind == ErrorKind::NotFound {
                    failure.message = unknown.unwrap_or(failure.message);
                }
                SerializedResponse::numbered_failure(id, &failure, number(failure.kind), suggestions)
            }
            // Clients that identify errors by number expect this one as a protocol error.
            Err(ExecuteToolError::Refused(failure))
                if failure.kind == ErrorKind::InvalidInput && number(failure.kind).is_some() =>
            {
                SerializedResponse::numbered_failure(id, &failure, number(failure.kind), suggestions)
            }
            Err(ExecuteToolError::Refused(failure) | ExecuteToolError::Failed(failure)) => {
                match (failure.kind, generation) {
                    // The upstream server returned an error and not a result. The client may act on its code, for
                    // example to open a link.
                    _ if failure.upstream.is_some() => SerializedResponse::failure(id, &failure, suggestions),
                    // The client can correct this by declaring a capability; the model cannot.
                    (ErrorKind::MissingCapability, ProtocolGeneration::Modern) => {
                        SerializedResponse::failure(id, &failure, suggestions)
                    }
                    _ => failed(failure),
                }
            }
            Err(ExecuteToolError::Cancelled(CancelReason::Client)) => return None,
            Err(ExecuteToolError::Cancelled(CancelReason::Deadline)) => {
                failed(ToolFailure::new(ErrorKind::Timeout, "The call ran out of time."))
            }
            Err(ExecuteToolError::Cancelled(CancelReason::Shutdown)) => shut_down(id),
            Err(ExecuteToolError::Closed) => closed(id),
            Err(ExecuteToolError::AuditFailure { what, source }) => not_recorded(id, what, &source),
        })
    }
}

pub(super) fn shut_down(id: &RequestId) -> SerializedResponse {
    let message = "the call was cancelled: the server is shutting down";
    SerializedResponse::error(id, &of_kind(RpcError::INTERNAL, ErrorKind::Cancelled, message))
}

pub(super) fn closed(id: &RequestId) -> SerializedResponse {
    let message = "the call did not run: the server is shutting down";
    SerializedResponse::error(id, &of_kind(RpcError::INTERNAL, ErrorKind::Cancelled, message))
}

pub(super) fn not_recorded(id: &RequestId, what: AuditFailure, source: &StoreError) -> SerializedResponse {
    tracing::error!(error = source as &dyn std::error::Error, "{what}");
    // The user needs the cause to correct it.
    let message = format!("{what}: {}", source.source);
    SerializedResponse::error(id, &of_kind(RpcError::INTERNAL, ErrorKind::Internal, &message))
}

fn done(id: &RequestId, result: ToolResult, number: Option<i64>, generation: ProtocolGeneration) -> SerializedResponse {
    if result.is_task() {
        return SerializedResponse::result(id, result.as_object());
    }
    match result.error_kind() {
        // `isError` without a kind already means this.
        None => result_answer(id, ToolResultWire::new(&result, generation)),
        Some(ErrorKind::ExecutionFailed) if number.is_none() => {
            result_answer(id, ToolResultWire::new(&result, generation))
        }
        Some(kind) => error_result(id, result, kind, number, generation),
    }
}

fn error_result(
    id: &RequestId,
    result: ToolResult,
    kind: ErrorKind,
    number: Option<i64>,
    generation: ProtocolGeneration,
) -> SerializedResponse {
    let object = with_error_kind(result, kind, number);
    result_answer(id, ToolResultWire::of_object(&object, generation))
}

fn result_answer(id: &RequestId, result: ToolResultWire<'_>) -> SerializedResponse {
    SerializedResponse::sized_result(id, &result, result.estimated_bytes())
}

/// Returns the questions, and the state under which the parked call waits for the answers.
pub(super) fn input_required(id: &RequestId, questions: InputRequired) -> SerializedResponse {
    let requests: Map<String, Value> = questions.requests.into_iter().map(|(key, one)| (key, wire(one))).collect();
    let mut result = Map::new();
    result.insert("resultType".into(), "input_required".into());
    if !requests.is_empty() {
        result.insert("inputRequests".into(), requests.into());
    }
    if let Some(state) = questions.state {
        result.insert("requestState".into(), state.into());
    }
    SerializedResponse::result(id, &result)
}

fn wire(question: InputRequest) -> Value {
    match question.params {
        Value::Null => json!({"method": question.method}),
        params => json!({"method": question.method, "params": params}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_input_required_result_has_the_questions_by_key_and_the_state() {
        let request = |method: &str, params| InputRequest { method: method.into(), params };
        let form = request("elicitation/create", json!({"message": "?"}));
        let requests = BTreeMap::from([("q".to_owned(), form), ("r".to_owned(), request("roots/list", Value::Null))]);
        let answer = input_required(&RequestId::Number(1), InputRequired { requests, state: Some("s".into()) });
        let answer: Value = serde_json::from_slice(&answer.json).unwrap();
        assert_eq!(
            answer["result"],
            json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
                "q": {"method": "elicitation/create", "params": {"message": "?"}}, "r": {"method": "roots/list"}}})
        );
    }

    #[test]
    fn unknown_call_parameters_are_kept_in_their_order() {
        let params = json!({"b": 1.0, "name": "t", "task": {"ttl": 1}, "a": null, "arguments": {"x": 1}, "c": {"d": []},
            "requestState": null});
        let call = ToolCallRequest::parse(&mut params.as_object().unwrap().clone(), Map::new()).unwrap();
        let expected = [("b", json!(1.0)), ("a", Value::Null), ("c", json!({"d": []}))];
        assert_eq!(call.params, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(call.arguments, json!({"x": 1}));
    }

    #[test]
    fn rejects_a_tool_call_with_missing_or_malformed_parameters() {
        for params in [
            json!({}),
            json!({"name": 1}),
            json!({"name": "x", "inputResponses": []}),
            json!({"name": "x", "requestState": 1}),
        ] {
            let mut params = params.as_object().unwrap().clone();
            assert_eq!(ToolCallRequest::parse(&mut params, Map::new()).unwrap_err().code, -32602);
        }
    }
}
