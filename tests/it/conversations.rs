//! Conversations on the command line: how they are shown, and how they are undone with their file changes.

use crate::binaries::{Home, stderr, stdout};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc};
use toolstead_application::{
    CancelSignal, ConversationUndoReport, ExecuteToolCommand, ForkConversationCommand, UndoConversationCommand,
    UndoConversationError,
};
use toolstead_domain::{
    Block, CallId, ClientProfile, Conversation, ConversationEvent, ConversationEventKind, ConversationId, Principal,
    RequestScope, SilentCaller, StopReason, Timestamp, TokenUsage, ToolArguments, ToolResultBlock, ToolUse,
    conversation::{record, transcript},
};
use toolstead_presentation::prelude::*;
use uuid::Uuid;

/// A conversation in which tools are called, by a model that this test plays.
struct Talk {
    home: Home,
    composition: RunningApp,
    id: ConversationId,
    principal: Principal,
}

/// Any tool may do anything in the workspace.
const ALLOWING: &str = "[permissions]\nmode = \"bypass\"\n";

impl Talk {
    async fn begin() -> Self {
        Self::on(Home::new(), Principal::local(), ALLOWING).await
    }

    async fn on(home: Home, principal: Principal, config: &str) -> Self {
        let composition = open(&home, config).await;
        let id = ConversationId(Uuid::now_v7());
        let begun = Conversation::new(id, principal.clone(), "mend the test", Timestamp(1_000_000));
        composition.app.conversations.begin(&begun).await.unwrap();
        Self { home, composition, id, principal }
    }

    /// Adds events, and returns the number of the last.
    async fn add(&self, events: Vec<ConversationEventKind>) -> u64 {
        let store = &self.composition.app.conversations;
        let known = store.find(&self.principal, self.id).await.unwrap().unwrap();
        let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
        store.append(&self.principal, self.id, known.events, Timestamp(now), events).await.unwrap()
    }

    async fn say(&self, text: &str) -> u64 {
        self.add(vec![ConversationEventKind::UserSaid { blocks: vec![Block::text(text)] }]).await
    }

    /// Lets the model call a tool, and adds the result to the conversation. Returns the number of that event.
    async fn call(&self, tool: &str, arguments: Value) -> u64 {
        let Value::Object(object) = arguments.clone() else { panic!("{arguments}") };
        let use_id = format!("use-{}", Uuid::now_v7());
        let written = Block::ToolUse(ToolUse {
            id: use_id.clone(),
            name: tool.into(),
            arguments: ToolArguments::Object(object),
            sealed: None,
        });
        self.add(vec![answered(vec![written], StopReason::ToolUse)]).await;
        let result = self.execute(tool, arguments).await;
        let row = self.newest_row(tool).await;
        self.add(vec![ConversationEventKind::CallEnded {
            record: record::of_result(tool, &result, Timestamp(0)),
            result: ToolResultBlock {
                id: use_id,
                name: tool.into(),
                content: vec![Block::text(result.joined_text())],
                is_error: result.is_error(),
            },
            call: Some(row),
        }])
        .await
    }

    async fn execute(&self, tool: &str, arguments: Value) -> ToolResult {
        let scope = RequestScope::of(self.principal.clone(), self.id.session());
        let command = ExecuteToolCommand::new(tool, arguments).within(scope);
        match self.composition.app.execute_tool.handle(command).await {
            Ok(CallOutcome::Done(result)) => result,
            Ok(asks) => panic!("{tool}: {asks:?}"),
            Err(error) => ToolResult::error(error.kind(), error.to_string()),
        }
    }

    /// The outer call of that tool that was recorded last.
    async fn newest_row(&self, tool: &str) -> CallId {
        let rows = self.composition.app.list_executions.list(&Default::default()).await.unwrap();
        rows.iter().find(|row| row.tool == tool && row.parent.is_none()).unwrap().id
    }

    async fn undo(&self, to: u64, leaving: bool) -> Result<ConversationUndoReport, UndoConversationError> {
        let command = UndoConversationCommand {
            conversation: self.id,
            to,
            scope: RequestScope::of(self.principal.clone(), "another session"),
            undo: "undo".into(),
            redo: "redo".into(),
            leaving_what_cannot_be: leaving,
            client: Arc::new(ClientProfile::without_protocol("test")),
            caller: Arc::new(SilentCaller),
            cancel: CancelSignal::new(),
        };
        self.composition.app.undo_conversation.handle(command).await
    }

