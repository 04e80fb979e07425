//! Tools of a program that embeds Toolstead are its own, whatever they say of themselves.

use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path, sync::Arc};
use toolstead_application::{ExecuteToolCommand, ExecuteToolError};
use toolstead_domain::{
    Access, ApprovalRequest, ApprovalRuleDecision, AutoApprovalRule, CallLabels, Category, CommandAccess,
    DefaultSuggestions, ExecutionFilter, ServerName, Suggestion, SuggestionFormatter, Tool, ToolAnnotations,
    ToolFailure, ToolResult, ToolSource,
    testing::{
        scripted_provider::{ScriptedProvider, scripted_tool::ScriptedTool},
        scripted_search::ScriptedSearch,
    },
};
use toolstead_infrastructure::builtin::{BuiltInTool, CustomTool, ToolContext, ToolEnvironment, tool_fn, tool_group};
use toolstead_presentation::{
    app::App,
    composition_root::{AppBuilder, RunningApp},
    config::{
        Config,
        layers::{
            environment::EnvironmentVariables,
            request::{ConfigFlags, ConfigRequest},
        },
    },
};

/// Says that it reads, and destroys.
struct Destroy;

impl BuiltInTool for Destroy {
    const NAME: &str = "destroy";
    const TITLE: &str = "Destroy";
    const DESCRIPTION: &str = "Destroys everything.";
    const CATEGORY: Category = Category::Shell;
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = "{}";
    type Input = BTreeMap<String, Value>;

    async fn accesses(&self, _: &Self::Input, _: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::RunCommand(CommandAccess::program(["terraform", "destroy"]))])
    }

    async fn run(&self, _: Self::Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        Ok(ToolResult::text("all is gone"))
    }
}

/// A program with that tool, and with a provider whose tools say that they are built in.
async fn program(folder: &Path, allow: &[&str], mode: &str) -> RunningApp {
    builder(folder, allow, mode).build().await.unwrap()
}

fn builder(folder: &Path, allow: &[&str], mode: &str) -> AppBuilder {
    builder_with(folder, allow, &format!("permissions.mode = {mode:?}\n"))
}

/// A builder of that application with these settings.
fn builder_with(folder: &Path, allow: &[&str], settings: &str) -> AppBuilder {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(path("work")).unwrap();
    std::fs::create_dir_all(path("home")).unwrap();
    std::fs::write(path("work/own.toml"), settings).unwrap();
    let request = ConfigRequest {
        environment: EnvironmentVariables::new([("HOME", path("home")), ("XDG_DATA_HOME", path("data"))]),
        start: path("work").into(),
        administrator: path("etc").into(),
        file: Some(path("work/own.toml").into()),
        flags: ConfigFlags { allow: allow.iter().map(ToString::to_string).collect(), ..ConfigFlags::default() },
    };
    let provider = ScriptedProvider::new("deploys").with(
        ScriptedTool::named("roll_out").touches(vec![Access::RunCommand(CommandAccess::program(["kubectl", "apply"]))]),
    );
    let builder = App::builder(Config::load(&request).unwrap()).program_name(ServerName::parse("acme").unwrap());
    builder.tool(Destroy).provider(Arc::new(provider))
}

