//! An application with many tools, with definitions of the size that servers have.

use crate::support::TestApp;
use serde_json::json;
use std::sync::Arc;
use toolstead_domain::{
    Category, ServerName, Tool, ToolName, ToolResult, ToolSource,
    testing::{
        in_memory_conversations::InMemoryConversations,
        in_memory_execution_log::InMemoryExecutionLog,
        in_memory_tool_repository::InMemoryToolRepository,
        scripted_provider::{ScriptedProvider, scripted_tool::ScriptedTool},
    },
};
use toolstead_presentation::{
    app::App,
    composition_root::RunningApp,
    config::{
        Config,
        layers::{
            environment::EnvironmentVariables,
            request::{ConfigFlags, ConfigRequest},
        },
    },
};

const SERVER: &str = "office";
const SUBJECTS: [&str; 10] = [
    "invoices",
    "tickets",
    "customers",
    "projects",
    "releases",
    "pipelines",
    "alerts",
    "documents",
    "contracts",
    "shipments",
];
const ACTIONS: [(&str, &str); 5] = [
    (
        "list",
        "Lists the {} of the current workspace, newest first. Returns the identifier, the title, the state and the time of the last change of each.",
    ),
    (
        "create",
        "Creates one of the {} with these fields, and returns it with its identifier. Fails if another one has the same title.",
    ),
    (
        "update",
        "Changes fields of one of the {}. Fields that are not given keep their values. Returns it as it is afterwards.",
    ),
    ("delete", "Deletes one of the {} for good, with its comments and attachments. Requires the rights of an owner."),
    (
        "export",
        "Exports the {} that match a filter into a file, as CSV or JSON, and returns a link to the file that is valid for a day.",
    ),
];

/// An application on its own folder.
pub(super) struct SearchApp {
    pub(super) app: TestApp,
    pub(super) running: RunningApp,
    _folder: tempfile::TempDir,
}

/// Returns this many tools.
pub(super) fn catalogue(count: usize) -> Vec<ScriptedTool> {
    (0..count).map(tool).collect()
}

/// Returns the name of the tool with this number at its server: `invoices_list_0`.
fn own_name(number: usize) -> String {
    let (subject, (action, _)) = (SUBJECTS[number % SUBJECTS.len()], ACTIONS[number / SUBJECTS.len() % ACTIONS.len()]);
    format!("{subject}_{action}_{}", number / (SUBJECTS.len() * ACTIONS.len()))
}

/// Returns the name of the tool with this number: `mcp__office__invoices_list_0`.
pub(super) fn name(number: usize) -> String {
    format!("mcp__{SERVER}__{}", own_name(number))
}

fn tool(number: usize) -> ScriptedTool {
    let (subject, (_, text)) = (SUBJECTS[number % SUBJECTS.len()], ACTIONS[number / SUBJECTS.len() % ACTIONS.len()]);
    let (name, own) = (name(number), own_name(number));
    let definition = json!({
        "name": own,
        "description": text.replace("{}", subject),
        "inputSchema": {"type": "object", "properties": {
            "id": {"type": "string", "description": format!("Identifier, as the list of {subject} shows it.")},
            "filter": {"type": "string", "description": "Words that the title must contain; case is ignored."},
            "state": {"type": "string", "enum": ["open", "closed", "archived"], "description": "State. Default: any."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Maximum number of results."},
        }},
    });
    let definition = definition.as_object().unwrap().clone();
    let source = ToolSource::McpServer { server: ServerName::parse(SERVER).unwrap(), tool: own.into() };
    let tool = Tool::new(ToolName::parse(&name).unwrap(), definition, Category::Mcp, source);
    ScriptedTool::of(tool).answers(ToolResult::text(format!("result of {name}")))
}

impl SearchApp {
    /// Starts an application with these settings and tools, besides the built-in ones.
    pub(super) async fn with(settings: &str, tools: Vec<ScriptedTool>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for name in ["work", "home"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        std::fs::write(path("own.toml"), settings).unwrap();
        let request = ConfigRequest {
            environment: EnvironmentVariables::new([("HOME", path("home")), ("XDG_DATA_HOME", path("data"))]),
            start: path("work").into(),
            administrator: path("etc").into(),
            file: Some(path("own.toml").into()),
            flags: ConfigFlags::default(),
        };
        let provider = Arc::new(tools.into_iter().fold(ScriptedProvider::new(SERVER), ScriptedProvider::with));
        let log = Arc::new(InMemoryExecutionLog::new());
        let builder = App::builder(Config::load(&request).unwrap())
            .provider(provider.clone())
            .execution_log(log.clone())
            .tool_repository(Arc::new(InMemoryToolRepository::new()))
            .conversations(Arc::new(InMemoryConversations::new()));
        let running = builder.build().await.unwrap();
        Self { app: TestApp { app: running.app.clone(), provider, log }, running, _folder: folder }
    }

    pub(super) async fn close(self) {
        self.running.close().await;
    }
}
