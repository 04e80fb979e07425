//! The MCP server: a stateless core that answers one request at a time, and two transports around it.
//!
//! The core stores nothing between requests. The transports store the sessions of clients up to MCP 2025-11-25 and pass
//! their state to the core with each request; requests of clients since 2026-07-28 contain everything.

mod answer;
mod call_request;
mod call_tool;
mod client_caller;
pub mod elicitation_approver;
mod forward_request;
mod handshake;
pub mod http;
mod in_flight;
mod list_context;
mod list_tools;
mod log_threshold;
mod notification_feed;
mod protocol_error;
mod questions;
mod request_meta;
pub mod server_identity;
mod server_notification;
pub mod stdio;
mod subscription;
mod task_request;
mod tool_result_wire;
mod trace_context;
mod watch_resource;
mod watches;

use crate::app::App;
use server_identity::ServerIdentity;
use std::{sync::Arc, time::Duration};
use tokio::sync::OnceCell;
use toolstead_domain::{RequestScope, ToolSelection, View, ViewContent};

/// Core of the MCP server. Answers single requests of either protocol generation by means of the use cases.
#[derive(Debug)]
struct McpServer {
    app: App,
    identity: ServerIdentity,
    /// Maximum time that the first list waits for servers whose tools are not known yet. Servers that are ready later
    /// are announced with `list_changed`.
    first_list_waits: Duration,
    settled: OnceCell<()>,
    context_settled: OnceCell<()>,
    /// View of all requests; `None`: each request is in the view of its own scope.
    view: Option<Arc<View>>,
}

impl McpServer {
    fn new(app: App, identity: ServerIdentity, first_list_waits: Duration) -> Self {
        let (settled, context_settled) = (OnceCell::new(), OnceCell::new());
        Self { app, identity, first_list_waits, settled, context_settled, view: None }
    }

    /// Serves the tools of the view with this name. If the application has no such view, nothing is served.
    fn with_view(self, name: Option<&str>) -> Self {
        let view = name.map(|name| match self.app.view(name) {
            Ok(view) => view.clone(),
            Err(error) => {
                tracing::error!(%error, "no tool is served");
                let nothing = self.app.policy.window(ToolSelection::only([""; 0]));
                View::with_content(name, Arc::new(nothing), ViewContent::default())
            }
        });
        Self { view, ..self }
    }

    /// Returns the scope narrowed to the view that the server serves; unchanged if it serves none.
    fn in_view(&self, scope: RequestScope) -> RequestScope {
        match &self.view {
            Some(view) => scope.narrowed_to(view.clone()),
            None => scope,
        }
    }

    /// Returns the scope in the configured dialect.
    fn in_dialect(&self, scope: RequestScope) -> RequestScope {
        scope.in_dialect(self.app.dialect)
    }

    /// Waits, the first time, until all providers have listed their tools or the maximum time has passed.
    async fn settle(&self) {
        self.settled.get_or_init(|| self.app.registry.settled(self.first_list_waits)).await;
    }

    /// Waits, the first time, until all providers have listed their resources and prompts or the maximum time has
    /// passed.
    async fn settle_context(&self) {
        self.context_settled.get_or_init(|| self.app.context.settled(self.first_list_waits)).await;
    }

    /// Returns `true` if the first wait for tools is over.
    fn is_settled(&self) -> bool {
        self.settled.initialized()
    }
}
