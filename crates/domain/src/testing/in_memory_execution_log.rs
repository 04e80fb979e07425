//! The audit trail in memory.

use super::{failure_switch::FailureSwitch, lock};
use crate::{
    ports::{
        execution_log::{ExecutionFilter, ExecutionLog},
        tool_repository::StoreError,
    },
    tool_call::CallId,
    tool_execution::ToolExecution,
};
use async_trait::async_trait;
use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
    sync::Mutex,
};

/// Keeps every row until it is dropped.
#[derive(Debug, Default)]
pub struct InMemoryExecutionLog {
    rows: Mutex<BTreeMap<CallId, ToolExecution>>,
    records: FailureSwitch,
    reads: FailureSwitch,
}

impl InMemoryExecutionLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next `record` fail; called twice, the next two.
    pub fn fail_next_record(&self) {
        self.records.fail_next(1);
    }

    /// Lets the next `find` or `list` fail.
    pub fn fail_next_read(&self) {
        self.reads.fail_next(1);
    }

    /// All rows, oldest first.
    pub fn rows(&self) -> Vec<ToolExecution> {
        lock(&self.rows).values().cloned().collect()
    }
}

#[async_trait]
impl ExecutionLog for InMemoryExecutionLog {
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError> {
        self.records.check("record the call")?;
        let mut rows = lock(&self.rows);
        let is_final = rows.get(&execution.id).is_some_and(|row| row.outcome.is_final());
        if !is_final {
            rows.insert(execution.id, execution);
        }
        Ok(())
    }

    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError> {
        self.reads.check("read the call")?;
        Ok(lock(&self.rows).get(&id).cloned())
    }

    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError> {
        self.reads.check("list the calls")?;
        let fits = |row: &ToolExecution| {
            filter.tool.as_ref().is_none_or(|tool| *tool == row.tool)
                && filter.outcome.is_none_or(|outcome| outcome == row.outcome.kind())
                && filter.principal.as_ref().is_none_or(|principal| *principal == row.principal)
        };
        let rows = lock(&self.rows);
        let older = rows.range((Unbounded, filter.before.map_or(Unbounded, Excluded))).rev();
        Ok(older.map(|(_, row)| row).filter(|row| fits(row)).take(filter.limit as usize).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, execution_log_contract::execution_log_contract, samples};

    #[test]
    fn the_log_in_memory_keeps_the_contract() {
        block_on(execution_log_contract(&InMemoryExecutionLog::new()));
    }

    #[test]
    fn a_failure_that_was_asked_for_comes_once_and_leaves_nothing_behind() {
        let log = InMemoryExecutionLog::new();
        log.fail_next_record();
        let error = block_on(log.record(samples::execution(1))).unwrap_err();
        assert_eq!(error.to_string(), "could not record the call");
        assert_eq!(log.rows(), []);
        block_on(log.record(samples::execution(1))).unwrap();
        log.fail_next_read();
        assert!(block_on(log.find(samples::call_id(1))).is_err());
        assert_eq!(block_on(log.find(samples::call_id(1))).unwrap(), Some(samples::execution(1)));
    }
}
