//! What Toolstead is measured against: the least that can answer an MCP call, and a bare server on the official SDK.

use crate::{
    Outcome,
    echo::{announce, echo_http, echo_stdio},
};
use hyper_util::rt::TokioIo;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Runs the reference of that name until it is killed. HTTP references print their port first.
pub(crate) async fn serve(name: &str) -> Outcome<()> {
    match name {
        "echo" => echo_http(true).await,
        "echo-unmarked" => echo_http(false).await,
        "echo-stdio" => echo_stdio(1, true),
        "echo-stdio-unmarked" => echo_stdio(1, false),
        "sdk" => sdk().await,
        other => match other.split_once(':') {
            Some(("tools-stdio", count)) => echo_stdio(count.parse()?, true),
            Some(("relay", upstream)) => crate::gateways::relay(upstream).await,
            _ => Err(format!("no reference is called `{other}`").into()),
        },
    }
}

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("echo", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema: JsonObject = json!({"type": "object", "properties": {"message": {"type": "string"}}})
            .as_object()
            .cloned()
            .unwrap_or_default();
        Ok(ListToolsResult {
            tools: vec![Tool::new("echo", "Repeats the message.", Arc::new(schema))],
            ..Default::default()
        })
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let text = arguments.get("message").and_then(Value::as_str).unwrap_or("");
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("Echo: {text}"))]).into())
    }
}

/// A bare echo server on the official SDK, in its fastest mode: without sessions, answers in JSON.
async fn sdk() -> Outcome<()> {
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service = StreamableHttpService::new(|| Ok(Echo), Arc::new(LocalSessionManager::default()), config);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    announce(&listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = hyper_util::service::TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
