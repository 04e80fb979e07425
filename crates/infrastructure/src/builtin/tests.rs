//! A workspace on a real disk, and the call path of tools, for the tests of the tools.
#![expect(clippy::disallowed_methods, reason = "tests lay out and look at files behind the tools' back")]

use super::*;
use crate::{
    builtin::{
        commands::programs::{CommandSettings, ProgramLauncher},
        files::{change_set::recording::ChangeRecorder, etag::digest_of},
        tool_kit::{
            built_in_tool::AnyTool,
            custom_tool::CustomTool,
            provider::InProcessTools,
            testing::{ToolTestHarness, client, test_environment},
            tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::workspace::{UserPathAliases, Workspace, granted_workspace::GrantedWorkspace, stop::StopCondition},
};
use futures::future::join_all;
use serde_json::{Map, Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use toolstead_domain::{
    Access, AgentCatalogue, Availability, CallId, CallPermissions, Calls, Category, ChangeJournal, Clock,
    ContentDigest, Effect, FormatValidation, NetworkPolicy, NoCalls, NoJournal, OutputStore, PatternContext,
    PermissionMode, PermissionPolicy, PermissionRule, Principal, Tool, ToolFailure, ToolInputSchema, ToolName,
    ToolProvider, ToolResult, ToolSource, WorkspaceRoots,
    defaults::fill_defaults,
    error_kind::ErrorKind,
    permission::rule::RuleOrigin,
    testing::{in_memory_change_journal::InMemoryChangeJournal, samples::call_id},
};

/// A workspace with one root, and the built-in tools in it.
pub(super) struct Bench {
    folder: TempDir,
    run: ToolTestHarness,
    runtime: Runtime,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with_rules(&[])
    }

    pub(super) fn with_deny(rules: &[&str]) -> Self {
        Self::with_rules(&rules.iter().map(|rule| (Effect::Deny, *rule)).collect::<Vec<_>>())
    }

    pub(super) fn with_ask(rules: &[&str]) -> Self {
        Self::with_rules(&rules.iter().map(|rule| (Effect::Ask, *rule)).collect::<Vec<_>>())
    }

    /// With these folders as roots, the first of which is the start folder.
    pub(super) fn with_roots_in(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let write: Vec<PathBuf> = names.iter().map(|name| top.join(name)).collect();
        write.iter().for_each(|root| fs::create_dir(root).unwrap());
        let roots = WorkspaceRoots { write, ..Default::default() };
        let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
        Self::of(folder, workspace, PermissionPolicy { roots, ..Default::default() })
    }

    pub(super) fn without_roots() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::of(folder, Workspace::closed(), PermissionPolicy::default())
    }

    fn with_rules(rules: &[(Effect, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let roots = WorkspaceRoots { write: vec![root], ..Default::default() };
        let rule = |(effect, text): &(Effect, &str)| {
            Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
        };
        let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
        let rules = rules.iter().map(rule).collect();
        Self::of(folder, workspace, PermissionPolicy { rules, roots, ..Default::default() })
    }

    fn of(folder: TempDir, workspace: Workspace, policy: PermissionPolicy) -> Self {
        let journal = Arc::new(InMemoryChangeJournal::new());
        let settings = CommandSettings { kept_bytes: 4 << 20, ..CommandSettings::default() };
        let programs = Arc::new(ProgramLauncher::new(settings));
        let world = test_environment(workspace).with_journal(journal.clone()).with_programs(programs);
        Self {
            folder,
            run: ToolTestHarness::in_environment(all(), world, policy, journal),
            // With a thread of its own, so that background work continues between two calls.
            runtime: Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap(),
        }
    }

    /// Adds a rule, which may name the folder.
    pub(super) fn with_rule(self, effect: Effect, rule: &str) -> Self {
        Self { run: self.run.with_rule(effect, rule), ..self }
    }

    /// Allows commands to reach these hosts.
    pub(super) fn with_hosts(mut self, hosts: &[&str]) -> Self {
        let network = NetworkPolicy::Hosts(hosts.iter().map(|host| (*host).to_owned()).collect());
        let settings = CommandSettings { network, ..self.run.world.processes().programs().settings().clone() };
        self.run.world = self.run.world.with_programs(Arc::new(ProgramLauncher::new(settings)));
        self.run.tools = InProcessTools::new(all(), self.run.world.clone()).unwrap();
        self
    }

    /// Sets the agents, skills and commands.
    pub(super) fn with_agents(mut self, agents: Arc<dyn AgentCatalogue>) -> Self {
        self.run.world = self.run.world.with_agents(agents);
        self.run.tools = InProcessTools::new(all(), self.run.world.clone()).unwrap();
        self
    }

    /// Returns the tools as they are listed now.
    pub(super) fn listed(&self) -> Vec<Tool> {
        self.runtime.block_on(self.run.tools.list()).unwrap()
    }

    /// Sets the clock.
    pub(super) fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        let world =
            ToolEnvironment::new(self.run.world.workspace().clone(), clock, self.run.world.version().to_owned());
        self.run.world =
            world.with_journal(self.run.journal.clone()).with_programs(self.run.world.processes().programs().clone());
        self.run.tools = InProcessTools::new(all(), self.run.world.clone()).unwrap();
        self
    }

    /// Puts Toolstead's own data at this path.
    pub(super) fn with_own_data(mut self, path: PathBuf) -> Self {
        let mut policy = PermissionPolicy::clone(&self.run.policy);
        policy.roots.forbidden.push(path);
        self.run.policy = Arc::new(policy);
        self
    }

    /// Puts this folder of the workspace, or elsewhere, at the beginning of the `PATH`.
    pub(super) fn with_path_in(mut self, folder: &str) -> Self {
        let mut settings = self.run.world.processes().programs().settings().clone();
        let usual = settings.environment.remove("PATH").unwrap_or_default();
        settings.environment.insert("PATH".into(), format!("{}:{usual}", self.path(folder).display()));
        self.run.world = self.run.world.with_programs(Arc::new(ProgramLauncher::new(settings)));
        self.run.tools = InProcessTools::new(all(), self.run.world.clone()).unwrap();
        self
    }

    /// Adds a tool.
    pub(super) fn adding(mut self, tool: CustomTool) -> Self {
        let tools = all().into_iter().map(Arc::from).chain([Arc::new(tool) as Arc<dyn AnyTool>]);
        self.run.tools = InProcessTools::new(tools, self.run.world.clone()).unwrap();
        self
    }

    /// Returns all tools as in an application that opens its journal later.
    pub(super) fn tools_with_journal(&self) -> InProcessTools {
        let world = self.run.world.clone().with_journal(Arc::new(NoJournal));
        InProcessTools::new(all(), world).unwrap().with_journal(self.run.journal.clone())
    }

    /// Returns the recorded changes.
    pub(super) fn journal(&self) -> &InMemoryChangeJournal {
        &self.run.journal
    }

    /// Marks the current content of a file as read by the session.
    pub(super) fn saw(&self, name: &str) {
        let (path, digest) = (self.path(name), digest_of(&self.get(name)));
        self.runtime
            .block_on(self.run.world.files().read_state().record_version(
                &self.run.principal,
                &self.run.session,
                &path,
                digest,
            ))
            .unwrap();
    }

    /// Works on files with write access to the whole workspace, on a blocking thread.
    pub(super) fn with_files<T: Send>(
        &self,
        work: impl FnOnce(&GrantedWorkspace, &ChangeRecorder) -> Result<T, ToolFailure> + Send,
    ) -> Result<T, ToolFailure> {
        let tool = self.run.tools.definitions().iter().find(|tool| tool.name().as_str() == "write_file").unwrap();
        let tool = Arc::new(tool.clone());
        let policy = PermissionPolicy { mode: PermissionMode::AcceptEdits, ..(*self.run.policy).clone() };
        let grant = CallPermissions::new(Arc::new(policy), tool.clone(), Vec::new());
        let (call, client) = (self.run.new_call(tool, Map::new()), client());
        let context = self.run.context(&call, &grant, &client, Duration::from_secs(600));
        let _entered = self.runtime.enter();
        let world = &self.run.world;
        let run = ToolContext { environment: world, tools: &[], explained: &[], call: &call, context: &context };
        let recording = ChangeRecorder::of(&run);
        let files =
            GrantedWorkspace::new(world.workspace().clone(), grant.clone(), StopCondition::at(context.deadline));
        std::thread::scope(|scope| scope.spawn(|| work(&files, &recording)).join().unwrap())
    }

    pub(super) fn is_link(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).unwrap().is_symlink()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Creates a sparse file of this size.
    pub(super) fn put_sparse(&self, name: &str, bytes: u64) {
        fs::File::create(self.path(name)).unwrap().set_len(bytes).unwrap();
    }

    /// Creates a file whose content changed this number of seconds after 2026.
    pub(super) fn put_at(&self, name: &str, content: impl AsRef<[u8]>, seconds: u64) {
        self.put(name, content);
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds);
        fs::File::options().append(true).open(self.path(name)).unwrap().set_modified(time).unwrap();
    }

    pub(super) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(super) fn names(&self, name: &str) -> Vec<String> {
        let names = fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(super) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    pub(super) fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(super) fn hard_link(&self, from: &str, to: &str) {
        fs::hard_link(self.path(from), self.path(to)).unwrap();
    }

    pub(super) fn link(&self, target: &str, name: &str) {
        symlink(target, self.path(name)).unwrap();
    }

    /// Returns the content of a file that the session knows.
    pub(super) fn known(&self, name: &str) -> Option<ContentDigest> {
        self.runtime
            .block_on(self.run.world.files().read_state().known(&Principal::local(), "test", &self.path(name)))
            .unwrap()
    }

    /// Stores an output of the caller, and returns its handle.
    pub(super) fn keep(&self, media_type: &str, content: impl AsRef<[u8]>) -> String {
        let principal = Principal::local();
        let store = self.run.outputs.store(&principal, call_id(0), media_type, content.as_ref());
        self.runtime.block_on(store).unwrap().handle.to_string()
    }

    /// Returns the text of a successful call.
    #[track_caller]
    pub(super) fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap().joined_text()
    }

    /// Runs a call: validated, decided, approved where necessary. Checks the structured content of a success.
    pub(super) fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.runtime.block_on(self.called(tool, arguments, Duration::from_secs(600)))
    }

    /// Cancels a call once a condition is true, so that it has no result.
    pub(super) fn call_given_up_after(
        &self,
        is_so: impl Fn() -> bool,
        tool: &str,
        arguments: Value,
    ) -> Option<Result<ToolResult, ToolFailure>> {
        self.runtime.block_on(async {
            tokio::select! {
                result = self.called(tool, arguments, Duration::from_secs(600)) => Some(result),
                () = async {
                    while !is_so() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                } => None,
            }
        })
    }

    /// Ends the session.
    pub(super) fn end_session(&self) {
        self.runtime.block_on(self.run.tools.session_ended(&self.run.principal, &self.run.session));
    }

    /// Closes the provider.
    pub(super) fn close(&self) {
        self.runtime.block_on(self.run.tools.close());
    }

    /// Runs a call with a timeout.
    pub(super) fn call_within(&self, time: Duration, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.runtime.block_on(self.called(tool, arguments, time))
    }

    pub(super) fn call_at_once(&self, calls: Vec<(&str, Value)>) -> Vec<Result<ToolResult, ToolFailure>> {
        let calls = calls.into_iter().map(|(tool, arguments)| self.called(tool, arguments, Duration::from_secs(600)));
        self.runtime.block_on(join_all(calls))
    }

    /// Uses the same workspace in another session, optionally of another principal.
    pub(super) fn in_session(self, principal: Principal, session: &str) -> Self {
        Self { run: self.run.in_session(principal, session), ..self }
    }

    /// Returns the id of the latest call.
    pub(super) fn last_call(&self) -> CallId {
        self.run.last_call()
    }

    async fn called(&self, tool: &str, arguments: Value, time: Duration) -> Result<ToolResult, ToolFailure> {
        self.run.run_call(tool, arguments, time, &NoCalls, || ()).await
    }

    /// Runs a call, with an action between decision and call.
    pub(super) fn call_after(
        &self,
        tool: &str,
        arguments: Value,
        between: impl FnOnce(),
    ) -> Result<ToolResult, ToolFailure> {
        self.runtime.block_on(self.run.run_call(tool, arguments, Duration::from_secs(600), &NoCalls, between))
    }

    /// Runs a call whose nested calls are made through `calls`.
    pub(super) fn call_among(
        &self,
        calls: &dyn Calls,
        tool: &str,
        arguments: Value,
    ) -> Result<ToolResult, ToolFailure> {
        self.runtime.block_on(self.run.run_call(tool, arguments, Duration::from_secs(600), calls, || ()))
    }

    /// Runs work with the context of a call whose nested calls are made through `calls`.
    pub(super) fn run_among<T>(
        &self,
        calls: &dyn Calls,
        tool: &str,
        work: impl AsyncFnOnce(&ToolContext<'_>) -> T,
    ) -> T {
        self.runtime.block_on(self.run.with_context_and_calls(calls, tool, work))
    }

    fn accesses(&self, tool: &str, arguments: Value) -> Vec<Access> {
        self.call_unchecked(tool, arguments).unwrap()
    }

    /// Returns what a call would touch, without validation of its arguments; the tool may be unknown.
    pub(super) fn call_unchecked(&self, tool: &str, arguments: Value) -> Result<Vec<Access>, ToolFailure> {
        let known = self.run.tools.definitions().iter().find(|other| other.name().as_str() == tool).cloned();
        let unknown = || Tool::new(ToolName::parse(tool).unwrap(), Map::new(), Category::Utility, ToolSource::BuiltIn);
        let call = self.run.new_call(Arc::new(known.unwrap_or_else(unknown)), arguments.as_object().unwrap().clone());
        self.runtime.block_on(self.run.tools.accesses(&call))
    }
}

/// Returns the definition of a built-in tool.
#[track_caller]
pub(super) fn definition(name: &str) -> Tool {
    definitions().into_iter().find(|tool| tool.name().as_str() == name).unwrap()
}

pub(super) fn definitions() -> Vec<Tool> {
    InProcessTools::new(all(), test_environment(Workspace::closed())).unwrap().definitions().to_vec()
}

#[test]
fn every_tool_is_defined_in_full_and_its_example_is_valid() {
    let tools = InProcessTools::new(all(), test_environment(Workspace::closed())).unwrap();
    for tool in tools.definitions() {
        let name = tool.name();
        assert!((40..=400).contains(&tool.description().len()), "{name}: {}", tool.description().len());
        assert!(tool.title().is_some() && tool.annotations().read_only_hint.is_some(), "{name}");
        assert!(tool.tags.is_sorted(), "{name}");
        let schema = ToolInputSchema::compile(tool.input_schema(), FormatValidation::Asserted).unwrap();
        let example: Value = serde_json::from_str(tools.example(name.as_str()).unwrap()).unwrap();
        schema.validate(&example).unwrap();
        assert_eq!(schema.as_value()["additionalProperties"], false, "{name}");
        let properties = schema.as_value()["properties"].as_object().unwrap();
        for (property, schema) in properties {
            assert!(schema["description"].is_string() && schema["type"].is_string(), "{name}.{property}: {schema}");
        }
        // Agents that only plan have all tools that only read.
        let only_reads = tool.annotations().read_only_hint == Some(true);
        assert!(!only_reads || !properties.contains_key("save_as"), "{name} writes files");
        if let Some(schema) = tool.output_schema() {
            assert_eq!(schema["type"], "object", "{name}");
            ToolInputSchema::compile(schema, FormatValidation::Asserted).unwrap();
        }
    }
}

#[test]
fn the_defaults_of_every_tool_fit_its_schema() {
    let tools = InProcessTools::new(all(), test_environment(Workspace::closed())).unwrap();
    for tool in tools.definitions() {
        let mut example = serde_json::from_str(tools.example(tool.name().as_str()).unwrap()).unwrap();
        fill_defaults(tool.input_schema(), &mut example);
        let schema = ToolInputSchema::compile(tool.input_schema(), FormatValidation::Asserted).unwrap();
        schema.validate(&Value::Object(example)).unwrap_or_else(|error| panic!("{}: {error:?}", tool.name()));
    }
}

/// Their definitions are not searched at the start.
#[test]
fn no_built_in_tool_has_hidden_text() {
    let tools = InProcessTools::new(all(), test_environment(Workspace::closed())).unwrap();
    for tool in tools.definitions() {
        let searched = Tool::new(tool.name().clone(), tool.definition().clone(), tool.category, tool.source().clone());
        let searched = searched.advertised_as(tool.advertised().clone());
        assert_eq!(searched.availability, Availability::Available, "{}", tool.name());
    }
}

#[test]
fn a_name_is_not_given_to_two_tools() {
    let twice: Vec<_> = all().into_iter().chain(all()).collect();
    assert!(InProcessTools::new(twice, test_environment(Workspace::closed())).is_err());
}

#[test]
fn tools_of_an_embedding_program_have_its_provider_name_as_prefix() {
    let name = toolstead_domain::server_name::ServerName::parse("weather").unwrap();
    let tools = InProcessTools::named(&name, all(), test_environment(Workspace::closed())).unwrap();
    assert_eq!(tools.name(), "weather");
    assert_eq!(tools.definitions()[0].name().as_str(), "mcp__weather__read_file");
    assert!(tools.example("mcp__weather__read_file").is_some());
}

#[test]
fn a_call_reports_the_accesses_it_will_make() {
    let bench = Bench::new();
    let kinds = |accesses: Vec<Access>| {
        let shown = |access: &Access| access.to_string().replace(&*bench.path("").to_string_lossy(), "@/");
        accesses.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    let path = json!({"path": "a", "content": "", "old_text": "", "new_text": "", "pattern": "x"});
    let only = |names: &[&str]| -> Value {
        path.as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    for (tool, arguments, expected) in [
        ("read_file", only(&["path"]), "read @/a"),
        ("file_info", only(&["path"]), "read @/a"),
        ("write_file", only(&["path", "content"]), "write @/a"),
        ("edit_file", only(&["path", "old_text", "new_text"]), "read @/a, write @/a"),
        ("list_directory", only(&["path"]), "read @/a and everything below"),
        ("glob", only(&["path", "pattern"]), "read @/a and everything below"),
        ("grep", only(&["path", "pattern"]), "read @/a and everything below"),
        ("system_info", only(&[]), ""),
        ("echo", only(&[]), ""),
    ] {
        assert_eq!(kinds(bench.accesses(tool, arguments)), expected, "{tool}");
    }
}

#[test]
fn without_a_journal_undo_is_unavailable_and_not_mentioned() {
    let mut bench = Bench::new();
    let of = |tools: &InProcessTools, name: &str| {
        let tool = tools.definitions().iter().find(|tool| tool.name().as_str() == name).unwrap();
        tool.availability.clone()
    };
    assert_eq!(of(&bench.run.tools, "undo"), Availability::Available);
    let tools = InProcessTools::new(all(), bench.run.world.clone()).unwrap();
    bench.run.tools = tools.with_journal(Arc::new(NoJournal));
    for name in ["undo", "redo"] {
        assert!(matches!(of(&bench.run.tools, name), Availability::Unavailable(_)), "{name}");
    }
    assert_eq!(of(&bench.run.tools, "delete_file"), Availability::Available);
    bench.put("a", "abc");
    let deleted = bench.call("delete_file", json!({"path": "a"})).unwrap();
    assert_eq!(deleted.joined_text(), "Deleted `a` (3 bytes).");
    assert!(deleted.structured_content().unwrap().get("call").is_none());
    let patch = "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch";
    let answer = bench.text("apply_patch", json!({"patch": patch}));
    assert!(!answer.contains("undo"), "{answer}");
}

#[test]
fn the_test_harness_applies_rules_requests_approvals_and_runs_calls() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    let write = |run: &ToolTestHarness| {
        runtime.block_on(run.call("write_file", json!({"path": "a", "content": "x"}))).map_err(|failure| failure.kind)
    };
    let run = ToolTestHarness::of_tools(all(), &folder);
    write(&run).unwrap();
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"x");
    let path = folder.path().canonicalize().unwrap().join("a");
    assert!(
        matches!(&run.approval_requests()[..], [Access::WritePath(asked)] if asked.real == path),
        "{:?}",
        run.approval_requests()
    );
    let recorded = runtime.block_on(run.journal().find(&Principal::local(), run.last_call()));
    assert_eq!(recorded.unwrap().unwrap().changes.len(), 1);
    let permitted = runtime.block_on(run.with_context("read_file", async |run| run.permitted_folder(".").await));
    assert_eq!(permitted.unwrap(), folder.path().canonicalize().unwrap());

    let refused = Err(ErrorKind::PermissionDenied);
    assert_eq!(write(&ToolTestHarness::of_tools(all(), &folder).without_approver()).map(drop), refused);
    let run = ToolTestHarness::of_tools(all(), &folder).with_rule(Effect::Deny, "Write(a)");
    assert_eq!((write(&run).map(drop), run.approval_requests()), (refused, vec![]));
    let wrong = runtime.block_on(run.call("read_file", json!({"path": 1}))).unwrap_err();
    assert_eq!(wrong.kind, ErrorKind::InvalidInput);
}
