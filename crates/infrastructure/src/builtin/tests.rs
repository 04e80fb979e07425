//! A workspace on a real disk, and the path that a call takes to a tool: for the tests of the tools.
#![expect(clippy::disallowed_methods, reason = "tests lay out and look at files behind the tools' back")]

use super::*;
use crate::{
    builtin::{
        added_tool::AddedTool,
        built_in_tool::AnyBuiltInTool,
        commands::programs::{CommandSettings, Programs},
        files::{change_set::recording::Recording, etag::digest_of},
        provider::BuiltInTools,
        run::Run,
        world::World,
    },
    sandbox::workspace::{FolderNames, Workspace, granted::GrantedWorkspace, stop::Stop},
};
use futures::future::join_all;
use serde_json::{Map, Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use toolstead_domain::{
    access::Access,
    category::Category,
    client_profile::ClientProfile,
    coercion::coerce,
    content_digest::ContentDigest,
    error_kind::ErrorKind,
    permission::{
        decision::Verdict,
        grant::Grant,
        path_pattern::PatternBase,
        policy::{Mode, PermissionPolicy},
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    ports::{
        caller::SilentCaller,
        calls::NoCalls,
        change_journal::NoJournal,
        clock::{Clock, Timestamp},
        output_store::OutputStore,
        tool_provider::{CallContext, CallOutcome, ToolProvider},
    },
    principal::Principal,
    sandbox_policy::NetworkPolicy,
    testing::{
        in_memory_change_journal::InMemoryChangeJournal, in_memory_output_store::InMemoryOutputStore, samples::call_id,
    },
    tool::{Availability, Tool, ToolSource},
    tool_call::{CallId, ToolCall},
    tool_failure::ToolFailure,
    tool_input_schema::{Formats, ToolInputSchema},
    tool_name::ToolName,
    tool_result::ToolResult,
    workspace_roots::WorkspaceRoots,
};

/// 2026-03-01T12:00:00Z, always.
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_772_366_400_000_000)
    }
}

/// A workspace with one root, and the built-in tools in it.
pub(super) struct Bench {
    folder: TempDir,
    tools: BuiltInTools,
    policy: Arc<PermissionPolicy>,
    outputs: InMemoryOutputStore,
    world: World,
    runtime: Runtime,
    principal: Principal,
    session: Arc<str>,
    calls: AtomicU32,
    journal: Arc<InMemoryChangeJournal>,
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

