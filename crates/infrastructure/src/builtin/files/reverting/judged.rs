//! Which entry of the journal a call of `undo` or `redo` was judged by.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::tool_call::CallId;

/// As many calls are remembered between being judged and being done. One that is forgotten is refused.
const REMEMBERED: usize = 1000;

/// The entry that each call was judged by. Nothing else may be taken back in its name, whatever the journal says by the
/// time that somebody has approved it.
#[derive(Debug, Default)]
pub(crate) struct JudgedEntries(Mutex<VecDeque<(CallId, CallId)>>);

impl JudgedEntries {
    /// The call was judged by this entry.
    pub(super) fn judged(&self, call: CallId, entry: CallId) {
        let mut calls = self.calls();
        calls.retain(|(other, _)| *other != call);
        calls.push_back((call, entry));
        if calls.len() > REMEMBERED {
            calls.pop_front();
        }
    }

    /// The entry that the call was judged by, once.
    pub(super) fn take(&self, call: CallId) -> Option<CallId> {
        let mut calls = self.calls();
        let place = calls.iter().position(|(other, _)| *other == call)?;
        calls.remove(place).map(|(_, entry)| entry)
    }

    /// The list is whole at any time, so that a panic elsewhere while it was held does no harm.
    fn calls(&self) -> MutexGuard<'_, VecDeque<(CallId, CallId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::testing::samples::call_id;

    #[test]
    fn a_call_takes_what_it_was_judged_by_last_and_once() {
        let judged = JudgedEntries::default();
        judged.judged(call_id(1), call_id(7));
        judged.judged(call_id(1), call_id(8));
        assert_eq!(
            (judged.take(call_id(2)), judged.take(call_id(1)), judged.take(call_id(1))),
            (None, Some(call_id(8)), None)
        );
        for number in 1..=1001 {
            judged.judged(call_id(number), call_id(7));
        }
        assert_eq!((judged.take(call_id(1)), judged.take(call_id(2))), (None, Some(call_id(7))));
    }
}
