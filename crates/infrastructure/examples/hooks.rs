//! Hooks alone: a line of shell that refuses a call, asked as it is before every call.
//!
//! `cargo run -p toolstead-infrastructure --no-default-features --features hooks --example hooks`

use serde_json::{Map, json};
use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};
use toolstead_domain::{
    CallId, Category, HookVerdict, PermissionMode, Principal, Tool, ToolCall, ToolHook, ToolName, ToolSource,
    WorkspaceRoots,
};
use toolstead_infrastructure::{
    child_environment,
    helper::{end_helpers, enter_if_helper},
    hooks::{
        command_hooks::{CommandHooks, HookSurroundings},
        definition::{FailurePolicy, HookDefinition, HookEvent, HookProgram},
        matcher::Matcher,
    },
    sandbox::launcher::Launcher,
};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    enter_if_helper();
    let asked = tokio::runtime::Runtime::new()?.block_on(ask());
    end_helpers();
    asked
}

async fn ask() -> Result<(), Box<dyn Error>> {
    let gate = HookDefinition {
        name: "no-deploys".into(),
        origin: "this example".into(),
        event: HookEvent::PreToolUse,
        matcher: Matcher::parse("deploy")?,
        filter: None,
        program: HookProgram::Shell("echo 'not on a Friday' >&2; exit 2".into()),
        start: None,
        environment: BTreeMap::new(),
        timeout: Duration::from_secs(10),
        gate: true,
        on_error: FailurePolicy::Deny,
        in_background: false,
    };
    let surroundings = HookSurroundings {
        start: std::env::current_dir()?,
        roots: WorkspaceRoots::default(),
        mode: PermissionMode::default(),
        environment: child_environment::base(|name| std::env::var(name).ok()),
        shell: "sh".into(),
        concurrency: 1,
    };
    let hooks = CommandHooks::new(vec![gate], surroundings, Launcher::start()?);
    let definition = Map::from_iter([("inputSchema".into(), json!({"type": "object"}))]);
    let tool = Tool::new(ToolName::parse("deploy")?, definition, Category::System, ToolSource::BuiltIn);
    let call = ToolCall {
        id: CallId(Uuid::now_v7()),
        principal: Principal::local(),
        session: "example".into(),
        tool: Arc::new(tool),
        called_as: "deploy".into(),
        arguments: Map::new(),
        meta: Map::new(),
    };
    let said = hooks.before(&call, None).await;
    hooks.close().await;
    match said.verdict {
        HookVerdict::Deny(reason) if reason.contains("not on a Friday") => Ok(()),
        verdict => Err(format!("the hook did not refuse the call: {verdict:?}").into()),
    }
}
