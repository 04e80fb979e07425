//! Reading of the audit log.

use std::sync::Arc;
use toolstead_domain::{CallId, ExecutionFilter, ExecutionLog, StoreError, ToolExecution};

/// Lists and finds the audit records of calls.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::list_executions::ListExecutionsHandler;
/// use toolstead_domain::{
///     ports::execution_log::ExecutionLog,
///     testing::{
///         in_memory_execution_log::InMemoryExecutionLog,
///         samples::{call_id, execution},
///     },
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let log = Arc::new(InMemoryExecutionLog::new());
/// log.record(execution(1)).await?;
/// let handler = ListExecutionsHandler::new(log);
/// assert!(handler.get(call_id(1)).await?.is_some());
/// # Ok(())
/// # }
/// ```
pub struct ListExecutionsHandler {
    log: Arc<dyn ExecutionLog>,
}

impl std::fmt::Debug for ListExecutionsHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListExecutionsHandler").finish_non_exhaustive()
    }
}

impl ListExecutionsHandler {
    /// Creates a handler on this log.
    pub fn new(log: Arc<dyn ExecutionLog>) -> Self {
        Self { log }
    }

    /// Returns the audit records that match, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError> {
        self.log.list(filter).await
    }

    /// Returns at most `at_most` ids of calls that begin with these hexadecimal digits.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn beginning_with(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, StoreError> {
        self.log.beginning_with(digits, at_most).await
    }

    /// Returns the audit record of a call; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError> {
        self.log.find(id).await
    }
}
