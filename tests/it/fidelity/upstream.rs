//! A server of hand-written bytes that records what it receives, and sends what a test specifies.

use super::wild::Wild;
use axum::{
    Router,
    body::Bytes,
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split};
use toolstead_domain::{ProtocolGeneration, ProtocolVersion};
use toolstead_infrastructure::mcp::client::config::{HttpUpstream, InProcessUpstream, McpTransport};

/// Placeholder of the caller's progress token.
pub(super) const TOKEN: &str = "@token@";

/// Messages that are sent for one call.
#[derive(Debug, Clone)]
pub(super) struct Saying {
    /// Notifications before the answer: method and parameters.
    pub(super) before: Vec<(&'static str, Map<String, Value>)>,
    /// The result or the error.
    pub(super) answer: Result<Map<String, Value>, Value>,
}

/// The server. Clones are the same one.
#[derive(Clone)]
pub(super) struct Recorder {
    version: ProtocolVersion,
    definitions: Vec<Value>,
    /// Members of its list beside the definitions.
    list: Map<String, Value>,
    state: Arc<Mutex<State>>,
}

struct State {
    wild: Wild,
    sayings: VecDeque<Saying>,
    heard: Vec<Map<String, Value>>,
}

impl Recorder {
    pub(super) fn new(version: ProtocolVersion, definitions: Vec<Value>, list: Map<String, Value>) -> Self {
        let state = State { wild: Wild::of(77), sayings: VecDeque::new(), heard: Vec::new() };
        Self { version, definitions, list, state: Arc::new(Mutex::new(state)) }
    }

    /// Says this about the next call.
    pub(super) fn will_say(&self, saying: Saying) {
        self.state.lock().unwrap().sayings.push_back(saying);
    }

    /// The parameters of the calls since the last time.
    pub(super) fn heard(&self) -> Vec<Map<String, Value>> {
        std::mem::take(&mut self.state.lock().unwrap().heard)
    }

    fn is_modern(&self) -> bool {
        self.version.generation() == ProtocolGeneration::Modern
    }

    /// Everything that a message is answered with, a line each.
    fn answers(&self, message: &[u8]) -> Vec<String> {
        let message: Value = serde_json::from_slice(message).unwrap();
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { return Vec::new() };
        let capabilities = json!({"tools": {}, "logging": {}, "resources": {}, "prompts": {}, "completions": {}});
        let mut said = Vec::new();
        let answer = match method {
            "initialize" if !self.is_modern() => Ok(json!({"protocolVersion": self.version.as_str(),
                "capabilities": capabilities, "serverInfo": {"name": "recorder", "version": "1"}})),
            "server/discover" if self.is_modern() => Ok(json!({"resultType": "complete",
                "supportedVersions": [self.version.as_str()], "capabilities": capabilities})),
            "tools/list" => {
                let mut list = self.list.clone();
                list.insert("tools".into(), self.definitions.clone().into());
                Ok(list.into())
            }
            "resources/list" => Ok(json!({"resources": [{"uri": "a://b", "name": "b"}]})),
            "resources/templates/list" => Ok(json!({"resourceTemplates": [{"uriTemplate": "a://{x}", "name": "t"}]})),
            "prompts/list" => Ok(json!({"prompts": [{"name": "p"}]})),
            "tools/call" | "resources/read" | "prompts/get" | "completion/complete" => {
                let saying = {
                    let mut state = self.state.lock().unwrap();
                    state.heard.push(message["params"].as_object().unwrap().clone());
                    state.sayings.pop_front().unwrap()
                };
                for (method, mut params) in saying.before {
                    if let Some(token) = params.get_mut("progressToken").filter(|token| **token == TOKEN) {
                        *token = message["params"]["_meta"]["progressToken"].clone();
                    }
                    said.push(json!({"jsonrpc": "2.0", "method": method, "params": params}));
                }
                saying.answer.map(Value::Object)
            }
            _ => Err(json!({"code": -32601, "message": "no"})),
        };
        said.push(match answer {
            Ok(mut result) => {
                if self.is_modern() {
                    result["resultType"] = "complete".into();
                }
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
            Err(error) => json!({"error": error, "id": id, "jsonrpc": "2.0"}),
        });
        let mut state = self.state.lock().unwrap();
        said.iter().map(|message| state.wild.write(message)).collect()
    }

    /// The server behind a pair of streams, a message a line.
    pub(super) fn over_lines(&self) -> McpTransport {
        let recorder = self.clone();
        let open = move || {
            let (ours, theirs) = duplex(1 << 16);
            let recorder = recorder.clone();
            tokio::spawn(async move {
                let (reader, mut writer) = split(theirs);
                let mut lines = BufReader::new(reader).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    for said in recorder.answers(line.as_bytes()) {
                        // A client that has disconnected receives nothing.
                        let _ = writer.write_all(format!("{said}\n").as_bytes()).await;
                    }
                }
            });
            let (reader, writer) = split(ours);
            (Box::new(reader) as _, Box::new(writer) as _)
        };
        McpTransport::Streams(InProcessUpstream { open: Arc::new(open) })
    }

    /// The server on a port of this machine: one JSON object where that is all, else a stream of events.
    pub(super) async fn over_http(&self) -> McpTransport {
        let recorder = self.clone();
        let answer = move |method: Method, body: Bytes| async move {
            if method != Method::POST {
                return StatusCode::METHOD_NOT_ALLOWED.into_response();
            }
            let respond = |kind: &str, body: String| -> Response {
                ([(header::CONTENT_TYPE, kind.to_owned())], body).into_response()
            };
            match &recorder.answers(&body)[..] {
                [] => StatusCode::ACCEPTED.into_response(),
                [only] => respond("application/json", only.clone()),
                all => respond("text/event-stream", all.iter().map(|one| format!("data: {one}\n\n")).collect()),
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        McpTransport::Http(HttpUpstream { url, headers: BTreeMap::new() })
    }
}
