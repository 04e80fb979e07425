use super::*;
use crate::{
    event_bus::EventBus,
    execute_tool::{CallSettings, ExecuteToolPorts},
    open_calls::OpenCalls,
    permission_book::PermissionBook,
    tool_registry::ToolRegistry,
};
use async_trait::async_trait;
use std::{path::PathBuf, sync::Mutex};
use toolstead_domain::{
    Access, AfterCallResponse, BeforeCallResponse, CallContext, CompletionReference, CompletionRequest,
    ContextCatalogue, ContextProvider, DefaultSuggestions, Effect, EndedCall, ExecutionOutcome, InputRequest,
    InputResponse, NoApprover, NoOutputs, PatternContext, PermissionPolicy, PermissionRule, ProviderListError,
    ServerName, Timestamp, ToolCall, ToolExecution, ToolFailure, ToolHook, UnavailableSchemaValidator, WorkspaceRoots,
    error_kind::ErrorKind,
    permission::rule::RuleOrigin,
    testing::{
        fixed_clock::FixedClock, in_memory_execution_log::InMemoryExecutionLog,
        in_memory_rule_store::InMemoryRuleStore, in_memory_tool_repository::InMemoryToolRepository,
        recording_caller::RecordingCaller, scripted_context::ScriptedContext,
    },
};

struct House {
    handler: ForwardContextRequestHandler,
    provider: Arc<ScriptedContext>,
    log: Arc<InMemoryExecutionLog>,
}

async fn house(rules: &[(Effect, &str)], hooks: Vec<Arc<dyn ToolHook>>, settings: CallSettings) -> House {
    let parsed = |(effect, text): &(Effect, &str)| {
        Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
    };
    let policy = PermissionPolicy {
        rules: rules.iter().map(parsed).collect(),
        roots: WorkspaceRoots { write: vec![PathBuf::from("/w")], ..WorkspaceRoots::default() },
        ..PermissionPolicy::default()
    };
    let clock = Arc::new(FixedClock::at(Timestamp(0)));
    let log = Arc::new(InMemoryExecutionLog::new());
    let ports = ExecuteToolPorts {
        approver: Arc::new(NoApprover),
        log: log.clone(),
        clock: clock.clone(),
        outputs: Arc::new(NoOutputs),
        schemas: Arc::new(UnavailableSchemaValidator),
        hooks,
        events: EventBus::new(clock.clone()),
        suggestions: Arc::new(DefaultSuggestions),
    };
    let tools = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock).await.unwrap();
    let book = Arc::new(PermissionBook::new(Arc::new(policy), Arc::new(InMemoryRuleStore::new())));
    let calls = ExecuteToolHandler::new(tools, book, ports, OpenCalls::new(9), settings);
    let provider = ScriptedContext::new("built-in").with_resource("config://a").with_template("file:///{path}");
    let provider = Arc::new(provider.with_prompt("p"));
    let registry = ContextRegistry::new();
    registry.register(provider.clone()).await.unwrap();
    House { handler: ForwardContextRequestHandler::new(registry, calls), provider, log }
}

fn read(uri: &str) -> ContextRequest {
    ContextRequest::Read { uri: uri.into() }
}

fn get(name: &str) -> ContextRequest {
    ContextRequest::Get { name: name.into(), arguments: [("code".to_owned(), "x".to_owned())].into() }
}

fn complete(of: CompletionReference, value: &str) -> ContextRequest {
    let argument = "path".to_owned();
    ContextRequest::Complete(CompletionRequest { of, argument, value: value.into(), known: Default::default() })
}

fn path(value: &str) -> ContextRequest {
    complete(CompletionReference::Template("file:///{path}".into()), value)
}

impl House {
    async fn asked(&self, request: ContextRequest) -> Result<Value, ErrorKind> {
        match self.handler.handle(ForwardContextRequestCommand::new(request)).await {
            Ok(ContextRequestOutcome::Answer(members)) => Ok(members.into()),
            Ok(ContextRequestOutcome::InputRequired(_)) => panic!("the call must not require input"),
            Err(error) => Err(error.kind()),
        }
    }

    fn row(&self) -> ToolExecution {
        self.log.rows().pop().unwrap()
    }
}

