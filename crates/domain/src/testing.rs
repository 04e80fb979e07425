//! Fakes and contract suites for the ports (feature `testing`).
//!
//! A fake fulfils every guarantee of its port, so that tests of the layers above are valid for the real adapters, and
//! the suite that checks the adapters also checks the fakes. Nothing here needs a runtime: fakes use only the standard
//! library, and suites are futures that run on any executor.

pub mod fake_credentials;
pub mod fixed_clock;
pub mod in_memory_change_journal;
pub mod in_memory_conversations;
pub mod in_memory_definition_store;
pub mod in_memory_execution_log;
pub mod in_memory_output_store;
pub mod in_memory_questions;
pub mod in_memory_read_state;
pub mod in_memory_rule_store;
pub mod in_memory_todos;
pub mod in_memory_tool_repository;
#[cfg(feature = "json-schema")]
pub mod in_process_schema_validator;
pub mod recording_caller;
pub mod recording_events;
pub mod samples;
pub mod scripted_approver;
pub mod scripted_context;
pub mod scripted_hook;
pub mod scripted_model;
pub mod scripted_provider;
pub mod scripted_search;

#[expect(clippy::unwrap_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod change_journal_contract;
#[expect(clippy::unwrap_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod conversation_store_contract;
#[expect(clippy::unwrap_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod definition_store_contract;
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod execution_log_contract;
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod output_store_contract;
#[expect(clippy::unwrap_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod question_store_contract;
#[expect(clippy::unwrap_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod read_state_contract;
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod reopened_contract;
#[expect(clippy::expect_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod rule_store_contract;
pub mod schema_validator_contract;
pub mod stores_contract;
#[expect(clippy::unwrap_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod todo_store_contract;
#[cfg(feature = "json-schema")]
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod tool_provider_contract;
#[expect(clippy::unwrap_used, reason = "a contract suite is a test: it fails by panicking")]
pub mod tool_repository_contract;

#[cfg(test)]
mod block_on;
mod failure_switch;
mod join_all;
mod waitable_counter;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, even if it is poisoned: a test that panicked while it held the lock has failed already, and the
/// others continue.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
