//! Ports of the path.

use crate::event_bus::EventBus;
use std::sync::Arc;
use toolstead_domain::{
    ports::{
        approver::Approver, clock::Clock, execution_log::ExecutionLog, output_store::OutputStore,
        schema_validator::SchemaValidator, tool_hook::ToolHook,
    },
    suggestion::SuggestionFormatter,
};

/// Ports of the path.
#[derive(Clone)]
pub struct ExecuteToolPorts {
    /// Answers approval requests.
    pub approver: Arc<dyn Approver>,
    /// The audit log.
    pub log: Arc<dyn ExecutionLog>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Store of large outputs.
    pub outputs: Arc<dyn OutputStore>,
    /// Validates arguments that could cost this process too much.
    pub schemas: Arc<dyn SchemaValidator>,
    /// Run before and after each call, in this order.
    pub hooks: Vec<Arc<dyn ToolHook>>,
    /// Publishes events to subscribers.
    pub events: Arc<EventBus>,
    /// Formats suggestions for the users of the application's interface.
    pub suggestions: Arc<dyn SuggestionFormatter>,
}

impl std::fmt::Debug for ExecuteToolPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecuteToolPorts").field("hooks", &self.hooks.len()).finish_non_exhaustive()
    }
}
