//! Requests up to MCP 2025-11-25. Each belongs to a session.

use super::{EndpointState, PendingReply, RequestPermit, RpcMethodParams, RpcRequest, outlet, refused};
use crate::mcp_server::{
    answer::{HttpStatusHint, SerializedResponse},
    call_request::ClientRequest,
    call_tool::ToolCallRequest,
    client_caller::ClientCaller,
    http::{
        call_response::{AnswerFuture, DisconnectBehavior, RunningCall, answered},
        notification_stream::NotificationStreamBuilder,
        request_context::RequestContext,
        response::{Body, accepted, json, live_events, no_content, text},
        sessions::{SessionOpenError, SessionUseGuard},
    },
    notification_feed::NotificationFeed,
    protocol_error::{invalid_request, of_session, overloaded},
    request_meta::log_level,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Instant};
use toolstead_domain::{SessionState, SessionStateError, error_kind::ErrorKind};
use toolstead_infrastructure::mcp::wire::{
    headers::SESSION_ID,
    message::{RequestId, RpcError, error_response},
};

impl RequestPermit {
    /// Answers a request by the rules up to 2025-11-25.
    pub(super) fn legacy_request(self, context: RequestContext, request: RpcRequest) -> PendingReply {
        let RpcRequest { id, content, meta } = request;
        let session = match self.session(&context) {
            Ok(session) => session,
            Err(missing) => return PendingReply::Now(self.without_session(missing, context, &id, content)),
        };
        let (method, mut params) = match content {
            RpcMethodParams::ToolCall { tool, arguments, rest } => {
                let call = ClientRequest::Tool(ToolCallRequest::first(tool, arguments, meta.rest, rest));
                return self.call_in_session(session, context, id, call, meta.progress_token);
            }
            RpcMethodParams::Other { method, params } => (method, params),
        };
        let answer = match method.as_str() {
            "initialize" => return PendingReply::Now(refused(&id, &of_session(SessionStateError::AlreadyInitialized))),
            "ping" => SerializedResponse::result(&id, &json!({})),
            "logging/setLevel" => match log_level(params.get("level").unwrap_or(&Value::Null)) {
                Ok(level) => {
                    session.set_log_level(level);
                    SerializedResponse::result(&id, &json!({}))
                }
                Err(error) => SerializedResponse::error(&id, &error),
            },
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                return PendingReply::Later(Box::pin(async move {
                    let answer = self.server.list(&id, &method, &params, session.client()).await;
                    answered(Some(answer), Vec::new(), context, status)
                }));
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                return PendingReply::Later(Box::pin(async move {
                    let (client, watches) = (session.client(), &session.watches);
                    let answer = self.server.watch(&id, &method, &params, &client, watches).await;
                    answered(Some(answer), Vec::new(), context, status)
                }));
            }
            _ => match ClientRequest::parse(&method, &mut params, meta.rest) {
                Ok(call) => return self.call_in_session(session, context, id, call, meta.progress_token),
                Err(error) => SerializedResponse::error(&id, &error),
            },
        };
        PendingReply::Now(answered(Some(answer), Vec::new(), context, status))
    }

    fn call_in_session(
        self,
        session: SessionUseGuard,
        context: RequestContext,
        id: RequestId,
        call: ClientRequest,
        progress_token: Option<Value>,
    ) -> PendingReply {
        let running = session.in_flight.begin_beside(id);
        let (threshold, outlet) = (session.threshold.clone(), outlet(context.accept));
        let client = session.client();
        let caller = ClientCaller::new(progress_token, threshold, running.cancel.clone(), outlet);
        let caller = Arc::new(caller.with_questions(session.questions.clone(), client.profile.clone()));
        let said = caller.clone();
        let work = async move {
            // A call that is cancelled while it waits is run as well, so that it is recorded; its tool is not called.
            let _turn = match session.turns.try_acquire() {
                Ok(turn) => Some(turn),
                Err(_) => Box::pin(session.turn(&running.cancel)).await,
            };
            self.server.call(&running.id, call, client, said, running.cancel.clone()).await
        };
        PendingReply::Call(RunningCall {
            work: AnswerFuture::new(work, DisconnectBehavior::RunsOn),
            caller,
            context,
            status,
        })
    }
}

