//! The audit trail.

use crate::{
    ports::tool_repository::StoreError,
    tool_call::CallId,
    tool_execution::{OutcomeKind, ToolExecution},
};
use async_trait::async_trait;

/// Which rows to list: newest first, those that fit every given condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only this tool, by canonical name.
    pub tool: Option<String>,
    /// Only this outcome.
    pub outcome: Option<OutcomeKind>,
    /// Only this principal.
    pub principal: Option<String>,
    /// Only rows older than this one: where the page before ended.
    pub before: Option<CallId>,
    /// At most so many rows.
    pub limit: u32,
}

impl Default for ExecutionFilter {
    fn default() -> Self {
        Self { tool: None, outcome: None, principal: None, before: None, limit: 50 }
    }
}

/// Records every call, in exactly one row a call.
#[async_trait]
pub trait ExecutionLog: Send + Sync {
    /// Writes the row of a call that begins ([`Outcome::Running`](crate::tool_execution::Outcome::Running)), or the
    /// final row of a call, replacing the one that said it was running. Returns once the row is on record: it survives
    /// a kill of this process, and whoever reads the log from then on finds it.
    ///
    /// A row with a final outcome is never changed again; recording it a second time has no effect.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known to be on record.
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError>;

    /// The row of a call; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError>;

    /// The rows that fit, newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError>;
}
