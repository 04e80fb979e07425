//! Requests of MCP 2026-07-28. Each is self-contained.

use super::{EndpointState, PendingReply, RequestPermit, RpcMethodParams, RpcRequest, outlet, refused};
use crate::mcp_server::{
    answer::{HttpStatusHint, SerializedResponse},
    call_request::ClientRequest,
    call_tool::{ClientContext, ToolCallRequest},
    client_caller::ClientCaller,
    http::{
        call_response::{AnswerFuture, DisconnectBehavior, RunningCall, answered},
        notification_stream::NotificationStreamBuilder,
        request_context::RequestContext,
        response::{Body, live_events, text},
    },
    log_threshold::LogThreshold,
    notification_feed::NotificationFeed,
    request_meta::RequestMeta,
    subscription::ChangeSubscription,
};
use http::{Response, StatusCode};
use std::{sync::Arc, time::Instant};
use toolstead_application::CancelSignal;
use toolstead_domain::ClientProfile;
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

impl RequestPermit {
    /// Answers a request by the rules of 2026-07-28.
    pub(super) fn modern_request(self, context: RequestContext, request: RpcRequest) -> PendingReply {
        let RpcRequest { id, content, mut meta } = request;
        let profile = match self.check(&context, &content, &mut meta) {
            Ok(profile) => profile,
            Err(error) => return PendingReply::Now(refused(&id, &error)),
        };
        let (method, mut params) = match content {
            RpcMethodParams::ToolCall { tool, arguments, rest } => {
                let members = std::mem::take(&mut meta.rest);
                let call = ClientRequest::Tool(ToolCallRequest::first(tool, arguments, members, rest));
                return self.call_without_session(context, id, call, meta, profile);
            }
            RpcMethodParams::Other { method, params } => (method, params),
        };
        let answer = match method.as_str() {
            "server/discover" => self.server.discover(&id, &context.stateless_scope()),
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                return PendingReply::Later(Box::pin(async move {
                    let client = ClientContext { scope: context.stateless_scope(), profile: Arc::new(profile) };
                    let answer = self.server.list(&id, &method, &params, client).await;
                    answered(Some(answer), Vec::new(), context, status)
                }));
            }
            "subscriptions/listen" => match ChangeSubscription::parse(id.clone(), &params) {
                Ok(subscription) => {
                    return PendingReply::Later(Box::pin(
                        async move { self.listen(&context, profile, subscription).await },
                    ));
                }
                Err(error) => SerializedResponse::error(&id, &error),
            },
            _ => match ClientRequest::parse(&method, &mut params, std::mem::take(&mut meta.rest)) {
                Ok(call) => return self.call_without_session(context, id, call, meta, profile),
                Err(error) => SerializedResponse::error(&id, &error),
            },
        };
        PendingReply::Now(answered(Some(answer), Vec::new(), context, status))
    }

    fn call_without_session(
        self,
        context: RequestContext,
        id: RequestId,
        call: ClientRequest,
        meta: RequestMeta,
        profile: ClientProfile,
    ) -> PendingReply {
        let cancel = CancelSignal::new();
        let threshold = LogThreshold::Request(profile.log_level);
        let session = self.stateless.enter(&context.holder, meta.client_name(), Instant::now());
        let caller = ClientCaller::new(meta.progress_token, threshold, cancel.clone(), outlet(context.accept));
        let caller = Arc::new(caller.with_retry_answers());
        let scope = context.scope(session.id.clone());
        let client = ClientContext { scope, profile: Arc::new(profile) };
        let said = caller.clone();
        let work = async move {
            let _session = session;
            self.server.call(&id, call, client, said, cancel).await
        };
        PendingReply::Call(RunningCall {
            work: AnswerFuture::new(work, DisconnectBehavior::Ends),
            caller,
            context,
            status,
        })
    }
}

impl EndpointState {
    /// Checks the metadata of a request: version, then client, then mirrored headers. Returns the profile of its
    /// client.
    fn check(
        &self,
        context: &RequestContext,
        content: &RpcMethodParams,
        meta: &mut RequestMeta,
    ) -> Result<ClientProfile, RpcError> {
        let (headers, view) = (&context.headers, context.view.as_deref());
        meta.check_complete()?;
        self.mirrored.check_version(headers, meta.named_version().unwrap_or_default())?;
        let profile = meta.take_profile()?;
        match content {
            RpcMethodParams::ToolCall { tool, arguments, .. } => {
                self.mirrored.check_call(headers, view, tool, arguments.as_object())?
            }
            RpcMethodParams::Other { method, params } => self.mirrored.check_request(headers, view, method, params)?,
        }
        Ok(profile)
    }

    async fn listen(
        &self,
        context: &RequestContext,
        profile: ClientProfile,
        mut subscription: ChangeSubscription,
    ) -> Response<Body> {
        if !context.accept.events {
            return text(StatusCode::NOT_ACCEPTABLE, "a subscription is answered by `text/event-stream`");
        }
        let app = &self.server.app;
        let client = ClientContext { scope: context.stateless_scope(), profile: Arc::new(profile) };
        let interests = subscription.agree(app, client).await;
        let (news, last) = (NotificationFeed::new(app, &interests), subscription.result(&self.server.identity));
        let stream = NotificationStreamBuilder::new(news, self.settings.keep_alive).of_subscription(subscription, last);
        live_events(stream.until(self.ending.clone()))
    }
}

/// Returns the status of an answer by MCP 2026-07-28, basic/transports/streamable-http, "Protocol Version Header" and
/// "Server Validation".
fn status(kind: HttpStatusHint) -> StatusCode {
    match kind {
        HttpStatusHint::Regular => StatusCode::OK,
        HttpStatusHint::UnknownMethod => StatusCode::NOT_FOUND,
        HttpStatusHint::BadRequest => StatusCode::BAD_REQUEST,
    }
}
