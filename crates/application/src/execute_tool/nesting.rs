//! Position of a nested call: a call that a running call makes. Holds what nested calls share with their parent: its
//! place among the open calls, its deadline and its cancellation.

use super::{
    activity_tracker::{ActivityTracker, NestedCallGuard},
    error::ExecuteToolError,
    waiting_time::WaitingTime,
};
use crate::cancel_signal::CancelSignal;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;
use toolstead_domain::{CallId, Tool, ToolFailure, error_kind::ErrorKind};

/// Maximum nesting depth.
const MAX_DEPTH: u32 = 8;
/// Maximum number of nested calls below one call from outside, at all levels together.
const MAX_CALLS: usize = 10_000;

/// Position of a nested call below its parent.
#[derive(Debug)]
pub struct NestedCallPosition {
    pub(super) branch: Arc<ParentCall>,
    /// Number of calls that the tree had when this one was made, including this one.
    number: usize,
    /// Maximum number of characters of the nested call's result that the parent requests; `None`: the usual limit.
    pub(super) output_characters: Option<usize>,
    _made: NestedCallGuard,
}

/// State shared by the nested calls of one parent.
#[derive(Debug)]
pub(super) struct ParentCall {
    pub(super) parent: CallId,
    pub(super) tool: Arc<Tool>,
    pub(super) depth: u32,
    pub(super) deadline: Instant,
    /// Time by which the deadline is extended.
    pub(super) waiting: WaitingTime,
    /// Activity of the parent.
    pub(super) activity: Arc<ActivityTracker>,
    /// Signal that cancels all nested calls of the parent.
    pub(super) cancel: CancelSignal,
    /// Number of nested calls of the parent that are not recorded yet.
    pub(super) open: watch::Sender<usize>,
    /// Number of calls in the whole tree, without its root.
    pub(super) made: Arc<AtomicUsize>,
}

impl ParentCall {
    /// Returns a position for one more call.
    ///
    /// # Errors
    /// [`ErrorKind::BudgetExhausted`] if the limit is exceeded so far that refused calls are not recorded either.
    pub(super) fn place(self: &Arc<Self>, output_characters: Option<usize>) -> Result<NestedCallPosition, ToolFailure> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        // The first call over the limit is recorded as refused. Further records would add no information.
        if number > MAX_CALLS + 1 {
            return Err(too_many());
        }
        self.open.send_modify(|open| *open += 1);
        Ok(NestedCallPosition {
            branch: self.clone(),
            number,
            output_characters,
            _made: self.activity.begin_nested_call(),
        })
    }
}

impl Drop for NestedCallPosition {
    fn drop(&mut self) {
        self.branch.open.send_modify(|open| *open -= 1);
    }
}

impl NestedCallPosition {
    /// Returns the id of the parent call.
    pub(super) fn parent(&self) -> CallId {
        self.branch.parent
    }

    /// Returns the id of the root call of the tree.
    pub(super) fn root(&self) -> CallId {
        self.branch.activity.root()
    }

    /// Returns the tool of the parent call.
    pub(super) fn tool(&self) -> &Tool {
        &self.branch.tool
    }

    /// Checks the limits of nesting. A nested call needs no place of its own among the open calls.
    ///
    /// # Errors
    /// A refusal if the call is nested too deeply, or exceeds the maximum number of calls.
    pub(super) fn admit(&self) -> Result<(), ExecuteToolError> {
        if self.branch.depth > MAX_DEPTH {
            let message = format!(
                "Calls can be nested at most {MAX_DEPTH} deep, and this call of `{}` is already at that depth.",
                self.branch.tool.name()
            );
            let failure = ToolFailure::new(ErrorKind::TooLarge, message);
            return Err(ExecuteToolError::Refused(failure.next("Call the tool by itself.")));
        }
        if self.number > MAX_CALLS { Err(ExecuteToolError::Refused(too_many())) } else { Ok(()) }
    }

    /// Returns the time that the parent has waited for answers, including those about this call.
    pub(super) fn waiting(&self) -> &WaitingTime {
        &self.branch.waiting
    }

    /// Returns the given time, limited to the rest of the parent's time.
    pub(super) fn time(&self, time: Duration) -> Duration {
        let deadline = self.branch.deadline + self.branch.waiting.so_far();
        time.min(deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns the grace period of a nested call. It is halved with each level, so that the parent can still report the
    /// outcome.
    pub(super) fn grace(&self, grace: Duration) -> Duration {
        grace / 2_u32.pow(self.branch.depth.min(MAX_DEPTH))
    }
}

fn too_many() -> ToolFailure {
    ToolFailure::new(
        ErrorKind::BudgetExhausted,
        format!("A call can make at most {MAX_CALLS} nested calls, and that many were made."),
    )
    .next("Do the rest in another call.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_calls::OpenCalls;
    use toolstead_domain::testing::samples;

    #[test]
    fn a_call_tree_refuses_calls_over_its_limit_and_records_only_the_first_of_them() {
        let branch = Arc::new(ParentCall {
            parent: samples::call_id(1),
            tool: Arc::new(samples::tool("make")),
            depth: 1,
            deadline: Instant::now(),
            waiting: WaitingTime::default(),
            activity: ActivityTracker::new(samples::call_id(1), &OpenCalls::new(1)),
            cancel: CancelSignal::new(),
            open: watch::Sender::new(0),
            made: Arc::new(AtomicUsize::new(MAX_CALLS - 1)),
        });
        let last = branch.place(None).unwrap();
        assert!(last.admit().is_ok());
        let one_too_many = branch.place(None).unwrap();
        assert_eq!(one_too_many.admit().unwrap_err().kind(), ErrorKind::BudgetExhausted);
        assert_eq!(branch.place(None).unwrap_err().kind, ErrorKind::BudgetExhausted);
        assert_eq!(*branch.open.borrow(), 2);
        drop((last, one_too_many));
        assert_eq!(*branch.open.borrow(), 0);
    }
}