#[tokio::test]
async fn every_request_is_answered_and_recorded_with_its_kind() {
    let house = house(&[], Vec::new(), CallSettings::default()).await;
    for (request, kind, tool, called_as, answer) in [
        (
            read("config://a"),
            AuditedRequestKind::Resource,
            "read_resource",
            "config://a",
            json!({"contents": [{"uri": "config://a", "text": "config://a"}]}),
        ),
        (
            get("p"),
            AuditedRequestKind::Prompt,
            "get_prompt",
            "p",
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "p {\"code\":\"x\"}"}}]}),
        ),
        (
            path("a"),
            AuditedRequestKind::Completion,
            "read_resource",
            "file:///{path}",
            json!({"completion": {"values": ["a!"], "hasMore": false}}),
        ),
        (
            complete(CompletionReference::Prompt("p".into()), "b"),
            AuditedRequestKind::Completion,
            "get_prompt",
            "p",
            json!({"completion": {"values": ["b!"], "hasMore": false}}),
        ),
    ] {
        assert_eq!(house.asked(request).await, Ok(answer));
        let row = house.row();
        assert_eq!((row.kind, row.tool.as_str(), row.called_as.as_str()), (kind, tool, called_as));
        assert_eq!((row.outcome, row.source.as_str()), (ExecutionOutcome::Succeeded, "built-in"));
    }
}

#[tokio::test]
async fn a_request_for_an_unknown_resource_or_prompt_is_refused_as_not_found_and_recorded() {
    let house = house(&[], Vec::new(), CallSettings::default()).await;
    let unknown = [
        read("config://b"),
        get("q"),
        complete(CompletionReference::Template("other:///{path}".into()), ""),
        complete(CompletionReference::Prompt("q".into()), ""),
    ];
    for (count, request) in unknown.into_iter().enumerate() {
        let kind = request.kind();
        assert_eq!(house.asked(request).await, Err(ErrorKind::NotFound));
        assert_eq!((house.row().kind, house.log.rows().len()), (kind, count + 1));
        assert!(matches!(house.row().outcome, ExecutionOutcome::Refused(ErrorKind::NotFound, _)));
    }
}

#[tokio::test]
async fn rules_on_paths_hold_for_resources_and_their_completion() {
    let rules = [(Effect::Deny, "Read(//w/secret/**)"), (Effect::Ask, "Read(//w/private/**)")];
    let house = house(&rules, Vec::new(), CallSettings::default()).await;
    assert!(house.asked(read("file:///w/a")).await.is_ok());
    for uri in ["file:///w/secret/a", "file:///w/private/a", "file:///etc/passwd"] {
        assert_eq!(house.asked(read(uri)).await, Err(ErrorKind::PermissionDenied), "{uri}");
        let decision = house.row().decision.unwrap();
        assert!(["deny", "ask"].contains(&decision.verdict.as_str()), "{decision:?}");
    }
    assert!(house.asked(path("/w/a")).await.is_ok());
    assert_eq!(house.asked(path("/w/secret/a")).await, Err(ErrorKind::PermissionDenied));
    assert_eq!(house.provider.asked().len(), 2, "what is refused never reaches its provider");
}

#[tokio::test]
async fn a_deny_rule_on_a_request_kind_also_denies_its_completion_requests() {
    let house = house(
        &[(Effect::Deny, "read_resource"), (Effect::Deny, "get_prompt(name:p)")],
        Vec::new(),
        CallSettings::default(),
    )
    .await;
    for request in [read("config://a"), path("a"), get("p")] {
        assert_eq!(house.asked(request).await, Err(ErrorKind::PermissionDenied));
    }
    assert_eq!(house.provider.asked(), []);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_and_never_cut() {
    let settings = CallSettings { media_bytes: 10, output_characters: 10, ..CallSettings::default() };
    let house = house(&[], Vec::new(), settings).await;
    assert_eq!(house.asked(read("config://a")).await, Err(ErrorKind::TooLarge));
    assert!(matches!(house.row().outcome, ExecutionOutcome::Failed(ErrorKind::TooLarge, _)));
}

/// A gate with a scripted answer.
struct Gate {
    before: fn(&ToolCall) -> BeforeCallResponse,
    output: Option<&'static str>,
    heard: Mutex<Vec<String>>,
}

#[async_trait]
impl ToolHook for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    async fn before(&self, call: &ToolCall, _: Option<&[Access]>) -> BeforeCallResponse {
        self.heard.lock().unwrap().push(call.tool.name().to_string());
        (self.before)(call)
    }

    async fn after(&self, _: EndedCall<'_>) -> AfterCallResponse {
        let output = self.output.map(ToolResult::text);
        AfterCallResponse { output, ..AfterCallResponse::default() }
    }
}