async fn call(app: &App, tool: &str) -> Result<(), String> {
    let command = ExecuteToolCommand::new(tool, json!({}));
    app.execute_tool.handle(command).await.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn permission_depends_on_declared_accesses_and_not_on_hints_or_built_in_claims() {
    let folder = tempfile::tempdir().unwrap();
    for (allow, mode, may_destroy) in [
        (&[][..], "default", false),
        (&["Bash(terraform *)"], "default", true),
        (&["destroy"], "default", true),
        (&["Bash(terraform *)"], "plan", false),
    ] {
        let composition = program(folder.path(), allow, mode).await;
        assert_eq!(call(&composition.app, "destroy").await.is_ok(), may_destroy, "{allow:?} {mode}");
        assert!(call(&composition.app, "roll_out").await.is_err(), "{allow:?} {mode}");
        composition.close().await;
    }
    let composition = program(folder.path(), &[], "default").await;
    let snapshot = composition.app.registry.snapshot();
    for (tool, source) in [("destroy", "embedded:acme"), ("roll_out", "embedded:deploys"), ("read_file", "built-in")] {
        let listed = snapshot.tools().iter().find(|one| one.tool.name().as_str() == tool).unwrap();
        assert_eq!(listed.tool.source().label(), source);
        assert_eq!(*listed.tool.source() == ToolSource::BuiltIn, source == "built-in");
    }
    let rows = composition.app.list_executions.list(&Default::default()).await.unwrap();
    let of = |tool: &str| rows.iter().filter(|row| row.tool == tool).map(|row| row.source.clone()).collect::<Vec<_>>();
    assert_eq!(of("destroy"), ["embedded:acme"; 4]);
    assert_eq!(of("roll_out"), ["embedded:deploys"; 4]);
    composition.close().await;
}

#[tokio::test]
async fn a_custom_search_backend_serves_web_search_and_requires_a_rule_for_its_host() {
    let folder = tempfile::tempdir().unwrap();
    for (allow, searches) in [(&[][..], 0), (&["WebFetch(domain:search.corp.example)"], 1)] {
        let search = Arc::new(ScriptedSearch::at("search.corp.example"));
        let composition = builder(folder.path(), allow, "default").web_search(search.clone()).build().await.unwrap();
        let command = ExecuteToolCommand::new("web_search", json!({"query": "rust"}));
        assert_eq!(composition.app.execute_tool.handle(command).await.is_ok(), searches == 1, "{allow:?}");
        assert_eq!(search.queries().len(), searches);
        composition.close().await;
    }
}

/// Lets what was planned destroy.
struct Planned;

#[async_trait::async_trait]
impl AutoApprovalRule for Planned {
    fn name(&self) -> &str {
        "planned"
    }

    async fn judge(&self, request: &ApprovalRequest<'_>) -> ApprovalRuleDecision {
        if request.call.tool.name().as_str() == "destroy" {
            ApprovalRuleDecision::Once
        } else {
            ApprovalRuleDecision::Pass
        }
    }
}

/// Points at a page of the program.
#[derive(Debug)]
struct Wiki;

impl SuggestionFormatter for Wiki {
    fn format(&self, suggestion: &Suggestion) -> Option<String> {
        match suggestion {
            Suggestion::AllowRules(rules) => Some(format!("Ask for {} at wiki/permissions.", rules.join(", "))),
            _ => None,
        }
    }
}

#[tokio::test]
async fn an_approval_rule_of_the_program_decides_and_a_label_selects_audit_records() {
    let folder = tempfile::tempdir().unwrap();
    let composition = builder(folder.path(), &[], "default").approval_rule(Arc::new(Planned)).build().await.unwrap();
    for ticket in ["T-1", "T-2"] {
        let labels = CallLabels::default().with("ticket", ticket).unwrap();
        let command = ExecuteToolCommand::new("destroy", json!({})).labelled(labels);
        composition.app.execute_tool.handle(command).await.unwrap();
    }
    call(&composition.app, "roll_out").await.unwrap_err();
    let label = Some(("ticket".to_owned(), "T-2".to_owned()));
    let filter = ExecutionFilter { label, ..ExecutionFilter::default() };
    let rows = composition.app.list_executions.list(&filter).await.unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].labels.get("ticket"), Some("T-2"));
    let approved_by = rows[0].decision.as_ref().and_then(|decision| decision.approved_by.as_deref());
    assert_eq!(approved_by, Some("the program's rule `planned`"));
    composition.close().await;
}

