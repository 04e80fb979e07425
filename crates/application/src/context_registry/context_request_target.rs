//! Adapter from providers of resources and prompts to the call path: each kind of request is a tool with one provider.

use super::ContextRegistry;
use crate::tool_registry::{SharedRegisteredTool, snapshot::RegisteredTool};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};
use toolstead_domain::{
    Access, AccessKind, AuditedRequestKind, CallContext, CallOutcome, Category, CompletionReference, CompletionRequest,
    ContextProvider, ContextRequest, ProviderListError, ServerName, Suggestion, Tool, ToolCall, ToolFailure, ToolName,
    ToolProvider, ToolResult, ToolSource,
    context::{GET_PROMPT, READ_RESOURCE, server_uri},
    error_kind::ErrorKind,
    tool::BUILT_IN,
};

/// The provider that answers a request. Created only by [`forward_request`](crate::forward_request) and
/// [`forward_task`](crate::forward_task).
#[derive(Debug, Clone)]
pub struct ContextRequestTarget {
    pub(crate) kind: AuditedRequestKind,
    /// `None`: no provider offers the subject of the request.
    pub(crate) registered: Option<SharedRegisteredTool>,
}

impl ContextRequestTarget {
    /// Returns the failure of a request whose subject no provider offers.
    pub(crate) fn unknown(&self, subject: &str) -> ToolFailure {
        let shown: String = subject.chars().take(128).collect();
        let failed = |message: String| ToolFailure::new(ErrorKind::NotFound, message);
        match self.kind {
            AuditedRequestKind::Resource => {
                failed(format!("Resource not found: {shown}")).suggest(Suggestion::ListResources)
            }
            AuditedRequestKind::Prompt => failed(format!("Unknown prompt: {shown}")).suggest(Suggestion::ListPrompts),
            AuditedRequestKind::Task => failed("Failed to retrieve task: Task not found".into())
                .next("A task is known only to its caller, and only while this server runs."),
            AuditedRequestKind::Completion | AuditedRequestKind::Tool | AuditedRequestKind::Question => {
                failed(format!("Nothing is completed for `{shown}`: there is no such prompt or resource template"))
                    .suggest(Suggestion::ListPrompts)
            }
        }
    }
}

/// A provider of resources and prompts.
#[derive(Clone)]
pub(super) struct SharedContextProvider(pub(super) Arc<dyn ContextProvider>);

impl std::fmt::Debug for SharedContextProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SharedContextProvider").field(&self.0.name()).finish()
    }
}

/// The tools that represent the requests to one provider.
#[derive(Debug)]
pub(super) struct ContextRequestTools {
    pub(super) provider: SharedContextProvider,
    read: SharedRegisteredTool,
    get: SharedRegisteredTool,
    complete_template: SharedRegisteredTool,
    complete_prompt: SharedRegisteredTool,
}

impl ContextRequestTools {
    pub(super) fn of(provider: &Arc<dyn ContextProvider>, registry: &Weak<ContextRegistry>) -> Self {
        let registered = |kind, name: &str, parameters: Value, required: &[&str]| {
            let schema = json!({"type": "object", "properties": parameters, "required": required});
            let asked = ContextRequestToolProvider { provider: provider.clone(), kind, registry: registry.clone() };
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
            provider: SharedContextProvider(provider.clone()),
            read: registered(AuditedRequestKind::Resource, READ_RESOURCE, uri, &["uri"]),
            get: registered(AuditedRequestKind::Prompt, GET_PROMPT, prompt, &["name"]),
            // Completion reveals what it completes, so a rule that denies the one also denies the other.
            complete_template: registered(AuditedRequestKind::Completion, READ_RESOURCE, completion(), needed),
            complete_prompt: registered(AuditedRequestKind::Completion, GET_PROMPT, completion(), needed),
        }
    }

