//! A provider of resources and prompts.

use crate::{
    access::Access,
    client_profile::LogLevel,
    context::{ContextCatalogue, notice::ContextNotice, request::ContextRequest},
    error_kind::ErrorKind,
    pinning::ServerPinningSettings,
    ports::tool_provider::{CallContext, CallOutcome, ProviderListError},
    server_name::ServerName,
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};
use async_trait::async_trait;
use serde_json::{Map, Value};

/// Resources and prompts of Toolstead itself, or of an embedding application.
///
/// Implementers guarantee, as those of [`ToolProvider`](crate::ports::tool_provider::ToolProvider) do:
/// - [`list`](Self::list) answers from what is known, within seconds;
/// - [`accesses`](Self::accesses) changes nothing, anywhere;
/// - [`answer`](Self::answer) touches nothing beyond the accesses it returned and what the grant allows while running.
///
/// Requests reach the provider as calls reach a tool: checked, limited in time and recorded.
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// Returns the name of the provider, which is unique among the registered ones.
    fn name(&self) -> &str;

    /// Returns the MCP server whose resources and prompts these are; `None` for those of this application. The offer of
    /// a server is not under our control: where another provider has the same names, the server's are renamed or left
    /// out, and never cause a refusal.
    fn server(&self) -> Option<&ServerName> {
        None
    }

    /// Returns `true` if the names of its resources and prompts are used without the name of the server. Its questions
    /// to users are then passed on without the name of the server as well.
    fn has_own_names(&self) -> bool {
        false
    }

    /// Returns the settings for pinning its definitions; `None` if no server controls them.
    fn pinning(&self) -> Option<ServerPinningSettings> {
        None
    }

    /// Returns `true` if [`list`](Self::list) returns what the provider offers now. Until then, the stored definitions
    /// of a pinned server take its place.
    fn is_listed(&self) -> bool {
        true
    }

    /// Returns everything it offers, in any order, with unique URIs, templates and prompt names.
    ///
    /// # Errors
    /// [`ProviderListError`] if nothing is known.
    async fn list(&self) -> Result<ContextCatalogue, ProviderListError>;

    /// Returns when [`list`](Self::list) may return a different catalogue than last time. Never returns if it cannot
    /// change.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Returns when [`list`](Self::list) returns what the provider offers now, or when it is unknown how long that will
    /// take. Starts an idle server. Returns at once by default.
    async fn settled(&self) {}

    /// Returns the guidance for models on what this provider offers, as received; `None` if there is none.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Subscribes to the resource: [`notice`](Self::notice) reports its changes from now on. Called once for all
    /// subscribers.
    ///
    /// # Errors
    /// [`ToolFailure`] if it cannot be subscribed to, as is true for the resources of most providers.
    async fn subscribe(&self, uri: &str) -> Result<(), ToolFailure> {
        let message = format!("The resource `{uri}` cannot be watched: `{}` does not report changes.", self.name());
        Err(ToolFailure::new(ErrorKind::NotFound, message).next("Read it again when it is needed."))
    }

    /// Ends the subscription to the resource.
    async fn unsubscribe(&self, uri: &str) {
        let _ = uri;
    }

    /// Sets the minimum severity of log messages that any client requests from now on; `None` if no client requests
    /// any.
    async fn set_log_level(&self, level: Option<LogLevel>) {
        let _ = level;
    }

    /// Returns the next notification that belongs to no request. Only one task may wait for it at a time. Never returns
    /// by default. Cancel-safe.
    async fn notice(&self) -> ContextNotice {
        std::future::pending().await
    }

    /// Returns the accesses of the request beside the resource or prompt itself: real paths, hosts. Empty if there are
    /// none.
    ///
    /// # Errors
    /// [`ToolFailure`] if the request is invalid; `not_found` for an unknown resource or prompt.
    async fn accesses(&self, request: &ContextRequest) -> Result<Vec<Access>, ToolFailure>;

    /// Answers with the members of the MCP result: `contents` of a resource, `messages` of a prompt, `completion`.
    ///
    /// # Errors
    /// [`ToolFailure`]: `not_found` for an unknown resource or prompt, `invalid_input` for arguments from which a
    /// prompt cannot be made.
    async fn answer(
        &self,
        request: &ContextRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure>;

    /// Answers the request of this call, and may ask the client first. By default only calls [`answer`](Self::answer).
    /// Override it to ask questions, or to use further members of the client's request.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    async fn respond<'s, 'q, 'c, 'r, 'x>(
        &'s self,
        request: &'q ContextRequest,
        call: &'c ToolCall,
        context: &'r CallContext<'x>,
    ) -> Result<CallOutcome, ToolFailure> {
        let _ = call;
        let members = self.answer(request, context).await?;
        Ok(CallOutcome::Done(ToolResult::of_members(members)))
    }
}
