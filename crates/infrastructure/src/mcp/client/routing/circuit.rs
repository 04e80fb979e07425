//! Circuit breaker: blocks calls to a server that fails repeatedly until one of them succeeds.

use crate::mcp::client::{config::Backoff, connection::request_error::RequestError, routing::pause::pause_after};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Number of consecutive failures that opens the circuit. Fewer may be chance; more only make callers wait.
const FAILURES: u32 = 5;
/// Maximum time for which a trial call blocks other calls.
const ALONE: Duration = Duration::from_secs(10);

/// Circuit breaker of one server. Calls pass while it is closed.
#[derive(Debug)]
pub(in crate::mcp::client) struct Circuit {
    retry: Backoff,
    state: Mutex<CircuitState>,
}

#[derive(Debug, Default)]
struct CircuitState {
    /// Consecutive failures while the circuit is closed.
    failures: u32,
    /// Number of consecutive times that the circuit was opened.
    opened: u32,
    open: Option<OpenCircuit>,
}

#[derive(Debug)]
struct OpenCircuit {
    /// Time from which one trial call may pass.
    until: Instant,
    /// Start of the trial call in progress.
    tried: Option<Instant>,
    reason: String,
    /// `true` if the last failure was a timeout.
    is_silent: bool,
}

/// Permission for a call to pass. Dropping it without an outcome lets another call try.
#[derive(Debug)]
pub(in crate::mcp::client) struct CallPermit<'a> {
    circuit: &'a Circuit,
    /// Start of the trial, if the circuit is open.
    tries: Option<Instant>,
}

impl Circuit {
    /// Creates a closed circuit. It opens for the same pauses as between connection attempts.
    pub(in crate::mcp::client) fn new(retry: Backoff) -> Self {
        Self { retry, state: Mutex::default() }
    }

    /// Lets a call pass.
    ///
    /// # Errors
    /// Returns [`RequestError::Unreachable`] with the time of the next trial while the circuit is open.
    pub(in crate::mcp::client) fn admit(&self) -> Result<CallPermit<'_>, RequestError> {
        let mut state = self.state();
        let Some(open) = &mut state.open else { return Ok(CallPermit { circuit: self, tries: None }) };
        let now = Instant::now();
        if open.is_tried(now) || now < open.until {
            return Err(RequestError::Unreachable(open.describe()));
        }
        open.tried = Some(now);
        Ok(CallPermit { circuit: self, tries: open.tried })
    }

    /// Returns the last failure and the time of the next trial, as text; `None` while the circuit is closed.
    pub(in crate::mcp::client) fn refusal(&self) -> Option<String> {
        self.state().open.as_ref().map(OpenCircuit::describe)
    }

    /// Returns the number of calls that may be trying the server, if the circuit is open because of a timeout;
    /// otherwise `None`.
    pub(in crate::mcp::client) fn tries_in_silence(&self) -> Option<usize> {
        let state = self.state();
        let open = state.open.as_ref().filter(|open| open.is_silent)?;
        Some(usize::from(open.tried.is_some()))
    }

    /// Records that the server has responded, with any result. Returns `true` if that closed the circuit.
    pub(in crate::mcp::client) fn answered(&self) -> bool {
        let mut state = self.state();
        let was_open = state.open.is_some();
        *state = CircuitState::default();
        was_open
    }

    /// Records that a call has failed with this error. Does nothing if the error is not due to the server, or if the
    /// call began before the circuit was opened. Returns `true` if the circuit opened, for the first time or again.
    pub(in crate::mcp::client) fn failed(&self, error: &RequestError) -> bool {
        if !is_of_the_server(error) {
            return false;
        }
        let mut state = self.state();
        match &state.open {
            // The call began before the circuit was opened.
            Some(open) if open.tried.is_none() => return false,
            Some(_) => {}
            None => {
                state.failures += 1;
                if state.failures < FAILURES {
                    return false;
                }
            }
        }
        state.opened = state.opened.saturating_add(1);
        let until = Instant::now() + pause_after(state.opened, self.retry);
        state.open = Some(OpenCircuit { until, tried: None, reason: error.to_string(), is_silent: is_silence(error) });
        true
    }

    fn state(&self) -> MutexGuard<'_, CircuitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenCircuit {
    fn is_tried(&self, now: Instant) -> bool {
        self.tried.is_some_and(|since| now < since + ALONE)
    }

    fn describe(&self) -> String {
        let now = Instant::now();
        let wait = self.until.saturating_duration_since(now);
        let when = match (self.is_tried(now), wait) {
            (true, _) => "another call is trying it just now".to_owned(),
            (false, Duration::ZERO) => "the next call tries it again".to_owned(),
            (false, wait) => format!("the next try is in {} s", wait.as_secs_f32().ceil()),
        };
        format!("it failed {FAILURES} times in a row or more, the last time because {}; {when}", self.reason)
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        if self.tries.is_some()
            && let Some(open) = &mut self.circuit.state().open
            && open.tried == self.tries
        {
            open.tried = None;
        }
    }
}

