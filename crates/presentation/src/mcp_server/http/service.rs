//! MCP over streamable HTTP, to be mounted in another server.

pub use super::request_body::RequestBody;

use super::{
    FIRST_LIST_WAITS,
    endpoint::{EndpointHandle, EndpointState},
    settings::HttpSettings,
};
use crate::{app::App, mcp_server::McpServer};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use std::{
    convert::Infallible,
    error::Error,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;

/// Body of a response: whole, or a stream of events.
pub type McpBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// Tower service for MCP over streamable HTTP. It does not listen itself, and serves any path at which it is mounted.
///
/// Clones share their state: retain one to end the service by [`drain`](Self::drain). The surrounding server is
/// responsible for connections, TLS and timeouts of heads. This service checks `Host` and `Origin`, authenticates,
/// manages sessions, and limits the size and number of requests.
#[derive(Debug, Clone)]
pub struct McpService {
    endpoint: Arc<EndpointHandle>,
}

impl App {
    /// Creates a service for MCP over streamable HTTP, to be mounted in a server of the embedding application, such as
    /// one of axum. Requires a Tokio runtime, which runs the cleanup of sessions.
    ///
    /// [`HttpSettings::allowed_hosts`] names the hosts of that server. Pages of that server are refused unless
    /// [`HttpSettings::allowed_origins`] lists their origin.
    ///
    /// ```
    /// # use toolstead_presentation::{app::App, mcp_server::http::settings::HttpSettings};
    /// # fn mount<S>(app: &App, serve: impl FnOnce(toolstead_presentation::mcp_server::http::service::McpService) -> S) {
    /// let mut settings = HttpSettings::default();
    /// settings.allowed_hosts.push("tools.example.com".into());
    /// let service = app.mcp_service(settings);
    /// // axum::Router::new().route_service("/mcp", service.clone())
    /// # serve(service);
    /// # }
    /// ```
    pub fn mcp_service(&self, settings: HttpSettings) -> McpService {
        let server = McpServer::new(self.clone(), settings.identity.clone(), FIRST_LIST_WAITS);
        let endpoint = Arc::new(EndpointState::new(server, settings, None));
        tokio::spawn(look_after(endpoint.clone()));
        McpService { endpoint: Arc::new(EndpointHandle::new(endpoint)) }
    }
}

/// Waits for the first lists of tools, then ends idle sessions until the service ends.
async fn look_after(endpoint: Arc<EndpointState>) {
    let ending = endpoint.ending().clone();
    let mut sweep = endpoint.between_sweeps();
    let weak = Arc::downgrade(&endpoint);
    tokio::select! {
        () = endpoint.server.settle() => {}
        () = ending.cancelled() => return,
    }
    drop(endpoint);
    loop {
        tokio::select! {
            _ = sweep.tick() => {}
            () = ending.cancelled() => return,
        }
        match weak.upgrade() {
            Some(endpoint) => endpoint.expire_sessions(),
            None => return,
        }
    }
}

impl McpService {
    /// Starts to refuse new requests (503), and ends the streams that would otherwise stay open, so that the
    /// surrounding server can shut down. Open calls run to their end, and answers to their questions are accepted,
    /// until [`App::close`] cancels them.
    pub fn drain(&self) {
        self.endpoint.drain();
    }
}

impl<B: RequestBody> Service<Request<B>> for McpService {
    type Response = Response<McpBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<McpBody>, Infallible>>;

    /// Returns ready at any time. Excess requests are refused with 503.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.endpoint.clone().answer(request, None);
        Box::pin(async move { Ok(answer.await.map(BodyExt::boxed_unsync)) })
    }
}