impl EndpointState {
    /// Answers a request that names no session or an unknown one. `initialize` without a session opens one.
    fn without_session(
        &self,
        missing: SessionLookupError,
        context: RequestContext,
        id: &RequestId,
        content: RpcMethodParams,
    ) -> Response<Body> {
        match (missing, content) {
            (SessionLookupError::NotNamed, RpcMethodParams::Other { method, params }) if method == "initialize" => {
                self.open_session(context, id, params)
            }
            (SessionLookupError::NotNamed, _) => {
                refused(id, &of_session(SessionStateError::NotReady(SessionState::Created)))
            }
            (SessionLookupError::Unknown, _) => {
                let error = invalid_request(ErrorKind::SessionNotReady, SESSION_OVER);
                json(StatusCode::NOT_FOUND, error_response(Some(id), &error))
            }
        }
    }

    fn open_session(&self, context: RequestContext, id: &RequestId, mut params: Map<String, Value>) -> Response<Body> {
        // The session receives its id only on success.
        let principal = context.holder.principal.clone();
        let scope = context.scope("");
        let (answer, profile) = match self.server.initialize(id, &mut params, &scope) {
            Ok(opened) => opened,
            Err(error) => return answered(Some(SerializedResponse::error(id, &error)), Vec::new(), context, status),
        };
        let opened = self.sessions.open(principal, context.view.clone(), profile, Instant::now()).and_then(|session| {
            // The id is base64, which is always a valid header value.
            HeaderValue::from_str(&session.id).map_err(|_| SessionOpenError::NoRandomness)
        });
        match opened {
            Ok(session_id) => {
                let mut response = answered(Some(answer), Vec::new(), context, status);
                response.headers_mut().insert(SESSION_ID, session_id);
                response
            }
            Err(error) => {
                tracing::warn!(%error, "a client was refused a session");
                let error = overloaded(error.to_string());
                json(StatusCode::SERVICE_UNAVAILABLE, error_response(Some(id), &error))
            }
        }
    }

    pub(super) fn legacy_notification(
        &self,
        context: &RequestContext,
        method: &str,
        params: &Map<String, Value>,
    ) -> Response<Body> {
        match self.session(context) {
            Ok(session) => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId").and_then(RequestId::from_value)
                {
                    session.in_flight.cancel(&id);
                }
                accepted()
            }
            Err(missing) => missing.response(),
        }
    }

    /// Accepts the client's answer to a question of one of the session's calls.
    pub(super) fn legacy_response(
        &self,
        context: &RequestContext,
        id: &RequestId,
        outcome: Result<Value, RpcError>,
    ) -> Response<Body> {
        match self.session(context) {
            Ok(session) => {
                session.questions.answer(id, outcome);
                accepted()
            }
            Err(missing) => missing.response(),
        }
    }

    /// Opens the stream of notifications outside of requests (GET).
    pub(super) fn open_stream(&self, context: &RequestContext) -> Response<Body> {
        if !context.accept.events {
            return text(StatusCode::NOT_ACCEPTABLE, "the stream is `text/event-stream`");
        }
        match self.session(context) {
            Ok(session) => {
                let end = session.open_stream();
                let news = NotificationFeed::new(&self.server.app, &session.interests());
                live_events(
                    NotificationStreamBuilder::new(news, self.settings.keep_alive).of_session(session).until(end),
                )
            }
            Err(missing) => missing.response(),
        }
    }

    /// Ends the session (DELETE).
    pub(super) fn end_session(&self, context: &RequestContext) -> Response<Body> {
        match named_session(&context.headers) {
            Some(id) if self.sessions.close(id, &context.holder.principal, context.view.as_ref()) => no_content(),
            Some(_) => SessionLookupError::Unknown.response(),
            None => SessionLookupError::NotNamed.response(),
        }
    }

    fn session(&self, context: &RequestContext) -> Result<SessionUseGuard, SessionLookupError> {
        let id = named_session(&context.headers).ok_or(SessionLookupError::NotNamed)?;
        self.sessions.find(id, &context.holder.principal, context.view.as_ref()).ok_or(SessionLookupError::Unknown)
    }
}

const SESSION_OVER: &str = "the session is over: initialize again";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionLookupError {
    NotNamed,
    Unknown,
}

impl SessionLookupError {
    /// Returns the response of MCP 2025-11-25, basic/transports, "Session Management", 2 and 3.
    fn response(self) -> Response<Body> {
        match self {
            Self::NotNamed => text(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` is missing: send `initialize` first"),
            Self::Unknown => text(StatusCode::NOT_FOUND, SESSION_OVER),
        }
    }
}

fn named_session(headers: &HeaderMap) -> Option<&str> {
    headers.get(&SESSION_ID).map(|value| value.to_str().unwrap_or(""))
}

/// Returns the status of an answer. Up to 2025-11-25 it is 200 for errors as well.
fn status(_: HttpStatusHint) -> StatusCode {
    StatusCode::OK
}
