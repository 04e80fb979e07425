//! Tools of a program, as its author writes them: the examples, their page, and how they are called, listed and changed
//! over the wire.

use crate::support::{initialize, legacy, soon};
use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion, SubscriptionFilter},
    service::{ClientLifecycleMode, ClientServiceExt},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolstead_domain::{ExecutionOutcome, ServerName, error_kind::ErrorKind};
use toolstead_presentation::{
    mcp_server::stdio::{StdioSettings, serve_stdio},
    prelude::*,
};

/// Tools of the examples, as they appear in the page.
#[path = "../../examples/embedding/src/lib.rs"]
#[expect(unreachable_pub, reason = "they are another program's")]
mod examples;

use examples::{closures, forecast::Forecast, offline_model::OfflineModel, release_notes::ReleaseNotes};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The files of the examples, by their path in the repository.
fn example_files(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| {
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() { example_files(&path) } else { BTreeSet::from([path]) }
        })
        .collect()
}

#[test]
fn the_code_on_the_embedding_page_matches_the_example_files() {
    let page = fs::read_to_string(repository().join("docs/extending/embedding.md")).unwrap();
    let mut shown = BTreeSet::new();
    for part in page.split("```rust\n").skip(1) {
        let code = part.split("```").next().unwrap();
        let before = &page[..page.find(part).unwrap()];
        let named = before.lines().rev().find(|line| line.starts_with("[`examples/")).unwrap_or_default();
        let file = named.split('`').nth(1).unwrap_or_else(|| panic!("no line names the file of this code: {code}"));
        let whole = fs::read_to_string(repository().join(file)).unwrap();
        if file.starts_with("examples/embedding/") {
            assert_eq!(code, whole, "{file}");
            shown.insert(file.to_owned());
        } else {
            // A part of a larger program, without what it is indented by.
            let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
            let (part, whole) = (lines(code), lines(&whole));
            assert!(whole.windows(part.len()).any(|lines| lines == part), "{file} has no such lines: {code}");
        }
    }
    let mut all = example_files("examples/embedding/src");
    assert!(all.remove("examples/embedding/src/lib.rs"));
    assert_eq!(shown, all);
}

#[test]
fn the_embedding_examples_stay_within_their_line_limits() {
    for (file, most) in [("src/forecast.rs", 25), ("src/bin/server.rs", 15), ("src/bin/agent.rs", 30)] {
        let text = fs::read_to_string(repository().join("examples/embedding").join(file)).unwrap();
        assert!(text.lines().count() <= most, "{file} has {} lines", text.lines().count());
    }
}

/// A program with the tools of the examples.
async fn program(folder: &Path, allow: &[&str], add: impl FnOnce(AppBuilder) -> AppBuilder) -> RunningApp {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(path("work")).unwrap();
    fs::create_dir_all(path("home")).unwrap();
    let request = ConfigRequest {
        environment: EnvironmentVariables::new([("HOME", path("home")), ("XDG_DATA_HOME", path("data"))]),
        start: path("work").into(),
        administrator: path("etc").into(),
        flags: ConfigFlags {
            roots: vec![path("work")],
            allow: allow.iter().map(ToString::to_string).collect(),
            ..ConfigFlags::default()
        },
        file: None,
    };
    add(App::builder(Config::load(&request).unwrap())).build().await.unwrap()
}

fn desk() -> ToolGroup {
    tool_group("desk", "1.2.3", [typed(Forecast), closures::sum()]).unwrap()
}

async fn call(composition: &RunningApp, tool: &str, arguments: Value) -> Result<String, String> {
    let outcome = composition.app.execute_tool.handle(ExecuteToolCommand::new(tool, arguments)).await;
    match outcome.map_err(|error| error.to_string())? {
        CallOutcome::Done(result) => Ok(result.joined_text()),
        CallOutcome::InputRequired(_) => Err("it asks for input".into()),
    }
}

fn names(composition: &RunningApp) -> Vec<String> {
    let snapshot = composition.app.registry.snapshot();
    let tools = snapshot.tools().iter().filter(|one| one.tool.server().is_some());
    tools.map(|one| one.tool.name().to_string()).collect()
}

