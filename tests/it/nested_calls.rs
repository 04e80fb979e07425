//! Calls that other calls make, through the real binaries: who is asked, what is on record, and what a kill leaves.

use crate::binaries::{Home, Pipe, kill, stdout};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn start(home: &Home, config: &str, capabilities: &Value) -> Pipe {
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(home.config(config));
    let mut client = Pipe::start(command);
    client.send(
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}})
        .to_string(),
    );
    client.answer(0);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client
}

fn batch(invocations: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "batch", "arguments": {"invocations": invocations}}})
    .to_string()
}

/// Returns the records of the audit log, newest first.
fn rows(home: &Home) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&stdout(&home.run(&["executions", "list", "--json"]))).unwrap();
    listed["executions"].as_array().unwrap().clone()
}

fn row<'a>(rows: &'a [Value], tool: &str) -> &'a Value {
    rows.iter().find(|row| row["tool"] == tool).unwrap_or_else(|| panic!("no row of {tool} in {rows:?}"))
}

#[test]
fn a_nested_call_is_approved_under_a_limit_of_one_call_and_recorded_under_its_parent() {
    let home = Home::new();
    let mut client = start(&home, "[limits]\ncalls_in_flight = 1\n", &json!({"elicitation": {}}));
    client.send(batch(&json!([
        {"tool_name": "write_file", "parameters": {"path": "a.txt", "content": "x"}},
        {"tool_name": "read_file", "parameters": {"path": "a.txt"}},
    ])));
    let question = client.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let asked = question["params"]["message"].as_str().unwrap();
    assert!(asked.starts_with("May the tool `write_file` run, called by the tool `batch`?"), "{asked}");
    let required = question["params"]["requestedSchema"]["required"].as_array().unwrap();
    let names = required.iter().map(|field| field.as_str().unwrap().to_owned());
    let content: Value = names.map(|field| (field, json!("once"))).collect();
    client.send(
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}).to_string(),
    );
    let result = client.answer(1)["result"].take();
    assert_eq!(result["isError"], json!(null), "{result}");
    assert_eq!(result["structuredContent"]["success_count"], 2, "{result}");
    client.finish();

    let rows = rows(&home);
    let parent = row(&rows, "batch")["id"].as_str().unwrap();
    for tool in ["write_file", "read_file"] {
        assert_eq!(row(&rows, tool)["parent"], parent);
    }
    let made: Value =
        serde_json::from_str(&stdout(&home.run(&["executions", "list", "--parent", parent, "--json"]))).unwrap();
    let made = made["executions"].as_array().unwrap();
    assert!(!made.is_empty() && made.iter().all(|row| row["parent"] == *parent), "{made:?}");
    let shown = stdout(&home.run(&["executions", "show", parent]));
    let written = row(&rows, "write_file")["id"].as_str().unwrap();
    assert!(shown.contains(&format!("calls        {written}  write_file  succeeded")), "{shown}");
    let shown = stdout(&home.run(&["executions", "show", written]));
    assert!(shown.contains(&format!("called by    {parent}")), "{shown}");
    let shown: Value = serde_json::from_str(&stdout(&home.run(&["executions", "show", parent, "--json"]))).unwrap();
    assert_eq!((&shown["calls"][0]["id"], shown["calls"].as_array().unwrap().len()), (&json!(written), 2));
}

#[test]
fn calls_of_a_killed_process_are_recorded_as_interrupted_with_their_nested_calls() {
    let home = Home::new();
    let mut client = start(&home, "[permissions]\nallow = [\"Bash\"]\n", &json!({}));
    client.send(batch(&json!([{"tool_name": "bash", "parameters": {"command": "sleep 600"}}])));
    let deadline = Instant::now() + Duration::from_secs(120);
    while !rows(&home).iter().any(|row| row["tool"] == "bash" && row["outcome"] == "running") {
        assert!(Instant::now() < deadline, "the command is on record: {:?}", rows(&home));
    }
    kill(client.child.id(), Signal::KILL);
    client.child.wait().unwrap();
    let rows = rows(&home);
    let (parent, nested) = (row(&rows, "batch"), row(&rows, "bash"));
    assert_eq!((&parent["outcome"], &nested["outcome"]), (&json!("interrupted"), &json!("interrupted")));
    assert_eq!(nested["parent"], parent["id"]);
}
