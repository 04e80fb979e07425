//! Runs one built-in tool in a folder and prints its result:
//!
//! ```text
//! cargo run -p toolstead-infrastructure --example builtin -- . grep '{"pattern": "fn main"}'
//! ```
//!
//! The policy allows reading and editing below the folder, and nothing else.

use serde_json::{Map, Value};
use std::{
    error::Error,
    fs,
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{
    CallContext, CallId, CallOutcome, CallPermissions, ClientProfile, NoCalls, NoOutputs, PermissionMode,
    PermissionPolicy, Principal, SilentCaller, ToolCall, ToolFailure, ToolProvider, Verdict, WorkspaceRoots,
};
use toolstead_infrastructure::{
    builtin::{self, InProcessTools, ToolEnvironment},
    helper::{end_helpers, enter_if_helper},
    sandbox::workspace::{UserPathAliases, Workspace},
    system_clock::SystemClock,
};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    enter_if_helper();
    let mut words = std::env::args().skip(1);
    let (Some(folder), Some(tool)) = (words.next(), words.next()) else {
        return Err("usage: builtin FOLDER TOOL [ARGUMENTS AS JSON]".into());
    };
    let arguments = serde_json::from_str(&words.next().unwrap_or_else(|| "{}".into()))?;
    let said = tokio::runtime::Runtime::new()?.block_on(run(&folder, &tool, arguments));
    end_helpers();
    writeln!(io::stdout(), "{}", said?)?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the folder is the user's, who starts the example")]
async fn run(folder: &str, tool: &str, arguments: Map<String, Value>) -> Result<String, Box<dyn Error>> {
    let roots = WorkspaceRoots { write: vec![fs::canonicalize(folder)?], ..WorkspaceRoots::default() };
    let workspace = Workspace::open(&roots, UserPathAliases::default())?;
    let policy = Arc::new(PermissionPolicy { roots, mode: PermissionMode::AcceptEdits, ..PermissionPolicy::default() });
    let world = ToolEnvironment::new(Arc::new(workspace), Arc::new(SystemClock), "example".into());
    let tools = InProcessTools::new(builtin::all(), world)?;

    let known = tools.definitions().iter().find(|known| known.name().as_str() == tool);
    let definition = Arc::new(known.cloned().ok_or_else(|| format!("there is no tool `{tool}`"))?);
    let (principal, session) = (Principal::local(), "example");
    let call = ToolCall {
        id: CallId(Uuid::now_v7()),
        principal: principal.clone(),
        session: session.into(),
        tool: definition.clone(),
        called_as: tool.to_owned(),
        arguments,
        meta: Map::new(),
    };
    let accesses = tools.accesses(&call).await.map_err(text_of)?;
    let decision = policy.decide(&definition, &call.arguments, &accesses);
    if decision.verdict != Verdict::Allow {
        return Err(decision.reason().into());
    }
    let context = CallContext {
        id: call.id,
        principal: &principal,
        session,
        deadline: Instant::now() + Duration::from_secs(60),
        grant: &CallPermissions::new(policy, definition, accesses),
        client: &ClientProfile::without_protocol("example"),
        forwarded: Default::default(),
        labels: &Default::default(),
        answers: None,
        caller: &SilentCaller,
        calls: &NoCalls,
        outputs: &NoOutputs,
        output_characters: 30_000,
    };
    match tools.call(&call, &context).await.map_err(text_of)? {
        CallOutcome::Done(result) => Ok(result.joined_text()),
        CallOutcome::InputRequired(_) => Err("the tool asks for input".into()),
    }
}

/// The failure as a model reads it.
fn text_of(failure: ToolFailure) -> String {
    failure.into_result().joined_text()
}
