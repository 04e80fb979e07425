//! What runs before and after every call.

use crate::{tool_call::ToolCall, tool_execution::ToolExecution, tool_result::ToolResult};
use async_trait::async_trait;
use serde_json::{Map, Value};

/// What a hook says before a call.
#[derive(Debug, Clone, PartialEq)]
pub enum HookVerdict {
    /// Nothing to say; rules and defaults decide.
    Continue,
    /// Go on with these arguments, which are validated again.
    Rewrite(Map<String, Value>),
    /// Refuse the call, with the reason for the model.
    Deny(String),
}

/// A hook. It may refuse and rewrite; it never allows what a rule denies.
#[async_trait]
pub trait ToolHook: Send + Sync {
    /// The hook's name, for refusals and the audit trail.
    fn name(&self) -> &str;

    /// Before the accesses of a call are known and judged.
    async fn before(&self, call: &ToolCall) -> HookVerdict;

    /// After a call, with what it answered and the row that will be recorded.
    async fn after(&self, execution: &ToolExecution, result: Option<&ToolResult>);
}
