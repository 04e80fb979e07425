//! The open calls: those that run, and those that wait for an approver or for input from their client.

use crate::cancel_signal::CancelSignal;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;
use toolstead_domain::{CallId, CancelReason, Principal, RequestScope, ViewContent};

/// All open calls of this process, with their owners. Limits their number, and cancels them at shutdown.
///
/// ```
/// use toolstead_application::{cancel_signal::CancelSignal, open_calls::OpenCalls};
/// use toolstead_domain::{Principal, testing::samples::call_id};
///
/// let calls = OpenCalls::new(1);
/// let first = calls.admit(call_id(1), Principal::local(), CancelSignal::new());
/// assert!(first.is_ok());
/// assert!(calls.admit(call_id(2), Principal::local(), CancelSignal::new()).is_err());
/// drop(first);
/// assert!(calls.is_empty());
/// ```
#[derive(Debug)]
pub struct OpenCalls {
    calls: Mutex<HashMap<CallId, OpenCall>>,
    limit: usize,
    /// Number of calls that wait for their client and have no running part. Changed only under the lock.
    waiting: AtomicUsize,
    /// Notified when a call closes.
    closed: Notify,
    closing: CancelSignal,
    /// Given when all calls are cancelled. Until then, calls that wait for their clients can resume.
    ending: CancelSignal,
    /// Number of calls that [`end`](Self::end) cancelled; empty before.
    cancelled: OnceLock<usize>,
}

#[derive(Debug)]
struct OpenCall {
    owner: Principal,
    /// Contents of the views of the call that limit their open calls.
    limiting: Vec<Arc<ViewContent>>,
    cancel: CancelSignal,
    /// `true` while the call waits for its client.
    is_away: bool,
    /// Number of running calls in its tree, including itself.
    working: usize,
}

impl OpenCall {
    fn rests(&self) -> bool {
        self.is_away && self.working == 0
    }
}

/// An open call. Dropping it closes the call.
#[derive(Debug)]
pub struct OpenCallGuard {
    calls: Arc<OpenCalls>,
    id: CallId,
}

/// The reason why a call was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The maximum number of calls is open already.
    #[error("{0} calls are open already, which is the limit")]
    TooMany(usize),
    /// The maximum number of calls through a view is open already.
    #[error("{0} calls are open already in this view, which is its limit")]
    TooManyInView(usize),
    /// The runtime is shutting down.
    #[error("the runtime is shutting down")]
    Closing,
}

impl OpenCalls {
    /// Creates the registry with a limit of concurrent calls.
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
    /// [`NotAdmitted`] if the limit is reached, or if the runtime is shutting down.
    pub fn admit(
        self: &Arc<Self>,
        id: CallId,
        owner: Principal,
        cancel: CancelSignal,
    ) -> Result<OpenCallGuard, NotAdmitted> {
        self.open(id, owner, Vec::new(), cancel)
    }

    /// Opens a call in this scope, within the limits of its views.
    ///
    /// # Errors
    /// [`NotAdmitted`] if a limit is reached, or if the runtime is shutting down.
    pub fn admit_in(
        self: &Arc<Self>,
        id: CallId,
        scope: &RequestScope,
        cancel: CancelSignal,
    ) -> Result<OpenCallGuard, NotAdmitted> {
        let limiting = scope.contents().map(|(_, content)| content);
        let limiting = limiting.filter(|content| content.limits.open_calls.is_some()).cloned().collect();
        self.open(id, scope.principal.clone(), limiting, cancel)
    }

    fn open(
        self: &Arc<Self>,
        id: CallId,
        owner: Principal,
        limiting: Vec<Arc<ViewContent>>,
        cancel: CancelSignal,
    ) -> Result<OpenCallGuard, NotAdmitted> {
        let mut calls = self.lock();
        // Checked under the lock: once the runtime is closing, no call is admitted that shutdown would not wait for.
        if self.closing.reason().is_some() {
            return Err(NotAdmitted::Closing);
        }
        self.check_room(&calls, &limiting)?;
        calls.insert(id, OpenCall { owner, limiting, cancel, is_away: false, working: 1 });
        Ok(OpenCallGuard { calls: self.clone(), id })
    }

    /// Marks a call as waiting for its client. Once nothing in its tree runs, it does not count towards the limit: a
    /// client that never returns would otherwise block others.
    pub fn wait(&self, id: CallId) {
        self.change(&mut self.lock(), id, |call| call.is_away = true);
    }

