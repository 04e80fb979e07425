//! Something that offers resources and prompts.

use crate::{
    access::Access,
    client_profile::LogLevel,
    context::{ContextCatalogue, notice::ContextNotice, request::ContextRequest},
    error_kind::ErrorKind,
    ports::tool_provider::{CallContext, CallOutcome, ProviderError},
    server_name::ServerName,
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};
use async_trait::async_trait;
use serde_json::{Map, Value};

/// Toolstead's own resources and prompts, or those of a team.
///
/// Implementers guarantee, as those of [`ToolProvider`](crate::ports::tool_provider::ToolProvider) do:
/// - [`list`](Self::list) answers from what is known, within seconds;
/// - [`accesses`](Self::accesses) changes nothing, anywhere;
/// - [`answer`](Self::answer) touches nothing beyond the accesses it named and what the grant allows while running.
///
/// Requests reach it as calls reach a tool: judged, bounded in time and recorded.
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// The provider's name. Unique among the registered ones.
    fn name(&self) -> &str;

    /// The MCP server whose resources and prompts these are; `None` for those of this program. What a server offers is not
    /// in our hands: where another provider has the same, its own is told apart or left out, and never refused.
    fn server(&self) -> Option<&ServerName> {
        None
    }

    /// Tells whether its names stand as they are, so that what it asks goes to people in its own words as well.
    fn has_own_names(&self) -> bool {
        false
    }

    /// Everything it offers, in any order; URIs, templates and names of prompts unique.
    ///
    /// # Errors
    /// [`ProviderError`] when nothing is known.
    async fn list(&self) -> Result<ContextCatalogue, ProviderError>;

    /// Returns when [`list`](Self::list) may answer differently from its last answer; never, if it cannot.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Returns when [`list`](Self::list) answers with what is offered in this run, or nobody can say when it will; a server
    /// that sleeps is woken for that.
    async fn settled(&self) {}

    /// Guidance for models on how to use what it offers, as it came; `None` where there is none.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Begins to watch the resource: [`notice`](Self::notice) tells its changes from now on. Called once for all who watch.
    ///
    /// # Errors
    /// [`ToolFailure`] where it cannot be watched; the resources of most providers cannot.
    async fn subscribe(&self, uri: &str) -> Result<(), ToolFailure> {
        let message = format!("The resource `{uri}` cannot be watched: `{}` does not tell of changes.", self.name());
        Err(ToolFailure::new(ErrorKind::NotFound, message).next("Read it again when it is needed."))
    }

    /// Watches the resource no longer.
    async fn unsubscribe(&self, uri: &str) {
        let _ = uri;
    }

    /// Hears the least severe log messages that anybody wants from now on; `None`: nobody wants any.
    async fn log_level_wanted(&self, level: Option<LogLevel>) {
        let _ = level;
    }

    /// The next thing that it says outside of any request; waited for by one at a time. Never, by default. Cancel-safe.
    async fn notice(&self) -> ContextNotice {
        std::future::pending().await
    }

    /// The accesses of the request beside the resource or prompt itself: real paths, hosts. Empty where there are none.
    ///
    /// # Errors
    /// [`ToolFailure`] when the request cannot be understood; `not_found` for a resource or prompt that there is not.
    async fn accesses(&self, request: &ContextRequest) -> Result<Vec<Access>, ToolFailure>;

    /// Answers with the members of MCP's result: `contents` of a resource, `messages` of a prompt, `completion`.
    ///
    /// # Errors
    /// [`ToolFailure`]; `not_found` as above, `invalid_input` for arguments that a prompt cannot be made with.
    async fn answer(
        &self,
        request: &ContextRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure>;

    /// Answers the request that this call stands for, and may ask the client first. A provider that does so, or has use
    /// for the rest of what the client sent, has its own.
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
