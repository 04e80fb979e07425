//! Requests about calls that continue as tasks (`tasks/get`, `tasks/update`, `tasks/cancel`).
//!
//! They take the call path under the name of the called tool: if the tool is denied by now, so is the request. The
//! owner of the task was allowed to make the call, so by default the request needs no further approval.

use crate::{
    context_registry::{ContextRegistry, context_request_target::ContextRequestTarget},
    execute_tool::{ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, adapt_for_client},
    tool_registry::{ToolRegistry, snapshot::RegisteredTool},
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_domain::{
    Access, AuditedRequestKind, CallContext, CallOutcome, InputRequest, NotAnswered, ProviderListError, TaskMethod,
    TaskMethodRequest, Tool, ToolCall, ToolFailure, ToolProvider, ToolResult, error_kind::ErrorKind,
};

/// A request about a task.
#[derive(Debug)]
pub struct ForwardTaskCommand {
    /// Method of the request.
    pub method: TaskMethod,
    /// Task id that its owner received from Toolstead.
    pub task: String,
    /// Other parameters of the request.
    pub params: Map<String, Value>,
    /// Context of the request: scope, client, caller. Its tool and arguments are replaced by those of the request.
    pub call: ExecuteToolCommand,
}

/// Handles a [`ForwardTaskCommand`].
#[derive(Debug)]
pub struct ForwardTaskHandler {
    registry: Arc<ToolRegistry>,
    calls: Arc<ExecuteToolHandler>,
}

impl ForwardTaskHandler {
    /// Creates a handler of requests about the tasks that calls of `calls` became.
    pub fn new(registry: Arc<ToolRegistry>, calls: Arc<ExecuteToolHandler>) -> Self {
        Self { registry, calls }
    }

    /// Returns the members of the MCP result, after the audit record is stored.
    ///
    /// # Errors
    /// Those of [`ExecuteToolHandler::handle`]; `not_found` for an unknown task, a task of another principal, or a task
    /// whose tool no longer exists.
    pub async fn handle(&self, command: ForwardTaskCommand) -> Result<Map<String, Value>, ExecuteToolError> {
        let ForwardTaskCommand { method, task, mut params, call } = command;
        params.insert("taskId".into(), task.as_str().into());
        let registered = self.asked(method, &task, &call);
        let call = ExecuteToolCommand {
            tool: method.as_str().to_owned(),
            arguments: params.into(),
            answered_by: Some(ContextRequestTarget { kind: AuditedRequestKind::Task, registered }),
            ..call
        };
        match self.calls.handle(call).await? {
            CallOutcome::Done(result) if result.content().is_empty() => Ok(result.into_object()),
            // If a hook replaced the output, the result is that of a tool, and says nothing about the task.
            CallOutcome::Done(result) => {
                let failure = ToolFailure::new(ErrorKind::ExecutionFailed, result.joined_text());
                Err(ExecuteToolError::Failed(failure))
            }
            // Providers ask questions through the task itself.
            CallOutcome::InputRequired(_) => {
                let failure = ToolFailure::new(ErrorKind::Internal, "A request about a task cannot ask a question.");
                Err(ExecuteToolError::Failed(failure))
            }
        }
    }

    fn asked(&self, method: TaskMethod, task: &str, call: &ExecuteToolCommand) -> Option<Arc<RegisteredTool>> {
        let known = self.calls.tasks().find(task, &call.scope.principal)?;
        let snapshot = self.registry.snapshot();
        let registered = snapshot.resolve(known.tool.as_str()).ok()?;
        let tool = registered.tool.clone();
        if !tool.enabled || *tool.name() != known.tool {
            return None;
        }
        let schema = json!({"type": "object", "properties": {"taskId": {"type": "string"}}, "required": ["taskId"]});
        let definition = Map::from_iter([("inputSchema".to_owned(), schema)]);
        let stands_for = Tool::new(tool.name().clone(), definition, tool.category, tool.source().clone());
        let (provider, context) = (registered.provider.clone(), self.calls.context().cloned());
        let asked = TaskForwardingProvider { provider, context, method, tool, name: task.into(), id: known.id };
        Some(Arc::new(RegisteredTool::new(Arc::new(stands_for), Arc::new(asked))))
    }
}

/// One request to the provider of one task.
struct TaskForwardingProvider {
    provider: Arc<dyn ToolProvider>,
    /// Registry of the published URIs.
    context: Option<Arc<ContextRegistry>>,
    method: TaskMethod,
    tool: Arc<Tool>,
    /// Task id for clients.
    name: String,
    /// Id of the task at its provider.
    id: String,
}

#[async_trait]
impl ToolProvider for TaskForwardingProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        Ok(Vec::new())
    }

    fn owns_schemas(&self) -> bool {
        false
    }

    async fn accesses(&self, _: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let request = TaskMethodRequest {
            method: self.method,
            tool: self.tool.clone(),
            id: self.id.clone(),
            params: call.arguments.clone(),
            meta: call.meta.clone(),
        };
        let mut answer = self.provider.task(&request, context).await?;
        let fit = |question: &mut Value| fit(question, &self.tool, self.provider.asks_in_own_words(&self.tool));
        if let Some(Value::Object(asked)) = answer.get_mut("inputRequests")
            && let Err(why) = asked.values_mut().try_for_each(fit)
        {
            let message =
                format!("The task of `{}` asks a question that cannot be forwarded: {why}.", self.tool.name());
            return Err(ToolFailure::new(ErrorKind::UpstreamProtocol, message).caused_by(why));
        }
        if let Some(id) = answer.get_mut("taskId") {
            *id = self.name.as_str().into();
        }
        if let (Some(context), Some(Value::Object(result))) = (&self.context, answer.get_mut("result")) {
            let snapshot = context.snapshot();
            if snapshot.has_distinct_uris() {
                snapshot.publish_uris(self.provider.name(), result);
            }
        }
        Ok(CallOutcome::Done(ToolResult::of_members(answer)))
    }
}

/// Converts a question of a task to the form that its client receives, like the questions of calls.
fn fit(question: &mut Value, tool: &Tool, in_own_words: bool) -> Result<(), NotAnswered> {
    let method = question.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let params = question.get_mut("params").map(Value::take).unwrap_or_default();
    let request = adapt_for_client(InputRequest { method, params }, tool, in_own_words)?;
    if let Some(question) = question.as_object_mut().filter(|_| !request.params.is_null()) {
        question.insert("params".into(), request.params);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Category, ServerName, ToolName, ToolSource};

    #[test]
    fn a_question_of_a_task_names_its_server_like_a_question_of_a_call() {
        let server = ServerName::parse("git").unwrap();
        let name = ToolName::for_upstream(&server, "log");
        let tool = Tool::new(name, Map::new(), Category::Mcp, ToolSource::McpServer { server, tool: "log".into() });
        let mut question = json!({"x": 1, "method": "elicitation/create", "params": {"message": "PIN?"}});
        fit(&mut question, &tool, false).unwrap();
        let params = json!({"message": "The MCP server `git` asks: PIN?", "_meta": {"toolstead/server": "git"}});
        assert_eq!(question, json!({"x": 1, "method": "elicitation/create", "params": params}));
        let mut page =
            json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://bank.com@evil.org"}});
        assert!(matches!(fit(&mut page, &tool, true), Err(NotAnswered::Unfit(_))));
        let mut roots = json!({"method": "roots/list"});
        fit(&mut roots, &tool, false).unwrap();
        assert_eq!(roots, json!({"method": "roots/list"}));
    }
}
