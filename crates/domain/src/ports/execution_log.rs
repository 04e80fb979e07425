//! The audit log.

use crate::{
    ports::{clock::Timestamp, tool_repository::StoreError},
    tool_call::CallId,
    tool_execution::{AuditedRequestKind, BorrowedToolExecution, OutcomeKind, ToolExecution},
};
use async_trait::async_trait;

/// Selection of the audit records to list: those that meet all conditions, the most recently recorded first. The
/// position of a record is that of its first recording, whatever the clock said.
///
/// ```
/// use toolstead_domain::ports::execution_log::ExecutionFilter;
///
/// let filter = ExecutionFilter { tool: Some("execute_command".into()), limit: 10, ..ExecutionFilter::default() };
/// assert_eq!(filter.outcome, None);
/// assert_eq!(ExecutionFilter::default().limit, 50);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only this tool, by canonical name.
    pub tool: Option<String>,
    /// Only requests of this kind.
    pub kind: Option<AuditedRequestKind>,
    /// Only this outcome.
    pub outcome: Option<OutcomeKind>,
    /// Only this principal.
    pub principal: Option<String>,
    /// Only this client: its name, or its name and version.
    pub client: Option<String>,
    /// Only calls with this label: its name and its value, as recorded.
    pub label: Option<(String, String)>,
    /// Only calls that arrived at this time or later.
    pub since: Option<Timestamp>,
    /// Only calls made by this call while it ran.
    pub parent: Option<CallId>,
    /// Only records that were first recorded before this one: the last of the previous page. Without such a record the
    /// list is empty.
    pub before: Option<CallId>,
    /// Maximum number of records.
    pub limit: u32,
}

impl ExecutionFilter {
    /// Returns `true` if the record meets all conditions except `before` and `limit`.
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

/// Records every call, in exactly one audit record per call.
#[async_trait]
pub trait ExecutionLog: Send + Sync {
    /// Writes the record of a call that begins ([`Running`](crate::ExecutionOutcome::Running)) or waits
    /// ([`InputRequired`](crate::ExecutionOutcome::InputRequired)), or the final record of a call,
    /// which replaces the earlier one. Returns once the record is durable: it survives a kill of this process, and all
    /// later reads of the log find it.
    ///
    /// A record with a final outcome never changes again; recording it a second time has no effect.
    ///
    /// # Errors
    /// [`StoreError`] if it is not known to be recorded.
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError>;

    /// Records a call from borrowed members, as [`record`](Self::record) does. The default copies them.
    ///
    /// # Errors
    /// Those of [`record`](Self::record).
    async fn record_ref(&self, execution: BorrowedToolExecution<'_>) -> Result<(), StoreError> {
        self.record(execution.to_execution()).await
    }

    /// Returns the record of a call; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError>;

    /// Returns the recorded calls whose ids begin with these hexadecimal digits (lower case, without dashes), in the
    /// order of their ids, at most `at_most`.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn beginning_with(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, StoreError>;

    /// Returns the records that meet the conditions, the most recently recorded first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError>;

    /// Checks that a record could be written now, without writing one.
    ///
    /// # Errors
    /// [`StoreError`] if it could not.
    async fn check(&self) -> Result<(), StoreError>;
}
