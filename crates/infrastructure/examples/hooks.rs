//! Asks a hook whether a call may go on, and prints what it says:
//!
//! ```sh
//! cargo run -p toolstead-infrastructure --no-default-features --features hooks --example hooks -- \
//!     'grep -q secret && { echo "secrets stay out of files" >&2; exit 2; } || true'
//! ```

use serde_json::json;
use std::{collections::BTreeMap, error::Error, time::Duration};
use toolstead_domain::{
    permission::policy::Mode, ports::tool_hook::ToolHook as _, testing::samples, workspace_roots::WorkspaceRoots,
};
use toolstead_infrastructure::{
    hooks::{
        command_hooks::{CommandHooks, HookSurroundings},
        definition::{HookDefinition, HookEvent, HookProgram, OnError},
        matcher::Matcher,
    },
    sandbox::{child_environment, launcher::Launcher},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let line = std::env::args().nth(1).unwrap_or_else(|| "echo 'no line was given' >&2; exit 2".into());
    let hook = HookDefinition {
        name: "example".into(),
        origin: "the command line".into(),
        event: HookEvent::PreToolUse,
        matcher: Matcher::parse("*")?,
        filter: None,
        program: HookProgram::Shell(line),
        start: None,
        environment: BTreeMap::new(),
        timeout: Duration::from_secs(10),
        gate: false,
        on_error: OnError::Ask,
        in_background: false,
    };
    let surroundings = HookSurroundings {
        start: std::env::current_dir()?,
        roots: WorkspaceRoots::default(),
        mode: Mode::Default,
        environment: child_environment::base(|_| None),
        shell: "sh".into(),
        concurrency: 1,
    };
    let hooks = CommandHooks::new(vec![hook], surroundings, Launcher::start()?);
    for content in ["a greeting", "a secret"] {
        let call = samples::call(1, samples::tool("write_file"), json!({"path": "a.txt", "content": content}));
        println!("{content}: {:?}", hooks.before(&call, None).await.verdict);
    }
    hooks.close().await;
    Ok(())
}
