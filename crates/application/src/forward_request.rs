//! Requests for resources, prompts and completions.
//!
//! They take the whole path of a tool call: they are admitted, checked by the same rules, approved, passed to hooks,
//! bounded and recorded.

use crate::{
    context_registry::ContextRegistry,
    execute_tool::{ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, explain::ExplainedCall},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_domain::{AuditedRequestKind, CallOutcome, ContextRequest, InputRequired, ToolResult};

/// Requests a resource, a prompt or a completion.
#[derive(Debug)]
pub struct ForwardContextRequestCommand {
    /// The request.
    pub request: ContextRequest,
    /// The context of the request: scope, client, caller, deadline. Its tool and arguments are replaced by those of the
    /// request.
    pub call: ExecuteToolCommand,
}

impl ForwardContextRequestCommand {
    /// Creates a request of the local user, like [`ExecuteToolCommand::new`].
    pub fn new(request: ContextRequest) -> Self {
        let call = ExecuteToolCommand::new(request.subject(), Value::Null);
        Self { request, call }
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ContextRequestOutcome {
    /// The members of the MCP result.
    Answer(Map<String, Value>),
    /// The client must answer questions first.
    InputRequired(InputRequired),
}

/// Handles a [`ForwardContextRequestCommand`].
#[derive(Debug)]
pub struct ForwardContextRequestHandler {
    registry: Arc<ContextRegistry>,
    calls: Arc<ExecuteToolHandler>,
}

impl ForwardContextRequestHandler {
    /// Creates a handler of requests to the registry's providers, on the call path of `calls`.
    pub fn new(registry: Arc<ContextRegistry>, calls: Arc<ExecuteToolHandler>) -> Self {
        Self { registry, calls }
    }

    /// Answers the request, after its audit record is stored.
    ///
    /// # Errors
    /// Those of [`ExecuteToolHandler::handle`]; `not_found` if no provider offers the subject.
    pub async fn handle(
        &self,
        command: ForwardContextRequestCommand,
    ) -> Result<ContextRequestOutcome, ExecuteToolError> {
        let (kind, subject) = (command.request.kind(), command.request.subject().to_owned());
        Ok(match self.calls.handle(self.resolved(command).await).await? {
            CallOutcome::Done(result) => ContextRequestOutcome::Answer(members(kind, &subject, result)),
            CallOutcome::InputRequired(questions) => ContextRequestOutcome::InputRequired(questions),
        })
    }

    /// Explains the decision about the request, as [`ExecuteToolHandler::explain`] does for a call.
    ///
    /// # Errors
    /// [`ExecuteToolError`] if the request would fail before its decision.
    pub async fn explain(&self, command: ForwardContextRequestCommand) -> Result<ExplainedCall, ExecuteToolError> {
        self.calls.explain_command(self.resolved(command).await).await
    }

    /// Returns the call that represents the request.
    async fn resolved(&self, command: ForwardContextRequestCommand) -> ExecuteToolCommand {
        let ForwardContextRequestCommand { request, call } = command;
        let answered_by = Some(self.registry.answerer(&request).await);
        ExecuteToolCommand { tool: request.subject().to_owned(), arguments: request.to_params(), answered_by, ..call }
    }
}

/// Returns the members of the result. If a hook replaced the output, the result is that of a tool, and is converted to
/// the shape of the request.
fn members(kind: AuditedRequestKind, subject: &str, result: ToolResult) -> Map<String, Value> {
    if !result.as_object().contains_key("content") {
        return result.into_object();
    }
    let text = result.joined_text();
    let (name, value) = match kind {
        AuditedRequestKind::Resource
        | AuditedRequestKind::Tool
        | AuditedRequestKind::Task
        | AuditedRequestKind::Question => {
            ("contents", json!([{"uri": subject, "mimeType": "text/plain", "text": text}]))
        }
        AuditedRequestKind::Prompt => {
            ("messages", json!([{"role": "user", "content": {"type": "text", "text": text}}]))
        }
        AuditedRequestKind::Completion => ("completion", json!({"values": [], "hasMore": false})),
    };
    Map::from_iter([(name.to_owned(), value)])
}

#[cfg(test)]
mod tests;
