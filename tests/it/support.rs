//! An application out of the ports' fakes, and a client of our own that sends exactly what a test says.

use serde_json::{Value, json};
use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolstead_application::{CallSettings, EventBus, ExecuteToolPorts};
use toolstead_domain::{
    DefaultSuggestions, ExecutionOutcome, NoApprover, NoConversations, NoJournal, NoOutputs, NoRuleStore,
    PermissionPolicy, Timestamp, ToolProvider, ToolResult, UnavailableSchemaValidator,
    testing::{
        fixed_clock::FixedClock,
        in_memory_execution_log::InMemoryExecutionLog,
        in_memory_tool_repository::InMemoryToolRepository,
        scripted_provider::{
            ScriptedProvider,
            scripted_tool::{Ending, ScriptedTool},
        },
    },
};
use toolstead_infrastructure::{
    http::sse::SseDecoder,
    mcp::wire::lines::{BoundedLines, Line},
};
use toolstead_presentation::{
    agent_parts::SharedAgentDependencies,
    app::{App, AppParts},
    mcp_server::{
        http::{
            HttpServer,
            settings::{BearerToken, HttpSettings},
        },
        stdio::{StdioSettings, serve_stdio},
    },
};

/// Limit of every wait. Ends only a test that would hang: the slowest machine is quicker.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for what is sure to come.
#[track_caller]
pub(crate) fn soon<T>(what: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(PATIENCE, what).await {
            Ok(value) => value,
            Err(_) => panic!("waited in vain at {caller}"),
        }
    }
}

/// An application with one provider of scripted tools.
#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) app: App,
    pub(crate) provider: Arc<ScriptedProvider>,
    pub(crate) log: Arc<InMemoryExecutionLog>,
}

impl TestApp {
    pub(crate) async fn with(tools: impl IntoIterator<Item = ScriptedTool>) -> Self {
        let provider = tools.into_iter().fold(ScriptedProvider::new("scripted"), ScriptedProvider::with);
        Self::of(Arc::new(provider)).await
    }

    pub(crate) async fn of(provider: Arc<ScriptedProvider>) -> Self {
        Self::with_settings(provider, CallSettings::default()).await
    }

    pub(crate) async fn with_settings(provider: Arc<ScriptedProvider>, settings: CallSettings) -> Self {
        Self::with_policy(provider, settings, PermissionPolicy::default()).await
    }

    pub(crate) async fn with_policy(
        provider: Arc<ScriptedProvider>,
        settings: CallSettings,
        policy: PermissionPolicy,
    ) -> Self {
        let log = Arc::new(InMemoryExecutionLog::new());
        let clock = Arc::new(FixedClock::at(Timestamp(0)));
        let ports = ExecuteToolPorts {
            approver: Arc::new(NoApprover),
            log: log.clone(),
            clock: clock.clone(),
            outputs: Arc::new(NoOutputs),
            schemas: Arc::new(UnavailableSchemaValidator),
            hooks: Vec::new(),
            events: EventBus::new(clock),
            suggestions: Arc::new(DefaultSuggestions),
        };
        let rule_store = Arc::new(NoRuleStore);
        let (journal, conversations) = (Arc::new(NoJournal), Arc::new(NoConversations));
        let parts = AppParts {
            definitions: None,
            policy,
            rule_store,
            ports,
            journal,
            conversations,
            settings,
            max_open_calls: 10_000,
            dialect: None,
            deferral: toolstead_application::ToolDeferral::never(),
            agents: SharedAgentDependencies::default(),
        };
        let app = App::assemble(parts, Arc::new(InMemoryToolRepository::new())).await.unwrap();
        app.registry.register(provider.clone() as Arc<dyn ToolProvider>).await.unwrap();
        Self { app, provider, log }
    }

    /// Returns the outcomes in the audit log, oldest first.
    pub(crate) fn outcomes(&self) -> Vec<ExecutionOutcome> {
        let mut rows = self.log.rows();
        rows.sort_by_key(|row| row.id);
        rows.into_iter().map(|row| row.outcome).collect()
    }
}