    /// With these folders as roots, of which the first is where calls start.
    pub(super) fn with_roots_in(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let write: Vec<PathBuf> = names.iter().map(|name| top.join(name)).collect();
        write.iter().for_each(|root| fs::create_dir(root).unwrap());
        let roots = WorkspaceRoots { write, ..Default::default() };
        let workspace = Workspace::open(&roots, FolderNames::default()).unwrap();
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
            Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternBase::default()).unwrap())
        };
        let workspace = Workspace::open(&roots, FolderNames::default()).unwrap();
        let rules = rules.iter().map(rule).collect();
        Self::of(folder, workspace, PermissionPolicy { rules, roots, ..Default::default() })
    }

    fn of(folder: TempDir, workspace: Workspace, policy: PermissionPolicy) -> Self {
        let journal = Arc::new(InMemoryChangeJournal::new());
        let settings = CommandSettings { kept_bytes: 4 << 20, ..CommandSettings::default() };
        let programs = Arc::new(Programs::new(settings));
        let world = world(workspace).with_journal(journal.clone()).with_programs(programs);
        Self {
            folder,
            tools: BuiltInTools::new(all(), world.clone()).unwrap(),
            policy: Arc::new(policy),
            outputs: InMemoryOutputStore::new(),
            // With a thread of its own: what runs in the background goes on between two calls.
            runtime: Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap(),
            principal: Principal::local(),
            session: "test".into(),
            calls: AtomicU32::new(0),
            journal,
            world,
        }
    }

    /// The same under one rule more, which may name the folder.
    pub(super) fn with_rule(mut self, effect: Effect, rule: &str) -> Self {
        let rule = PermissionRule::parse(effect, rule, RuleOrigin::CommandLine, &PatternBase::default()).unwrap();
        Arc::make_mut(&mut self.policy).rules.push(Arc::new(rule));
        self
    }

    /// The same with commands that reach these hosts.
    pub(super) fn with_hosts(mut self, hosts: &[&str]) -> Self {
        let network = NetworkPolicy::Hosts(hosts.iter().map(|host| (*host).to_owned()).collect());
        let settings = CommandSettings { network, ..self.world.programs().settings().clone() };
        self.world = self.world.with_programs(Arc::new(Programs::new(settings)));
        self.tools = BuiltInTools::new(all(), self.world.clone()).unwrap();
        self
    }

    /// The same by another clock.
    pub(super) fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        let world = World::new(self.world.workspace().clone(), clock, self.world.version().to_owned());
        self.world = world.with_journal(self.journal.clone()).with_programs(self.world.programs().clone());
        self.tools = BuiltInTools::new(all(), self.world.clone()).unwrap();
        self
    }

    /// The same with Toolstead's own data at this path.
    pub(super) fn with_own_data(mut self, path: PathBuf) -> Self {
        let mut policy = PermissionPolicy::clone(&self.policy);
        policy.roots.forbidden.push(path);
        self.policy = Arc::new(policy);
        self
    }

    /// The same with this folder of the workspace, or elsewhere, at the beginning of the `PATH`.
    pub(super) fn with_path_in(mut self, folder: &str) -> Self {
        let mut settings = self.world.programs().settings().clone();
        let usual = settings.environment.remove("PATH").unwrap_or_default();
        settings.environment.insert("PATH".into(), format!("{}:{usual}", self.path(folder).display()));
        self.world = self.world.with_programs(Arc::new(Programs::new(settings)));
        self.tools = BuiltInTools::new(all(), self.world.clone()).unwrap();
        self
    }

    /// The same with one tool more.
    pub(super) fn adding(mut self, tool: AddedTool) -> Self {
        let tools = all().into_iter().map(Arc::from).chain([Arc::new(tool) as Arc<dyn AnyBuiltInTool>]);
        self.tools = BuiltInTools::new(tools, self.world.clone()).unwrap();
        self
    }

    /// All tools as a program has them that opens its journal later.
    pub(super) fn tools_with_journal(&self) -> BuiltInTools {
        let world = self.world.clone().with_journal(Arc::new(NoJournal));
        BuiltInTools::new(all(), world).unwrap().with_journal(self.journal.clone())
    }

    /// What calls recorded.
    pub(super) fn journal(&self) -> &InMemoryChangeJournal {
        &self.journal
    }

    /// The session has read the file as it is now.
    pub(super) fn saw(&self, name: &str) {
        let (path, digest) = (self.path(name), digest_of(&self.get(name)));
        self.runtime.block_on(self.world.seen().saw(&self.principal, &self.session, &path, digest)).unwrap();
    }

    /// Work on files as a tool does it that may write everywhere in the workspace, on a blocking thread.
    pub(super) fn with_files<T: Send>(
        &self,
        work: impl FnOnce(&GrantedWorkspace, &Recording) -> Result<T, ToolFailure> + Send,
    ) -> Result<T, ToolFailure> {
        let tool = self.tools.definitions().iter().find(|tool| tool.name().as_str() == "write_file").unwrap();
        let tool = Arc::new(tool.clone());
        let policy = PermissionPolicy { mode: Mode::AcceptEdits, ..(*self.policy).clone() };
        let grant = Grant::new(Arc::new(policy), tool.clone(), Vec::new());
        let call = self.new_call(tool, Map::new());
        let context = CallContext {
            id: call.id,
            principal: &call.principal,
            session: &call.session,
            deadline: Instant::now() + Duration::from_secs(600),
            grant: &grant,
            client: &ClientProfile::without_protocol("test"),
            answers: None,
            caller: &SilentCaller,
            calls: &NoCalls,
            outputs: &self.outputs,
            output_characters: 30_000,
        };
        let _entered = self.runtime.enter();
        let world = &self.world;
        let run = Run { world, tools: &[], explained: &[], call: &call, context: &context };
        let recording = Recording::of(&run);
        let files = GrantedWorkspace::new(world.workspace().clone(), grant.clone(), Stop::at(context.deadline));
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

    /// A file of so many bytes that takes no room.
    pub(super) fn put_sparse(&self, name: &str, bytes: u64) {
        fs::File::create(self.path(name)).unwrap().set_len(bytes).unwrap();
    }

    /// A file whose content changed so many seconds after 2026.
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

    /// The content of a file that the session knows.
    pub(super) fn known(&self, name: &str) -> Option<ContentDigest> {
        self.runtime.block_on(self.world.seen().known(&Principal::local(), "test", &self.path(name))).unwrap()
    }

    /// Keeps an output of the caller; its handle.
    pub(super) fn keep(&self, media_type: &str, content: impl AsRef<[u8]>) -> String {
        let principal = Principal::local();
        let store = self.outputs.store(&principal, call_id(0), media_type, content.as_ref());
        self.runtime.block_on(store).unwrap().handle.to_string()
    }

    /// What a model reads of a success.
    #[track_caller]
    pub(super) fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap().joined_text()
    }

    /// One call: validated, judged, approved where somebody is asked, run. A success keeps its promise of structured
    /// content.
    pub(super) fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.runtime.block_on(self.called(tool, arguments, Duration::from_secs(600)))
    }

    /// A call that is given up once something is so, and then has no result.
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

    /// The session is over.
    pub(super) fn end_session(&self) {
        self.runtime.block_on(self.tools.session_ended(&self.principal, &self.session));
    }

    /// Everything is over.
    pub(super) fn close(&self) {
        self.runtime.block_on(self.tools.close());
    }

    /// One call that must be done by then.
    pub(super) fn call_within(&self, time: Duration, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.runtime.block_on(self.called(tool, arguments, time))
    }

    pub(super) fn call_at_once(&self, calls: Vec<(&str, Value)>) -> Vec<Result<ToolResult, ToolFailure>> {
        let calls = calls.into_iter().map(|(tool, arguments)| self.called(tool, arguments, Duration::from_secs(600)));
        self.runtime.block_on(join_all(calls))
    }

    /// A call with an id of its own; ids sort as the calls were made.
    fn new_call(&self, tool: Arc<Tool>, arguments: Map<String, Value>) -> ToolCall {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        ToolCall {
            id: call_id(number),
            principal: self.principal.clone(),
            session: self.session.clone(),
            called_as: tool.name().to_string(),
            tool,
            arguments,
            meta: Map::new(),
        }
    }

    /// The same workspace in another session, perhaps of somebody else.
    pub(super) fn in_session(mut self, principal: Principal, session: &str) -> Self {
        (self.principal, self.session) = (principal, session.into());
        self
    }

    /// The id of the call that was made last.
    pub(super) fn last_call(&self) -> CallId {
        call_id(self.calls.load(Ordering::Relaxed))
    }

    async fn called(&self, tool: &str, arguments: Value, time: Duration) -> Result<ToolResult, ToolFailure> {
        self.called_with(tool, arguments, time, || ()).await
    }

    /// One call, with something that happens between judging and running it.
    pub(super) fn call_after(
        &self,
        tool: &str,
        arguments: Value,
        between: impl FnOnce(),
    ) -> Result<ToolResult, ToolFailure> {
        self.runtime.block_on(self.called_with(tool, arguments, Duration::from_secs(600), between))
    }

    async fn called_with(
        &self,
        tool: &str,
        arguments: Value,
        time: Duration,
        between: impl FnOnce(),
    ) -> Result<ToolResult, ToolFailure> {
        let tool = self.tools.definitions().iter().find(|other| other.name().as_str() == tool).unwrap();
        let mut arguments = arguments.as_object().unwrap().clone();
        coerce(tool.input_schema(), &mut arguments);
        let schema = ToolInputSchema::compile(tool.input_schema(), Formats::Asserted).unwrap();
        schema
            .validate(&Value::Object(arguments.clone()))
            .map_err(|wrong| ToolFailure::new(ErrorKind::InvalidInput, wrong.to_string()))?;
        let tool = Arc::new(tool.clone());
        let call = self.new_call(tool.clone(), arguments);
        let accesses = self.tools.accesses(&call).await?;
        let decision = self.policy.decide(&tool, &call.arguments, &accesses);
        let approved = match decision.verdict {
            Verdict::Allow => Vec::new(),
            Verdict::Ask => decision.asked().cloned().collect(),
            Verdict::Deny => return Err(ToolFailure::new(ErrorKind::PermissionDenied, decision.reason())),
        };
        between();
        let grant = Grant::new(self.policy.clone(), tool.clone(), approved);
        let context = CallContext {
            id: call.id,
            principal: &call.principal,
            session: &call.session,
            deadline: Instant::now() + time,
            grant: &grant,
            client: &ClientProfile::without_protocol("test"),
            answers: None,
            caller: &SilentCaller,
            calls: &NoCalls,
            outputs: &self.outputs,
            output_characters: 30_000,
        };
        let CallOutcome::Done(result) = self.tools.call(&call, &context).await? else {
            panic!("no built-in tool asks for input")
        };
        if let Some(schema) = tool.output_schema() {
            let promised = ToolInputSchema::compile(schema, Formats::Asserted).unwrap();
            promised.validate(result.structured_content().unwrap()).unwrap();
        }
        Ok(result)
    }

    fn accesses(&self, tool: &str, arguments: Value) -> Vec<Access> {
        self.call_unchecked(tool, arguments).unwrap()
    }

    /// What a call would touch, without a look at its arguments before; the tool may be none of these.
    pub(super) fn call_unchecked(&self, tool: &str, arguments: Value) -> Result<Vec<Access>, ToolFailure> {
        let known = self.tools.definitions().iter().find(|other| other.name().as_str() == tool).cloned();
        let unknown = || Tool::new(ToolName::parse(tool).unwrap(), Map::new(), Category::Utility, ToolSource::BuiltIn);
        let call = self.new_call(Arc::new(known.unwrap_or_else(unknown)), arguments.as_object().unwrap().clone());
        self.runtime.block_on(self.tools.accesses(&call))
    }
}