    async fn events(&self) -> Vec<ConversationEvent> {
        self.composition.app.conversations.events(&self.principal, self.id).await.unwrap()
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.home.work().join(name), content).unwrap();
    }

    /// Everything in the workspace.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(&self.home.work(), "", &mut files);
        files
    }

    /// Lets go of the database, so that only the binary has it.
    async fn close(self) -> (Home, String) {
        self.composition.close().await;
        (self.home, self.id.to_string())
    }
}

async fn open(home: &Home, config: &str) -> RunningApp {
    let folder = |name: &str| home.data().parent().unwrap().join(name);
    let text = |name: &str| folder(name).to_str().unwrap().to_owned();
    let request = ConfigRequest {
        environment: EnvironmentVariables::new([
            ("HOME", text("home")),
            ("XDG_DATA_HOME", text("data")),
            ("XDG_CONFIG_HOME", text("config")),
        ]),
        start: home.work(),
        administrator: folder("etc"),
        file: Some(home.config(config)),
        flags: ConfigFlags::default(),
    };
    App::builder(Config::load(&request).unwrap()).build().await.unwrap()
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => {
                files.insert(format!("{name}/"), String::new());
                collect(&entry.path(), &format!("{name}/"), files);
            }
            false => _ = files.insert(name, fs::read_to_string(entry.path()).unwrap()),
        }
    }
}

fn answered(blocks: Vec<Block>, stop: StopReason) -> ConversationEventKind {
    ConversationEventKind::ModelAnswered { blocks, model: "m-1".into(), stop: Some(stop), usage: TokenUsage::default() }
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_text": old, "new_text": new})
}

#[tokio::test]
async fn undo_restores_the_folder_to_any_event_including_nested_calls() {
    let talk = Talk::begin().await;
    talk.put("a.txt", "one\n");
    let mut known = vec![(0, talk.files())];
    known.push((talk.say("go").await, talk.files()));
    talk.call("read_file", json!({"path": "a.txt"})).await;
    let first = talk.call("edit_file", edit("a.txt", "one", "two")).await;
    known.push((first, talk.files()));
    let batch = json!({"invocations": [
        {"tool_name": "write_file", "parameters": {"path": "deep/er/b.txt", "content": "new\n"}},
        {"tool_name": "edit_file", "parameters": edit("a.txt", "two", "three")},
    ]});
    known.push((talk.call("batch", batch).await, talk.files()));
    known.push((talk.say("more").await, talk.files()));
    talk.call("delete_file", json!({"path": "deep/er/b.txt"})).await;
    talk.call("edit_file", edit("a.txt", "three", "four")).await;
    assert_eq!(talk.files()["a.txt"], "four\n");

    for (to, files) in known.into_iter().rev() {
        let undone = talk.undo(to, false).await.unwrap();
        assert_eq!(undone.left, [], "to {to}");
        assert_eq!(talk.files(), files, "to {to}");
        let events = talk.events().await;
        assert!(transcript::counted(&events).iter().all(|event| event.number <= to));
        assert_eq!(events.last().unwrap().number, undone.events);
    }
    assert!(transcript::messages(&talk.events().await).is_empty());
    // Each way back is a call with a row of its own, in the session of the conversation.
    let rows = talk.composition.app.list_executions.list(&Default::default()).await.unwrap();
    let undos: Vec<_> = rows.iter().filter(|row| row.tool == "undo").collect();
    assert_eq!(undos.len(), 5);
    assert!(undos.iter().all(|row| row.session == talk.id.to_string()));
    // Changes that were undone once are not undone again.
    assert_eq!(talk.undo(0, false).await.unwrap().undone, []);
    talk.close().await;
}

