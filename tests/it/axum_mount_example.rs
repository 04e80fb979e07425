//! MCP mounted in a server of a team's own, which knows by itself who calls.

use crate::support::{Events, TOKEN, TestApp, echo, endless, initialize, legacy, modern, soon};
use axum::{Router, routing::get};
use http::{HeaderValue, StatusCode, request::Parts};
use reqwest::RequestBuilder;
use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use toolstead_domain::Principal;
use toolstead_presentation::mcp_server::http::{
    authenticator::{AuthenticatedClient, Authenticator, NotAuthenticated, bearer},
    service::McpService,
    settings::{BearerToken, HttpSettings},
};

const CHALLENGE: &str = r#"Bearer resource_metadata="https://id.example/.well-known/oauth-protected-resource""#;

/// Knows the people of a team by `key-of-NAME`, and a room of theirs by a header.
#[derive(Debug)]
struct Team;

#[async_trait::async_trait]
impl Authenticator for Team {
    async fn authenticate(&self, head: &Parts) -> Result<AuthenticatedClient, NotAuthenticated> {
        let person = bearer(&head.headers).and_then(|key| key.strip_prefix("key-of-"));
        let person = person.ok_or_else(|| NotAuthenticated::unauthorized(HeaderValue::from_static(CHALLENGE)))?;
        if person == "mallory" {
            return Err(NotAuthenticated::new(StatusCode::FORBIDDEN, "mallory has left the team"));
        }
        let known = AuthenticatedClient::new(Principal::new("user", person));
        Ok(match head.headers.get("x-room").and_then(|room| room.to_str().ok()) {
            Some(room) => known.in_session(room),
            None => known,
        })
    }
}

/// A server of the team, with MCP at one of its paths.
struct TeamServer {
    app: TestApp,
    address: SocketAddr,
    service: McpService,
    stop: CancellationToken,
    serving: JoinHandle<io::Result<()>>,
    client: reqwest::Client,
}