fn world(workspace: Workspace) -> World {
    World::new(Arc::new(workspace), Arc::new(StoppedClock), "Toolstead test".into())
}

/// The definition of a built-in tool.
#[track_caller]
pub(super) fn definition(name: &str) -> Tool {
    let tools = BuiltInTools::new(all(), world(Workspace::closed())).unwrap();
    tools.definitions().iter().find(|tool| tool.name().as_str() == name).unwrap().clone()
}

#[test]
fn every_tool_is_defined_in_full_and_its_example_is_valid() {
    let tools = BuiltInTools::new(all(), world(Workspace::closed())).unwrap();
    for tool in tools.definitions() {
        let name = tool.name();
        assert!((40..=400).contains(&tool.description().len()), "{name}: {}", tool.description().len());
        assert!(tool.title().is_some() && tool.annotations().read_only_hint.is_some(), "{name}");
        assert!(tool.tags.is_sorted(), "{name}");
        let schema = ToolInputSchema::compile(tool.input_schema(), Formats::Asserted).unwrap();
        let example: Value = serde_json::from_str(tools.example(name.as_str()).unwrap()).unwrap();
        schema.validate(&example).unwrap();
        assert_eq!(schema.as_value()["additionalProperties"], false, "{name}");
        let properties = schema.as_value()["properties"].as_object().unwrap();
        for (property, schema) in properties {
            assert!(schema["description"].is_string() && schema["type"].is_string(), "{name}.{property}: {schema}");
        }
        if let Some(schema) = tool.output_schema() {
            assert_eq!(schema["type"], "object", "{name}");
            ToolInputSchema::compile(schema, Formats::Asserted).unwrap();
        }
    }
}

