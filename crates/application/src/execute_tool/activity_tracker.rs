//! Activity of the calls of a call tree. A tree whose client is disconnected does not count as an open call while all
//! of its calls wait for answers. It counts while any of them is active.

use crate::open_calls::OpenCalls;
use std::sync::{Arc, Mutex, PoisonError};
use toolstead_domain::CallId;

/// Activity of one call of a tree: active, or blocked on an answer or on a nested call.
#[derive(Debug)]
pub(super) struct ActivityTracker {
    root: CallId,
    open_calls: Arc<OpenCalls>,
    blocks: Mutex<usize>,
}

impl ActivityTracker {
    /// Creates the tracker of an active call in the tree below `root`.
    pub(super) fn new(root: CallId, open_calls: &Arc<OpenCalls>) -> Arc<Self> {
        Arc::new(Self { root, open_calls: open_calls.clone(), blocks: Mutex::new(0) })
    }

    /// Returns the id of the root call of the tree.
    pub(super) fn root(&self) -> CallId {
        self.root
    }

    /// Marks the call as blocked until the guard is dropped.
    pub(super) fn block(self: &Arc<Self>) -> BlockedGuard {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        *blocks += 1;
        if *blocks == 1 {
            self.open_calls.rests(self.root);
        }
        BlockedGuard(self.clone())
    }

    /// Marks the call as blocked on an active nested call until the guard is dropped.
    pub(super) fn begin_nested_call(self: &Arc<Self>) -> NestedCallGuard {
        // Counted before the parent is blocked, so that the tree never appears idle in between.
        self.open_calls.works(self.root);
        NestedCallGuard { _blocked: self.block(), _working: ActiveGuard(self.clone()) }
    }
}

/// Guard during which a call counts as blocked.
#[derive(Debug)]
pub(super) struct BlockedGuard(Arc<ActivityTracker>);

impl Drop for BlockedGuard {
    fn drop(&mut self) {
        let mut blocks = self.0.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        *blocks -= 1;
        if *blocks == 0 {
            self.0.open_calls.works(self.0.root);
        }
    }
}

/// Guard of a nested call. The fields are dropped in this order, so that the parent is active before the child ends.
#[derive(Debug)]
pub(super) struct NestedCallGuard {
    _blocked: BlockedGuard,
    _working: ActiveGuard,
}

#[derive(Debug)]
struct ActiveGuard(Arc<ActivityTracker>);

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        self.0.open_calls.rests(self.0.root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel_signal::CancelSignal;
    use toolstead_domain::{Principal, testing::samples::call_id};

    #[test]
    fn a_call_tree_frees_its_slot_while_its_client_is_away_and_none_of_its_calls_runs() {
        let open_calls = OpenCalls::new(1);
        let _root = open_calls.admit(call_id(1), Principal::local(), CancelSignal::new()).unwrap();
        let has_room = || open_calls.admit(call_id(2), Principal::local(), CancelSignal::new()).is_ok();
        let root = ActivityTracker::new(call_id(1), &open_calls);
        let (one, other) = (root.begin_nested_call(), root.begin_nested_call());
        let asking = ActivityTracker::new(root.root(), &open_calls);
        let answer = asking.block();
        open_calls.wait(call_id(1));
        assert!(!has_room(), "the other one works");
        drop(other);
        assert!(has_room(), "all wait for the answer");
        let second = root.begin_nested_call();
        assert!(!has_room());
        drop(second);
        assert!(has_room());
        // The question is withdrawn while the client is disconnected.
        drop(answer);
        assert!(!has_room());
        open_calls.resume(call_id(1)).unwrap();
        drop(one);
        assert!(!has_room(), "the call that made them works, and its client is there");
    }
}
