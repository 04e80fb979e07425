//! The calls that are open: running, or waiting for a person or for input from their client.

use crate::cancel_signal::CancelSignal;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;
use toolstead_domain::{principal::Principal, tool_call::CallId, tool_execution::CancelReason};

/// All open calls of this process, with their owners. It bounds their number, and ends them at shutdown.
#[derive(Debug)]
pub struct OpenCalls {
    calls: Mutex<HashMap<CallId, OpenCall>>,
    limit: usize,
    /// How many of the calls wait for their client to come back, and do nothing. Changes under the lock alone.
    waiting: AtomicUsize,
    /// Notified when a call closes.
    closed: Notify,
    closing: CancelSignal,
    /// Given when every call is cancelled. Calls that wait for their clients resume until then.
    ending: CancelSignal,
    /// Number of calls that were cancelled then.
    cancelled: OnceLock<usize>,
}

#[derive(Debug)]
struct OpenCall {
    owner: Principal,
    cancel: CancelSignal,
    /// It waits for its client to come back.
    is_away: bool,
    /// How many calls of its tree do something, itself among them.
    working: usize,
}

impl OpenCall {
    fn rests(&self) -> bool {
        self.is_away && self.working == 0
    }
}

/// Keeps one call open; dropping it closes the call.
#[derive(Debug)]
pub struct OpenCallGuard {
    calls: Arc<OpenCalls>,
    id: CallId,
}

/// Why a call was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// As many calls as allowed are open already.
    #[error("{0} calls are open already, which is the limit")]
    TooMany(usize),
    /// The runtime shuts down.
    #[error("the runtime is shutting down")]
    Closing,
}