#[tokio::test]
async fn hooks_receive_requests_and_can_refuse_or_rewrite_them_or_replace_the_result() {
    let gate = |before, output| Arc::new(Gate { before, output, heard: Mutex::default() });
    let shut = gate(|_| BeforeCallResponse::deny("not today"), None);
    let closed = house(&[], vec![shut.clone()], CallSettings::default()).await;
    assert_eq!(closed.asked(read("config://a")).await, Err(ErrorKind::PermissionDenied));
    assert_eq!(*shut.heard.lock().unwrap(), ["read_resource"]);

    let to_secret = |_: &ToolCall| BeforeCallResponse {
        arguments: Some(json!({"uri": "file:///w/secret/a"}).as_object().unwrap().clone()),
        ..BeforeCallResponse::default()
    };
    let deny = [(Effect::Deny, "Read(//w/secret/**)")];
    let rewritten = house(&deny, vec![gate(to_secret, None)], CallSettings::default()).await;
    assert_eq!(
        rewritten.asked(read("config://a")).await,
        Err(ErrorKind::PermissionDenied),
        "what was rewritten is judged"
    );

    let replaced =
        house(&[], vec![gate(|_| BeforeCallResponse::default(), Some("hidden"))], CallSettings::default()).await;
    let text = json!({"contents": [{"uri": "config://a", "mimeType": "text/plain", "text": "hidden"}]});
    assert_eq!(replaced.asked(read("config://a")).await, Ok(text));
    let message = json!({"role": "user", "content": {"type": "text", "text": "hidden"}});
    assert_eq!(replaced.asked(get("p")).await, Ok(json!({"messages": [message]})));

    let talks =
        |_: &ToolCall| BeforeCallResponse { context: vec!["mind the gap".into()], ..BeforeCallResponse::default() };
    let outcome = house(&[], vec![gate(talks, None)], CallSettings::default()).await;
    let whole = json!({"contents": [{"uri": "config://a", "text": "config://a"}]});
    assert_eq!(outcome.asked(read("config://a")).await, Ok(whole), "what a hook says is beside it");
}

#[tokio::test]
async fn requests_to_a_server_are_checked_by_server_rules_and_forwarded_with_its_own_uris() {
    let rules = [
        (Effect::Deny, "mcp__closed"),
        (Effect::Deny, "mcp__half__get_prompt"),
        (Effect::Allow, "Resource(half:a://x)"),
        (Effect::Allow, "Resource(half:b://*)"),
    ];
    let house = house(&rules, Vec::new(), CallSettings::default()).await;
    let server = |name: &str| {
        let offer = ScriptedContext::new(name).of_server().with_resource("a://x").with_template("b://{y}");
        Arc::new(offer.with_prompt(&format!("mcp__{name}__p")))
    };
    let (closed, half) = (server("closed"), server("half"));
    house.handler.registry.register(closed.clone()).await.unwrap();
    house.handler.registry.register(half.clone()).await.unwrap();
    let template = |text: &str| complete(CompletionReference::Template(text.into()), "v");
    for request in [read("a://x"), read("b://7"), template("b://{y}"), get("mcp__closed__p"), get("mcp__half__p")] {
        let subject = request.subject().to_owned();
        assert_eq!(house.asked(request).await, Err(ErrorKind::PermissionDenied), "{subject}");
        assert!(house.row().source.contains(if subject.contains("half") { "half" } else { "closed" }));
    }
    assert_eq!(closed.asked(), []);
    let uri = "toolstead://half/a://x";
    assert_eq!(house.asked(read(uri)).await, Ok(json!({"contents": [{"uri": uri, "text": "a://x"}]})));
    assert_eq!(house.row().called_as, uri);
    assert!(house.asked(template("toolstead://half/b://{y}")).await.is_ok());
    assert_eq!(half.asked(), [read("a://x"), template("b://{y}")]);
    // A request under the distinct URI receives that URI in the result, even if only one provider has the resource.
    house.handler.registry.unregister("closed");
    assert_eq!(house.asked(read(uri)).await, Ok(json!({"contents": [{"uri": uri, "text": "a://x"}]})));
}

