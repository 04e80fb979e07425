//! A provider of one server, and calls as the path of a call makes them.

use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    panic::Location,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::time::timeout;
use toolstead_domain::{
    CallContext, CallId, CallOutcome, CallPermissions, Caller, Category, ClientProfile, InputRequest, InputResponse,
    LogMessage, NoCalls, NoOutputs, NotAnswered, Principal, Progress, ProviderState, ServerName, Tool, ToolCall,
    ToolName, ToolProvider, ToolSource, WorkspaceRoots, error_kind::ErrorKind,
};
use toolstead_infrastructure::{
    child_environment,
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    mcp::client::{
        Upstream, UpstreamStatus,
        config::{Backoff, HttpUpstream, McpTransport, ServerSandboxProfile, StdioUpstream, UpstreamConfig},
        connection::UpstreamDeps,
        transport::stdio::StdioLauncher,
    },
    sandbox::launcher::Launcher,
};
use uuid::Uuid;

/// Everything that a test waits for comes sooner than this.
pub(super) const SOON: Duration = Duration::from_secs(120);

/// Progress and log messages as they came.
#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) progress: Mutex<Vec<f64>>,
    pub(super) logs: Mutex<Vec<Value>>,
}

#[async_trait]
impl Caller for Listener {
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

pub(crate) fn deps() -> UpstreamDeps {
    let launcher = StdioLauncher {
        launcher: Launcher::start().unwrap(),
        environment: child_environment::base(|name| std::env::var(name).ok()),
        working_dir: std::env::current_dir().unwrap(),
        roots: WorkspaceRoots::default(),
        sealed: Vec::new(),
        homes: None,
    };
    let http = HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())));
    UpstreamDeps { launcher: Some(Arc::new(launcher)), http, clients: Default::default() }
}

/// A configuration that tries again quickly.
pub(crate) fn config(name: &str, transport: McpTransport) -> UpstreamConfig {
    let mut config = UpstreamConfig::new(ServerName::parse(name).unwrap(), transport);
    // This test program cannot start itself as the sandbox's process; real_servers.rs goes through the binary.
    config.confinement.profile = ServerSandboxProfile::Open;
    config.retry = Backoff { first: Duration::from_millis(50), longest: Duration::from_secs(60) };
    config
}

pub(super) fn stdio(command: &str, args: &[&str]) -> McpTransport {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    McpTransport::Stdio(StdioUpstream { command: command.into(), args, env: BTreeMap::new(), working_dir: None })
}

pub(crate) fn http(url: &str) -> McpTransport {
    let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer of-a-secret".to_owned())]);
    McpTransport::Http(HttpUpstream { url: url.parse().unwrap(), headers })
}

/// Waits until the server's status is as wanted.
#[track_caller]
pub(super) fn until(
    server: &Upstream,
    wanted: impl Fn(&UpstreamStatus) -> bool,
) -> impl Future<Output = UpstreamStatus> {
    let place = Location::caller();
    async move {
        let waiting = async {
            loop {
                // Marks what has been seen; whether there is a list does not matter.
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

#[track_caller]
pub(crate) fn until_ready(server: &Upstream) -> impl Future<Output = UpstreamStatus> {
    until(server, |status| status.state == ProviderState::Ready)
}

/// Calls a tool by its name over there; the result as JSON, or the failure's kind and text.
pub(super) async fn call(server: &Upstream, tool: &str, arguments: Value) -> Result<Value, (ErrorKind, String)> {
    call_with(server, tool, arguments, &Listener::default(), SOON).await
}

pub(super) async fn call_with(
    server: &Upstream,
    tool: &str,
    arguments: Value,
    caller: &dyn Caller,
    time: Duration,
) -> Result<Value, (ErrorKind, String)> {
    let name = ServerName::parse(server.name()).unwrap();
    let source = ToolSource::McpServer { server: name.clone(), tool: tool.into() };
    let tool = Arc::new(Tool::new(ToolName::for_upstream(&name, tool), Map::new(), Category::Mcp, source));
    let call = ToolCall {
        id: CallId(Uuid::now_v7()),
        principal: Principal::local(),
        session: "session".into(),
        tool: tool.clone(),
        called_as: tool.name().to_string(),
        arguments: arguments.as_object().unwrap().clone(),
        meta: Map::new(),
    };
    let (principal, grant) = (Principal::local(), CallPermissions::new(Arc::default(), tool, vec![]));
    let context = CallContext {
        id: call.id,
        principal: &principal,
        session: "session",
        deadline: Instant::now() + time,
        grant: &grant,
        client: &ClientProfile::without_protocol("test"),
        forwarded: Default::default(),
        labels: &Default::default(),
        answers: None,
        caller,
        calls: &NoCalls,
        outputs: &NoOutputs,
        output_characters: 30_000,
    };
    match server.call(&call, &context).await {
        Ok(CallOutcome::Done(result)) => Ok(Value::Object(result.into_object())),
        Ok(CallOutcome::InputRequired(required)) => panic!("{required:?}"),
        Err(failure) => Err((failure.kind, failure.text())),
    }
}

/// The text of a result with one text block.
pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