impl OpenCalls {
    /// Room for `limit` calls at once.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::default(),
            limit,
            waiting: AtomicUsize::new(0),
            closed: Notify::new(),
            closing: CancelSignal::new(),
            ending: CancelSignal::new(),
            cancelled: OnceLock::new(),
        })
    }

    /// Opens a call.
    ///
    /// # Errors
    /// [`NotAdmitted`] when there is no room, or no time left.
    pub fn admit(
        self: &Arc<Self>,
        id: CallId,
        owner: Principal,
        cancel: CancelSignal,
    ) -> Result<OpenCallGuard, NotAdmitted> {
        let mut calls = self.lock();
        // Under the lock: once it closes, nothing is let in that nobody waits for.
        if self.closing.reason().is_some() {
            return Err(NotAdmitted::Closing);
        }
        self.check_room(calls.len())?;
        calls.insert(id, OpenCall { owner, cancel, is_away: false, working: 1 });
        Ok(OpenCallGuard { calls: self.clone(), id })
    }

    /// A call waits for its client to come back. It takes no room meanwhile, as soon as nothing of it works: it does nothing,
    /// and a client that never comes would keep others out.
    pub fn wait(&self, id: CallId) {
        self.change(&mut self.lock(), id, |call| call.is_away = true);
    }

    /// Resumes a call that waits for its client. Succeeds also for a call that is not open any more, and for one that
    /// waits while no new calls are admitted.
    ///
    /// # Errors
    /// [`NotAdmitted`] if there is no room, or every call was [ended](Self::end). The call then still waits.
    pub fn go_on(&self, id: CallId) -> Result<(), NotAdmitted> {
        let mut calls = self.lock();
        if calls.get(&id).is_some_and(OpenCall::rests) {
            if self.is_ended() {
                return Err(NotAdmitted::Closing);
            }
            self.check_room(calls.len())?;
        }
        self.change(&mut calls, id, |call| call.is_away = false);
        Ok(())
    }

    /// One more call of the tree below an open call works. It goes on whether there is room or not: what is under way is not
    /// stopped, and nothing new is let in until there is.
    pub(crate) fn works(&self, id: CallId) {
        self.change(&mut self.lock(), id, |call| call.working += 1);
    }

    /// One call less of the tree works.
    pub(crate) fn rests(&self, id: CallId) {
        self.change(&mut self.lock(), id, |call| call.working = call.working.saturating_sub(1));
    }

    fn change(&self, calls: &mut HashMap<CallId, OpenCall>, id: CallId, change: impl FnOnce(&mut OpenCall)) {
        let Some(call) = calls.get_mut(&id) else { return };
        let rested = call.rests();
        change(call);
        match (rested, call.rests()) {
            (false, true) => drop(self.waiting.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.waiting.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, OpenCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_room(&self, open: usize) -> Result<(), NotAdmitted> {
        match open - self.waiting.load(Ordering::Relaxed) < self.limit {
            true => Ok(()),
            false => Err(NotAdmitted::TooMany(self.limit)),
        }
    }

    /// Returns once every call was [ended](Self::end).
    pub async fn ended(&self) {
        self.ending.cancelled().await;
    }

    /// Returns `true` if every call was [ended](Self::end).
    pub fn is_ended(&self) -> bool {
        self.ending.reason().is_some()
    }

    /// True once no call is let in any more.
    pub fn is_closed(&self) -> bool {
        self.closing.reason().is_some()
    }

    /// How many calls are open.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of open calls that wait for their clients and do nothing meanwhile.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many of them belong to the principal.
    pub fn owned_by(&self, principal: &Principal) -> usize {
        let calls = self.lock();
        calls.values().filter(|call| call.owner == *principal).count()
    }

    /// Admits no new calls. Open calls run to their end, and those that wait for their clients can resume.
    pub fn close(&self) {
        let _calls = self.lock();
        self.closing.cancel(CancelReason::Shutdown);
    }

    /// Admits no new calls, cancels every open call, also those that wait for their clients, and returns their number.
    /// Later calls change nothing and return the same number.
    pub fn end(&self) -> usize {
        let calls = self.lock();
        *self.cancelled.get_or_init(|| {
            self.closing.cancel(CancelReason::Shutdown);
            self.ending.cancel(CancelReason::Shutdown);
            for call in calls.values() {
                call.cancel.cancel(CancelReason::Shutdown);
            }
            calls.len()
        })
    }

    /// Returns when no call is open.
    pub async fn drained(&self) {
        self.at_most(0).await;
    }

    /// Returns when no more calls than these are open.
    pub async fn at_most(&self, calls: usize) {
        loop {
            // Before the count: a call that closes in between is not missed.
            let closed = self.closed.notified();
            if self.len() <= calls {
                return;
            }
            closed.await;
        }
    }
}

impl Drop for OpenCallGuard {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        if calls.remove(&self.id).is_some_and(|call| call.rests()) {
            self.calls.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        drop(calls);
        self.calls.closed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[tokio::test]
    async fn calls_are_bounded_and_drained() {
        let calls = OpenCalls::new(1);
        let signal = CancelSignal::new();
        let admit = || calls.admit(CallId(Uuid::now_v7()), Principal::local(), signal.clone());
        let first = admit().unwrap();
        assert_eq!(admit().unwrap_err(), NotAdmitted::TooMany(1));
        assert_eq!((calls.len(), calls.owned_by(&Principal::local())), (1, 1));
        calls.close();
        assert_eq!(admit().unwrap_err(), NotAdmitted::Closing);
        assert_eq!(signal.reason(), None, "an open call runs to its end");
        assert_eq!(calls.end(), 1);
        assert_eq!(signal.reason(), Some(CancelReason::Shutdown));
        drop(first);
        calls.drained().await;
        assert_eq!(calls.end(), 1, "the number of those that it cancelled");
    }

    #[test]
    fn a_call_that_waits_takes_no_room_and_needs_it_again_to_go_on() {
        let calls = OpenCalls::new(1);
        let [one, two] = [CallId(Uuid::now_v7()), CallId(Uuid::now_v7())];
        let admit = |id| calls.admit(id, Principal::local(), CancelSignal::new());
        let first = admit(one).unwrap();
        calls.wait(one);
        assert!(admit(two).is_err(), "something of it works");
        calls.rests(one);
        calls.wait(one);
        let second = admit(two).unwrap();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls.go_on(one), Err(NotAdmitted::TooMany(1)));
        drop(second);
        assert_eq!((calls.go_on(one), calls.go_on(two)), (Ok(()), Ok(())));
        assert!(admit(two).is_err());
        calls.works(one);
        calls.wait(one);
        calls.rests(one);
        drop(first);
        let third = admit(two).unwrap();
        assert!(admit(one).is_err(), "what went while it waited leaves no room behind");
        calls.rests(two);
        calls.wait(two);
        calls.close();
        assert_eq!(calls.waiting(), 1);
        assert_eq!(calls.go_on(two), Ok(()), "its client may answer while no new calls are admitted");
        calls.wait(two);
        calls.end();
        assert_eq!(calls.go_on(two), Err(NotAdmitted::Closing));
        drop(third);
    }
}