#[tokio::test]
async fn a_refusal_uses_the_suggestion_formatter_of_the_embedding_program() {
    let folder = tempfile::tempdir().unwrap();
    let formatters: [(Arc<dyn SuggestionFormatter>, &str); 2] = [
        (Arc::new(DefaultSuggestions), "To allow it, allow `Bash(kubectl apply)`."),
        (Arc::new(Wiki), "Ask for Bash(kubectl apply) at wiki/permissions."),
    ];
    for (formatter, expected) in formatters {
        let composition = builder(folder.path(), &[], "default").suggestions(formatter).build().await.unwrap();
        let refused = composition.app.execute_tool.handle(ExecuteToolCommand::new("roll_out", json!({}))).await;
        let Err(ExecuteToolError::Refused(failure)) = refused else { panic!("{refused:?}") };
        let for_user = failure.text_for_user(composition.app.execute_tool.suggestions());
        assert!(for_user.ends_with(expected), "{for_user}");
        assert!(!for_user.contains("--allow") && !for_user.contains("toolstead"), "{for_user}");
        assert!(failure.text().ends_with("Ask your user whether to allow it."), "{}", failure.text());
        composition.close().await;
    }
}

#[tokio::test]
async fn hooks_get_the_environment_that_the_configuration_was_loaded_with() {
    let folder = tempfile::tempdir().unwrap();
    let message = folder.path().join("told");
    let hook = format!("event = \"PreToolUse\"\ncommand = 'printf %s \"$HOME\" > {}'", message.display());
    let composition = builder_with(folder.path(), &[], &format!("[hooks.home]\n{hook}\n")).build().await.unwrap();
    let command = ExecuteToolCommand::new("echo", json!({"message": "hi"}));
    composition.app.execute_tool.handle(command).await.unwrap();
    assert_eq!(std::fs::read_to_string(message).unwrap(), folder.path().join("home").to_str().unwrap());
    composition.close().await;
}

#[tokio::test]
async fn a_closed_application_rejects_calls_and_tool_changes() {
    let folder = tempfile::tempdir().unwrap();
    let composition = program(folder.path(), &["destroy"], "default").await;
    let (app, tools) = (composition.app.clone(), composition.tools.clone());
    composition.close().await;
    let error = call(&app, "destroy").await.unwrap_err();
    assert!(error.starts_with("the call did not run: the application is closed"), "{error}");
    let closed = "the application is closed: tools cannot be added or removed any more";
    let other = || Arc::new(ScriptedProvider::new("other").with(ScriptedTool::named("other")));
    for changed in [
        tools.add(tool_fn("late", "Comes late.", |_: Map<String, Value>, _| Box::pin(async { Ok(()) }))).await,
        tools.remove("destroy").await,
        tools.serve(tool_group("late", "1", Vec::<CustomTool>::new()).unwrap()).await,
        app.registry.register(other()).await.map_err(Into::into),
        app.registry.replace(other()).await.map_err(Into::into),
        app.unregister("deploys").await.map_err(Into::into),
    ] {
        assert_eq!(changed.unwrap_err().to_string(), closed);
    }
}

#[tokio::test]
async fn a_tool_without_declared_accesses_is_refused_with_a_message_about_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let silent = tool_fn("silent", "Says nothing.", |_: Map<String, Value>, _| Box::pin(async { Ok(()) }));
    let composition = builder(folder.path(), &[], "default").tool(silent).build().await.unwrap();
    let refusal = call(&composition.app, "silent").await.unwrap_err();
    assert!(refusal.contains("tools that do not declare what they touch need approval by default"), "{refusal}");
    assert!(!refusal.contains("MCP"), "{refusal}");
    composition.close().await;
}

#[tokio::test]
async fn every_built_in_tool_is_the_same_after_a_round_trip_through_json() {
    let folder = tempfile::tempdir().unwrap();
    let composition = program(folder.path(), &[], "default").await;
    let snapshot = composition.app.registry.snapshot();
    let built_in: Vec<_> = snapshot.tools().iter().filter(|one| *one.tool.source() == ToolSource::BuiltIn).collect();
    assert!(built_in.len() > 40, "{}", built_in.len());
    for one in built_in {
        let mut tool = (*one.tool).clone();
        // Aliases contain code, and keywords are only for the search of built-in tools.
        tool.aliases.clear();
        tool.keywords = "";
        let text = serde_json::to_string(&tool).unwrap();
        assert_eq!(serde_json::from_str::<Tool>(&text).unwrap(), tool, "{text}");
    }
    composition.close().await;
}
