//! Agents that hand work to others, through the real binary with a model over real HTTP.

use crate::{
    agent::{Place, events, offered},
    binaries::{kill, stderr, stdout},
    model_server::{ModelServer, Reply, Says, Seen},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::Read,
    process::Stdio,
};
use tokio::task::block_in_place;

/// Starts a provider whose answers depend on the conversation: one whose first message contains `first` receives these
/// replies.
async fn cast(replies: impl IntoIterator<Item = (&'static str, Vec<Reply>)>) -> ModelServer {
    let mut replies: BTreeMap<&str, VecDeque<Reply>> =
        replies.into_iter().map(|(first, replies)| (first, replies.into())).collect();
    ModelServer::answering(move |seen| {
        let first = seen.body["messages"][0].to_string();
        let own = replies.iter_mut().find(|(text, _)| first.contains(**text));
        let next = own.and_then(|(_, replies)| replies.pop_front());
        next.unwrap_or_else(|| Reply::refusal(400, r#"{"error":{"message":"the script is over"}}"#))
    })
    .await
}

fn asked<'a>(seen: &'a [Seen], first: &str) -> Vec<&'a Seen> {
    seen.iter().filter(|seen| seen.body["messages"][0].to_string().contains(first)).collect()
}

/// The texts of the results in a request, in their order.
fn results(seen: &Seen) -> Vec<String> {
    let blocks = seen.body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    let results = blocks.flatten().filter(|block| block["type"] == "tool_result");
    results.map(|result| result["content"].to_string()).collect()
}

/// The `agent_id` in a text.
fn agent_id(text: &str) -> String {
    let (_, after) = text.split_once("agent_id: ").unwrap_or_else(|| panic!("no agent_id in {text}"));
    after.chars().take(36).collect()
}

fn rows(place: &Place) -> Vec<Value> {
    let output = place.run(&["executions", "list", "--json", "--limit", "100"]);
    let listed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    listed["executions"].as_array().cloned().or_else(|| listed.as_array().cloned()).unwrap()
}

fn row<'a>(rows: &'a [Value], tool: &str) -> &'a Value {
    rows.iter().find(|row| row["tool"] == tool).unwrap_or_else(|| panic!("no row of {tool} in {rows:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn json_events_and_executions_report_the_work_of_a_subagent() {
    let server = cast([
        (
            "Ask around",
            vec![
                Says::call("subagent", json!({"prompt": "Find it", "agent": "explore", "description": "find"})).into(),
                Says::text("They found it.").into(),
            ],
        ),
        ("Find it", vec![Says::call("list_directory", json!({})).into(), Says::text("It is here.").into()]),
    ])
    .await;
    let place = Place::of(server, "");
    let output = place.run(&["query", "--json", "Ask around"]);
    let printed = events(&output);
    let kinds: Vec<&str> = printed.iter().filter_map(|event| event["type"].as_str()).collect();
    let of_agents: Vec<&str> = kinds.iter().copied().filter(|kind| kind.starts_with("subagent_")).collect();
    assert_eq!(
        of_agents,
        ["started", "answered", "call_started", "call_ended", "answered", "ended"]
            .map(|kind| format!("subagent_{kind}"))
    );
    let ended = printed.iter().find(|event| event["type"] == "subagent_ended").unwrap();
    assert_eq!((&ended["agent"], &ended["outcome"]), (&json!("explore"), &json!("finished")));
    let (rows, last) = (rows(&place), printed.last().unwrap());
    let (parent, nested) = (row(&rows, "subagent"), row(&rows, "list_directory"));
    assert_eq!((&nested["parent"], &nested["session"]), (&parent["id"], &ended["agent_id"]));
    assert_eq!(ended["within"], parent["id"]);
    assert_eq!(last["usage"]["input_tokens"], 400, "four answers of a hundred: {last}");
    // An agent of ours that reads is not offered what changes something.
    let seen = place.server.seen();
    let tools = offered(asked(&seen, "Find it")[0]).unwrap();
    assert!(tools.contains(&"grep") && !tools.contains(&"bash") && !tools.contains(&"subagent"), "{tools:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_is_resumed_in_another_process_and_only_user_conversations_are_listed() {
    let mut agent = String::new();
    let server = ModelServer::answering(move |seen| {
        let (first, last) = (seen.body["messages"][0].to_string(), seen.body["messages"].as_array().unwrap().last());
        let last = last.unwrap().to_string();
        if seen.text.contains("agent_id: ") {
            agent = agent_id(&seen.text);
        }
        match (first.contains("Begin"), last) {
            (true, last) if last.contains("Go on") => {
                Says::call("subagent", json!({"prompt": "Part two", "resume": agent})).into()
            }
            (true, last) if last.contains("tool_result") => Says::text("Reported.").into(),
            (true, _) => Says::call("subagent", json!({"prompt": "Part one"})).into(),
            (false, last) if last.contains("Part two") => Says::text("Both parts.").into(),
            (false, _) => Says::text("One part.").into(),
        }
    })
    .await;
    let place = Place::of(server, "");
    for prompt in [&["query", "Begin"][..], &["query", "--continue", "Go on"]] {
        let output = place.run(prompt);
        assert_eq!(stdout(&output), "Reported.\n", "{}", stderr(&output));
        assert!(stderr(&output).contains("the agent `general`: finished, 0 tool calls"), "{}", stderr(&output));
    }
    let seen = place.server.seen();
    let second = seen.iter().rfind(|seen| seen.body["messages"][0].to_string().contains("Part one")).unwrap();
    for said in ["Part one", "One part.", "Part two"] {
        assert!(second.text.contains(said), "{said} in {}", second.text);
    }
    let listed = stdout(&place.run(&["conversations", "list"]));
    assert!(listed.contains("Begin") && !listed.contains("Part one"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_continues_after_a_kill_during_the_work_of_a_subagent() {
    let server = cast([
        (
            "Have it written",
            vec![Says::call("subagent", json!({"prompt": "Write it"})).into(), Says::text("It was cut short.").into()],
        ),
        (
            "Write it",
            vec![Says::call("write_file", json!({"path": "a.txt", "content": "one"})).into(), Reply::Hangs(Vec::new())],
        ),
    ])
    .await;
    let place = Place::of(server, "[permissions]\nallow = [\"Edit\"]\n");
    let mut child = place.command(&["query", "Have it written"]).stdin(Stdio::null()).spawn().unwrap();
    place.server.has_seen(3).await;
    kill(child.id(), Signal::KILL);
    block_in_place(|| child.wait().unwrap());

    let output = place.run(&["query", "--continue"]);
    assert_eq!(stdout(&output), "It was cut short.\n", "{}", stderr(&output));
    let seen = place.server.seen();
    let outcome = results(seen.last().unwrap());
    assert!(outcome.len() == 1 && outcome[0].contains("interrupted"), "{outcome:?}");
    assert_eq!(fs::read_to_string(place.home.work().join("a.txt")).unwrap(), "one");
    let rows = rows(&place);
    assert_eq!(
        (&row(&rows, "subagent")["outcome"], &row(&rows, "write_file")["outcome"]),
        (&json!("interrupted"), &json!("succeeded"))
    );
    // Changes of the agent are undone with the conversation.
    let output = place.run(&["conversations", "list", "--json"]);
    let listed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let listed = listed.as_array().cloned().or_else(|| listed["conversations"].as_array().cloned()).unwrap();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let output = place.run(&["conversations", "undo", &id, "--to", "0"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!place.home.work().join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_tree_of_agents_with_the_programs_that_they_run() {
    let server = cast([
        ("First", vec![Says::call("subagent", json!({"prompt": "Second"})).into()]),
        ("Second", vec![Says::call("subagent", json!({"prompt": "Third"})).into()]),
        ("Third", vec![Says::call("bash", json!({"command": "echo on >on; exec sleep 86397"})).into()]),
    ])
    .await;
    let place = Place::of(server, "[permissions]\nallow = [\"Bash\"]\n");
    let path = place.home.work().join("on");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut command = place.command(&["query", "--json", "First"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    // Opens once the program writes.
    block_in_place(|| fs::File::open(&path).unwrap().read_to_string(&mut said).unwrap());
    assert_eq!(said, "on\n");
    kill(child.id(), Signal::INT);
    let output = block_in_place(|| child.wait_with_output().unwrap());
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let printed = events(&output);
    assert_eq!(printed.iter().filter(|event| event["type"] == "subagent_ended").count(), 2, "{printed:#?}");
    let rows = rows(&place);
    assert_eq!(rows.len(), 3, "{rows:#?}");
    for row in &rows {
        assert_eq!(row["outcome"], "cancelled", "{row:#}");
    }
    let sleeps =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let sleeps = sleeps.filter(|line| String::from_utf8_lossy(line).starts_with("sleep\x0086397"));
    assert_eq!(sleeps.count(), 0, "no program is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_works_in_the_background_as_a_task() {
    let server = cast([
        (
            "Hand over",
            vec![
                Says::call("subagent", json!({"prompt": "Look", "background": true, "description": "look"})).into(),
                Says::call("task_wait", json!({"task_ids": ["task_1"], "timeout_ms": 60_000})).into(),
                Says::call("task_output", json!({"task_id": "task_1"}))
                    .and_call("task_list", json!({"kind": "agent"}))
                    .and_call("task_list", json!({"kind": "shell"}))
                    .and_call("task_input", json!({"task_id": "task_1", "text": "x"}))
                    .into(),
                Says::text("Done.").into(),
            ],
        ),
        (
            "Look",
            vec![
                Says::text("I look.").and_call("working_directory", json!({})).into(),
                // No terminal is available.
                Says::call("write_file", json!({"path": "b.txt", "content": "b"})).into(),
                Says::text("Seen.").into(),
            ],
        ),
    ])
    .await;
    let place = Place::of(server, "[permissions]\nallow = [\"Bash(task_1: x)\"]\n");
    let output = place.run(&["query", "Hand over"]);
    assert_eq!(stdout(&output).lines().last(), Some("Done."), "{}", stderr(&output));
    let seen = place.server.seen();
    let message = results(asked(&seen, "Hand over").last().unwrap());
    let has = |at: usize, text: &str| assert!(message[at].contains(text), "{text} in {}", message[at]);
    has(0, "runs in the background as `task_1`");
    has(1, "`task_1` (general: look) is done after");
    has(2, "I look.");
    has(2, "Seen.");
    has(2, "agent_id: ");
    has(3, "`task_1` (general: look)");
    has(4, "There are no such tasks");
    let agents = asked(&seen, "Look");
    let refused = results(agents.last().unwrap());
    assert!(refused.last().unwrap().contains("write_file"), "{refused:?}");
    let rows = rows(&place);
    let parent = &row(&rows, "subagent")["id"];
    assert_eq!((&row(&rows, "working_directory")["parent"], &row(&rows, "write_file")["parent"]), (parent, parent));
    assert_eq!(row(&rows, "write_file")["outcome"], "refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deny_rule_on_an_agent_applies_to_calls_by_the_alias_task() {
    let server = cast([
        (
            "Try",
            vec![
                Says::call("Task", json!({"description": "d", "prompt": "Look", "subagent_type": "explore"}))
                    .and_call("Task", json!({"description": "d", "prompt": "Do", "subagent_type": "general"}))
                    .into(),
                Says::text("Tried.").into(),
            ],
        ),
        ("Do", vec![Says::text("Did.").into()]),
    ])
    .await;
    let place = Place::of(server, "[permissions]\ndeny = [\"Agent(explore)\"]\n");
    let output = place.run(&["query", "Try"]);
    assert_eq!(stdout(&output), "Tried.\n", "{}", stderr(&output));
    let seen = place.server.seen();
    let message = results(asked(&seen, "Try").last().unwrap());
    assert!(message[0].contains("Agent(explore)") && message[1].contains("Did."), "{message:?}");
    assert_eq!(asked(&seen, "Look").len(), 0);
}
