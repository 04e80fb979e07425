//! The built-in tools in one folder, called without a server in between.

use serde_json::{Map, Value};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{
    CallContext, CallId, CallOutcome, CallPermissions, ClientProfile, NoCalls, NoOutputs, PermissionMode,
    PermissionPolicy, Principal, SilentCaller, Timestamp, ToolCall, ToolFailure, ToolProvider, ToolResult, Verdict,
    WorkspaceRoots,
    error_kind::ErrorKind,
    testing::{fixed_clock::FixedClock, in_memory_change_journal::InMemoryChangeJournal},
};
use toolstead_infrastructure::{
    builtin::{self, InProcessTools, ToolEnvironment},
    sandbox::workspace::{UserPathAliases, Workspace},
};
use uuid::Uuid;

/// The built-in tools in one folder, with a journal in memory. Edits need no approval.
pub(crate) struct Editor {
    tools: InProcessTools,
    policy: Arc<PermissionPolicy>,
}

impl Editor {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let roots = WorkspaceRoots { write: vec![folder.canonicalize().unwrap()], ..Default::default() };
        let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
        let clock = Arc::new(FixedClock::at(Timestamp(0)));
        let world = ToolEnvironment::new(Arc::new(workspace), clock, "test".into());
        let world = world.with_journal(Arc::new(InMemoryChangeJournal::new()));
        let policy = PermissionPolicy { roots, mode: PermissionMode::AcceptEdits, ..Default::default() };
        Self { tools: InProcessTools::new(builtin::all(), world).unwrap(), policy: Arc::new(policy) }
    }

    /// One call: judged, then run.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        let tool = self.tools.definitions().iter().find(|other| other.name().as_str() == tool).unwrap();
        let tool = Arc::new(tool.clone());
        let grant = CallPermissions::new(self.policy.clone(), tool.clone(), Vec::new());
        let called_as = tool.name().to_string();
        let arguments = arguments.as_object().unwrap().clone();
        let (principal, session) = (Principal::local(), "test".into());
        let id = CallId(Uuid::now_v7());
        let call = ToolCall { id, tool: tool.clone(), called_as, principal, session, arguments, meta: Map::new() };
        let accesses = self.tools.accesses(&call).await?;
        let decision = self.policy.decide(&tool, &call.arguments, &accesses);
        if decision.verdict != Verdict::Allow {
            return Err(ToolFailure::new(ErrorKind::PermissionDenied, decision.reason()));
        }
        let context = CallContext {
            id: call.id,
            principal: &Principal::local(),
            session: "test",
            deadline: Instant::now() + Duration::from_secs(60),
            grant: &grant,
            client: &ClientProfile::without_protocol("test"),
            forwarded: Default::default(),
            labels: &Default::default(),
            answers: None,
            caller: &SilentCaller,
            calls: &NoCalls,
            outputs: &NoOutputs,
            output_characters: 30_000,
        };
        match self.tools.call(&call, &context).await? {
            CallOutcome::Done(result) => Ok(result),
            CallOutcome::InputRequired(_) => panic!("no built-in tool asks for input"),
        }
    }
}
