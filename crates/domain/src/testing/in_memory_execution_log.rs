//! An audit log in memory.

use super::{failure_switch::FailureSwitch, lock};
use crate::{
    ports::{
        execution_log::{ExecutionFilter, ExecutionLog},
        tool_repository::StoreError,
    },
    tool_call::CallId,
    tool_execution::{ExecutionOutcome, ToolExecution},
};
use async_trait::async_trait;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// Log that stores every record until it is dropped.
#[derive(Debug, Default)]
pub struct InMemoryExecutionLog {
    rows: Mutex<Vec<ToolExecution>>,
    places: Mutex<BTreeMap<CallId, usize>>,
    is_full: AtomicBool,
    records: FailureSwitch,
    reads: FailureSwitch,
}

impl InMemoryExecutionLog {
    /// Creates an empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next `record` fail; called twice, the next two.
    pub fn fail_next_record(&self) {
        self.records.fail_next(1);
    }

    /// Makes the next `find`, `list` or `beginning_with` fail.
    pub fn fail_next_read(&self) {
        self.reads.fail_next(1);
    }

    /// Makes every `record` and `check` fail from now on if `is_full`, and none otherwise.
    pub fn be_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    /// Returns all records, in the order of their first recording.
    pub fn rows(&self) -> Vec<ToolExecution> {
        lock(&self.rows).clone()
    }

    /// Marks running calls as interrupted, as opening the log in the next process does: the process that ran them has
    /// ended.
    pub fn interrupt_what_runs(&self) {
        for row in lock(&self.rows).iter_mut().filter(|row| row.outcome == ExecutionOutcome::Running) {
            row.outcome = ExecutionOutcome::Interrupted;
        }
    }

    fn has_room(&self, operation: &str) -> Result<(), StoreError> {
        match self.is_full.load(Ordering::SeqCst) {
            true => Err(StoreError { operation: operation.into(), source: "the disk is full".into() }),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl ExecutionLog for InMemoryExecutionLog {
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError> {
        self.records.check("record the call")?;
        self.has_room("record the call")?;
        let (mut rows, mut places) = (lock(&self.rows), lock(&self.places));
        match places.get(&execution.id) {
            Some(place) if rows[*place].outcome.is_final() => {}
            Some(place) => rows[*place] = execution,
            None => {
                places.insert(execution.id, rows.len());
                rows.push(execution);
            }
        }
        Ok(())
    }

    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError> {
        self.reads.check("read the call")?;
        Ok(lock(&self.rows).iter().find(|row| row.id == id).cloned())
    }

    async fn beginning_with(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, StoreError> {
        self.reads.check("read the calls")?;
        let places = lock(&self.places);
        let fitting = places.keys().filter(|id| id.0.simple().to_string().starts_with(digits));
        Ok(fitting.take(at_most as usize).copied().collect())
    }

    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError> {
        self.reads.check("list the calls")?;
        let rows = lock(&self.rows);
        let end = match filter.before {
            Some(before) => rows.iter().position(|row| row.id == before).unwrap_or(0),
            None => rows.len(),
        };
        let newest_first = rows[..end].iter().rev();
        Ok(newest_first.filter(|row| filter.fits(row)).take(filter.limit as usize).cloned().collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.has_room("record a call")
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
    fn a_requested_failure_occurs_once_and_stores_nothing() {
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
