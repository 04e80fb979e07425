//! Which calls of a tree do something. A tree whose client is away takes no place among the open calls while all of them
//! wait for answers; as long as one of them works, it does.

use crate::open_calls::OpenCalls;
use std::sync::{Arc, Mutex, PoisonError};
use toolstead_domain::tool_call::CallId;

/// One call of a tree. It works, unless it leans: on an answer, or on a call that it makes.
#[derive(Debug)]
pub(super) struct AtWork {
    root: CallId,
    open_calls: Arc<OpenCalls>,
    leans: Mutex<usize>,
}

impl AtWork {
    /// A call of the tree below `root`, which works.
    pub(super) fn new(root: CallId, open_calls: &Arc<OpenCalls>) -> Arc<Self> {
        Arc::new(Self { root, open_calls: open_calls.clone(), leans: Mutex::new(0) })
    }

    /// The call from outside.
    pub(super) fn root(&self) -> CallId {
        self.root
    }

    /// The call leans on something until this is dropped.
    pub(super) fn lean(self: &Arc<Self>) -> Lean {
        let mut leans = self.leans.lock().unwrap_or_else(PoisonError::into_inner);
        *leans += 1;
        if *leans == 1 {
            self.open_calls.rests(self.root);
        }
        Lean(self.clone())
    }

    /// A call that this one makes and leans on works until this is dropped.
    pub(super) fn makes_one(self: &Arc<Self>) -> Made {
        // In this order, so that the tree does not seem to rest in between.
        self.open_calls.works(self.root);
        Made { _lean: self.lean(), _working: Working(self.clone()) }
    }
}

/// Something that a call leans on.
#[derive(Debug)]
pub(super) struct Lean(Arc<AtWork>);

impl Drop for Lean {
    fn drop(&mut self) {
        let mut leans = self.0.leans.lock().unwrap_or_else(PoisonError::into_inner);
        *leans -= 1;
        if *leans == 0 {
            self.0.open_calls.works(self.0.root);
        }
    }
}

/// A call that another one makes. The fields go in this order, as they came.
#[derive(Debug)]
pub(super) struct Made {
    _lean: Lean,
    _working: Working,
}

#[derive(Debug)]
struct Working(Arc<AtWork>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.open_calls.rests(self.0.root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel_signal::CancelSignal;
    use toolstead_domain::{principal::Principal, testing::samples::call_id};

    #[test]
    fn a_tree_takes_no_place_once_its_client_is_away_and_nothing_in_it_works() {
        let open_calls = OpenCalls::new(1);
        let _root = open_calls.admit(call_id(1), Principal::local(), CancelSignal::new()).unwrap();
        let has_room = || open_calls.admit(call_id(2), Principal::local(), CancelSignal::new()).is_ok();
        let root = AtWork::new(call_id(1), &open_calls);
        let (one, other) = (root.makes_one(), root.makes_one());
        let asking = AtWork::new(root.root(), &open_calls);
        let answer = asking.lean();
        open_calls.wait(call_id(1));
        assert!(!has_room(), "the other one works");
        drop(other);
        assert!(has_room(), "all wait for the answer");
        let second = root.makes_one();
        assert!(!has_room());
        drop(second);
        assert!(has_room());
        // The question is taken back while the client is away.
        drop(answer);
        assert!(!has_room());
        open_calls.go_on(call_id(1)).unwrap();
        drop(one);
        assert!(!has_room(), "the call that made them works, and its client is there");
    }
}
