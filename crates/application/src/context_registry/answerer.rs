//! A provider of resources and prompts, as the path of a call sees it: each kind of request is a tool with one provider.

use super::ContextRegistry;
use crate::tool_registry::{Registered, snapshot::RegisteredTool};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};
use toolstead_domain::{
    access::{Access, AccessKind},
    category::Category,
    context::{
        GET_PROMPT, READ_RESOURCE,
        request::{Completion, CompletionOf, ContextRequest},
        server_uri,
    },
    error_kind::ErrorKind,
    ports::{
        context_provider::ContextProvider,
        tool_provider::{CallContext, CallOutcome, ProviderError, ToolProvider},
    },
    server_name::ServerName,
    suggestion::Suggestion,
    tool::{BUILT_IN, Tool, ToolSource},
    tool_call::ToolCall,
    tool_execution::RequestKind,
    tool_failure::ToolFailure,
    tool_name::ToolName,
    tool_result::ToolResult,
};

/// The one who answers a request. Made by [`forward_request`](crate::forward_request) and [`forward_task`](crate::forward_task)
/// alone.
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
        let failed = |message: String| ToolFailure::new(ErrorKind::NotFound, message);
        match self.kind {
            RequestKind::Resource => failed(format!("Resource not found: {shown}")).suggest(Suggestion::ListResources),
            RequestKind::Prompt => failed(format!("Unknown prompt: {shown}")).suggest(Suggestion::ListPrompts),
            RequestKind::Task => failed("Failed to retrieve task: Task not found".into())
                .next("A task is known to the one whose call it was, for as long as this server runs."),
            RequestKind::Completion | RequestKind::Tool | RequestKind::Question => {
                failed(format!("Nothing is completed for `{shown}`: there is no such prompt or template of resources"))
                    .suggest(Suggestion::ListPrompts)
            }
        }
    }
}

/// A provider of resources and prompts.
#[derive(Clone)]
pub(super) struct Provider(pub(super) Arc<dyn ContextProvider>);

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Provider").field(&self.0.name()).finish()
    }
}

/// The tools that stand for the requests to one provider.
#[derive(Debug)]
pub(super) struct Answerers {
    pub(super) provider: Provider,
    read: Registered,
    get: Registered,
    complete_template: Registered,
    complete_prompt: Registered,
}

impl Answerers {
    pub(super) fn of(provider: &Arc<dyn ContextProvider>, registry: &Weak<ContextRegistry>) -> Self {
        let registered = |kind, name: &str, parameters: Value, required: &[&str]| {
            let schema = json!({"type": "object", "properties": parameters, "required": required});
            let asked = Asked { provider: provider.clone(), kind, registry: registry.clone() };
            let asked: Arc<dyn ToolProvider> = Arc::new(asked);
            let stands_for = if name == GET_PROMPT { AccessKind::Prompt } else { AccessKind::Resource };
            let tool = tool(&**provider, name, schema).standing_for(stands_for);
            Arc::new(RegisteredTool::new(Arc::new(tool), asked))
        };
        let completion =
            || json!({"ref": {"type": "object"}, "argument": {"type": "object"}, "context": {"type": "object"}});
        let needed = &["ref", "argument"];
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let uri = json!({"uri": {"type": "string"}});
        let prompt = json!({"name": {"type": "string"}, "arguments": texts});
        Self {
            provider: Provider(provider.clone()),
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
            RequestKind::Resource | RequestKind::Tool | RequestKind::Task | RequestKind::Question => &self.read,
            RequestKind::Prompt => &self.get,
            RequestKind::Completion => &self.complete_template,
        }
    }

    pub(super) fn completing_prompts(&self) -> &Registered {
        &self.complete_prompt
    }
}

/// The tool by which a kind of request is judged.
fn tool(provider: &dyn ContextProvider, name: &str, schema: Value) -> Tool {
    let description = "Stands for a request that is no call of a tool.";
    let definition = json!({"description": description, "inputSchema": schema, "annotations": {"readOnlyHint": true}});
    let definition = match definition {
        Value::Object(definition) => definition,
        _ => Map::new(),
    };
    let source = match (provider.server(), provider.name()) {
        (Some(server), _) => ToolSource::McpServer { server: server.clone(), tool: name.into() },
        (None, BUILT_IN) => ToolSource::BuiltIn,
        (None, _) => ToolSource::Embedded(rule_name(provider)),
    };
    Tool::new(ToolName::for_plain_upstream(name), definition, Category::Utility, source)
}

