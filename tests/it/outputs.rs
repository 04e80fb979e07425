//! Large values over the wire: truncated results are not lost, and stored values are passed on without passing through
//! a model.

use crate::support::{HttpFront, StdioClient, TestApp, call, legacy, modern, text_of};
use serde_json::{Value, json};
use std::{
    io::Read,
    path::PathBuf,
    sync::{Arc, LazyLock},
};
use tempfile::TempDir;
use toolstead_domain::{
    OutputHandle, OutputStore, Principal, ToolExecution, ToolResult,
    testing::{
        in_memory_execution_log::InMemoryExecutionLog,
        samples,
        scripted_provider::{
            ScriptedProvider,
            scripted_tool::{Ending, ScriptedTool},
        },
    },
};
use toolstead_infrastructure::{
    sqlite::{Database, DatabaseOptions},
    system_clock::SystemClock,
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

/// The whole of Toolstead on a folder of its own, with a provider of tools that say much.
pub(crate) struct House {
    folder: TempDir,
    composition: RunningApp,
    pub(crate) app: TestApp,
}

/// Returns lines that contain their number, 100 bytes each.
fn lines(count: usize) -> &'static str {
    static LINES: LazyLock<String> =
        LazyLock::new(|| (1..=500_000).map(|number| format!("{number:09} {}\n", "x".repeat(89))).collect());
    &LINES[..100 * count]
}

impl House {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "work", "data"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self::on(folder).await
    }

    async fn on(folder: TempDir) -> Self {
        // Made before anybody waits for them.
        lines(0);
        let path = |name: &str| folder.path().join(name);
        let variables = [("HOME", path("home")), ("XDG_DATA_HOME", path("data"))];
        let request = ConfigRequest {
            environment: EnvironmentVariables::new(
                variables.map(|(name, path)| (name, path.to_str().unwrap().to_owned())),
            ),
            start: path("work"),
            administrator: path("etc"),
            file: None,
            flags: ConfigFlags { allow: vec!["Write".into()], ..ConfigFlags::default() },
        };
        let config = Config::load(&request).unwrap();
        let lines_of = ScriptedTool::named("lines").ends_by(|moment| {
            let count = moment.call.arguments.get("count").and_then(Value::as_u64).unwrap();
            Ending::Done(ToolResult::text(lines(count as usize)))
        });
        let rows = ScriptedTool::named("rows").ends_by(|_| {
            let rows: Vec<Value> = (0..3000).map(|number| json!({"number": number, "text": "ä".repeat(80)})).collect();
            Ending::Done(ToolResult::json(json!({"rows": rows})))
        });
        let provider = Arc::new(ScriptedProvider::new("scripted").with(lines_of).with(rows));
        let composition = App::builder(config).provider(provider.clone()).build().await.unwrap();
        let log = Arc::new(InMemoryExecutionLog::new());
        let app = TestApp { app: composition.app.clone(), provider, log };
        Self { folder, composition, app }
    }

    /// The same folder, after everything was closed.
    async fn restarted(self) -> Self {
        drop(self.app);
        self.composition.close().await;
        Self::on(self.folder).await
    }

    /// A file of the workspace.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// Returns the workspace that outputs belong to.
    fn workspace(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    /// The database, opened once more.
    async fn database(&self) -> Database {
        let path = self.folder.path().join("data/toolstead/toolstead.db");
        Database::open(DatabaseOptions::at(path), Arc::new(SystemClock)).await.unwrap()
    }

    async fn rows(&self) -> Vec<ToolExecution> {
        self.database().await.execution_log().list(&Default::default()).await.unwrap()
    }
}

async fn kept(outputs: &dyn OutputStore, owner: &Principal, handle: &str) -> Option<String> {
    let handle: OutputHandle = handle.parse().unwrap();
    let mut content = outputs.open(owner, handle).await.unwrap()?;
    let mut text = String::new();
    content.read_to_string(&mut text).unwrap();
    Some(text)
}