impl TeamServer {
    async fn start() -> Self {
        // Another test may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let app = TestApp::with([echo(), endless()]).await;
        // If there is an authenticator, tokens grant no access.
        let token = BearerToken { name: "test".into(), secret: TOKEN.into() };
        let settings = HttpSettings { tokens: vec![token], max_body_bytes: 4096, ..HttpSettings::default() };
        let service = app.app.mcp_service(settings.authenticated_by(Arc::new(Team)));
        let router = Router::new()
            .route("/hello", get(|| async { "hello" }))
            .route_service("/agents/mcp", service.clone())
            .nest_service("/nested", service.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(axum::serve(listener, router).with_graceful_shutdown(stopped).into_future());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { app, address, service, stop, serving, client }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn post(&self, key: &str, message: &Value) -> RequestBuilder {
        let post = self.client.post(self.url("/agents/mcp")).bearer_auth(key).body(message.to_string());
        post.header("accept", "application/json, text/event-stream").header("content-type", "application/json")
    }

    /// Calls `echo` as a client of 2026-07-28 does.
    async fn echo(&self, key: &str, room: Option<&str>) -> StatusCode {
        let call = modern(1, "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}));
        let post = self.post(key, &call).header("mcp-protocol-version", "2026-07-28");
        let post = post.header("mcp-method", "tools/call").header("mcp-name", "echo");
        let post = room.into_iter().fold(post, |post, room| post.header("x-room", room));
        soon(post.send()).await.unwrap().status()
    }

    fn transport(&self, path: &str, key: &str) -> StreamableHttpClientTransport<reqwest::Client> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url(path)).auth_header(key);
        StreamableHttpClientTransport::with_client(self.client.clone(), config)
    }
}

async fn status(request: RequestBuilder) -> StatusCode {
    soon(request.send()).await.unwrap().status()
}

#[tokio::test]
async fn the_official_sdk_calls_in_both_generations_and_the_audit_log_names_the_user() {
    let server = TeamServer::start().await;
    assert_eq!(soon(server.client.get(server.url("/hello")).send()).await.unwrap().text().await.unwrap(), "hello");
    let echo =
        || CallToolRequestParams::new("echo").with_arguments(json!({"message": "hi"}).as_object().unwrap().clone());

    let old = ClientConfig::default().serve(server.transport("/agents/mcp", "key-of-ada"));
    let old = soon(Box::pin(old)).await.unwrap();
    assert_eq!(old.peer_info().unwrap().protocol_version, ProtocolVersion::V_2025_11_25);
    assert_eq!(soon(old.list_all_tools()).await.unwrap().len(), 2);
    soon(old.call_tool(echo())).await.unwrap();
    old.cancel().await.unwrap();

    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let new = ClientConfig::default().serve_with_lifecycle(server.transport("/nested", "key-of-bob"), discover);
    let new = soon(Box::pin(new)).await.unwrap();
    assert_eq!(new.peer_info().unwrap().protocol_version, ProtocolVersion::V_2026_07_28);
    soon(new.call_tool(echo())).await.unwrap();
    new.cancel().await.unwrap();

    let mut rows = server.app.log.rows();
    rows.sort_by_key(|row| row.id);
    assert_eq!(rows.iter().map(|row| &*row.principal).collect::<Vec<_>>(), ["user:ada", "user:bob"]);
}

#[tokio::test]
async fn the_gate_checks_requests_before_the_authenticator_on_every_path() {
    let server = TeamServer::start().await;
    let hello = || server.post("key-of-ada", &initialize("2025-11-25"));
    assert_eq!(status(hello()).await, 200);
    assert_eq!(status(hello().header("host", "evil.example")).await, 403);
    assert_eq!(status(hello().header("origin", "https://evil.example")).await, 403);
    // A page of the server around it is a stranger until its origin is listed.
    assert_eq!(status(hello().header("origin", format!("http://{}", server.address))).await, 403);
    assert_eq!(status(hello().body("x".repeat(5000))).await, 413);
    let text = server.client.post(server.url("/agents/mcp")).bearer_auth("key-of-ada").body("{}");
    assert_eq!(status(text.header("content-type", "text/plain")).await, 415);
    for key in ["wrong", TOKEN] {
        let refused = soon(server.post(key, &initialize("2025-11-25")).send()).await.unwrap();
        assert_eq!(refused.status(), 401);
        assert_eq!(refused.headers()["www-authenticate"], CHALLENGE);
    }
    let left = soon(server.post("key-of-mallory", &initialize("2025-11-25")).send()).await.unwrap();
    assert_eq!(
        (left.status(), left.text().await.unwrap()),
        (StatusCode::FORBIDDEN, "mallory has left the team".into())
    );
    assert!(server.app.log.rows().is_empty());
}

#[tokio::test]
async fn sessions_belong_to_a_user_and_can_be_named_by_the_authenticator() {
    let server = TeamServer::start().await;
    let opened = soon(server.post("key-of-ada", &initialize("2025-11-25")).send()).await.unwrap();
    let session = opened.headers()["mcp-session-id"].clone();
    let list = |key: &str| {
        let list = server.post(key, &legacy(1, "tools/list", json!({}))).header("mcp-session-id", &session);
        list.header("mcp-protocol-version", "2025-11-25")
    };
    assert_eq!(status(list("key-of-ada")).await, 200);
    assert_eq!(status(list("key-of-bob")).await, 404, "somebody else's session");

    for (key, room) in [
        ("key-of-ada", Some("one")),
        ("key-of-ada", Some("one")),
        ("key-of-ada", Some("two")),
        ("key-of-bob", Some("one")),
        ("key-of-ada", None),
    ] {
        assert_eq!(server.echo(key, room).await, 200);
    }
    let mut rows = server.app.log.rows();
    rows.sort_by_key(|row| row.id);
    let sessions: Vec<&str> = rows.iter().map(|row| &*row.session).collect();
    assert_eq!(sessions[0], sessions[1]);
    let different: std::collections::HashSet<&str> = sessions[1..].iter().copied().collect();
    assert_eq!(different.len(), 4, "{sessions:?}");
}

#[tokio::test]
async fn a_drained_service_lets_the_server_around_it_shut_down() {
    let server = TeamServer::start().await;
    let opened = soon(server.post("key-of-ada", &initialize("2025-11-25")).send()).await.unwrap();
    let session = opened.headers()["mcp-session-id"].clone();
    let stream = server.client.get(server.url("/agents/mcp")).bearer_auth("key-of-ada");
    let stream = stream.header("mcp-session-id", &session).header("accept", "text/event-stream");
    let mut stream = Events::of(soon(stream.send()).await.unwrap());

    server.service.drain();
    assert_eq!(soon(stream.try_next()).await, None, "the stream ends");
    assert_eq!(server.echo("key-of-ada", None).await, 503);
    assert_eq!(status(server.client.get(server.url("/hello"))).await, 200, "the rest of the server goes on");
    server.stop.cancel();
    soon(server.serving).await.unwrap().unwrap();
    soon(server.app.app.close(Duration::ZERO)).await;
}