/// Returns `true` if no response arrived in time.
pub(in crate::mcp::client) fn is_silence(error: &RequestError) -> bool {
    matches!(error, RequestError::Late(_))
}

/// Returns `true` if the error shows a problem of the server rather than of the request.
fn is_of_the_server(error: &RequestError) -> bool {
    match error {
        RequestError::Lost(_) | RequestError::Unreachable(_) | RequestError::Late(_) => true,
        RequestError::Http { status, .. } => *status >= 500 || *status == 408,
        RequestError::Rpc(_)
        | RequestError::Malformed(_)
        | RequestError::Unauthorized(_)
        | RequestError::TooLarge { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::wire::message::RpcError;
    use tokio::time::advance;

    fn down() -> RequestError {
        RequestError::Http { status: 503, detail: String::new() }
    }

    fn circuit() -> Circuit {
        Circuit::new(Backoff { first: Duration::from_secs(10), longest: Duration::from_secs(60) })
    }

    #[tokio::test(start_paused = true)]
    async fn five_consecutive_failures_open_the_circuit_and_one_call_at_a_time_probes_it() {
        let circuit = circuit();
        for _ in 0..4 {
            assert!(!circuit.failed(&down()));
        }
        assert!(!circuit.answered());
        assert_eq!((0..5).map(|_| circuit.failed(&down())).collect::<Vec<_>>(), [false, false, false, false, true]);
        let refused = circuit.admit().unwrap_err().to_string();
        assert!(refused.contains("HTTP status 503; the next try is in 10 s"), "{refused}");
        advance(Duration::from_secs(10)).await;
        let pass = circuit.admit().unwrap();
        assert!(circuit.admit().unwrap_err().to_string().ends_with("another call is trying it just now"));
        drop(pass);
        let pass = circuit.admit().unwrap();
        assert!(circuit.failed(&down()));
        drop(pass);
        advance(Duration::from_secs(11)).await;
        assert!(circuit.admit().is_err(), "left alone longer each time");
        advance(Duration::from_secs(20)).await;
        let pass = circuit.admit().unwrap();
        assert!(circuit.answered());
        drop(pass);
        assert!(circuit.refusal().is_none() && circuit.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_probing_call_does_not_block_the_next_probe() {
        let circuit = circuit();
        assert!((0..5).any(|_| circuit.failed(&down())));
        advance(Duration::from_secs(10)).await;
        let slow = circuit.admit().unwrap();
        advance(Duration::from_secs(9)).await;
        assert!(circuit.admit().is_err());
        advance(Duration::from_secs(2)).await;
        let next = circuit.admit().unwrap();
        drop(slow);
        assert!(circuit.admit().is_err(), "the next one tries");
        assert!(circuit.answered());
        drop(next);
        assert!(circuit.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn request_errors_do_not_open_the_circuit() {
        let circuit = circuit();
        let of_requests = [
            RequestError::Rpc(RpcError::new(RpcError::INTERNAL, "no")),
            RequestError::Malformed("x".into()),
            RequestError::Http { status: 404, detail: String::new() },
            RequestError::Http { status: 429, detail: String::new() },
        ];
        assert!(of_requests.iter().cycle().take(40).all(|error| !circuit.failed(error)));
    }
}
