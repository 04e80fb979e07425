//! Switch that makes the next operations of a fake fail.

use crate::ports::tool_repository::StoreError;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of the next operations that fail.
#[derive(Debug, Default)]
pub(super) struct FailureSwitch(AtomicU32);

impl FailureSwitch {
    /// Makes this number of further operations fail.
    pub(super) fn fail_next(&self, operations: u32) {
        self.0.fetch_add(operations, Ordering::SeqCst);
    }

    /// Fails if a failure was requested.
    ///
    /// # Errors
    /// [`StoreError`] with `operation` in it.
    pub(super) fn check(&self, operation: &str) -> Result<(), StoreError> {
        match self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Err(StoreError { operation: operation.into(), source: "the test wanted it to fail".into() }),
            Err(_) => Ok(()),
        }
    }
}
