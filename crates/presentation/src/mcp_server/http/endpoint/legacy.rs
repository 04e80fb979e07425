//! Requests up to MCP 2025-11-25: each belongs to a session.

use super::{Endpoint, RpcRequest, outlet, refused};
use crate::mcp_server::{
    answer::{Answer, AnswerKind},
    call_request::CallRequest,
    client_caller::ClientCaller,
    http::{
        authenticator::Authenticated,
        call_response::{Abandoned, Work, answered, respond},
        negotiation::Accept,
        news_stream::NewsStream,
        response::{Body, accepted, json, live_events, no_content, text},
        sessions::{NotOpened, SessionInUse},
    },
    newsfeed::Newsfeed,
    protocol_error::{invalid_request, of_session, overloaded},
    request_meta::log_level,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Instant};
use tokio::sync::OwnedSemaphorePermit;
use toolstead_domain::{
    client_profile::Generation,
    error_kind::ErrorKind,
    scope::Scope,
    session::{SessionError, SessionState},
};
use toolstead_infrastructure::mcp::wire::{
    headers::SESSION_ID,
    message::{Id, RpcError, error_response},
};

impl Endpoint {
    /// Answers a request by the rules up to 2025-11-25.
    pub(super) async fn legacy_request(
        self: Arc<Self>,
        holder: &Authenticated,
        headers: &HeaderMap,
        accept: Accept,
        request: RpcRequest,
        room: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let RpcRequest { id, method, params, meta } = request;
        let session = match self.session(holder, headers) {
            Ok(session) => session,
            Err(NoSession::NotNamed) if method == "initialize" => {
                return self.open_session(holder, accept, &id, params);
            }
            Err(NoSession::NotNamed) => {
                return refused(&id, &of_session(SessionError::NotReady(SessionState::Created)));
            }
            Err(NoSession::Unknown) => {
                let error = invalid_request(ErrorKind::SessionNotReady, SESSION_OVER);
                return json(StatusCode::NOT_FOUND, error_response(Some(&id), &error));
            }
        };
        let answer = match method.as_str() {
            "initialize" => return refused(&id, &of_session(SessionError::AlreadyInitialized)),
            "ping" => Answer::result(&id, &json!({})),
            "logging/setLevel" => match log_level(params.get("level").unwrap_or(&Value::Null)) {
                Ok(level) => {
                    session.set_log_level(level);
                    Answer::result(&id, &json!({}))
                }
                Err(error) => Answer::error(&id, &error),
            },
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                let scope = session.client().scope;
                self.server.list(&id, &method, &params, Generation::Legacy, scope).await
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                // Boxed: large and rare.
                let (client, watches) = (session.client(), &session.watches);
                Box::pin(self.server.watch(&id, &method, &params, &client, watches)).await
            }
            _ => return self.call_in_session(session, accept, RpcRequest { id, method, params, meta }, room).await,
        };
        answered(Some(answer), Vec::new(), accept, status)
    }

    async fn call_in_session(
        self: Arc<Self>,
        session: SessionInUse,
        accept: Accept,
        request: RpcRequest,
        room: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let RpcRequest { id, method, mut params, meta } = request;
        let call = match CallRequest::parse(&method, &mut params, meta.rest) {
            Ok(call) => call,
            Err(error) => return answered(Some(Answer::error(&id, &error)), Vec::new(), accept, status),
        };
        let running = session.in_flight.begin_beside(id);
        let (cancel, threshold) = (running.cancel.clone(), session.threshold.clone());
        let client = session.client();
        let caller = ClientCaller::new(meta.progress_token, threshold, cancel.clone(), outlet(accept));
        let caller = Arc::new(caller.asking(session.questions.clone(), client.profile.clone()));
        let (keep_alive, said) = (self.settings.keep_alive, caller.clone());
        let work = async move {
            let _room = room;
            // A call that is taken back while it waits takes the path as well, which records it and does not run it.
            let _turn = tokio::select! {
                biased;
                turn = session.turns.acquire() => turn.ok(),
                _ = cancel.cancelled() => None,
            };
            self.server.call(&running.id, call, session.client(), said, cancel.clone()).await
        };
        respond(Work::new(work, Abandoned::RunsOn), caller, accept, status, keep_alive).await
    }

    fn open_session(
        &self,
        holder: &Authenticated,
        accept: Accept,
        id: &Id,
        mut params: Map<String, Value>,
    ) -> Response<Body> {
        // The session gets its id only if this succeeds.
        let scope = Scope::of(holder.principal.clone(), "");
        let (answer, profile) = match self.server.initialize(id, &mut params, &scope) {
            Ok(opened) => opened,
            Err(error) => return answered(Some(Answer::error(id, &error)), Vec::new(), accept, status),
        };
        let opened = self.sessions.open(holder.principal.clone(), profile, Instant::now()).and_then(|session| {
            // The id is base64, which a header can always hold.
            HeaderValue::from_str(&session.id).map_err(|_| NotOpened::NoRandomness)
        });
        match opened {
            Ok(session_id) => {
                let mut response = answered(Some(answer), Vec::new(), accept, status);
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

    /// A notification.
    pub(super) fn notification(
        &self,
        holder: &Authenticated,
        headers: &HeaderMap,
        method: &str,
        params: &Map<String, Value>,
    ) -> Response<Body> {
        match self.session(holder, headers) {
            Ok(session) => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId").and_then(Id::from_value)
                {
                    session.in_flight.cancel(&id);
                }
                accepted()
            }
            Err(missing) => missing.response(),
        }
    }

    /// An answer to a question of one of the session's calls.
    pub(super) fn client_response(
        &self,
        holder: &Authenticated,
        headers: &HeaderMap,
        id: &Id,
        outcome: Result<Value, RpcError>,
    ) -> Response<Body> {
        match self.session(holder, headers) {
            Ok(session) => {
                session.questions.answer(id, outcome);
                accepted()
            }
            Err(missing) => missing.response(),
        }
    }

    /// GET: the stream of what is told outside of any request.
    pub(super) fn open_stream(&self, holder: &Authenticated, headers: &HeaderMap) -> Response<Body> {
        if !Accept::of(headers).events {
            return text(StatusCode::NOT_ACCEPTABLE, "the stream is `text/event-stream`");
        }
        match self.session(holder, headers) {
            Ok(session) => {
                let end = session.open_stream();
                let news = Newsfeed::new(&self.server.app, &session.interests());
                live_events(NewsStream::new(news, self.settings.keep_alive).of_session(session).until(end))
            }
            Err(missing) => missing.response(),
        }
    }

    /// DELETE: the session ends.
    pub(super) fn end_session(&self, holder: &Authenticated, headers: &HeaderMap) -> Response<Body> {
        match named_session(headers) {
            Some(id) if self.sessions.close(id, &holder.principal) => no_content(),
            Some(_) => NoSession::Unknown.response(),
            None => NoSession::NotNamed.response(),
        }
    }

    fn session(&self, holder: &Authenticated, headers: &HeaderMap) -> Result<SessionInUse, NoSession> {
        let id = named_session(headers).ok_or(NoSession::NotNamed)?;
        self.sessions.find(id, &holder.principal).ok_or(NoSession::Unknown)
    }
}

const SESSION_OVER: &str = "the session is over: initialize again";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoSession {
    NotNamed,
    Unknown,
}

impl NoSession {
    /// MCP 2025-11-25, basic/transports, "Session Management", 2 and 3.
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

/// Errors are answers like any other up to 2025-11-25.
fn status(_: AnswerKind) -> StatusCode {
    StatusCode::OK
}
