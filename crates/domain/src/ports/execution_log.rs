//! The audit trail.

use crate::{
    ports::{clock::Timestamp, tool_repository::StoreError},
    tool_call::CallId,
    tool_execution::{ExecutionRef, OutcomeKind, RequestKind, ToolExecution},
};
use async_trait::async_trait;

/// Which rows to list: those that fit every given condition, the one that was recorded last first. A row stands where it
/// was recorded first, whatever the clock said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only this tool, by canonical name.
    pub tool: Option<String>,
    /// Only requests of this kind.
    pub kind: Option<RequestKind>,
    /// Only this outcome.
    pub outcome: Option<OutcomeKind>,
    /// Only this principal.
    pub principal: Option<String>,
    /// Only this client: its name, or its name and version.
    pub client: Option<String>,
    /// Only calls with this label: its name and its value, as they are recorded.
    pub label: Option<(String, String)>,
    /// Only calls that came at this time or later.
    pub since: Option<Timestamp>,
    /// Only the calls that this one made while it ran.
    pub parent: Option<CallId>,
    /// Only rows that were recorded before this one: where the page before ended. None where there is no such row.
    pub before: Option<CallId>,
    /// At most so many rows.
    pub limit: u32,
}

impl ExecutionFilter {
    /// Tells whether the row fits all conditions but `before` and `limit`.
    pub fn fits(&self, row: &ToolExecution) -> bool {
        let is_client = |client: &String| {
            row.client.strip_prefix(client.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        self.tool.as_ref().is_none_or(|tool| row.tool == *tool)
            && self.kind.is_none_or(|kind| row.kind == kind)
            && self.outcome.is_none_or(|outcome| row.outcome.kind() == outcome)
            && self.principal.as_ref().is_none_or(|principal| row.principal == *principal)
            && self.client.as_ref().is_none_or(is_client)
            && self.label.as_ref().is_none_or(|(name, value)| row.labels.get(name) == Some(value))
            && self.parent.is_none_or(|parent| row.parent == Some(parent))
            && self.since.is_none_or(|since| row.started >= since)
    }
}

impl Default for ExecutionFilter {
    fn default() -> Self {
        Self {
            tool: None,
            kind: None,
            outcome: None,
            principal: None,
            client: None,
            label: None,
            since: None,
            parent: None,
            before: None,
            limit: 50,
        }
    }
}

/// Records every call, in exactly one row a call.
#[async_trait]
pub trait ExecutionLog: Send + Sync {
    /// Writes the row of a call that begins ([`Outcome::Running`](crate::tool_execution::Outcome::Running)) or waits
    /// ([`Outcome::InputRequired`](crate::tool_execution::Outcome::InputRequired)), or the final row of a call, replacing
    /// the one before. Returns once the row is on record: it survives
    /// a kill of this process, and whoever reads the log from then on finds it.
    ///
    /// A row with a final outcome is never changed again; recording it a second time has no effect.
    ///
    /// # Errors
    /// [`StoreError`] when it is not known to be on record.
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError>;

    /// Does the same for borrowed members. The default copies them.
    ///
    /// # Errors
    /// Those of [`record`](Self::record).
    async fn record_ref(&self, execution: ExecutionRef<'_>) -> Result<(), StoreError> {
        self.record(execution.to_execution()).await
    }

    /// The row of a call; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError>;

    /// The calls on record whose ids begin with these hexadecimal digits (lower case, without dashes), in the order of
    /// their ids; at most so many.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn beginning_with(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, StoreError>;

    /// The rows that fit, the one that was recorded last first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError>;

    /// Finds out whether a row could be recorded now, and records none.
    ///
    /// # Errors
    /// [`StoreError`] when it could not.
    async fn check(&self) -> Result<(), StoreError>;
}
