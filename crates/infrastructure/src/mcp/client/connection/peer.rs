//! State of one upstream connection: pending requests, and messages that the server sends on its own. Shared by all
//! transports.

use crate::mcp::{
    client::{
        connection::{
            foreign_text::shown,
            in_flight::{PendingPrincipals, PendingRequest, PendingRequests},
            own_members,
            request_error::RequestError,
        },
        context::notice_queue::NoticeQueue,
    },
    wire::{
        cut_message::TruncatedMessage,
        incoming::{RawResponse, UnreadableMessage},
        message::{RequestId, RpcError, RpcMessage},
    },
};
use serde_json::{Map, Value};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use toolstead_domain::{ClientCapability, ContextNotice, InputRequest, LogMessage, Progress, ServerName};

/// Maximum length of a server's log text in our own log, in characters.
const LOGGED_CHARACTERS: usize = 500;
/// Maximum length of the URI of a changed resource, in bytes. Longer ones are not reported.
const MAX_URI: usize = 8 << 10;
/// Maximum size of a log message outside of a call, in bytes. Larger ones are not forwarded.
const MAX_LOG: usize = 64 << 10;
/// Number of bytes inspected at either end of an invalid message.
const LOOKED_AT_BYTES: usize = 2000;

/// State of one connection to a server: its pending requests and its unsolicited messages.
#[derive(Debug)]
pub(in crate::mcp::client) struct UpstreamConnectionState {
    /// Name of the server in Toolstead.
    pub(in crate::mcp::client) server: ServerName,
    /// Pending requests.
    pub(in crate::mcp::client) in_flight: PendingRequests,
    /// Notified when the server's tools may have changed.
    pub(in crate::mcp::client) list_changed: Notify,
    /// Notified when the server's resources or prompts may have changed.
    /// [`take_context_changes`](Self::take_context_changes) returns which.
    pub(in crate::mcp::client) context_changed: Notify,
    resources_changed: AtomicBool,
    prompts_changed: AtomicBool,
    /// Notified when a modern server has acknowledged a subscription.
    pub(in crate::mcp::client) acknowledged: Notify,
    /// Notifications that belong to no call.
    pub(in crate::mcp::client) notices: NoticeQueue,
    /// Capabilities that we declared to the server (MCP's `ClientCapabilities`).
    pub(in crate::mcp::client) capabilities: Map<String, Value>,
    /// `true` if one client makes all calls on the connection, so that every question is for this client.
    pub(in crate::mcp::client) is_of_one_client: bool,
    lost: watch::Sender<Option<ConnectionLoss>>,
    /// Time until which the server has asked not to be called (`Retry-After`).
    busy_until: Mutex<Option<Instant>>,
    noise: AtomicU64,
    unexpected: AtomicU64,
}

/// Reason why a connection is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp::client) enum ConnectionLoss {
    /// Failure, with its description.
    Failed(String),
    /// The server requires a login. The text is the server's.
    Unauthorized(String),
}

/// Immediate response to a request of the server.
pub(in crate::mcp::client) type ServerRequestResponse = (RequestId, Result<Value, RpcError>);

impl UpstreamConnectionState {
    /// Creates the state of a new connection.
    pub(in crate::mcp::client) fn new(server: ServerName, capabilities: Map<String, Value>) -> Self {
        Self {
            server,
            in_flight: PendingRequests::default(),
            list_changed: Notify::new(),
            context_changed: Notify::new(),
            resources_changed: AtomicBool::new(false),
            prompts_changed: AtomicBool::new(false),
            acknowledged: Notify::new(),
            notices: NoticeQueue::default(),
            capabilities,
            is_of_one_client: false,
            lost: watch::Sender::new(None),
            busy_until: Mutex::default(),
            noise: AtomicU64::new(0),
            unexpected: AtomicU64::new(0),
        }
    }

