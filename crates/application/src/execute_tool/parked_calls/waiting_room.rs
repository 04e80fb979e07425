//! Parked calls, limited in number.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{CallId, Principal};

/// Maximum number of parked calls per principal. A further one cancels the oldest.
const MAX_OF_ONE: usize = 64;
/// Maximum number of parked calls of all principals: each has its arguments in memory. A further one is refused.
const MAX: usize = 1024;

/// Parked calls by id. They have a limit apart from that of running calls: a parked call does no work, and a client
/// that asks and never answers must not block the calls of others.
#[derive(Debug)]
pub(super) struct ParkedCallTable<C>(Mutex<HashMap<CallId, (Principal, Arc<C>)>>);

/// Error: the principal has its maximum of parked calls and none of them is waiting, or it has fewer and the maximum of all
/// principals is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyParkedCalls;

impl<C> ParkedCallTable<C> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Adds the call unless it is present already. Returns the call that was removed for it, if any.
    pub(super) fn enter(
        &self,
        id: CallId,
        owner: &Principal,
        call: &Arc<C>,
        is_waiting: impl Fn(&C) -> bool,
    ) -> Result<Option<Arc<C>>, TooManyParkedCalls> {
        let mut calls = self.lock();
        if calls.contains_key(&id) {
            return Ok(None);
        }
        let of_one = || calls.iter().filter(|(_, (other, _))| other == owner);
        let mut made_room = None;
        if of_one().count() >= MAX_OF_ONE {
            // Ids are ordered by time.
            let oldest = of_one()
                .filter(|(_, (_, call))| is_waiting(call))
                .map(|(id, _)| *id)
                .min()
                .ok_or(TooManyParkedCalls)?;
            made_room = calls.remove(&oldest).map(|(_, call)| call);
        } else if calls.len() >= MAX {
            return Err(TooManyParkedCalls);
        }
        calls.insert(id, (owner.clone(), call.clone()));
        Ok(made_room)
    }

    pub(super) fn find(&self, id: CallId) -> Option<Arc<C>> {
        self.lock().get(&id).map(|(_, call)| call.clone())
    }

    pub(super) fn leave(&self, id: CallId) {
        self.lock().remove(&id);
    }

    /// Returns all calls of the principal.
    pub(super) fn of(&self, owner: &Principal) -> Vec<Arc<C>> {
        self.lock().values().filter(|(other, _)| other == owner).map(|(_, call)| call.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, (Principal, Arc<C>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::testing::samples::call_id;

    #[test]
    fn parking_over_the_limit_evicts_the_oldest_waiting_call_of_the_same_principal() {
        let room = ParkedCallTable::new();
        let (one, other) = (Principal::local(), Principal::token("other"));
        let enter = |number: u32, owner| room.enter(call_id(number), owner, &Arc::new(number), |call| *call != 0);
        assert_eq!(enter(1000, &other), Ok(None));
        for number in 0..64 {
            assert_eq!(enter(number, &one), Ok(None));
        }
        assert_eq!(enter(63, &one), Ok(None), "who is in needs no second place");
        assert_eq!(enter(64, &one), Ok(Some(Arc::new(1))), "the first does not wait");
        assert!(room.find(call_id(1)).is_none() && room.find(call_id(0)).is_some() && room.find(call_id(64)).is_some());
        assert_eq!((room.of(&one).len(), room.of(&other).len()), (64, 1));
        room.leave(call_id(64));
        assert_eq!(enter(65, &one), Ok(None));
    }

    #[test]
    fn parked_calls_of_all_principals_together_are_limited() {
        let room = ParkedCallTable::new();
        let enter = |number: u32| {
            let owner = Principal::token(&format!("p{}", number / 32));
            room.enter(call_id(number), &owner, &Arc::new(()), |()| true)
        };
        assert!((0..1024).all(|number| enter(number) == Ok(None)));
        assert_eq!(enter(1024), Err(TooManyParkedCalls));
    }
}