    /// Returns the tool for a kind of request. For a completion it is that of templates.
    pub(super) fn of_kind(&self, kind: AuditedRequestKind) -> &SharedRegisteredTool {
        match kind {
            AuditedRequestKind::Resource
            | AuditedRequestKind::Tool
            | AuditedRequestKind::Task
            | AuditedRequestKind::Question => &self.read,
            AuditedRequestKind::Prompt => &self.get,
            AuditedRequestKind::Completion => &self.complete_template,
        }
    }

    pub(super) fn completing_prompts(&self) -> &SharedRegisteredTool {
        &self.complete_prompt
    }
}

/// Returns the tool that rules are applied to for a kind of request.
fn tool(provider: &dyn ContextProvider, name: &str, schema: Value) -> Tool {
    let description = "Represents a request that is not a tool call.";
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

/// Returns the name of the provider in rules.
fn rule_name(provider: &dyn ContextProvider) -> ServerName {
    let parsed = || ServerName::parse(provider.name()).unwrap_or_else(|_| ServerName::program());
    provider.server().cloned().unwrap_or_else(parsed)
}

/// Returns the accesses of a request: the request itself, under the provider's own name of its subject, and what else
/// it touches.
///
/// # Errors
/// Those of [`ContextProvider::accesses`].
pub(crate) async fn accesses(
    provider: &dyn ContextProvider,
    request: &ContextRequest,
) -> Result<Vec<Access>, ToolFailure> {
    let of_provider = provider.accesses(request).await?;
    let requested = match request {
        ContextRequest::Read { uri }
        | ContextRequest::Complete(CompletionRequest { of: CompletionReference::Template(uri), .. }) => {
            resource(provider, uri)
        }
        ContextRequest::Get { name, .. }
        | ContextRequest::Complete(CompletionRequest { of: CompletionReference::Prompt(name), .. }) => {
            prompt(provider, name)
        }
    };
    Ok(std::iter::once(requested).chain(of_provider).collect())
}

/// Returns the access to a prompt. The prefix with the server's name is removed, unless that server's names are plain.
pub(super) fn prompt(provider: &dyn ContextProvider, name: &str) -> Access {
    let server = rule_name(provider);
    let is_qualified = provider.server().is_some() && !provider.has_own_names();
    let own = || name.strip_prefix("mcp__")?.strip_prefix(server.as_str())?.strip_prefix("__");
    let prompt = is_qualified.then(own).flatten().unwrap_or(name).into();
    Access::GetPrompt { server, prompt }
}

/// Returns the access to a resource or to a template of resources.
pub(super) fn resource(provider: &dyn ContextProvider, uri: &str) -> Access {
    Access::ReadResource { server: rule_name(provider), uri: uri.into() }
}

/// Tool provider for one kind of request to a provider.
struct ContextRequestToolProvider {
    provider: Arc<dyn ContextProvider>,
    kind: AuditedRequestKind,
    registry: Weak<ContextRegistry>,
}

impl ContextRequestToolProvider {
    /// Parses the request from the arguments of the call, which a hook may have changed. Replaces a URI that was made
    /// distinct for the server by the server's own.
    fn request(&self, call: &ToolCall) -> Result<ContextRequest, ToolFailure> {
        let mut request = ContextRequest::parse(self.kind, &call.arguments)?;
        if let (
            Some(server),
            ContextRequest::Read { uri }
            | ContextRequest::Complete(CompletionRequest { of: CompletionReference::Template(uri), .. }),
        ) = (self.provider.server(), &mut request)
            && let Some(own) = server_uri::within(server.as_str(), uri)
        {
            *uri = own.to_owned();
        }
        Ok(request)
    }
}

#[async_trait]
impl ToolProvider for ContextRequestToolProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        Ok(Vec::new())
    }

    fn owns_schemas(&self) -> bool {
        self.provider.server().is_none()
    }

    /// Decides by the provider, because the tool has the same name for every provider.
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
