//! Open requests of one connection or session.

use super::protocol_error::{invalid_request, quoted};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use toolstead_application::CancelSignal;
use toolstead_domain::{CancelReason, error_kind::ErrorKind};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

/// Finds the requests that a client cancels, and detects duplicate ids.
#[derive(Debug, Default)]
pub(super) struct InFlightRequests {
    requests: Mutex<HashMap<RequestId, SameIdRequests>>,
    begun: AtomicU64,
}

/// Running requests with the same id. Few clients have more than one, so that most need no list.
#[derive(Debug)]
struct SameIdRequests {
    one: (u64, CancelSignal),
    others: Vec<(u64, CancelSignal)>,
}

impl SameIdRequests {
    fn signals(&self) -> impl Iterator<Item = CancelSignal> {
        std::iter::once(&self.one).chain(&self.others).map(|(_, signal)| signal.clone())
    }
}

/// A running request. Dropping it releases its id.
#[derive(Debug)]
pub(super) struct RunningRequest {
    in_flight: Arc<InFlightRequests>,
    number: u64,
    /// Id of the request.
    pub(super) id: RequestId,
    /// Cancels the request.
    pub(super) cancel: CancelSignal,
}

impl InFlightRequests {
    /// Registers a request whose answer is identified only by its id.
    ///
    /// # Errors
    /// -32600 if another request with the same id is running (MCP 2025-11-25, basic, "Requests").
    pub(super) fn begin(self: &Arc<Self>, id: RequestId) -> Result<RunningRequest, RpcError> {
        self.check_free(&id)?;
        Ok(self.begin_beside(id))
    }

    /// Registers a request whose answer has its own channel, so that another request with the same id is allowed: over
    /// HTTP, each request has its own response. Cancelling the id cancels all of them.
    pub(super) fn begin_beside(self: &Arc<Self>, id: RequestId) -> RunningRequest {
        let cancel = CancelSignal::new();
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let request = (number, cancel.clone());
        match self.lock().entry(id.clone()) {
            Entry::Vacant(vacant) => _ = vacant.insert(SameIdRequests { one: request, others: Vec::new() }),
            Entry::Occupied(occupied) => occupied.into_mut().others.push(request),
        }
        RunningRequest { in_flight: self.clone(), number, id, cancel }
    }

    /// Checks the id of a request that is answered immediately and not registered.
    ///
    /// # Errors
    /// The errors of [`begin`](Self::begin).
    pub(super) fn check_free(&self, id: &RequestId) -> Result<(), RpcError> {
        if !self.lock().contains_key(id) {
            return Ok(());
        }
        let id = id.to_string();
        let message = format!("the id {} is in use by a request that is not answered yet", quoted(&id));
        Err(invalid_request(ErrorKind::InvalidInput, message))
    }

    /// Returns `true` if there is no open request.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Cancels a request of the client. Unknown ids are ignored, because the answer and the cancellation may cross.
    pub(super) fn cancel(&self, id: &RequestId) {
        let signals: Vec<_> = self.lock().get(id).into_iter().flat_map(SameIdRequests::signals).collect();
        for signal in signals {
            signal.cancel(CancelReason::Client);
        }
    }

    /// Cancels every request.
    pub(super) fn cancel_all(&self, reason: CancelReason) {
        let signals: Vec<_> = self.lock().values().flat_map(SameIdRequests::signals).collect();
        for signal in signals {
            signal.cancel(reason);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, SameIdRequests>> {
        // Nothing panics while the lock is held.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let mut requests = self.in_flight.lock();
        let Some(same) = requests.get_mut(&self.id) else { return };
        if same.one.0 != self.number {
            same.others.retain(|(number, _)| *number != self.number);
        } else if let Some(other) = same.others.pop() {
            same.one = other;
        } else {
            requests.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_refused_while_it_is_in_use_and_free_afterwards() {
        let requests = Arc::new(InFlightRequests::default());
        let running = requests.begin(RequestId::Number(1)).unwrap();
        assert_eq!(requests.begin(RequestId::Number(1)).unwrap_err().code, -32600);
        let other = requests.begin(RequestId::Text("1".into())).unwrap();
        requests.cancel(&RequestId::Number(9));
        requests.cancel(&RequestId::Text("1".into()));
        assert_eq!((running.cancel.reason(), other.cancel.reason()), (None, Some(CancelReason::Client)));
        requests.cancel_all(CancelReason::Shutdown);
        assert_eq!(running.cancel.reason(), Some(CancelReason::Shutdown));
        assert_eq!(other.cancel.reason(), Some(CancelReason::Client));
        drop(running);
        assert!(requests.check_free(&RequestId::Number(1)).is_ok());
    }

    #[test]
    fn requests_with_the_same_id_are_cancelled_together_and_end_separately() {
        let requests = Arc::new(InFlightRequests::default());
        let (one, two) = (requests.begin_beside(RequestId::Number(1)), requests.begin_beside(RequestId::Number(1)));
        drop(one);
        assert!(requests.check_free(&RequestId::Number(1)).is_err());
        requests.cancel(&RequestId::Number(1));
        assert_eq!(two.cancel.reason(), Some(CancelReason::Client));
        drop(two);
        assert!(requests.check_free(&RequestId::Number(1)).is_ok());
        let [one, two, three] = [0; 3].map(|_| requests.begin_beside(RequestId::Number(1)));
        drop(two);
        requests.cancel(&RequestId::Number(1));
        assert_eq!([one.cancel.reason(), three.cancel.reason()], [Some(CancelReason::Client); 2]);
        drop((three, one));
        assert!(requests.is_empty());
    }
}