/// The name by which rules know the provider.
fn rule_name(provider: &dyn ContextProvider) -> ServerName {
    let parsed = || ServerName::parse(provider.name()).unwrap_or_else(|_| ServerName::program());
    provider.server().cloned().unwrap_or_else(parsed)
}

/// The accesses of a request: the request itself, by what the provider knows it by, and what it touches beyond that.
///
/// # Errors
/// As [`ContextProvider::accesses`].
pub(crate) async fn accesses(
    provider: &dyn ContextProvider,
    request: &ContextRequest,
) -> Result<Vec<Access>, ToolFailure> {
    let of_provider = provider.accesses(request).await?;
    let requested = match request {
        ContextRequest::Read { uri } | ContextRequest::Complete(Completion { of: CompletionOf::Template(uri), .. }) => {
            resource(provider, uri)
        }
        ContextRequest::Get { name, .. }
        | ContextRequest::Complete(Completion { of: CompletionOf::Prompt(name), .. }) => prompt(provider, name),
    };
    Ok(std::iter::once(requested).chain(of_provider).collect())
}

/// The access to a prompt, which has the server's name in front of its own unless the names of that server are plain.
pub(super) fn prompt(provider: &dyn ContextProvider, name: &str) -> Access {
    let server = rule_name(provider);
    let is_qualified = provider.server().is_some() && !provider.has_own_names();
    let own = || name.strip_prefix("mcp__")?.strip_prefix(server.as_str())?.strip_prefix("__");
    let prompt = is_qualified.then(own).flatten().unwrap_or(name).into();
    Access::GetPrompt { server, prompt }
}

/// The access to a resource or to a template of resources.
pub(super) fn resource(provider: &dyn ContextProvider, uri: &str) -> Access {
    Access::ReadResource { server: rule_name(provider), uri: uri.into() }
}

/// One kind of request to a provider.
struct Asked {
    provider: Arc<dyn ContextProvider>,
    kind: RequestKind,
    registry: Weak<ContextRegistry>,
}

impl Asked {
    /// The arguments of the call are the request: what a hook made of them counts. A URI that was made distinct is the
    /// provider's own again.
    fn request(&self, call: &ToolCall) -> Result<ContextRequest, ToolFailure> {
        let mut request = ContextRequest::parse(self.kind, &call.arguments)?;
        if let (
            Some(server),
            ContextRequest::Read { uri } | ContextRequest::Complete(Completion { of: CompletionOf::Template(uri), .. }),
        ) = (self.provider.server(), &mut request)
            && let Some(own) = server_uri::within(server.as_str(), uri)
        {
            *uri = own.to_owned();
        }
        Ok(request)
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

    fn owns_schemas(&self) -> bool {
        self.provider.server().is_none()
    }

    /// The tool stands for requests to any provider, so its name says nothing about that.
    fn asks_in_own_words(&self, _: &Tool) -> bool {
        self.provider.has_own_names()
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        accesses(&*self.provider, &self.request(call)?).await
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let request = self.request(call)?;
        let outcome = self.provider.respond(&request, call, context).await?;
        let CallOutcome::Done(result) = outcome else { return Ok(outcome) };
        let snapshot = self.registry.upgrade().map(|registry| registry.snapshot());
        let mut members = result.into_object();
        if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.has_distinct_uris()) {
            snapshot.publish_uris(self.provider.name(), &mut members);
        }
        if let (ContextRequest::Read { uri: own }, Some(asked)) = (&request, call.arguments.get("uri"))
            && asked != own
        {
            for content in members.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(uri) = content.get_mut("uri").filter(|uri| *uri == own) {
                    *uri = asked.clone();
                }
            }
        }
        Ok(CallOutcome::Done(ToolResult::of_members(members)))
    }
}
