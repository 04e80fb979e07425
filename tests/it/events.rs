//! Events as subscribers receive them: files, the server, and their order.

use crate::{
    binaries::{Home, Pipe, stderr, stdout},
    support::{Events, HttpFront, TOKEN, TestApp, call, echo, modern, soon},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::Stdio,
};
use toolstead_presentation::mcp_server::http::settings::BearerToken;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn events_in(file: &Path) -> Vec<Value> {
    lines(&std::fs::read_to_string(file).unwrap())
}

/// Those that belong to a call, by their types.
fn types(events: &[Value]) -> Vec<&str> {
    events.iter().filter(|event| event["call"].is_string()).map(|event| event["type"].as_str().unwrap()).collect()
}

/// Calls a tool that may write, and returns the events of the call.
fn events_of(home: &Home, tool: &str, arguments: Value) -> Vec<Value> {
    let file = home.data().join(format!("{tool}.events"));
    let _ = std::fs::remove_file(&file);
    let arguments = arguments.to_string();
    let events = file.to_str().unwrap();
    let output = home.run(&["--allow", "Write", "--events", events, "call", tool, &arguments]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    events_in(&file)
}

/// Path, change, lines added and removed of each file event.
fn changes(events: &[Value]) -> Vec<(String, String, Value, Value)> {
    let files = events.iter().filter(|event| event["type"] == "file_changed");
    files
        .map(|event| {
            let path = PathBuf::from(event["path"].as_str().unwrap());
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                event["change"].as_str().unwrap().to_owned(),
                event["lines_added"].clone(),
                event["lines_removed"].clone(),
            )
        })
        .collect()
}

#[test]
fn every_change_of_a_file_is_an_event_whatever_tool_makes_it() {
    let home = Home::new();
    let change = |name: &str, kind: &str, added: usize, removed: usize| {
        (name.to_owned(), kind.to_owned(), json!(added), json!(removed))
    };
    let written = events_of(&home, "write_file", json!({"path": "a", "content": "1\n2\n3\n"}));
    assert_eq!(types(&written), ["tool_call_started", "file_changed", "tool_call_completed"]);
    assert_eq!(changes(&written), [change("a", "created", 3, 0)]);
    let changed = written.iter().find(|event| event["type"] == "file_changed").unwrap();
    assert_eq!(changed["tool"], "write_file");
    let of_call: Vec<&Value> = written.iter().filter(|event| event["call"].is_string()).collect();
    let is_same = |event: &&Value| {
        event["call"] == of_call[0]["call"]
            && event["session"].as_str().is_some_and(|session| session.starts_with("cli-"))
    };
    assert!(of_call.iter().all(is_same), "{written:?}");

    let edited = events_of(&home, "edit_file", json!({"path": "a", "old_text": "2", "new_text": "two\nand"}));
    assert_eq!(changes(&edited), [change("a", "modified", 2, 1)]);
    let patch = "*** Begin Patch\n*** Add File: b\n+x\n*** Delete File: a\n*** End Patch";
    let patched = events_of(&home, "apply_patch", json!({"patch": patch}));
    assert_eq!(changes(&patched), [change("b", "created", 1, 0), change("a", "deleted", 0, 4)]);
    let undone = events_of(&home, "undo", json!({}));
    let mut undone = changes(&undone);
    undone.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(undone, [change("a", "created", 4, 0), change("b", "deleted", 0, 1)]);
    // A call without changes publishes no event.
    let again = events_of(&home, "write_file", json!({"path": "a", "content": "1\ntwo\nand\n3\n"}));
    assert_eq!(changes(&again), []);
    let dry = events_of(&home, "write_file", json!({"path": "c", "content": "x", "dry_run": true}));
    assert_eq!(changes(&dry), []);
}