/// Asks a question before it answers.
struct Curious {
    offer: ScriptedContext,
    has_own_names: bool,
}

#[async_trait]
impl ContextProvider for Curious {
    fn name(&self) -> &str {
        self.offer.name()
    }

    fn server(&self) -> Option<&ServerName> {
        self.offer.server()
    }

    fn has_own_names(&self) -> bool {
        self.has_own_names
    }

    async fn list(&self) -> Result<ContextCatalogue, ProviderListError> {
        self.offer.list().await
    }

    async fn accesses(&self, request: &ContextRequest) -> Result<Vec<Access>, ToolFailure> {
        self.offer.accesses(request).await
    }

    async fn answer(
        &self,
        request: &ContextRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        let question = InputRequest { method: "elicitation/create".into(), params: json!({"message": "PIN?"}) };
        context.caller.ask(question).await.unwrap();
        self.offer.answer(request, context).await
    }
}

#[tokio::test]
async fn questions_during_resource_and_prompt_requests_name_the_server_like_tool_questions() {
    for (has_own_names, expected) in [(false, "The MCP server `git` asks: PIN?"), (true, "PIN?")] {
        let rules = [(Effect::Allow, "Resource(git:*)"), (Effect::Allow, "Prompt(git:*)")];
        let house = house(&rules, Vec::new(), CallSettings::default()).await;
        let offer = ScriptedContext::new("git").of_server().with_resource("a://x").with_prompt("mcp__git__p");
        house.handler.registry.register(Arc::new(Curious { offer, has_own_names })).await.unwrap();
        for request in [read("a://x"), get("mcp__git__p")] {
            let caller = Arc::new(RecordingCaller::answering([Ok(InputResponse(json!({"action": "accept"})))]));
            let mut command = ForwardContextRequestCommand::new(request);
            command.call.caller = caller.clone();
            house.handler.handle(command).await.unwrap();
            assert_eq!(caller.questions()[0].params["message"], expected);
        }
    }
}

#[tokio::test]
async fn a_prompt_rule_matches_the_name_that_the_server_uses_for_the_prompt() {
    for (has_own_names, rule, is_answered) in [
        (false, "Prompt(git:p)", true),
        (false, "Prompt(git:mcp__git__p)", false),
        (false, "mcp__git__get_prompt", false),
        (false, "get_prompt", false),
        // With plain names this is the server's own name for the prompt.
        (true, "Prompt(git:p)", false),
        (true, "Prompt(git:mcp__git__p)", true),
        (true, "get_prompt", false),
    ] {
        let house = house(&[(Effect::Allow, rule)], Vec::new(), CallSettings::default()).await;
        let offer = ScriptedContext::new("git").of_server().with_prompt("mcp__git__p");
        house.handler.registry.register(Arc::new(Curious { offer, has_own_names })).await.unwrap();
        let mut command = ForwardContextRequestCommand::new(get("mcp__git__p"));
        let answer = Ok(InputResponse(json!({"action": "accept"})));
        command.call.caller = Arc::new(RecordingCaller::answering([answer]));
        assert_eq!(house.handler.handle(command).await.is_ok(), is_answered, "{rule} {has_own_names}");
    }
}

#[tokio::test]
async fn a_request_is_explained_without_being_made() {
    let house = house(&[(Effect::Deny, "Resource(git:a://s*)")], Vec::new(), CallSettings::default()).await;
    let offer = Arc::new(ScriptedContext::new("git").of_server().with_template("a://{x}"));
    house.handler.registry.register(offer.clone()).await.unwrap();
    for (uri, verdict) in [("a://secret", "deny"), ("toolstead://git/a://%73ecret", "deny"), ("a://open", "ask")] {
        let explained = house.handler.explain(ForwardContextRequestCommand::new(read(uri))).await.unwrap();
        assert_eq!(explained.decision.verdict.as_str(), verdict, "{uri}: {}", explained.decision.reason());
    }
    assert_eq!((offer.asked(), house.log.rows()), (Vec::new(), Vec::new()));
}