    /// Resumes a call that waits for its client. Also succeeds for a call that is closed already, and for a waiting
    /// call while no new calls are admitted.
    ///
    /// # Errors
    /// [`NotAdmitted`] if the limit is reached, or if every call was [cancelled](Self::end). The call still waits then.
    pub fn resume(&self, id: CallId) -> Result<(), NotAdmitted> {
        let mut calls = self.lock();
        if let Some(call) = calls.get(&id).filter(|call| call.rests()) {
            if self.is_ended() {
                return Err(NotAdmitted::Closing);
            }
            self.check_room(&calls, &call.limiting)?;
        }
        self.change(&mut calls, id, |call| call.is_away = false);
        Ok(())
    }

    /// Adds a running call to the tree of an open call. The limit does not apply: calls in progress are not stopped,
    /// but new ones are refused until the number is below the limit.
    pub(crate) fn works(&self, id: CallId) {
        self.change(&mut self.lock(), id, |call| call.working += 1);
    }

    /// Removes a running call from the tree of an open call.
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

    /// Checks the limit of all calls, and those of the views of a call.
    fn check_room(&self, calls: &HashMap<CallId, OpenCall>, limiting: &[Arc<ViewContent>]) -> Result<(), NotAdmitted> {
        if calls.len() - self.waiting.load(Ordering::Relaxed) >= self.limit {
            return Err(NotAdmitted::TooMany(self.limit));
        }
        for view in limiting {
            let is_in_view =
                |call: &&OpenCall| !call.rests() && call.limiting.iter().any(|other| Arc::ptr_eq(other, view));
            let open = calls.values().filter(is_in_view).count();
            if let Some(limit) = view.limits.open_calls.filter(|limit| open >= *limit) {
                return Err(NotAdmitted::TooManyInView(limit));
            }
        }
        Ok(())
    }

    /// Waits until every call was [cancelled](Self::end).
    pub async fn ended(&self) {
        self.ending.cancelled().await;
    }

    /// Returns `true` if every call was [cancelled](Self::end).
    pub fn is_ended(&self) -> bool {
        self.ending.reason().is_some()
    }

    /// Returns `true` if no call is admitted any more.
    pub fn is_closed(&self) -> bool {
        self.closing.reason().is_some()
    }

    /// Returns the number of open calls.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns `true` if no call is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of open calls that wait for their clients and do nothing meanwhile.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the number of open calls of the principal.
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

    /// Waits until no call is open.
    pub async fn drained(&self) {
        self.at_most(0).await;
    }

    /// Waits until at most this number of calls is open.
    pub async fn at_most(&self, calls: usize) {
        loop {
            // Created before the count, so that a call which closes in between is not missed.
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
    use toolstead_domain::{PermissionPolicy, View, ViewCallLimits};
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
    fn a_view_limits_its_own_calls() {
        let calls = OpenCalls::new(8);
        let view = |name: &str| {
            let limits = ViewCallLimits { open_calls: Some(1), ..ViewCallLimits::default() };
            let content = ViewContent::default().with_limits(limits);
            View::with_content(name, Arc::new(PermissionPolicy::default()), content)
        };
        let (review, other) = (view("review"), view("other"));
        let admit = |id, view: &Arc<View>| {
            calls.admit_in(id, &RequestScope::default().through(view.clone()), CancelSignal::new())
        };
        let [one, two, three] = [(); 3].map(|()| CallId(Uuid::now_v7()));
        let first = admit(one, &review).unwrap();
        assert_eq!(admit(two, &review).unwrap_err(), NotAdmitted::TooManyInView(1));
        let narrower = RequestScope::default().through(review.clone()).narrowed_to(other.clone());
        assert!(calls.admit_in(two, &narrower, CancelSignal::new()).is_err(), "an outer view limits, too");
        let elsewhere = admit(two, &other).unwrap();
        assert!(calls.admit_in(three, &RequestScope::default(), CancelSignal::new()).is_ok());
        // A call that waits for its client does not count, and needs a place again to continue.
        calls.wait(one);
        calls.rests(one);
        let second = admit(three, &review).unwrap();
        assert_eq!(calls.resume(one), Err(NotAdmitted::TooManyInView(1)));
        drop(second);
        assert_eq!(calls.resume(one), Ok(()));
        drop((first, elsewhere));
        assert!(admit(one, &review).is_ok());
    }

    #[test]
    fn a_waiting_call_frees_its_slot_and_needs_a_slot_again_to_resume() {
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
        assert_eq!(calls.resume(one), Err(NotAdmitted::TooMany(1)));
        drop(second);
        assert_eq!((calls.resume(one), calls.resume(two)), (Ok(()), Ok(())));
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
        assert_eq!(calls.resume(two), Ok(()), "its client may answer while no new calls are admitted");
        calls.wait(two);
        calls.end();
        assert_eq!(calls.resume(two), Err(NotAdmitted::Closing));
        drop(third);
    }
}