#[tokio::test]
async fn an_embedded_server_is_listed_as_a_provider_and_permission_rules_match_its_tools() {
    let folder = tempfile::tempdir().unwrap();
    let silent = || tool_fn("silent", "Says nothing.", |_: Map<String, Value>, _| Box::pin(async { Ok(()) }));
    for (allow, runs) in [(&[][..], false), (&["mcp__desk__silent"], true), (&["mcp__desk"], true)] {
        let composition =
            program(folder.path(), allow, |app| app.tool_group(desk().with(silent())).tool(silent())).await;
        assert_eq!(names(&composition), ["mcp__desk__forecast", "mcp__desk__silent", "mcp__desk__sum", "silent"]);
        let provider = composition.app.registry.providers().into_iter().find(|one| one.name == "desk").unwrap();
        assert_eq!((provider.version.as_deref(), provider.tools), (Some("1.2.3"), 3));
        assert!(call(&composition, "mcp__desk__forecast", json!({"city": "Bern"})).await.unwrap().contains("21.5"));
        assert_eq!(call(&composition, "mcp__desk__silent", json!({})).await.is_ok(), runs, "{allow:?}");
        assert!(call(&composition, "silent", json!({})).await.is_err(), "{allow:?}");
        composition.close().await;
    }
    let composition = program(folder.path(), &[], |app| app).await;
    let rows = composition.app.list_executions.list(&Default::default()).await.unwrap();
    assert!(rows.iter().any(|row| row.source == "embedded:desk" && row.tool == "mcp__desk__forecast"));
    assert!(rows.iter().any(|row| matches!(row.outcome, ExecutionOutcome::Refused(ErrorKind::PermissionDenied, _))));
    composition.close().await;
}

#[tokio::test]
async fn an_embedded_agent_calls_a_tool_of_the_embedding_program() {
    let folder = tempfile::tempdir().unwrap();
    let composition = program(folder.path(), &[], |app| app.model(Arc::new(OfflineModel::default()))).await;
    let query = composition.app.query("What is the weather in Bern?").server(desk());
    let answer = query.start().await.unwrap().answer().await.unwrap();
    assert!(answer.starts_with("It says ") && answer.contains("21.5"), "{answer}");
    let rows = composition.app.list_executions.list(&Default::default()).await.unwrap();
    assert!(rows.iter().any(|row| row.tool == "mcp__desk__forecast" && row.outcome == ExecutionOutcome::Succeeded));
    composition.close().await;
}

#[tokio::test]
async fn tools_and_servers_can_be_added_and_removed_and_a_name_conflict_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let composition = program(folder.path(), &[], |app| app.tool_group(desk())).await;
    let tools = composition.tools.clone();
    tools.add(closures::sum()).await.unwrap();
    tools.add_to("desk", closures::word_count()).await.unwrap();
    tools.remove_from("desk", "sum").await.unwrap();
    let expected = ["mcp__desk__forecast", "mcp__desk__word_count", "sum"];
    assert_eq!(names(&composition), expected);

    let named = |name: &str| tool_fn(name, "Takes a name.", |_: Map<String, Value>, _| Box::pin(async { Ok(()) }));
    for taken in ["sum", "read_file", "Read", "a b"] {
        assert!(tools.add(named(taken)).await.is_err(), "{taken}");
    }
    assert!(tools.add_to("desk", typed(Forecast)).await.is_err());
    assert!(tools.add_to("nobody", closures::sum()).await.is_err());
    assert!(tools.remove_from("desk", "sum").await.is_err());
    assert!(tools.remove("forecast").await.is_err());
    for taken in ["desk", "built-in", "program"] {
        assert!(tools.serve(tool_group(taken, "2", [closures::sum()]).unwrap()).await.is_err(), "{taken}");
        assert!(taken == "desk" || tools.withdraw(taken).await.is_err(), "{taken}");
    }
    assert_eq!(names(&composition), expected);

    tools.withdraw("desk").await.unwrap();
    tools.remove("sum").await.unwrap();
    tools.serve(tool_group("other", "2", [closures::sum()]).unwrap()).await.unwrap();
    assert_eq!(names(&composition), ["mcp__other__sum"]);
    // Work that others started in the same environment continues.
    assert!(call(&composition, "echo", json!({"message": "still there"})).await.is_ok());
    composition.close().await;
}

#[tokio::test]
async fn adding_a_tool_fails_while_a_server_uses_the_name_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let add = |app: AppBuilder| app.program_name(ServerName::parse("desk").unwrap()).tool_group(desk());
    let composition = program(folder.path(), &[], add).await;
    assert!(composition.tools.add(closures::word_count()).await.is_err());
    assert_eq!(names(&composition), ["mcp__desk__forecast", "mcp__desk__sum"]);
    composition.tools.withdraw("desk").await.unwrap();
    composition.tools.add(closures::word_count()).await.unwrap();
    composition.tools.remove("word_count").await.unwrap();
    composition.tools.serve(desk()).await.unwrap();
    assert_eq!(names(&composition), ["mcp__desk__forecast", "mcp__desk__sum"]);
    composition.close().await;
}

#[tokio::test]
async fn duplicate_provider_and_tool_names_fail_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let build = async |add: fn(AppBuilder) -> AppBuilder| {
        let path = folder.path().to_path_buf();
        let environment = EnvironmentVariables::new([("HOME", path.display().to_string())]);
        let request = ConfigRequest {
            environment,
            start: path.clone(),
            administrator: path.join("etc"),
            ..ConfigRequest::of_process().unwrap()
        };
        add(App::builder(Config::load(&request).unwrap())).build().await.map(|_| ()).unwrap_err().to_string()
    };
    let twice = build(|app| app.tool_group(desk()).tool_group(desk())).await;
    assert!(twice.contains("a provider named `desk` is registered already"), "{twice}");
    let program =
        build(|app| app.program_name(ServerName::parse("desk").unwrap()).tool(closures::sum()).tool_group(desk()))
            .await;
    assert!(program.contains("`desk` is registered already"), "{program}");
    build(|app| app.tool(typed(Forecast)).tool(typed(Forecast))).await;
}