#[test]
fn a_name_is_not_given_to_two_tools() {
    let twice: Vec<_> = all().into_iter().chain(all()).collect();
    assert!(BuiltInTools::new(twice, world(Workspace::closed())).is_err());
}

#[test]
fn tools_of_an_embedding_program_bear_its_providers_name() {
    let name = toolstead_domain::server_name::ServerName::parse("weather").unwrap();
    let tools = BuiltInTools::named(&name, all(), world(Workspace::closed())).unwrap();
    assert_eq!(tools.name(), "weather");
    assert_eq!(tools.definitions()[0].name().as_str(), "mcp__weather__read_file");
    assert!(tools.example("mcp__weather__read_file").is_some());
}

#[test]
fn a_call_says_what_it_will_touch() {
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
fn nothing_is_said_of_an_undo_where_no_journal_is_kept() {
    let mut bench = Bench::new();
    let of = |tools: &BuiltInTools, name: &str| {
        let tool = tools.definitions().iter().find(|tool| tool.name().as_str() == name).unwrap();
        tool.availability.clone()
    };
    assert_eq!(of(&bench.tools, "undo"), Availability::Available);
    let tools = BuiltInTools::new(all(), bench.world.clone()).unwrap();
    bench.tools = tools.with_journal(Arc::new(NoJournal));
    for name in ["undo", "redo"] {
        assert!(matches!(of(&bench.tools, name), Availability::Unavailable(_)), "{name}");
    }
    assert_eq!(of(&bench.tools, "delete_file"), Availability::Available);
    bench.put("a", "abc");
    let deleted = bench.call("delete_file", json!({"path": "a"})).unwrap();
    assert_eq!(deleted.joined_text(), "Deleted `a` (3 bytes).");
    assert!(deleted.structured_content().unwrap().get("call").is_none());
    let patch = "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch";
    let told = bench.text("apply_patch", json!({"patch": patch}));
    assert!(!told.contains("undo"), "{told}");
}