fn write_reference(reference: Value) -> Value {
    call("write_file", json!({"path": "x", "content": reference}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_50_mb_stays_within_its_budget_and_is_kept_whole() {
    let house = House::new().await;
    let mut client = StdioClient::legacy(&house.app).await;
    let big = call("lines", json!({"count": 500_000}));
    let answer = client.ask(legacy(1, "tools/call", big.clone())).await;
    let text = text_of(&answer);
    assert_eq!(answer["result"]["content"].as_array().unwrap().len(), 1);
    assert!(text.chars().count() <= 30_000, "{}", text.chars().count());
    assert!(text.starts_with("000000001 x") && text.ends_with("x\n"), "{}", &text[..100]);
    assert!(text.contains(" of 50000000 characters (lines ") && text.contains("all of it is `o1`"), "{text}");
    assert_eq!(
        answer["result"]["_meta"]["toolstead/outputs"],
        json!([{"of": "text", "handle": "o1", "mediaType": "text/plain", "bytes": 50_000_000}])
    );
    assert!(answer.to_string().len() < 35_000, "nothing else of it went over the wire");

    // Over HTTP, for another principal.
    let front = HttpFront::start(&house.app).await;
    let (status, answer) = front.ask_modern(&modern(2, "tools/call", big)).await;
    assert_eq!(status, 200);
    assert!(text_of(&answer).chars().count() <= 30_000 && answer.to_string().len() < 35_000);

    let database = house.database().await;
    for owner in [Principal::local(), Principal::token("test")] {
        let whole = kept(&*database.output_store(&house.workspace()), &owner, "o1").await.unwrap();
        assert!(whole == lines(500_000), "the whole is kept as it was");
    }
    let blobs = house.folder.path().join("data/toolstead/blobs");
    let files = std::fs::read_dir(&blobs).unwrap().filter(|entry| entry.as_ref().unwrap().file_name() != "new");
    assert_eq!(files.count(), 1, "the same content is on the disk once");
}

#[tokio::test]
async fn a_value_of_300_kb_goes_from_one_tool_into_another_in_less_than_500_characters() {
    let house = House::new().await;
    let mut client = StdioClient::legacy(&house.app).await;
    let first = call("lines", json!({"count": 3000, "$max_output": 150}));
    let second = write_reference(json!({"$ref": "o1"}));
    let mut transcript = first.to_string() + &second.to_string();
    transcript += text_of(&client.ask(legacy(1, "tools/call", first)).await);
    transcript += text_of(&client.ask(legacy(2, "tools/call", second)).await);
    assert!(transcript.chars().count() < 500, "{} characters: {transcript}", transcript.chars().count());
    assert!(std::fs::read_to_string(house.work("x")).unwrap() == lines(3000), "every byte of it arrived");

    let row = &house.rows().await[0];
    assert_eq!(row.arguments, json!({"path": "x", "content": {"$ref": "o1"}}), "the record is as short as the call");
}

#[tokio::test]
async fn a_part_of_stored_json_is_selected_and_json_is_written_as_its_text() {
    let house = House::new().await;
    let mut client = StdioClient::legacy(&house.app).await;
    let answer = client.ask(legacy(1, "tools/call", call("rows", json!({})))).await;
    assert!(answer["result"].get("structuredContent").is_none(), "the tool declares no schema of it");
    assert_eq!(answer["result"]["_meta"]["toolstead/outputs"].as_array().unwrap().len(), 1, "it is kept once");
    let texts: usize = answer["result"]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["text"].as_str().unwrap().chars().count())
        .sum();
    assert!(texts <= 30_000, "{texts}");
    for (select, expected) in
        [("/rows/2999/number", "2999".to_owned()), ("/rows/7/text", "ä".repeat(80)), ("/rows/0/none", String::new())]
    {
        let reference = json!({"$ref": "o1", "select": select});
        let answer = client.ask(legacy(2, "tools/call", write_reference(reference))).await;
        match expected.is_empty() {
            false => assert_eq!(std::fs::read_to_string(house.work("x")).unwrap(), expected, "{answer}"),
            true => assert_eq!(
                text_of(&answer),
                "`/rows/0/none` cannot be selected in `o1`: `/rows/0` is an object with the keys `number`, `text`"
            ),
        }
    }
}

#[tokio::test]
async fn a_handle_of_another_principal_is_refused_like_an_unknown_handle() {
    let house = House::new().await;
    let mut client = StdioClient::legacy(&house.app).await;
    client.ask(legacy(1, "tools/call", call("lines", json!({"count": 1000})))).await;
    let front = HttpFront::start(&house.app).await;
    let request = modern(2, "tools/call", write_reference(json!({"$ref": "o1"})));
    let (_, answer) = front.ask_modern(&request).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(
        text_of(&answer),
        "`o1` names no stored output: there never was one, or it has expired. Nothing is stored: call the tool again \
         whose output you want."
    );
    assert!(!house.work("x").exists());
    let own = client.ask(legacy(3, "tools/call", write_reference(json!({"$ref": "o1"})))).await;
    assert_eq!(own["result"].get("isError"), None, "{own}");
}

#[tokio::test]
async fn a_handle_outlives_the_program_and_is_not_used_again() {
    let house = House::new().await;
    let mut client = StdioClient::legacy(&house.app).await;
    client.ask(legacy(1, "tools/call", call("lines", json!({"count": 1000})))).await;
    drop(client);
    let house = house.restarted().await;
    let mut client = StdioClient::legacy(&house.app).await;
    let answer = client.ask(legacy(1, "tools/call", call("lines", json!({"count": 2000})))).await;
    assert!(text_of(&answer).contains("all of it is `o2`"));
    client.ask(legacy(2, "tools/call", write_reference(json!({"$ref": "o1"})))).await;
    assert!(std::fs::read_to_string(house.work("x")).unwrap() == lines(1000));
}

#[tokio::test]
async fn no_tool_reads_the_files_of_stored_outputs() {
    let house = House::new().await;
    let mut client = StdioClient::legacy(&house.app).await;
    client.ask(legacy(1, "tools/call", call("lines", json!({"count": 1000})))).await;
    let outputs = house.database().await.output_store(&house.workspace());
    let stored = outputs.latest(&Principal::local(), 1).await.unwrap().remove(0);
    let name = stored.digest.to_string();
    let path = house.folder.path().join("data/toolstead/blobs").join(&name[..2]).join(&name[2..]);
    assert!(path.is_file());
    let answer = client.ask(legacy(2, "tools/call", call("read_file", json!({"path": path})))).await;
    assert_eq!(answer["result"]["_meta"]["toolstead/errorKind"], "permission_denied", "{answer}");
}

#[tokio::test]
async fn a_shortened_structured_result_still_matches_its_output_schema() {
    let schema = json!({"type": "object", "required": ["rows"], "additionalProperties": false,
        "properties": {"rows": {"type": "array", "items": {"type": "string"}}}});
    let mut definition = samples::tool("declared").definition().clone();
    definition.insert("outputSchema".into(), schema.clone());
    let tool = toolstead_domain::tool::Tool::new(
        samples::tool("declared").name().clone(),
        definition,
        toolstead_domain::category::Category::Utility,
        toolstead_domain::tool::ToolSource::BuiltIn,
    );
    let rows = json!({"rows": vec!["x".repeat(1000); 1000]});
    let app = TestApp::with([ScriptedTool::of(tool).answers(ToolResult::json(rows))]).await;
    let mut client = StdioClient::legacy(&app).await;
    let answer = client.ask(legacy(1, "tools/call", call("declared", json!({})))).await;
    let content = &answer["result"]["structuredContent"];
    assert!(content.to_string().len() <= 30_000 && answer["result"].get("isError").is_none());
    let validator = toolstead_domain::tool_input_schema::ToolInputSchema::compile(
        &schema,
        toolstead_domain::tool_input_schema::FormatValidation::Asserted,
    );
    validator.unwrap().validate(content).unwrap();
    assert!(answer.to_string().contains("it is not stored"), "this application keeps nothing, and says so");
}
