//! Parked calls: calls that wait for answers of a client which answers with a retry (MCP 2026-07-28,
//! basic/patterns/mrtr). The call continues to wait, and its client receives the questions and a sealed state. The
//! retry attaches to the same call: nothing runs a second time, and one audit record stays open over all rounds.

pub(super) mod parked_call;
pub(super) mod rounds;
mod sealed_state;
mod waiting_room;

use super::{command::ExecuteToolCommand, error::ExecuteToolError, record::each_piece};
use crate::open_calls::{NotAdmitted, OpenCalls};
use parked_call::{AttachError, CallProperties, ParkedCall};
use sealed_state::{Digest, RequestStateKey};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolstead_domain::{CallId, CancelReason, Principal, RequestScope, ToolFailure, error_kind::ErrorKind};
use waiting_room::ParkedCallTable;

/// Client capabilities for questions. A client with none of them cannot be asked.
const CAPABILITIES: &[&str] = &["elicitation", "sampling", "roots"];

/// Parked calls that their clients may resume.
pub(super) struct ParkedCalls {
    room: Arc<ParkedCallTable<ParkedCall>>,
    seal: Arc<RequestStateKey>,
    open_calls: Arc<OpenCalls>,
    retry_timeout: Duration,
}

impl ParkedCalls {
    /// Creates the store of parked calls. Each waits for its client for at most `patience`.
    pub(super) fn new(open_calls: Arc<OpenCalls>, patience: Duration) -> Self {
        Self {
            room: Arc::new(ParkedCallTable::new()),
            seal: Arc::new(RequestStateKey::new()),
            open_calls,
            retry_timeout: patience,
        }
    }

    /// Returns a call that can be parked; `None` if the client cannot be asked or does not answer with retries.
    pub(super) fn parkable_call(&self, id: CallId, command: &ExecuteToolCommand) -> Option<Arc<ParkedCall>> {
        let declared = &command.client.capabilities;
        if !command.caller.answers_by_retry() || !CAPABILITIES.iter().any(|name| declared.contains_key(*name)) {
            return None;
        }
        let terms = CallProperties {
            id,
            principal: command.scope.principal.clone(),
            session: command.scope.session.clone(),
            owner: owner(&command.scope),
            request: request(command),
            client: command.client.clone(),
            cancel: command.cancel.clone(),
            retry_timeout: self.retry_timeout,
            seal: self.seal.clone(),
            room: self.room.clone(),
            open_calls: self.open_calls.clone(),
        };
        Some(ParkedCall::new(terms, command.caller.clone()))
    }

    /// Attaches the retry to its parked call, which resumes; `None` if the command is not a retry.
    ///
    /// # Errors
    /// A refusal if the state does not match a parked call of this client, if the retry is too late, or if no further
    /// call may run now. No call is changed then.
    pub(super) fn attach(&self, command: &ExecuteToolCommand) -> Option<Result<Arc<ParkedCall>, ExecuteToolError>> {
        let state = self.seal.open(command.request_state.as_deref()?);
        let unfit = |why: &str| {
            let failure = ToolFailure::new(
                ErrorKind::InvalidInput,
                format!("`requestState` does not belong to an open question: {why}."),
            );
            let next = "Call again without `requestState` and `inputResponses`.";
            ExecuteToolError::NotCallable(failure.next(next))
        };
        let late = || {
            let failure = ToolFailure::new(ErrorKind::ApprovalTimeout, "The answer came too late: the call has ended.");
            ExecuteToolError::Refused(failure.next("Call again to be asked again."))
        };
        let Some(state) = state else {
            return Some(Err(unfit("it was changed, or made before this process started")));
        };
        Some(if state.owner != owner(&command.scope) {
            Err(unfit("the call belongs to another client or another session"))
        } else if state.request != request(command) {
            Err(unfit("it was given for another tool or other arguments"))
        } else if state.until <= Instant::now() {
            Err(late())
        } else {
            let answers = command.answers.as_ref();
            let attached = self.room.find(state.call).ok_or(AttachError::Used).and_then(|call| {
                call.attach(state.round, command.caller.clone(), answers)?;
                Ok(call)
            });
            attached.map_err(|why| match why {
                AttachError::Used => unfit("it was used already, or the call has ended"),
                AttachError::NotAdmitted(NotAdmitted::Closing) => ExecuteToolError::Cancelled(CancelReason::Shutdown),
                AttachError::NotAdmitted(why @ (NotAdmitted::TooMany(_) | NotAdmitted::TooManyInView(_))) => {
                    let failure = ToolFailure::new(ErrorKind::RateLimited, why.to_string());
                    ExecuteToolError::Refused(
                        failure.next("The call is still waiting: send the same answers again later."),
                    )
                }
            })
        })
    }

    /// Cancels the parked calls of a session that ended.
    pub(super) fn session_ended(&self, principal: &Principal, session: &str) {
        for call in self.room.of(principal) {
            if *call.terms.session == *session && call.is_waiting() {
                call.cancel();
            }
        }
    }
}

fn owner(scope: &RequestScope) -> Digest {
    let mut hasher = Sha256::new();
    each_piece(&(scope.principal.id(), &*scope.session), |piece| hasher.update(piece));
    hasher.finalize().into()
}

/// Returns the digest of tool and arguments as sent. The order of members does not matter.
fn request(command: &ExecuteToolCommand) -> Digest {
    let mut hasher = Sha256::new();
    // A request of another kind may have the name of a tool.
    let kind = command.answered_by.as_ref().map(|answerer| answerer.kind).unwrap_or_default();
    each_piece(&(kind.as_str(), &command.tool), |piece| hasher.update(piece));
    match &command.arguments {
        Value::Null => hasher.update(b"{}"),
        arguments => feed(arguments, &mut hasher),
    }
    hasher.finalize().into()
}

fn feed(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                feed(item, hasher);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            hasher.update(b"{");
            for (name, value) in members {
                each_piece(name, |piece| hasher.update(piece));
                hasher.update(b":");
                feed(value, hasher);
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        plain => drop(each_piece(plain, |piece| hasher.update(piece))),
    }
}