#[tokio::test]
async fn writes_of_embedded_tools_can_be_undone_and_writes_and_commands_require_permission() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    let note = || {
        let note = tool_fn("note", "Writes a note.", |_: Map<String, Value>, run| {
            Box::pin(async move { run.write("NOTES", "one two").await })
        });
        note.touches(|_: Map<String, Value>, world| {
            Box::pin(async move { Ok(Access::WritePath(world.access("NOTES").await?).into()) })
        })
    };
    let add = |app: AppBuilder| app.tool(note()).tool(typed(ReleaseNotes)).tool(closures::word_count());

    let composition = program(folder.path(), &[], add).await;
    assert!(call(&composition, "note", json!({})).await.is_err(), "nobody said yes to the change");
    assert!(!work.join("NOTES").exists());
    composition.close().await;

    let composition = program(folder.path(), &["Edit(NOTES)"], add).await;
    call(&composition, "note", json!({})).await.unwrap();
    assert_eq!(call(&composition, "word_count", json!({"path": "NOTES"})).await.unwrap(), "2 words");
    call(&composition, "undo", json!({})).await.unwrap();
    assert!(!work.join("NOTES").exists());
    let refused = call(&composition, "release_notes", json!({"path": "NOTES"})).await.unwrap_err();
    assert!(refused.contains("git log"), "{refused}");
    fs::write(work.join("README.md"), "one two three").unwrap();
    assert_eq!(call(&composition, "word_count", json!({})).await.unwrap(), "3 words", "the default of its schema");
    composition.close().await;
}

/// Serves the program to one client.
fn serve(composition: &RunningApp) -> (DuplexStream, CancellationToken, JoinHandle<std::io::Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(theirs);
    let stop = CancellationToken::new();
    let app = composition.app.clone();
    (ours, stop.clone(), tokio::spawn(serve_stdio(app, StdioSettings::default(), reader, writer, stop)))
}

#[tokio::test]
async fn the_official_sdk_receives_structured_results_and_new_tools_in_both_generations() {
    let folder = tempfile::tempdir().unwrap();
    let composition = program(folder.path(), &[], |app| app.tool_group(desk())).await;
    let bern = || {
        CallToolRequestParams::new("mcp__desk__forecast")
            .with_arguments(json!({"city": "Bern"}).as_object().unwrap().clone())
    };

    let old = soon(ClientConfig::default().serve(serve(&composition).0)).await.unwrap();
    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let new = soon(ClientConfig::default().serve_with_lifecycle(serve(&composition).0, discover)).await.unwrap();
    let mut subscription = soon(new.listen(SubscriptionFilter::builder().tools_list_changed().build())).await.unwrap();
    for client in [&old, &new] {
        let listed = soon(client.list_all_tools()).await.unwrap();
        let listed = listed.iter().find(|tool| tool.name == "mcp__desk__forecast").unwrap();
        let promised = serde_json::to_value(listed.output_schema.as_ref().unwrap()).unwrap();
        assert_eq!(promised["properties"]["degrees_celsius"]["type"], "number");
        let result = serde_json::to_value(soon(client.call_tool(bern())).await.unwrap()).unwrap();
        assert_eq!(result["structuredContent"], json!({"degrees_celsius": 21.5}));
    }
    composition.tools.add(closures::sum()).await.unwrap();
    assert!(soon(subscription.next()).await.unwrap().is_some());
    for client in [&old, &new] {
        assert!(soon(client.list_all_tools()).await.unwrap().iter().any(|tool| tool.name == "sum"));
    }
    old.cancel().await.unwrap();
    new.cancel().await.unwrap();
    composition.close().await;
}

#[tokio::test]
async fn a_legacy_client_is_notified_when_the_tool_list_changes() {
    let folder = tempfile::tempdir().unwrap();
    let composition = program(folder.path(), &[], |app| app).await;
    let (stream, ..) = serve(&composition);
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [initialize("2025-11-25"), initialized, legacy(1, "ping", json!({}))] {
        soon(output.write_all(format!("{message}\n").as_bytes())).await.unwrap();
    }
    for _ in 0..2 {
        soon(lines.next_line()).await.unwrap().unwrap();
    }
    composition.tools.add(closures::sum()).await.unwrap();
    let printed: Value = serde_json::from_str(&soon(lines.next_line()).await.unwrap().unwrap()).unwrap();
    assert_eq!(printed["method"], "notifications/tools/list_changed");
    drop((lines, output));
    composition.close().await;
}
