//! Requests of MCP 2026-07-28: each stands for itself.

use super::{Endpoint, RpcRequest, outlet, refused};
use crate::mcp_server::{
    answer::{Answer, AnswerKind},
    call_request::CallRequest,
    call_tool::Client,
    client_caller::ClientCaller,
    http::{
        authenticator::Authenticated,
        call_response::{Abandoned, Work, answered, respond},
        negotiation::Accept,
        news_stream::NewsStream,
        response::{Body, live_events, text},
    },
    log_threshold::LogThreshold,
    newsfeed::Newsfeed,
    request_meta::RequestMeta,
    subscription::Subscription,
};
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Instant};
use tokio::sync::OwnedSemaphorePermit;
use toolstead_application::cancel_signal::CancelSignal;
use toolstead_domain::{
    client_profile::{ClientProfile, Generation},
    scope::Scope,
};
use toolstead_infrastructure::mcp::wire::message::RpcError;

impl Endpoint {
    /// Answers a request by the rules of 2026-07-28.
    pub(super) async fn modern_request(
        self: Arc<Self>,
        holder: &Authenticated,
        headers: &HeaderMap,
        accept: Accept,
        request: RpcRequest,
        room: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let RpcRequest { id, method, params, mut meta } = request;
        let profile = match self.check(headers, &method, &params, &mut meta) {
            Ok(profile) => profile,
            Err(error) => return refused(&id, &error),
        };
        let answer = match method.as_str() {
            "server/discover" => self.server.discover(&id, &stateless(holder)),
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                let scope = stateless(holder);
                self.server.list(&id, &method, &params, Generation::Modern, scope).await
            }
            "subscriptions/listen" => match Subscription::parse(id.clone(), &params) {
                Ok(subscription) => return self.listen(holder, profile, subscription, accept).await,
                Err(error) => Answer::error(&id, &error),
            },
            _ => {
                let request = RpcRequest { id, method, params, meta };
                return self.call(holder, accept, request, profile, room).await;
            }
        };
        answered(Some(answer), Vec::new(), accept, status)
    }

    /// Checks what a request says of itself, from the outside inwards, and takes out who its client is.
    fn check(
        &self,
        headers: &HeaderMap,
        method: &str,
        params: &Map<String, Value>,
        meta: &mut RequestMeta,
    ) -> Result<ClientProfile, RpcError> {
        meta.check_complete()?;
        self.mirrored.check_version(headers, meta.named_version().unwrap_or_default())?;
        let profile = meta.take_profile()?;
        self.mirrored.check_request(headers, method, params)?;
        Ok(profile)
    }

    async fn call(
        self: Arc<Self>,
        holder: &Authenticated,
        accept: Accept,
        request: RpcRequest,
        profile: ClientProfile,
        room: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let RpcRequest { id, method, mut params, meta } = request;
        let client_name = meta.client_name().to_owned();
        let call = match CallRequest::parse(&method, &mut params, meta.rest) {
            Ok(call) => call,
            Err(error) => return answered(Some(Answer::error(&id, &error)), Vec::new(), accept, status),
        };
        let cancel = CancelSignal::new();
        let threshold = LogThreshold::Request(profile.log_level);
        let caller = ClientCaller::new(meta.progress_token, threshold, cancel.clone(), outlet(accept));
        let caller = Arc::new(caller.asked_by_retry());
        let session = self.stateless.enter(holder, &client_name, Instant::now());
        let scope = Scope::of(holder.principal.clone(), session.id.clone());
        let client = Client { scope, profile: Arc::new(profile) };
        let (keep_alive, said) = (self.settings.keep_alive, caller.clone());
        let work = async move {
            let (_room, _session) = (room, session);
            self.server.call(&id, call, client, said, cancel).await
        };
        respond(Work::new(work, Abandoned::Ends), caller, accept, status, keep_alive).await
    }

    async fn listen(
        &self,
        holder: &Authenticated,
        profile: ClientProfile,
        mut subscription: Subscription,
        accept: Accept,
    ) -> Response<Body> {
        if !accept.events {
            return text(StatusCode::NOT_ACCEPTABLE, "a subscription is answered by `text/event-stream`");
        }
        let app = &self.server.app;
        let client = Client { scope: stateless(holder), profile: Arc::new(profile) };
        let interests = subscription.agree(app, client).await;
        let (news, last) = (Newsfeed::new(app, &interests), subscription.result(&self.server.identity));
        let stream = NewsStream::new(news, self.settings.keep_alive).of_subscription(subscription, last);
        live_events(stream.until(self.ending.clone()))
    }
}

/// The scope of what belongs to no session.
fn stateless(holder: &Authenticated) -> Scope {
    Scope::of(holder.principal.clone(), "stateless")
}

/// MCP 2026-07-28, basic/transports/streamable-http, "Protocol Version Header" and "Server Validation".
fn status(kind: AnswerKind) -> StatusCode {
    match kind {
        AnswerKind::Regular => StatusCode::OK,
        AnswerKind::UnknownMethod => StatusCode::NOT_FOUND,
        AnswerKind::BadRequest => StatusCode::BAD_REQUEST,
    }
}
