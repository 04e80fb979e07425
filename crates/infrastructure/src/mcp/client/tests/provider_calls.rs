//! Calls as the call path makes them.

use super::*;
use crate::mcp::client::config::{Backoff, McpTransport};
use crate::{
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
};
use serde_json::{Map, Value, json};
use std::{sync::Mutex, time::Instant};
use toolstead_domain::{
    CallId, CallPermissions, Caller, Category, ClientProfile, InputRequest, InputResponse, LogLevel, LogMessage,
    NotAnswered, Principal, Progress, ToolName,
};
use uuid::Uuid;

/// Timeout of everything that a test waits for.
pub(super) const SOON: Duration = Duration::from_secs(120);

/// Caller that records what it receives.
#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) progress: Mutex<Vec<f64>>,
    pub(super) logs: Mutex<Vec<Value>>,
    pub(super) ignores_progress: bool,
}

#[async_trait]
impl Caller for Listener {
    fn wants_progress(&self) -> bool {
        !self.ignores_progress
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress.progress);
    }

    fn log(&self, message: LogMessage) {
        self.logs.lock().unwrap().push(message.data);
    }

    async fn ask(&self, _: InputRequest) -> Result<InputResponse, NotAnswered> {
        Err(NotAnswered::Unsupported)
    }
}

/// Returns a configuration with short timeouts and retries.
pub(super) fn config(transport: McpTransport) -> UpstreamConfig {
    let mut config = UpstreamConfig::new(ServerName::parse("s").unwrap(), transport);
    config.retry = Backoff { first: Duration::from_millis(20), longest: Duration::from_secs(60) };
    config
}

pub(super) fn start(config: UpstreamConfig) -> Arc<Upstream> {
    Upstream::start(config, deps())
}

pub(super) fn deps() -> UpstreamDeps {
    UpstreamDeps {
        launcher: None,
        http: HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default()))),
        clients: Default::default(),
    }
}

/// Waits until the server's status is as wanted.
#[track_caller]
pub(super) fn until(
    server: &Upstream,
    wanted: impl Fn(&UpstreamStatus) -> bool,
) -> impl Future<Output = UpstreamStatus> {
    let place = std::panic::Location::caller();
    async move {
        let waiting = async {
            loop {
                let _ = server.list().await;
                let status = server.status();
                if wanted(&status) {
                    return status;
                }
                server.changed().await;
            }
        };
        match timeout(SOON, waiting).await {
            Ok(status) => status,
            Err(_) => panic!("{place}: {:?}", server.status()),
        }
    }
}

pub(super) async fn until_ready(server: &Upstream) -> UpstreamStatus {
    until(server, |status| status.state == ProviderState::Ready).await
}

pub(super) async fn tool_names(server: &Upstream) -> Vec<String> {
    server.list().await.unwrap().iter().map(|tool| tool.name().to_string()).collect()
}

/// Calls a tool. Returns the result as JSON text, or the failure's kind and text.
pub(super) async fn call(server: &Upstream, tool: &str, arguments: Value) -> Result<String, (ErrorKind, String)> {
    call_with(server, tool, arguments, &Listener::default(), SOON).await
}

pub(super) async fn call_with(
    server: &Upstream,
    tool: &str,
    arguments: Value,
    caller: &dyn Caller,
    time: Duration,
) -> Result<String, (ErrorKind, String)> {
    call_as(server, &Client::new(json!({})), tool, arguments, caller, time).await
}

/// Caller with its capabilities.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) principal: Principal,
    pub(super) session: &'static str,
    pub(super) capabilities: Value,
}

impl Client {
    pub(super) fn new(capabilities: Value) -> Self {
        Self { principal: Principal::local(), session: "session", capabilities }
    }

    /// Returns a call of a tool by this client, with its grant and profile.
    pub(super) fn parts(
        &self,
        server: &Upstream,
        tool: &str,
        arguments: Value,
    ) -> (ToolCall, CallPermissions, ClientProfile) {
        let name = ServerName::parse(server.name()).unwrap();
        let source = ToolSource::McpServer { server: name.clone(), tool: tool.into() };
        let definition = Tool::new(ToolName::for_upstream(&name, tool), Map::new(), Category::Mcp, source);
        let definition = Arc::new(definition);
        let call = ToolCall {
            id: CallId(Uuid::now_v7()),
            principal: self.principal.clone(),
            session: self.session.into(),
            tool: definition.clone(),
            called_as: tool.into(),
            arguments: arguments.as_object().unwrap().clone(),
            meta: json!({"example.com/trace": "t"}).as_object().unwrap().clone(),
        };
        let profile = ClientProfile {
            log_level: Some(LogLevel::Info),
            capabilities: self.capabilities.as_object().unwrap().clone(),
            ..ClientProfile::without_protocol("test")
        };
        (call, CallPermissions::new(Arc::default(), definition, vec![]), profile)
    }
}

pub(super) async fn call_as(
    server: &Upstream,
    client: &Client,
    tool: &str,
    arguments: Value,
    caller: &dyn Caller,
    time: Duration,
) -> Result<String, (ErrorKind, String)> {
    let (call, grant, profile) = client.parts(server, tool, arguments);
    let context = CallContext { caller, ..CallContext::new(&call, &grant, &profile, Instant::now() + time) };
    match server.call(&call, &context).await {
        Ok(CallOutcome::Done(result)) => Ok(Value::Object(result.into_object()).to_string()),
        Ok(CallOutcome::InputRequired(required)) => Ok(format!("{required:?}")),
        Err(failure) => Err((failure.kind, failure.text())),
    }
}