#[test]
fn events_can_be_written_to_standard_output_except_by_the_mcp_server() {
    let home = Home::new();
    let output = home.run(&["--events", "-", "call", "write_file", r#"{"path":"a","content":""}"#]);
    assert_eq!(output.status.code(), Some(3));
    let events = lines(&stdout(&output));
    assert_eq!(types(&events), ["permission_requested", "permission_resolved", "tool_call_denied"]);
    assert_eq!(events.iter().find(|event| event["type"] == "permission_resolved").unwrap()["granted"], false);
    let refused = home.run(&["--events", "-", "mcp"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stdout.is_empty() && stderr(&refused).contains("give `--events` a file"), "{}", stderr(&refused));

    let file = home.data().join("events");
    let mut child = home
        .toolstead(&["--events", file.to_str().unwrap(), "mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = modern(1, "tools/call", call("echo", json!({"message": "hi"})));
    writeln!(child.stdin.take().unwrap(), "{request}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(lines(&stdout(&output)).iter().all(|message| message["jsonrpc"] == "2.0"));
    assert_eq!(types(&events_in(&file)), ["tool_call_started", "tool_call_completed"]);
}

#[test]
fn task_events_report_start_and_end_and_batch_the_output() {
    let home = Home::new();
    let file = home.data().join("events");
    let config = home.config("[permissions]\nallow = [\"Read\", \"Bash\"]\n");
    let mut mcp = home.toolstead(&["--events", file.to_str().unwrap(), "mcp", "--config"]);
    mcp.arg(config);
    let mut pipe = Pipe::start(mcp);
    pipe.initialize();
    let mut ask = |id: i64, tool: &str, arguments: Value| {
        pipe.send(
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call(tool, arguments)}).to_string(),
        );
        let answer = pipe.answer(id);
        assert!(answer["result"].is_object(), "{answer}");
    };
    let counts = "for i in $(seq 200); do echo x; sleep 0.002; done; exit 3";
    ask(1, "bash", json!({"command": counts, "background": true, "description": "Counts"}));
    ask(2, "task_wait", json!({"task_ids": ["task_1"], "timeout_ms": 60_000}));
    ask(3, "bash", json!({"command": "sleep  300", "background": true}));
    assert!(pipe.finish().1.success());

    let events = events_in(&file);
    let of = |task: &str| events.iter().filter(|event| event["task"] == task).collect::<Vec<_>>();
    let (first, second) = (of("task_1"), of("task_2"));
    let [started, outputs @ .., finished] = first.as_slice() else { panic!("{events:?}") };
    assert_eq!((&started["type"], &started["title"]), (&json!("task_started"), &json!("Counts")));
    assert!(outputs.iter().all(|event| event["type"] == "task_output"), "{outputs:?}");
    assert!(outputs.len() < 20, "{} events for 200 lines", outputs.len());
    assert_eq!(outputs.iter().map(|event| event["bytes"].as_u64().unwrap()).sum::<u64>(), 400);
    assert_eq!(finished["type"], "task_finished");
    assert!(finished["outcome"].as_str().unwrap().starts_with("ended with exit code 3"), "{finished}");
    // They belong to the call that began it.
    let call = events.iter().find(|event| event["type"] == "tool_call_started").unwrap();
    for event in &first {
        for member in ["call", "session", "principal"] {
            assert!(event[member].is_string() && event[member] == call[member], "{event} {call}");
        }
    }
    // The end of the application is also the end of its tasks, and is reported.
    let [started, stopped] = second.as_slice() else { panic!("{events:?}") };
    assert_eq!((&started["type"], &started["title"]), (&json!("task_started"), &json!("sleep 300")));
    assert!(stopped["outcome"].as_str().unwrap().starts_with("was stopped"), "{stopped}");
}

#[test]
fn an_event_pipe_is_written_if_it_has_a_reader_and_is_an_error_otherwise() {
    let home = Home::new();
    let path = home.data().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let echo = ["--events", path.to_str().unwrap(), "call", "echo", r#"{"message":"hi"}"#];
    let refused = home.run(&echo);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("pipe`: no process reads this pipe: start its reader first"),
        "{}",
        stderr(&refused)
    );
    // Open for both, so that it is there at once and sees no end.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    assert_eq!(home.run(&echo).status.code(), Some(0));
    let mut heard = BufReader::new(reader).lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert!(heard.any(|event| event["type"] == "tool_call_completed"));
}

#[test]
fn events_do_not_contain_secret_arguments() {
    let home = Home::new();
    let arguments = json!({"message": "hi", "api_token": "hunter2"}).to_string();
    let output = home.run(&["--events", "-", "call", "echo", &arguments]);
    assert!(!stdout(&output).contains("hunter2"), "{}", stdout(&output));
}

/// The next event that belongs to a call; `None` at the end.
async fn next_of_a_call(events: &mut Events) -> Option<Value> {
    loop {
        let event = events.try_next().await?;
        if event["call"].is_string() {
            return Some(event);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_endpoint_sends_each_token_only_its_own_events() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::with(&app, |settings| {
        settings.tokens.push(BearerToken { name: "other".into(), secret: "another-token".into() });
    })
    .await;
    let watch = |token: &'static str| {
        let request = front.client.get(front.url("/events")).bearer_auth(token);
        async move { soon(request.send()).await.unwrap() }
    };
    assert_eq!(watch("wrong").await.status(), 401);
    let posted = front.client.post(front.url("/events")).bearer_auth(TOKEN);
    assert_eq!(soon(posted.send()).await.unwrap().status(), 405);
    let mine = watch(TOKEN).await;
    assert_eq!(
        (mine.status(), &mine.headers()["content-type"]),
        (reqwest::StatusCode::OK, &"text/event-stream".parse().unwrap())
    );
    let (mut mine, mut other) = (Events::of(mine), Events::of(watch("another-token").await));
    front.ask_modern(&modern(1, "tools/call", call("echo", json!({"message": "hi"})))).await;
    for expected in ["tool_call_started", "tool_call_completed"] {
        let event = next_of_a_call(&mut mine).await.unwrap();
        assert_eq!((&event["type"], &event["principal"]), (&json!(expected), &json!("token:test")));
    }
    // The other token receives none of these events: the first event that it receives is the end.
    app.app.close(std::time::Duration::ZERO).await;
    let server = front.server.unwrap();
    soon(server.stop(std::time::Duration::ZERO)).await;
    assert_eq!(next_of_a_call(&mut other).await, None);
}

#[test]
fn a_file_of_events_inside_of_a_root_is_out_of_reach_of_every_call() {
    let home = Home::new();
    std::os::unix::fs::symlink("events.jsonl", home.work().join("link")).unwrap();
    let run = |tool: &str, arguments: Value| {
        let arguments = arguments.to_string();
        home.run(&["--allow", "Bash", "--allow", "Write", "--events", "events.jsonl", "call", tool, &arguments])
    };
    run("echo", json!({"message": "hi"}));
    let before = std::fs::read_to_string(home.work().join("events.jsonl")).unwrap();
    assert!(before.contains("tool_call_completed"), "{before}");
    for path in ["events.jsonl", "./link"] {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "cut"})),
            ("delete_file", json!({"path": path})),
            ("bash", json!({"command": format!("cat {path} | grep tool_call")})),
            ("bash", json!({"command": format!(": > {path}")})),
            ("bash", json!({"command": format!("truncate -s 0 {path}")})),
        ] {
            let output = run(tool, arguments.clone());
            assert!(!stdout(&output).contains("tool_call_completed"), "{tool} {arguments}: {}", stdout(&output));
        }
    }
    let after = std::fs::read_to_string(home.work().join("events.jsonl")).unwrap();
    assert!(after.starts_with(&before), "nothing of it is gone");
}
