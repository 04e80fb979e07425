//! A scripted provider of resources and prompts.

use super::{lock, waitable_counter::WaitableCounter};
use crate::{
    access::{Access, AccessPath},
    client_profile::LogLevel,
    context::{
        ContextCatalogue, Prompt, Resource, ResourceTemplate,
        notice::ContextNotice,
        request::{CompletionRequest, ContextRequest},
    },
    error_kind::ErrorKind,
    ports::{
        context_provider::ContextProvider,
        tool_provider::{CallContext, ProviderListError},
    },
    server_name::ServerName,
    tool_failure::ToolFailure,
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Provider that answers for its offer: a resource with its URI as text, a prompt with its name and arguments, a
/// completion with the typed text and `!`. A resource with the URI `file://` and a path has a read access to that path,
/// and so has the completion of a template's variable whose typed text is an absolute path.
#[derive(Debug)]
pub struct ScriptedContext {
    name: String,
    server: Option<ServerName>,
    catalogue: Mutex<ContextCatalogue>,
    version: WaitableCounter,
    listed: AtomicU64,
    asked: Mutex<Vec<ContextRequest>>,
    notices: Mutex<VecDeque<ContextNotice>>,
    notice_sent: WaitableCounter,
    watched: Mutex<Vec<String>>,
    instructions: Mutex<Option<String>>,
    log_level: Mutex<Option<LogLevel>>,
    log_level_set: WaitableCounter,
}

impl ScriptedContext {
    /// Creates a provider with this name that offers nothing.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            server: None,
            catalogue: Mutex::default(),
            version: WaitableCounter::default(),
            listed: AtomicU64::new(0),
            asked: Mutex::default(),
            notices: Mutex::default(),
            notice_sent: WaitableCounter::default(),
            watched: Mutex::default(),
            instructions: Mutex::default(),
            log_level: Mutex::default(),
            log_level_set: WaitableCounter::default(),
        }
    }

    /// Sets the guidance for models.
    #[must_use]
    pub fn with_instructions(self, text: &str) -> Self {
        *lock(&self.instructions) = Some(text.into());
        self
    }

    /// Makes it the provider of an MCP server of its name.
    #[must_use]
    pub fn of_server(self) -> Self {
        Self { server: ServerName::parse(&self.name).ok(), ..self }
    }

    /// Adds a resource, by its URI.
    #[must_use]
    pub fn with_resource(self, uri: &str) -> Self {
        let definition = members(json!({"uri": uri, "name": uri, "mimeType": "text/plain"}));
        lock(&self.catalogue).resources.extend(Resource::new(definition));
        self
    }

    /// Adds a family of resources, by its template.
    #[must_use]
    pub fn with_template(self, template: &str) -> Self {
        let definition = members(json!({"uriTemplate": template, "name": template}));
        lock(&self.catalogue).templates.extend(ResourceTemplate::new(definition));
        self
    }

    /// Adds a prompt.
    #[must_use]
    pub fn with_prompt(self, name: &str) -> Self {
        lock(&self.catalogue).prompts.extend(Prompt::new(members(json!({"name": name}))));
        self
    }

    /// Replaces the offer, and reports the change.
    pub fn replace(&self, other: &Self) {
        *lock(&self.catalogue) = lock(&other.catalogue).clone();
        self.version.raise();
    }

    /// Sends a notification that belongs to no request.
    pub fn send_notice(&self, notice: ContextNotice) {
        lock(&self.notices).push_back(notice);
        self.notice_sent.raise();
    }

    /// Returns the current subscriptions, in the order in which they began.
    pub fn watched(&self) -> Vec<String> {
        lock(&self.watched).clone()
    }

    /// Returns when this is the minimum severity of requested log messages.
    pub async fn wait_for_log_level(&self, level: Option<LogLevel>) {
        loop {
            let level_changes = self.log_level_set.count();
            if *lock(&self.log_level) == level {
                return;
            }
            self.log_level_set.reached(level_changes + 1).await;
        }
    }

    /// Returns the requests that were answered, in order.
    pub fn asked(&self) -> Vec<ContextRequest> {
        lock(&self.asked).clone()
    }

    fn offers(&self, request: &ContextRequest) -> bool {
        let ContextCatalogue { resources, templates, prompts } = &*lock(&self.catalogue);
        let subject = request.subject();
        match request {
            ContextRequest::Read { uri } => {
                resources.iter().any(|one| one.uri() == uri) || templates.iter().any(|one| one.template().fits(uri))
            }
            ContextRequest::Get { .. } => prompts.iter().any(|one| one.name() == subject),
            ContextRequest::Complete(_) => {
                prompts.iter().any(|one| one.name() == subject)
                    || templates.iter().any(|one| one.template().as_str() == subject)
            }
        }
    }
}

#[async_trait]
impl ContextProvider for ScriptedContext {
    fn name(&self) -> &str {
        &self.name
    }

    fn server(&self) -> Option<&ServerName> {
        self.server.as_ref()
    }

    async fn list(&self) -> Result<ContextCatalogue, ProviderListError> {
        self.listed.store(self.version.count(), Ordering::SeqCst);
        Ok(lock(&self.catalogue).clone())
    }

    async fn changed(&self) {
        self.version.reached(self.listed.load(Ordering::SeqCst) + 1).await;
    }

    fn instructions(&self) -> Option<String> {
        lock(&self.instructions).clone()
    }

    async fn set_log_level(&self, level: Option<LogLevel>) {
        *lock(&self.log_level) = level;
        self.log_level_set.raise();
    }

    async fn subscribe(&self, uri: &str) -> Result<(), ToolFailure> {
        lock(&self.watched).push(uri.to_owned());
        Ok(())
    }

    async fn unsubscribe(&self, uri: &str) {
        lock(&self.watched).retain(|watched| watched != uri);
    }

    async fn notice(&self) -> ContextNotice {
        loop {
            let said = self.notice_sent.count();
            if let Some(notice) = lock(&self.notices).pop_front() {
                return notice;
            }
            self.notice_sent.reached(said + 1).await;
        }
    }

    async fn accesses(&self, request: &ContextRequest) -> Result<Vec<Access>, ToolFailure> {
        if !self.offers(request) {
            let message = format!("there is no `{}` here", request.subject());
            return Err(ToolFailure::new(ErrorKind::NotFound, message));
        }
        let path = match request {
            ContextRequest::Read { uri } => uri.strip_prefix("file://").map(str::to_owned),
            ContextRequest::Complete(completion) => {
                completion.of_template().and_then(|_| completion.value.strip_prefix('/')).map(|rest| format!("/{rest}"))
            }
            ContextRequest::Get { .. } => None,
        };
        Ok(path.map(|path| Access::ReadPath(AccessPath::plain(path))).into_iter().collect())
    }

    async fn answer(&self, request: &ContextRequest, _: &CallContext<'_>) -> Result<Map<String, Value>, ToolFailure> {
        self.accesses(request).await?;
        lock(&self.asked).push(request.clone());
        Ok(members(match request {
            ContextRequest::Read { uri } => json!({"contents": [{"uri": uri, "text": uri}]}),
            ContextRequest::Get { name, arguments } => {
                let text = format!("{name} {}", json!(arguments));
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
            }
            ContextRequest::Complete(CompletionRequest { value, .. }) => {
                json!({"completion": {"values": [format!("{value}!")], "hasMore": false}})
            }
        }))
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
