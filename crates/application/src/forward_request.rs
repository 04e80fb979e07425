//! Requests for what is no tool: resources, prompts and completions.
//!
//! They take the path of a call, whole: admitted, judged by the same rules, approved, heard by hooks, bounded and recorded.

use crate::{
    context_registry::ContextRegistry,
    execute_tool::{ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, explain::ExplainedCall},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_domain::{
    context::request::ContextRequest,
    ports::tool_provider::{CallOutcome, InputRequired},
    tool_execution::RequestKind,
    tool_result::ToolResult,
};

/// Asks for a resource, a prompt or a completion.
#[derive(Debug)]
pub struct ForwardRequestCommand {
    /// What is asked for.
    pub request: ContextRequest,
    /// What accompanies it: scope, client, the way back, deadline. Its tool and arguments are the request's.
    pub call: ExecuteToolCommand,
}

impl ForwardRequestCommand {
    /// A request by the person at this machine, as [`ExecuteToolCommand::new`].
    pub fn new(request: ContextRequest) -> Self {
        let call = ExecuteToolCommand::new(request.subject(), Value::Null);
        Self { request, call }
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Forwarded {
    /// The members of MCP's result.
    Answer(Map<String, Value>),
    /// It needs answers from the client first.
    InputRequired(InputRequired),
}

/// Carries out [`ForwardRequestCommand`].
#[derive(Debug)]
pub struct ForwardRequestHandler {
    registry: Arc<ContextRegistry>,
    calls: Arc<ExecuteToolHandler>,
}

impl ForwardRequestHandler {
    /// A handler of requests to the registry's providers, on the path of these calls.
    pub fn new(registry: Arc<ContextRegistry>, calls: Arc<ExecuteToolHandler>) -> Self {
        Self { registry, calls }
    }

    /// Answers the request, once its row is on record.
    ///
    /// # Errors
    /// As [`ExecuteToolHandler::handle`]; `not_found` for what nobody offers.
    pub async fn handle(&self, command: ForwardRequestCommand) -> Result<Forwarded, ExecuteToolError> {
        let (kind, subject) = (command.request.kind(), command.request.subject().to_owned());
        Ok(match self.calls.handle(self.resolved(command).await).await? {
            CallOutcome::Done(result) => Forwarded::Answer(members(kind, &subject, result)),
            CallOutcome::InputRequired(questions) => Forwarded::InputRequired(questions),
        })
    }

    /// Explains what would be decided of the request, as [`ExecuteToolHandler::explain`] does of a call.
    ///
    /// # Errors
    /// [`ExecuteToolError`] where the request would not get as far as a decision.
    pub async fn explain(&self, command: ForwardRequestCommand) -> Result<ExplainedCall, ExecuteToolError> {
        self.calls.explain_command(self.resolved(command).await).await
    }

    /// The call that stands for the request.
    async fn resolved(&self, command: ForwardRequestCommand) -> ExecuteToolCommand {
        let ForwardRequestCommand { request, call } = command;
        let answered_by = Some(self.registry.answerer(&request).await);
        ExecuteToolCommand { tool: request.subject().to_owned(), arguments: request.to_params(), answered_by, ..call }
    }
}

/// The members of the result. An output that a hook put in its place is a tool's, and is told in the shape that was asked
/// for.
fn members(kind: RequestKind, subject: &str, result: ToolResult) -> Map<String, Value> {
    if !result.as_object().contains_key("content") {
        return result.into_object();
    }
    let text = result.joined_text();
    let (name, value) = match kind {
        RequestKind::Resource | RequestKind::Tool | RequestKind::Task | RequestKind::Question => {
            ("contents", json!([{"uri": subject, "mimeType": "text/plain", "text": text}]))
        }
        RequestKind::Prompt => ("messages", json!([{"role": "user", "content": {"type": "text", "text": text}}])),
        RequestKind::Completion => ("completion", json!({"values": [], "hasMore": false})),
    };
    Map::from_iter([(name.to_owned(), value)])
}

#[cfg(test)]
mod tests;
