//! The official SDK's server, in both generations and on both transports.

use super::provider_calls::{Listener, SOON, call_with, config, deps, http, text, until, until_ready};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolstead_domain::{ProtocolVersion, ToolProvider};
use toolstead_infrastructure::mcp::{
    client::{Upstream, config::McpTransport},
    rmcp_server::rmcp_server,
};

/// A server with a list that grows, in pages of two, and a tool that reports progress.
#[derive(Clone)]
struct Growing {
    tools: watch::Receiver<usize>,
}

impl ServerHandler for Growing {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("growing", "1.0"))
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = *self.tools.borrow();
        let from: usize = page.and_then(|page| page.cursor).and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let to = all.min(from + 2);
        let schema = Arc::new(json!({"type": "object"}).as_object().unwrap().clone());
        let tools = (from..to).map(|n| Tool::new(format!("t{n}"), "A tool.", schema.clone())).collect();
        Ok(ListToolsResult { tools, next_cursor: (to < all).then(|| to.to_string()), ..Default::default() })
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if call.name != "t0" {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        if let Some(token) = context.meta.get_progress_token() {
            for step in 1..=3 {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
                context.peer.notify_progress(progress).await.unwrap();
            }
        }
        let arguments: Map<String, Value> = call.arguments.unwrap_or_default();
        let said = ContentBlock::text(Value::Object(arguments).to_string());
        Ok(CallToolResult::success(vec![said]).into())
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut tools = self.tools.clone();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = tools.changed() => match changed {
                    Ok(()) => { let _ = context.sink().notify_tool_list_changed().await; }
                    Err(_) => return Ok(()),
                },
            }
        }
    }
}

/// The server in this process, and the way to it.
fn over_streams() -> (McpTransport, watch::Sender<usize>) {
    let (grow, tools) = watch::channel(5);
    let handler = Growing { tools };
    (rmcp_server("growing", move || handler.clone()).unwrap().transport, grow)
}

/// The server on a loopback port; it is stopped with the token.
async fn over_http(stop: &CancellationToken) -> (McpTransport, watch::Sender<usize>) {
    let (grow, tools) = watch::channel(5);
    let handler = Growing { tools };
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_cancellation_token(stop.child_token()),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().nest_service("/mcp", service);
    let stopped = stop.clone().cancelled_owned();
    tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(stopped).into_future());
    (http(&url), grow)
}

async fn is_listed_and_called(transport: McpTransport, protocol: Option<ProtocolVersion>) -> Arc<Upstream> {
    let mut config = config("sdk", transport);
    config.protocol = protocol;
    let server = Upstream::start(config, deps());
    let status = until_ready(&server).await;
    assert_eq!((status.protocol, status.tools), (protocol.or(status.protocol), Some(5)), "{status:?}");
    assert_eq!(status.server.as_deref(), Some("growing 1.0"));
    let names: Vec<String> = server.list().await.unwrap().iter().map(|tool| tool.name().to_string()).collect();
    assert_eq!(names, ["t0", "t1", "t2", "t3", "t4"].map(|tool| format!("mcp__sdk__{tool}")));
    let listener = Listener::default();
    let result = call_with(&server, "t0", json!({"a": [1, null]}), &listener, SOON).await.unwrap();
    assert_eq!(text(&result), r#"{"a":[1,null]}"#);
    assert_eq!(result.get("resultType"), None);
    assert_eq!(listener.progress.lock().unwrap().last(), Some(&3.0));
    let (_, failure) = call_with(&server, "t9", json!({}), &listener, SOON).await.unwrap_err();
    assert!(failure.contains("unknown tool"), "{failure}");
    server
}

const EACH_GENERATION: [Option<ProtocolVersion>; 3] =
    [None, Some(ProtocolVersion::V20251125), Some(ProtocolVersion::V20260728)];

#[tokio::test]
async fn tools_of_an_sdk_server_are_listed_and_called_over_streams_in_each_generation() {
    for protocol in EACH_GENERATION {
        let (transport, _grow) = over_streams();
        let server = is_listed_and_called(transport, protocol).await;
        server.close().await;
    }
}

#[tokio::test]
async fn tools_of_an_sdk_server_are_listed_and_called_over_http_in_each_generation() {
    let stop = CancellationToken::new();
    let _stopping = stop.clone().drop_guard();
    for protocol in EACH_GENERATION {
        let (transport, _grow) = over_http(&stop).await;
        let server = is_listed_and_called(transport, protocol).await;
        tokio::time::timeout(SOON, server.close()).await.unwrap();
    }
}

#[tokio::test]
async fn a_growing_tool_list_of_an_sdk_server_is_fetched_again() {
    let stop = CancellationToken::new();
    let _stopping = stop.clone().drop_guard();
    for (transport, grow) in [over_streams(), over_http(&stop).await] {
        let mut config = config("sdk", transport);
        config.protocol = Some(ProtocolVersion::V20260728);
        let server = Upstream::start(config, deps());
        until_ready(&server).await;
        // The subscription may follow the first list, so notifications are repeated until one is received.
        let telling = async {
            for tools in 6.. {
                grow.send_replace(tools);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            status = until(&server, |status| status.tools > Some(5)) => assert!(status.tools > Some(5)),
            () = telling => {}
        }
    }
}
