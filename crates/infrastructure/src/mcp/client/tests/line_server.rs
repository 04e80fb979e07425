//! Server at the other end of a pair of streams.

use crate::mcp::client::config::{InProcessUpstream, McpTransport};
use serde_json::{Value, json};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};

/// Server end of one connection.
pub(super) struct LineEnd {
    reader: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns a transport whose connections are served by `serve`, which gets their number, from 0.
pub(super) fn line_server(serve: impl Fn(usize, LineEnd) -> Serving + Send + Sync + 'static) -> McpTransport {
    let connections = AtomicUsize::new(0);
    McpTransport::Streams(InProcessUpstream {
        open: Arc::new(move || {
            let (ours, theirs) = duplex(1 << 16);
            let (reader, writer) = split(theirs);
            tokio::spawn(serve(connections.fetch_add(1, Ordering::SeqCst), LineEnd::new(reader, writer)));
            let (reader, writer) = split(ours);
            (Box::new(reader), Box::new(writer))
        }),
    })
}

impl LineEnd {
    pub(super) fn new(reader: ReadHalf<DuplexStream>, writer: WriteHalf<DuplexStream>) -> Self {
        Self { reader: BufReader::new(reader).lines(), writer }
    }

    /// Returns the next message; `None` at the end.
    pub(super) async fn hear(&mut self) -> Option<Value> {
        let line = self.reader.next_line().await.ok()??;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Returns the next message with this method. Answers earlier messages like a legacy server.
    pub(super) async fn hear_method(&mut self, method: &str) -> Option<Value> {
        loop {
            let message = self.hear().await?;
            if message["method"] == method {
                return Some(message);
            }
            self.answer_plainly(&message).await;
        }
    }

    pub(super) async fn say(&mut self, message: Value) {
        self.say_line(&message.to_string()).await;
    }

    /// Sends a line. Ignores the error if the client has disconnected.
    pub(super) async fn say_line(&mut self, line: &str) {
        let _ = self.writer.write_all(format!("{line}\n").as_bytes()).await;
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub(super) async fn fail(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.say(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Answers a message like a legacy server.
    pub(super) async fn answer_plainly(&mut self, message: &Value) {
        match plain_answer(message) {
            Some(Ok(result)) => self.answer(message, result).await,
            Some(Err(code)) => self.fail(message, code, "no").await,
            None => {}
        }
    }

    pub(super) async fn serve_plainly(&mut self) {
        while let Some(message) = self.hear().await {
            self.answer_plainly(&message).await;
        }
    }
}

/// Returns the response of a server with one tool, `echo`, which returns its arguments. `None` for messages without a
/// response.
pub(super) fn plain_answer(message: &Value) -> Option<Result<Value, i64>> {
    message.get("id").filter(|_| message.get("method").is_some())?;
    Some(match message["method"].as_str() {
        Some("initialize") => Ok(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "plain", "version": "1.0"},
        })),
        Some("tools/list") => Ok(json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}, "x-kept": 1}]})),
        Some("tools/call") => Ok(json!({"content": [], "structuredContent": message["params"]["arguments"]})),
        _ => Err(-32601),
    })
}

/// Returns the response of a 2026-07-28 server.
pub(super) fn modern_answer(message: &Value) -> Option<Result<Value, i64>> {
    message.get("id").filter(|_| message.get("method").is_some())?;
    let meta = &message["params"]["_meta"];
    let complete = meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        && meta["io.modelcontextprotocol/clientCapabilities"].is_object()
        && meta["io.modelcontextprotocol/clientInfo"]["name"] == "toolstead";
    Some(match message["method"].as_str() {
        _ if !complete => Err(-32602),
        Some("server/discover") => Ok(json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2.0"}},
        })),
        Some("tools/list") => {
            Ok(json!({"resultType": "complete", "ttlMs": 0, "tools": [{"name": "echo", "inputSchema": {}}]}))
        }
        Some("tools/call") => {
            Ok(json!({"resultType": "complete", "content": [], "structuredContent": message["params"]["arguments"]}))
        }
        _ => Err(-32601),
    })
}