#[tokio::test]
async fn undo_reports_a_file_that_changed_since_and_leaves_everything_unchanged() {
    let talk = Talk::begin().await;
    for name in ["a", "b", "c"] {
        talk.put(name, "one\n");
    }
    let start = talk.say("go").await;
    for name in ["a", "b", "c"] {
        talk.call("read_file", json!({"path": name})).await;
        talk.call("edit_file", edit(name, "one", "two")).await;
    }
    talk.put("b", "mine\n");
    let (files, events) = (talk.files(), talk.events().await);
    let refused = talk.undo(start, false).await.unwrap_err();
    let message = refused.to_string();
    let UndoConversationError::Left { left, stuck } = refused else { panic!("{message}") };
    assert_eq!((left.len(), stuck), (1, vec![]), "{message}");
    assert!(left[0].call.files[0].ends_with("b") && message.contains("files have changed since"), "{message}");
    assert!(message.ends_with("All files are as they were."), "{message}");
    // `c` had been undone by then, and was redone.
    assert_eq!((talk.files(), talk.events().await), (files, events));

    let undone = talk.undo(start, true).await.unwrap();
    assert_eq!((undone.undone.len(), undone.left.len()), (2, 1));
    let expected = [("a", "one\n"), ("b", "mine\n"), ("c", "one\n")];
    assert_eq!(talk.files(), expected.map(|(name, text)| (name.into(), text.into())).into());
    talk.close().await;
}

#[tokio::test]
async fn an_undo_that_a_rule_denies_leaves_files_and_conversation_unchanged() {
    let talk = Talk::begin().await;
    let start = talk.say("go").await;
    talk.call("write_file", json!({"path": "a", "content": "one\n"})).await;
    talk.call("write_file", json!({"path": "kept", "content": "one\n"})).await;
    let Talk { home, composition, id, principal } = talk;
    composition.close().await;
    let denying = format!("{ALLOWING}deny = [\"Edit(kept)\"]\n");
    let composition = open(&home, &denying).await;
    let talk = Talk { home, composition, id, principal };
    let (files, events) = (talk.files(), talk.events().await);
    let refused = talk.undo(start, false).await.unwrap_err();
    assert!(refused.to_string().contains("kept"), "{refused}");
    assert_eq!((talk.files(), talk.events().await), (files, events));
    let rows = talk.composition.app.list_executions.list(&Default::default()).await.unwrap();
    assert!(rows.iter().all(|row| row.tool != "undo"), "it shows before anything is done");
    talk.close().await;
}

#[tokio::test]
async fn undo_includes_a_call_whose_end_was_not_recorded() {
    let talk = Talk::begin().await;
    let start = talk.say("go").await;
    talk.add(vec![answered(vec![Block::text("I write.")], StopReason::ToolUse)]).await;
    talk.execute("write_file", json!({"path": "a", "content": "one\n"})).await;
    assert_eq!(talk.undo(start, false).await.unwrap().undone.len(), 1);
    assert_eq!(talk.files(), BTreeMap::new());
    talk.close().await;
}

