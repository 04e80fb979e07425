//! What Toolstead is measured against: the least that can answer an MCP call, and a bare server on the official SDK.

use crate::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header, service::service_fn};
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
use std::{
    convert::Infallible,
    io::{BufRead, BufReader, BufWriter, Write},
    sync::Arc,
};
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

/// The answer of a minimal MCP server with `tools` tools that all echo, and say that they only read or say nothing.
fn answer(message: &Value, tools: usize, read_only: bool) -> Option<Value> {
    let id = message.get("id")?;
    let tool = |n: usize| {
        let name = if n == 0 { "echo".to_owned() } else { format!("tool_{n}") };
        json!({"name": name, "description": "Repeats the message, which is what a description of usual length says.",
               "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
               "annotations": if read_only { json!({"readOnlyHint": true}) } else { json!({}) }})
    };
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                               "serverInfo": {"name": "echo", "version": "1"}}),
        "tools/list" => json!({"tools": (0..tools).map(tool).collect::<Vec<_>>()}),
        "tools/call" => {
            let text = message["params"]["arguments"]["message"].as_str().unwrap_or("");
            json!({"content": [{"type": "text", "text": format!("Echo: {text}")}]})
        }
        "ping" => json!({}),
        _ => {
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// MCP on nothing but hyper.
async fn echo_http(read_only: bool) -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    announce(&listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| async move {
                let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let message = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let mut response = Response::new(Full::new(Bytes::new()));
                match answer(&message, 1, read_only) {
                    Some(answer) => {
                        response
                            .headers_mut()
                            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
                        *response.body_mut() = Full::new(Bytes::from(answer.to_string()));
                    }
                    None => *response.status_mut() = hyper::StatusCode::ACCEPTED,
                }
                Ok::<_, Infallible>(response)
            });
            // A client that went away is no fault of the reference.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// MCP on nothing but a read and a write: as many answers go out at once as there were requests.
fn echo_stdio(tools: usize, read_only: bool) -> Outcome<()> {
    let mut input = BufReader::with_capacity(64 << 10, std::io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(answer) = serde_json::from_str(&line).ok().and_then(|message| answer(&message, tools, read_only)) {
            writeln!(output, "{answer}")?;
        }
        line.clear();
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(())
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

/// Tells the one who started this process where it listens.
pub(crate) fn announce(listener: &TcpListener) -> Outcome<()> {
    println!("{}", listener.local_addr()?.port());
    Ok(())
}
