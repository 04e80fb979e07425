//! The MCP server: one core that answers request by request, and two transports around it.
//!
//! The core keeps nothing between two requests. The sessions of clients up to MCP 2025-11-25 are kept by the
//! transports, which hand their state to the core with each request; clients of 2026-07-28 bring everything along.

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
mod news;
mod newsfeed;
mod protocol_error;
mod questions;
mod request_meta;
pub mod server_identity;
pub mod stdio;
mod subscription;
mod task_request;
mod tool_result_wire;
mod trace_context;
mod watch_resource;
mod watches;

use crate::app::App;
use server_identity::ServerIdentity;
use std::time::Duration;
use tokio::sync::OnceCell;
use toolstead_domain::scope::Scope;

/// The core: answers single requests of either protocol generation out of the use cases.
#[derive(Debug)]
struct McpServer {
    app: App,
    identity: ServerIdentity,
    /// How long the first list waits for servers of which nothing is known yet. Later ones are told by `list_changed`.
    first_list_waits: Duration,
    settled: OnceCell<()>,
    context_settled: OnceCell<()>,
}

impl McpServer {
    fn new(app: App, identity: ServerIdentity, first_list_waits: Duration) -> Self {
        Self { app, identity, first_list_waits, settled: OnceCell::new(), context_settled: OnceCell::new() }
    }

    /// The scope in the configured dialect.
    fn in_dialect(&self, scope: Scope) -> Scope {
        scope.in_dialect(self.app.dialect)
    }

    /// Waits, the first time, until the providers have listed their tools once or the time for that is over.
    async fn settle(&self) {
        self.settled.get_or_init(|| self.app.registry.settled(self.first_list_waits)).await;
    }

    /// The same for their resources and prompts.
    async fn settle_context(&self) {
        self.context_settled.get_or_init(|| self.app.context.settled(self.first_list_waits)).await;
    }

    /// Whether the first wait is over.
    fn is_settled(&self) -> bool {
        self.settled.initialized()
    }
}