#[tokio::test]
async fn only_its_principal_can_find_and_change_a_conversation() {
    let talk = Talk::on(Home::new(), Principal::token("ann"), ALLOWING).await;
    talk.say("hers").await;
    talk.call("write_file", json!({"path": "a", "content": "one\n"})).await;
    let app = &talk.composition.app;
    let fork = ForkConversationCommand { principal: Principal::local(), original: talk.id, to: None };
    assert!(app.fork_conversation.handle(fork).await.is_err());
    let undo = UndoConversationCommand {
        conversation: talk.id,
        to: 0,
        scope: RequestScope::of(Principal::local(), talk.id.session()),
        undo: "undo".into(),
        redo: "redo".into(),
        leaving_what_cannot_be: true,
        client: Arc::new(ClientProfile::without_protocol("test")),
        caller: Arc::new(SilentCaller),
        cancel: CancelSignal::new(),
    };
    let refused = app.undo_conversation.handle(undo).await.unwrap_err();
    assert!(matches!(refused, UndoConversationError::NotFound(_)), "{refused}");
    assert_eq!(talk.files()["a"], "one\n");
    let (home, id) = talk.close().await;
    for arguments in [["show", &id], ["export", &id], ["fork", &id]] {
        let output = home.run(&[&["conversations"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(listed(&home), json!([]));
}

fn listed(home: &Home) -> Value {
    let output = home.run(&["conversations", "list", "--json"]);
    let listed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    listed["conversations"].clone()
}

fn lines(output: &std::process::Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn the_command_line_shows_forks_exports_and_undoes_conversations() {
    let talk = Talk::begin().await;
    talk.put("a.txt", "one\n");
    let start = talk.say("mend it").await;
    talk.call("read_file", json!({"path": "a.txt"})).await;
    talk.call("edit_file", edit("a.txt", "one", "two")).await;
    talk.call("glob", json!({"pattern": "*.txt"})).await;
    talk.call("read_file", json!({"path": "gone"})).await;
    let all = talk.add(vec![answered(vec![Block::text("Mended.")], StopReason::EndTurn)]).await;
    let expected = transcript::messages(&talk.events().await);
    let (home, id) = talk.close().await;
    let run = |arguments: &[&str]| home.run(&[&["conversations"], arguments].concat());

    let list = listed(&home);
    assert_eq!((&list[0]["id"], &list[0]["events"], list.as_array().unwrap().len()), (&json!(id), &json!(all), 1));
    assert!(stdout(&run(&["list"])).contains("mend the test"));

    // The last digits of an id are left out.
    let show = stdout(&run(&["show", &id[..30]]));
    for part in [
        "[1] you\n    mend it\n",
        "4 tool calls: read_file 2×, edit_file, glob\n",
        "] read_file failed:\n",
        "m-1\n    Mended.\n",
    ] {
        assert!(show.contains(part), "{part:?} in {show}");
    }
    let shown: Value = serde_json::from_str(&stdout(&run(&["show", "last", "--json"]))).unwrap();
    assert_eq!(shown["messages"], json!(expected));
    let records = shown["records"].as_array().unwrap();
    let types: Vec<&Value> = records.iter().map(|record| &record["metadataType"]).collect();
    assert_eq!(types, [&json!("file_read"), &json!("file_edit"), &json!("glob"), &json!(null)]);
    assert_eq!(records[0]["metadata"]["lines"], json!(["one"]));
    assert_eq!(records[1]["metadata"]["edits"], json!([{"startLine": 1, "oldContent": "one", "newContent": "two"}]));
    assert_eq!(records[2]["metadata"]["files"][0]["path"], "a.txt");
    assert_eq!((&records[3]["success"], records[3]["error"].is_string()), (&json!(false), true));

    let exported = lines(&run(&["export", &id]));
    assert_eq!(exported.len() as u64, all);
    let events: Vec<ConversationEvent> =
        exported.into_iter().map(|line| serde_json::from_value(line).unwrap()).collect();
    assert_eq!(transcript::messages(&events), expected, "an export holds everything");
    let chorus = lines(&run(&["export", &id, "--format", "chorus"]));
    let kinds: Vec<&str> = chorus.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let call = ["tool_use", "tool_result"];
    assert_eq!(kinds, [&["user"][..], &call, &call, &call, &call, &["assistant"]].concat());

    let copy = stdout(&run(&["fork", &id, "--at", "3"])).trim().to_owned();
    assert_eq!(lines(&run(&["export", &copy])), lines(&run(&["export", &id]))[..3]);
    assert_eq!(run(&["fork", &id, "--at", "99"]).status.code(), Some(2));

    let resumed = run(&["resume", &id]);
    assert!(stderr(&resumed).contains("`chat` needs a terminal"), "{}", stderr(&resumed));

    // No approver is available.
    let to = start.to_string();
    let refused = run(&["undo", &id, "--to", &to]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(home.work().join("a.txt")).unwrap(), "two\n");
    let undone = run(&["undo", &id, "--to", &to, "--allow", "Write", "--json"]);
    let undone: Value = serde_json::from_str(&stdout(&undone)).unwrap();
    assert_eq!((&undone["undone"][0]["tool"], &undone["left"]), (&json!("edit_file"), &json!([])), "{undone}");
    assert_eq!(fs::read_to_string(home.work().join("a.txt")).unwrap(), "one\n");
    let show = stdout(&run(&["show", &id]));
    assert!(show.contains("more events were undone") && !show.contains("Mended."), "{show}");
    // What was copied keeps its files.
    assert_eq!(run(&["undo", &copy, "--to", "0"]).status.code(), Some(0));
    assert_eq!(run(&["undo", &id, "--to", "99"]).status.code(), Some(2));
    for unknown in ["show", "export", "fork"] {
        assert_eq!(run(&[unknown, "ffff"]).status.code(), Some(4));
    }
}
