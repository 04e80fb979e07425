//! The journal entry on which the decision about a call of `undo` or `redo` was based.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::CallId;

/// Maximum number of calls remembered between decision and execution. A forgotten call is refused.
const REMEMBERED: usize = 1000;

/// Entry on which the decision about each call was based. The call reverts this entry and no other, even if the journal
/// has changed before the approval.
#[derive(Debug, Default)]
pub(crate) struct PlannedReverts(Mutex<VecDeque<(CallId, CallId)>>);

impl PlannedReverts {
    /// Stores the entry for a call.
    pub(super) fn insert(&self, call: CallId, entry: CallId) {
        let mut calls = self.calls();
        calls.retain(|(other, _)| *other != call);
        calls.push_back((call, entry));
        if calls.len() > REMEMBERED {
            calls.pop_front();
        }
    }

    /// Removes and returns the entry for a call.
    pub(super) fn take(&self, call: CallId) -> Option<CallId> {
        let mut calls = self.calls();
        let place = calls.iter().position(|(other, _)| *other == call)?;
        calls.remove(place).map(|(_, entry)| entry)
    }

    /// Locks the list of calls. It is consistent at any time, so a panic while it was locked does no harm.
    fn calls(&self) -> MutexGuard<'_, VecDeque<(CallId, CallId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::testing::samples::call_id;

    #[test]
    fn a_call_receives_its_latest_planned_revert_once() {
        let judged = PlannedReverts::default();
        judged.insert(call_id(1), call_id(7));
        judged.insert(call_id(1), call_id(8));
        assert_eq!(
            (judged.take(call_id(2)), judged.take(call_id(1)), judged.take(call_id(1))),
            (None, Some(call_id(8)), None)
        );
        for number in 1..=1001 {
            judged.insert(call_id(number), call_id(7));
        }
        assert_eq!((judged.take(call_id(1)), judged.take(call_id(2))), (None, Some(call_id(7))));
    }
}