/// Repeats `message`.
pub(crate) fn echo() -> ScriptedTool {
    ScriptedTool::named("echo").ends_by(|moment| {
        let message = moment.call.arguments.get("message").and_then(Value::as_str).unwrap_or("nothing");
        Ending::Done(ToolResult::text(message))
    })
}

/// Runs until it is stopped.
pub(crate) fn endless() -> ScriptedTool {
    ScriptedTool::named("endless").never_ends()
}

/// One client on a pair of byte streams.
pub(crate) struct StdioClient {
    pub(crate) input: BoundedLines<ReadHalf<DuplexStream>>,
    pub(crate) output: WriteHalf<DuplexStream>,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

impl StdioClient {
    /// Starts a server and connects to it.
    pub(crate) fn start(app: &TestApp, settings: StdioSettings) -> Self {
        let (stream, stop, serving) = serve_streams(app, settings);
        let (input, output) = tokio::io::split(stream);
        Self { input: BoundedLines::new(input, 64 << 20), output, stop, serving }
    }

    /// Starts a server and opens a session of that version.
    pub(crate) async fn legacy(app: &TestApp) -> Self {
        let mut client = Self::start(app, StdioSettings::default());
        client.send(initialize("2025-11-25")).await;
        assert_eq!(client.next().await["result"]["protocolVersion"], "2025-11-25");
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_line(&message.to_string()).await;
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        soon(self.output.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    /// The next message; the end of the stream is an error.
    pub(crate) async fn next(&mut self) -> Value {
        self.try_next().await.expect("the server closed the connection")
    }

    /// The next message; `None` at the end.
    pub(crate) async fn try_next(&mut self) -> Option<Value> {
        match soon(self.input.next()).await.unwrap()? {
            Line::Whole(line) => Some(serde_json::from_slice(&line).unwrap()),
            Line::TooLong(_) => panic!("a line of more than 64 MiB"),
        }
    }

    /// Sends a request and returns its answer, whatever comes before it.
    pub(crate) async fn answer_to(&mut self, request: Value) -> Value {
        let id = request["id"].clone();
        self.send(request).await;
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Sends a request and returns the message that follows.
    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.send(message).await;
        self.next().await
    }
}

/// A server on a pair of byte streams: the other end, what stops it, and its end.
pub(crate) fn serve_streams(
    app: &TestApp,
    settings: StdioSettings,
) -> (DuplexStream, CancellationToken, JoinHandle<std::io::Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(theirs);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve_stdio(app.app.clone(), settings, reader, writer, stop.clone()));
    (ours, stop, serving)
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

/// A request as clients up to 2025-11-25 send it.
pub(crate) fn legacy(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request as clients of 2026-07-28 send it.
pub(crate) fn modern(id: i64, method: &str, params: Value) -> Value {
    let mut request = legacy(id, method, params);
    let meta = &mut request["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    request
}

/// A call of a tool, for either kind of request.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// Returns the text of a call's result.
#[track_caller]
pub(crate) fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Token with which tests authenticate.
pub(crate) const TOKEN: &str = "the-token-of-the-tests";

/// A server on a free port of this machine, and a client of it.
#[derive(Debug)]
pub(crate) struct HttpFront {
    pub(crate) server: Option<HttpServer>,
    pub(crate) address: SocketAddr,
    pub(crate) client: reqwest::Client,
}

impl HttpFront {
    pub(crate) async fn start(app: &TestApp) -> Self {
        Self::with(app, |_| {}).await
    }

    pub(crate) async fn with(app: &TestApp, change: impl FnOnce(&mut HttpSettings)) -> Self {
        // Another test may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = HttpSettings::default();
        settings.tokens.push(BearerToken { name: "test".into(), secret: TOKEN.into() });
        change(&mut settings);
        let server = HttpServer::start(listener, app.app.clone(), settings).unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { address: server.address(), server: Some(server), client }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request to the endpoint with the token and without a body.
    pub(crate) fn request(&self, method: reqwest::Method) -> reqwest::RequestBuilder {
        self.client.request(method, self.url("/mcp")).bearer_auth(TOKEN)
    }

    /// A message as clients up to 2025-11-25 post it, session aside.
    pub(crate) fn post(&self, message: &Value) -> reqwest::RequestBuilder {
        self.request(reqwest::Method::POST)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(message.to_string())
    }

    /// A request as clients of 2026-07-28 post it.
    pub(crate) fn post_modern(&self, request: &Value) -> reqwest::RequestBuilder {
        let post = self.post(request).header("mcp-protocol-version", "2026-07-28");
        let post = post.header("mcp-method", request["method"].as_str().unwrap());
        let params = &request["params"];
        let uri = (request["method"] == "resources/read").then(|| params["uri"].as_str()).flatten();
        match params["name"].as_str().or(uri) {
            Some(name) => post.header("mcp-name", name),
            None => post,
        }
    }

    /// Posts a request of 2026-07-28 and returns the status and the one message that came back.
    pub(crate) async fn ask_modern(&self, request: &Value) -> (u16, Value) {
        let response = soon(self.post_modern(request).send()).await.unwrap();
        (response.status().as_u16(), only(messages(response).await))
    }

    /// Opens a session of 2025-11-25 and returns its id.
    pub(crate) async fn open_session(&self) -> String {
        let response = soon(self.post(&initialize("2025-11-25")).send()).await.unwrap();
        assert_eq!(response.status(), 200);
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let response = soon(self.in_session(&session, &initialized).send()).await.unwrap();
        assert_eq!(response.status(), 202);
        session
    }

    /// A message of that session.
    pub(crate) fn in_session(&self, session: &str, message: &Value) -> reqwest::RequestBuilder {
        self.post(message).header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
    }

    /// Posts a request of that session and returns the status and the one message that came back.
    pub(crate) async fn ask_in_session(&self, session: &str, request: &Value) -> (u16, Value) {
        let response = soon(self.in_session(session, request).send()).await.unwrap();
        (response.status().as_u16(), only(messages(response).await))
    }
}

/// The messages of a whole response, JSON or events.
pub(crate) async fn messages(response: reqwest::Response) -> Vec<Value> {
    let mut events = Events::of(response);
    let mut all = Vec::new();
    while let Some(message) = events.try_next().await {
        all.push(message);
    }
    all
}

#[track_caller]
pub(crate) fn only(mut messages: Vec<Value>) -> Value {
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0)
}

/// The messages of a response as they come.
pub(crate) struct Events {
    response: reqwest::Response,
    decoder: Option<SseDecoder>,
}

impl Events {
    pub(crate) fn of(response: reqwest::Response) -> Self {
        let is_stream = response.headers().get("content-type").is_some_and(|value| value == "text/event-stream");
        Self { response, decoder: is_stream.then(|| SseDecoder::new(64 << 20)) }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn try_next(&mut self) -> Option<Value> {
        let Some(decoder) = &mut self.decoder else {
            let mut whole = Vec::new();
            while let Some(chunk) = soon(self.response.chunk()).await.unwrap() {
                whole.extend_from_slice(&chunk);
            }
            return (!whole.is_empty()).then(|| serde_json::from_slice(&whole).unwrap());
        };
        loop {
            if let Some(event) = decoder.next_event() {
                return Some(serde_json::from_slice(&event.data).unwrap());
            }
            let chunk = soon(self.response.chunk()).await.unwrap()?;
            decoder.push(&chunk).unwrap();
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.try_next().await.expect("the stream ended")
    }

    /// Returns when the stream has shown that it is alive, and nothing else.
    pub(crate) async fn pulse(&mut self) {
        let chunk = soon(self.response.chunk()).await.unwrap().expect("the stream ended");
        assert!(chunk.starts_with(b":"), "{chunk:?}");
    }
}
