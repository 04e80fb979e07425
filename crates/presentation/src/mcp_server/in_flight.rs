//! The requests of one connection or session that are not answered yet.

use super::protocol_error::{invalid_request, quoted};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use toolstead_application::cancel_signal::CancelSignal;
use toolstead_domain::{error_kind::ErrorKind, tool_execution::CancelReason};
use toolstead_infrastructure::mcp::wire::message::{Id, RpcError};

/// Finds the running requests that a client wants to take back, and keeps ids apart.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    requests: Mutex<HashMap<Id, Vec<(u64, CancelSignal)>>>,
    begun: AtomicU64,
}

/// One running request; dropping it frees its id.
#[derive(Debug)]
pub(super) struct Running {
    in_flight: Arc<InFlight>,
    number: u64,
    /// The request's id.
    pub(super) id: Id,
    /// Ends it.
    pub(super) cancel: CancelSignal,
}

impl InFlight {
    /// Takes a request in whose answer is known by its id alone.
    ///
    /// # Errors
    /// -32600 while another one of the same id runs (MCP 2025-11-25, basic, "Requests").
    pub(super) fn begin(self: &Arc<Self>, id: Id) -> Result<Running, RpcError> {
        self.check_free(&id)?;
        Ok(self.begin_beside(id))
    }

    /// Takes a request in whose answer goes its own way, so that a second one of the same id does no harm: over HTTP
    /// each request has its own response. To take back such an id is to take back all that bear it.
    pub(super) fn begin_beside(self: &Arc<Self>, id: Id) -> Running {
        let cancel = CancelSignal::new();
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.lock().entry(id.clone()).or_default().push((number, cancel.clone()));
        Running { in_flight: self.clone(), number, id, cancel }
    }

    /// For a request that is answered at once and need not be taken in.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(super) fn check_free(&self, id: &Id) -> Result<(), RpcError> {
        if !self.lock().contains_key(id) {
            return Ok(());
        }
        let id = id.to_string();
        let message = format!("the id {} is in use by a request that is not answered yet", quoted(&id));
        Err(invalid_request(ErrorKind::InvalidInput, message))
    }

    /// Returns `true` if every request is answered.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The client takes a request back. Ids that are unknown or answered already are ignored, since the two may cross.
    pub(super) fn cancel(&self, id: &Id) {
        let requests = self.lock().get(id).cloned().unwrap_or_default();
        for (_, signal) in requests {
            signal.cancel(CancelReason::Client);
        }
    }

    /// Ends every request.
    pub(super) fn cancel_all(&self, reason: CancelReason) {
        let requests: Vec<_> = self.lock().values().flatten().cloned().collect();
        for (_, signal) in requests {
            signal.cancel(reason);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Vec<(u64, CancelSignal)>>> {
        // Nothing panics while it is held.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut requests = self.in_flight.lock();
        if let Some(of_this_id) = requests.get_mut(&self.id) {
            of_this_id.retain(|(number, _)| *number != self.number);
            if of_this_id.is_empty() {
                requests.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_refused_while_it_is_in_use_and_free_afterwards() {
        let requests = Arc::new(InFlight::default());
        let running = requests.begin(Id::Number(1)).unwrap();
        assert_eq!(requests.begin(Id::Number(1)).unwrap_err().code, -32600);
        let other = requests.begin(Id::Text("1".into())).unwrap();
        requests.cancel(&Id::Number(9));
        requests.cancel(&Id::Text("1".into()));
        assert_eq!((running.cancel.reason(), other.cancel.reason()), (None, Some(CancelReason::Client)));
        requests.cancel_all(CancelReason::Shutdown);
        assert_eq!(running.cancel.reason(), Some(CancelReason::Shutdown));
        assert_eq!(other.cancel.reason(), Some(CancelReason::Client));
        drop(running);
        assert!(requests.check_free(&Id::Number(1)).is_ok());
    }

    #[test]
    fn requests_beside_each_other_are_taken_back_together_and_end_alone() {
        let requests = Arc::new(InFlight::default());
        let (one, two) = (requests.begin_beside(Id::Number(1)), requests.begin_beside(Id::Number(1)));
        drop(one);
        assert!(requests.check_free(&Id::Number(1)).is_err());
        requests.cancel(&Id::Number(1));
        assert_eq!(two.cancel.reason(), Some(CancelReason::Client));
        drop(two);
        assert!(requests.check_free(&Id::Number(1)).is_ok());
    }
}