    /// Ends the connection. All pending requests fail with this reason.
    pub(in crate::mcp::client) fn end(&self, reason: &str) {
        self.in_flight.end(reason);
        self.mark_unusable(ConnectionLoss::Failed(reason.to_owned()));
    }

    /// Marks the connection as unusable. Pending requests continue.
    pub(in crate::mcp::client) fn mark_unusable(&self, loss: ConnectionLoss) {
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            lost.get_or_insert(loss);
            first
        });
    }

    /// Returns `true` if the connection is unusable.
    pub(in crate::mcp::client) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Records that the server has asked not to be called for this time.
    pub(in crate::mcp::client) fn set_busy_for(&self, wish: Duration) {
        let until = Instant::now().checked_add(wish);
        *self.busy_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Returns the remaining time for which the server has asked not to be called, if any.
    pub(in crate::mcp::client) fn requested_pause(&self) -> Option<Duration> {
        let until = (*self.busy_until.lock().unwrap_or_else(PoisonError::into_inner))?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Waits until the connection is unusable and returns the reason.
    pub(in crate::mcp::client) async fn wait_for_loss(&self) -> ConnectionLoss {
        let mut lost = self.lost.subscribe();
        // The sender is a field of `self`, so waiting cannot fail.
        let loss = lost.wait_for(Option::is_some).await.ok().and_then(|loss| loss.clone());
        loss.unwrap_or_else(|| ConnectionLoss::Failed(String::new()))
    }

    /// Marks all lists as possibly changed. Servers do not repeat notifications that no connection received.
    pub(in crate::mcp::client) fn everything_changed(&self) {
        self.list_changed.notify_one();
        self.context_list_changed(true, true);
    }

    /// Marks resources, prompts or both as possibly changed.
    pub(in crate::mcp::client) fn context_list_changed(&self, resources: bool, prompts: bool) {
        self.resources_changed.fetch_or(resources, Ordering::AcqRel);
        self.prompts_changed.fetch_or(prompts, Ordering::AcqRel);
        self.context_changed.notify_one();
    }

    /// Returns `true` for the resources and `true` for the prompts if they may have changed since the previous call.
    pub(in crate::mcp::client) fn take_context_changes(&self) -> (bool, bool) {
        (self.resources_changed.swap(false, Ordering::AcqRel), self.prompts_changed.swap(false, Ordering::AcqRel))
    }

    /// Returns the number of lines that were not valid messages.
    pub(in crate::mcp::client) fn noise(&self) -> u64 {
        self.noise.load(Ordering::Relaxed)
    }

    /// Returns the number of responses without a pending request.
    pub(in crate::mcp::client) fn unexpected_answers(&self) -> u64 {
        self.unexpected.load(Ordering::Relaxed)
    }

    /// Delivers a response to its pending request. Counts and drops a response without one.
    pub(in crate::mcp::client) fn take_answer(&self, answer: RawResponse) {
        let id = answer.id().clone();
        if !self.in_flight.settle(&id, Ok(answer)) {
            self.drop_answer(&id);
        }
    }

    /// Counts a response without a pending request: the request was cancelled or answered before, or never made.
    pub(in crate::mcp::client) fn drop_answer(&self, id: &RequestId) {
        self.unexpected.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(server = %self.server, %id, "dropped a response without a pending request");
    }

    /// Handles an invalid message. If it was meant as a response, its request fails; otherwise it is only counted.
    pub(in crate::mcp::client) fn take_unreadable(&self, UnreadableMessage { malformed, bytes }: UnreadableMessage) {
        let error = || RequestError::Malformed(malformed.error.message.clone());
        if let (Some(id), true) = (&malformed.id, malformed.is_response) {
            if !self.in_flight.settle(id, Err(error())) {
                self.drop_answer(id);
            }
            return;
        }
        // Invalid JSON may still contain the id of its request.
        let end = &bytes[bytes.len().saturating_sub(LOOKED_AT_BYTES)..];
        let start = &bytes[..bytes.len().min(LOOKED_AT_BYTES)];
        let is_broken = malformed.error.code == RpcError::PARSE;
        if is_broken
            && let TruncatedMessage::Answer(Some(id)) | TruncatedMessage::Unknown(Some(id)) =
                TruncatedMessage::read(start, end)
            && self.in_flight.settle(&id, Err(error()))
        {
            return;
        }
        self.noise.fetch_add(1, Ordering::Relaxed);
        if tracing::enabled!(tracing::Level::DEBUG) {
            let text = shown(&String::from_utf8_lossy(start), LOGGED_CHARACTERS);
            tracing::debug!(server = %self.server, reason = %malformed.error, text, "skipped invalid input");
        }
    }

    /// Handles a request or notification, and returns the immediate response to a request, if there is one. `call` is
    /// the call whose stream carried the message. On a shared channel it is `None`, and a message without a call id
    /// belongs to the call in flight if there is exactly one.
    pub(in crate::mcp::client) fn handle_message(
        &self,
        message: RpcMessage,
        call: Option<&Arc<PendingRequest>>,
    ) -> Option<ServerRequestResponse> {
        match message {
            RpcMessage::Request { id, method, params } => self.answer_request(id, method, params, call),
            RpcMessage::Notification { method, params } => {
                self.handle_notification(&method, params, call);
                None
            }
            RpcMessage::Response { id, .. } => {
                self.drop_answer(&id);
                None
            }
        }
    }

    fn handle_notification(&self, method: &str, mut params: Map<String, Value>, call: Option<&Arc<PendingRequest>>) {
        own_members::take_out(&mut params);
        match method {
            "notifications/tools/list_changed" => self.list_changed.notify_one(),
            "notifications/resources/list_changed" => self.context_list_changed(true, false),
            "notifications/prompts/list_changed" => self.context_list_changed(false, true),
            "notifications/subscriptions/acknowledged" => self.acknowledged.notify_one(),
            "notifications/resources/updated" => {
                if let Some(uri) = params.get("uri").and_then(Value::as_str).filter(|uri| uri.len() <= MAX_URI) {
                    self.notices.push(ContextNotice::ResourceUpdated { uri: uri.to_owned() });
                }
            }
            "notifications/progress" => {
                let token = params.get("progressToken").and_then(RequestId::from_value);
                let taken =
                    token.zip(Progress::from_params(params)).map(|(token, at)| self.in_flight.progress(&token, at));
                if taken != Some(true) {
                    tracing::trace!(server = %self.server, "dropped progress without a pending request");
                }
            }
            "notifications/message" => {
                let call = call.filter(|call| call.is_call()).cloned().or_else(|| self.in_flight.sole_call());
                match (call, LogMessage::from_params(params)) {
                    (Some(call), Some(message)) => call.push_log(message),
                    (None, Some(message)) => self.log(message),
                    (_, None) => {}
                }
            }
            "notifications/cancelled" => {
                let question = params.get("requestId").and_then(RequestId::from_value);
                if !question.is_some_and(|question| self.in_flight.withdraw(&question)) {
                    tracing::trace!(server = %self.server, "ignored the cancellation of an unknown request");
                }
            }
            "notifications/elicitation/complete" => {
                let page = params.get("elicitationId").and_then(Value::as_str);
                if !page.is_some_and(|page| self.in_flight.completed(page)) {
                    tracing::trace!(server = %self.server, "ignored the completion of an unknown elicitation");
                }
            }
            _ => tracing::trace!(server = %self.server, method = shown(method, 80), "ignored a notification"),
        }
    }

    /// Logs a message that belongs to no certain call, and forwards it for the principal of the calls in flight. Does
    /// not forward it if those have several principals, or if it is too large.
    fn log(&self, message: LogMessage) {
        let text = message.data.as_str().map_or_else(|| message.data.to_string(), str::to_owned);
        let (level, line) = (message.level.as_str(), shown(&text, LOGGED_CHARACTERS));
        tracing::debug!(server = %self.server, level, text = line, "the server logged");
        let principal = match self.in_flight.callers() {
            PendingPrincipals::None => None,
            PendingPrincipals::One(principal) => Some(principal),
            PendingPrincipals::Several => return,
        };
        if text.len() > MAX_LOG || Value::Object(message.members.clone()).to_string().len() > MAX_LOG {
            return;
        }
        let logger = match &message.logger {
            Some(logger) => format!("{}/{logger}", self.server),
            None => self.server.to_string(),
        };
        self.notices.push(ContextNotice::Log { message: message.by(logger), principal });
    }

    /// Answers a request of the server, or forwards it to a call. A question is forwarded only if its call is
    /// unambiguous.
    fn answer_request(
        &self,
        id: RequestId,
        method: String,
        mut params: Map<String, Value>,
        call: Option<&Arc<PendingRequest>>,
    ) -> Option<ServerRequestResponse> {
        if method == "ping" {
            return Some((id, Ok(Map::new().into())));
        }
        own_members::take_out(&mut params);
        let request = InputRequest { method, params: params.into() };
        if let Err(refusal) = self.check_declared(&request) {
            return Some((id, Err(refusal)));
        }
        let Some(call) = call.cloned().or_else(|| self.call_for_question(None)) else {
            let refusal = "it is not clear which call this belongs to: none or several are in flight";
            return Some((id, Err(RpcError::new(RpcError::INTERNAL, refusal))));
        };
        if call.push_question(id.clone(), request) {
            return None;
        }
        Some((id, Err(RpcError::new(RpcError::INTERNAL, "the call has too many open questions"))))
    }

    /// Returns the call that receives a question without a call id; `None` if that is not clear. If all calls are of
    /// one client, it is the newest of them, because the client is the right one in any case.
    fn call_for_question(&self, other_than: Option<i64>) -> Option<Arc<PendingRequest>> {
        match self.is_of_one_client && matches!(self.in_flight.callers(), PendingPrincipals::One(_)) {
            true => self.in_flight.newest_call(other_than),
            false => self.in_flight.sole_call(),
        }
    }

    /// Hands the questions of an ended call to another call of its client, to which they must belong. Drops them if the
    /// connection is not of one client, or if there is no other call.
    pub(in crate::mcp::client) fn pass_on_questions(
        &self,
        ended: i64,
        questions: impl IntoIterator<Item = (RequestId, InputRequest)>,
    ) {
        if self.is_of_one_client
            && let Some(call) = self.call_for_question(Some(ended))
        {
            for (id, request) in questions {
                call.push_question(id, request);
            }
        }
    }

    /// Checks that we declared the capability for this question. A question in an undeclared mode has invalid
    /// parameters (MCP 2025-11-25, client/elicitation, "Error Handling").
    fn check_declared(&self, request: &InputRequest) -> Result<(), RpcError> {
        let Some(capability) = ClientCapability::of(request) else {
            return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, "this client does not know the method"));
        };
        if capability.is_declared(&self.capabilities) {
            return Ok(());
        }
        let code = match self.capabilities.contains_key(capability.name()) {
            true => RpcError::INVALID_PARAMS,
            false => RpcError::METHOD_NOT_FOUND,
        };
        let declared = Value::Object(capability.as_object());
        Err(RpcError::new(code, format!("this client has not declared the capability {declared}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::client::connection::in_flight::{CallNotice, RequestPurpose};
    use serde_json::json;

    const CALL: RequestPurpose = RequestPurpose::Call { progress: true };

    fn peer(capabilities: Value) -> UpstreamConnectionState {
        UpstreamConnectionState::new(ServerName::parse("s").unwrap(), capabilities.as_object().unwrap().clone())
    }

    fn request(method: &str) -> RpcMessage {
        RpcMessage::Request { id: RequestId::Number(1), method: method.into(), params: Map::new() }
    }

    fn code(reply: Option<ServerRequestResponse>) -> Option<i64> {
        reply.and_then(|(_, outcome)| outcome.err()).map(|error| error.code)
    }

    #[test]
    fn a_ping_is_answered_and_undeclared_request_methods_are_rejected() {
        let peer = peer(json!({}));
        let _call = peer.in_flight.begin(CALL).unwrap();
        assert_eq!(peer.handle_message(request("ping"), None), Some((RequestId::Number(1), Ok(json!({})))));
        for method in ["roots/list", "sampling/createMessage", "elicitation/create", "tools/list"] {
            assert_eq!(code(peer.handle_message(request(method), None)), Some(RpcError::METHOD_NOT_FOUND), "{method}");
        }
    }

    #[test]
    fn a_question_reaches_its_call_only_if_the_call_is_unambiguous() {
        let peer = peer(json!({"elicitation": {}}));
        let question = || request("elicitation/create");
        assert_eq!(code(peer.handle_message(question(), None)), Some(RpcError::INTERNAL));
        let one = peer.in_flight.begin(CALL).unwrap();
        assert_eq!(peer.handle_message(question(), None), None);
        let two = peer.in_flight.begin(CALL).unwrap();
        assert_eq!(code(peer.handle_message(question(), None)), Some(RpcError::INTERNAL));
        assert_eq!(peer.handle_message(question(), Some(&two)), None);
        assert_eq!(code(peer.handle_message(request("roots/list"), Some(&two))), Some(RpcError::METHOD_NOT_FOUND));
        let url = RpcMessage::Request {
            id: RequestId::Number(2),
            method: "elicitation/create".into(),
            params: json!({"mode": "url", "url": "https://a.org"}).as_object().unwrap().clone(),
        };
        assert_eq!(code(peer.handle_message(url, Some(&two))), Some(RpcError::INVALID_PARAMS));
        let refused = (0..200).filter(|_| peer.handle_message(question(), Some(&one)).is_some()).count();
        assert_eq!(refused, 200 - 63);
    }

    #[test]
    fn logs_and_progress_reach_their_unambiguous_call_or_are_dropped() {
        let peer = peer(json!({}));
        let log = |params: Value| RpcMessage::Notification {
            method: "notifications/message".into(),
            params: params.as_object().unwrap().clone(),
        };
        let call = peer.in_flight.begin(CALL).unwrap();
        let meta = json!({"toolstead/x": 1, "a/b": null});
        peer.handle_message(
            log(json!({"level": "error", "logger": "db", "data": {"a": 1}, "_meta": meta, "x": 1})),
            None,
        );
        peer.handle_message(log(json!({"level": "loud", "data": 1})), None);
        let Some(CallNotice::Log(message)) = call.ready_notice() else { panic!() };
        let answer = json!({"level": "error", "logger": "db", "data": {"a": 1}, "_meta": {"a/b": null}, "x": 1});
        assert_eq!((Value::Object(message.into_params()), call.ready_notice()), (answer, None));
        let _other = peer.in_flight.begin(CALL).unwrap();
        peer.handle_message(log(json!({"level": "error", "data": 1})), None);
        assert_eq!(call.ready_notice(), None);
        let progress = |token: Value| RpcMessage::Notification {
            method: "notifications/progress".into(),
            params: json!({"progressToken": token, "progress": 0.5, "message": "m"}).as_object().unwrap().clone(),
        };
        peer.handle_message(progress(json!(call.id.to_string())), None);
        assert_eq!(call.ready_notice(), None);
        peer.handle_message(progress(json!(call.id)), None);
        assert!(matches!(call.ready_notice(), Some(CallNotice::Progress(at)) if at.progress == 0.5));
    }
}
