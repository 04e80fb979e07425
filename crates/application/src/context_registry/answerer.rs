//! A provider of resources and prompts, as the path of a call sees it: each kind of request is a tool with one provider.

use crate::tool_registry::{Registered, snapshot::RegisteredTool};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_domain::{
    access::Access,
    category::Category,
    context::{GET_PROMPT, READ_RESOURCE, request::ContextRequest},
    error_kind::ErrorKind,
    ports::{
        context_provider::ContextProvider,
        tool_provider::{CallContext, CallOutcome, ProviderError, ToolProvider},
    },
    server_name::ServerName,
    tool::{BUILT_IN, Tool, ToolSource},
    tool_call::ToolCall,
    tool_execution::RequestKind,
    tool_failure::ToolFailure,
    tool_name::ToolName,
    tool_result::ToolResult,
};

/// The one who answers a request. Made by [`forward_request`](crate::forward_request) alone.
#[derive(Debug, Clone)]
pub struct Answerer {
    pub(crate) kind: RequestKind,
    /// `None`: nobody offers what was asked for.
    pub(crate) registered: Option<Registered>,
}

impl Answerer {
    /// The failure of a request for what nobody offers.
    pub(crate) fn unknown(&self, subject: &str) -> ToolFailure {
        let shown: String = subject.chars().take(128).collect();
        let (message, next) = match self.kind {
            RequestKind::Resource => (
                format!("Resource not found: {shown}"),
                "`resources/list` and `resources/templates/list` name what can be read.",
            ),
            RequestKind::Prompt => {
                (format!("Unknown prompt: {shown}"), "`prompts/list` names the prompts that there are.")
            }
            RequestKind::Completion | RequestKind::Tool | RequestKind::Question => (
                format!("Nothing is completed for `{shown}`: there is no such prompt or template of resources"),
                "`prompts/list` and `resources/templates/list` name those that there are.",
            ),
        };
        ToolFailure::new(ErrorKind::NotFound, message).next(next)
    }
}

/// The tools that stand for the requests to one provider.
#[derive(Debug)]
pub(super) struct Answerers {
    read: Registered,
    get: Registered,
    complete_template: Registered,
    complete_prompt: Registered,
}

impl Answerers {
    pub(super) fn of(provider: &Arc<dyn ContextProvider>) -> Self {
        let registered = |kind, name: &str, parameters: Value, required: &[&str]| {
            let schema = json!({"type": "object", "properties": parameters, "required": required});
            let asked: Arc<dyn ToolProvider> = Arc::new(Asked { provider: provider.clone(), kind });
            Arc::new(RegisteredTool::new(Arc::new(tool(provider.name(), name, schema)), asked))
        };
        let completion =
            || json!({"ref": {"type": "object"}, "argument": {"type": "object"}, "context": {"type": "object"}});
        let needed = &["ref", "argument"];
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let uri = json!({"uri": {"type": "string"}});
        let prompt = json!({"name": {"type": "string"}, "arguments": texts});
        Self {
            read: registered(RequestKind::Resource, READ_RESOURCE, uri, &["uri"]),
            get: registered(RequestKind::Prompt, GET_PROMPT, prompt, &["name"]),
            // Completion tells of what it completes, so what closes that closes it as well.
            complete_template: registered(RequestKind::Completion, READ_RESOURCE, completion(), needed),
            complete_prompt: registered(RequestKind::Completion, GET_PROMPT, completion(), needed),
        }
    }

    /// Of a template, where it is a completion.
    pub(super) fn of_kind(&self, kind: RequestKind) -> &Registered {
        match kind {
            RequestKind::Resource | RequestKind::Tool | RequestKind::Question => &self.read,
            RequestKind::Prompt => &self.get,
            RequestKind::Completion => &self.complete_template,
        }
    }

    pub(super) fn completing_prompts(&self) -> &Registered {
        &self.complete_prompt
    }
}

/// The tool by which a kind of request is judged.
fn tool(provider: &str, name: &str, schema: Value) -> Tool {
    let description = "Stands for a request that is no call of a tool.";
    let definition = json!({"description": description, "inputSchema": schema, "annotations": {"readOnlyHint": true}});
    let definition = match definition {
        Value::Object(definition) => definition,
        _ => Map::new(),
    };
    let source = match provider {
        BUILT_IN => ToolSource::BuiltIn,
        other => ToolSource::Embedded(ServerName::parse(other).unwrap_or_else(|_| ServerName::program())),
    };
    Tool::new(ToolName::for_plain_upstream(name), definition, Category::Utility, source)
}

/// One kind of request to a provider.
struct Asked {
    provider: Arc<dyn ContextProvider>,
    kind: RequestKind,
}

impl Asked {
    /// The arguments of the call are the request: what a hook made of them counts.
    fn request(&self, call: &ToolCall) -> Result<ContextRequest, ToolFailure> {
        ContextRequest::parse(self.kind, &call.arguments)
    }
}

#[async_trait]
impl ToolProvider for Asked {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderError> {
        Ok(Vec::new())
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        self.provider.accesses(&self.request(call)?).await
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let answer = self.provider.answer(&self.request(call)?, context).await?;
        Ok(CallOutcome::Done(ToolResult::of_members(answer)))
    }
}
