//! Ports of the execution of calls.

use crate::event_bus::EventBus;
use std::sync::Arc;
use toolstead_domain::{Approver, Clock, ExecutionLog, OutputStore, SchemaValidator, SuggestionFormatter, ToolHook};

/// Ports of the execution of calls.
#[derive(Clone)]
pub struct ExecuteToolPorts {
    /// Approver of calls that require approval.
    pub approver: Arc<dyn Approver>,
    /// Audit log.
    pub log: Arc<dyn ExecutionLog>,
    /// Clock for the times in audit records.
    pub clock: Arc<dyn Clock>,
    /// Store of large outputs.
    pub outputs: Arc<dyn OutputStore>,
    /// Validator for schemas that are too costly to evaluate in this process.
    pub schemas: Arc<dyn SchemaValidator>,
    /// Hooks that run before and after each call, in this order.
    pub hooks: Vec<Arc<dyn ToolHook>>,
    /// Bus that publishes events to subscribers.
    pub events: Arc<EventBus>,
    /// Formatter of suggestions for the users of the application's interface.
    pub suggestions: Arc<dyn SuggestionFormatter>,
}

impl std::fmt::Debug for ExecuteToolPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecuteToolPorts").field("hooks", &self.hooks.len()).finish_non_exhaustive()
    }
}
