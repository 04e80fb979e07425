//! Real clients, in each of their protocol modes, over stdio and over HTTP with the token: they list and call our tools.

use crate::binaries::{Home, Server, TOKEN, node_path, node_program, peer, python_program, stderr, stdout};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

/// Transport between a client and Toolstead.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Stdio,
    Http,
}

struct Place {
    home: Home,
    server: Server,
}

impl Place {
    fn new() -> Self {
        let home = Home::new();
        let server = Server::start(&home, "");
        Self { home, server }
    }

    /// Runs one of the scripts of `tests/peers` and returns the JSON line that it prints.
    #[track_caller]
    fn client(&self, program: PathBuf, script: Option<PathBuf>, mode: &str, way: Way) -> Value {
        let mut command = self.home.command(program, &[]);
        command.args(script).env("PATH", node_path()).env("MODE", mode).stdin(Stdio::null());
        command.env("READ", "status://health").env("PROMPT", "code_review");
        match way {
            Way::Http => command.arg(self.server.url()).env("TOKEN", TOKEN),
            Way::Stdio => command.arg(env!("CARGO_BIN_EXE_toolstead")).arg("mcp"),
        };
        json_line(&mut command)
    }
}

#[track_caller]
fn json_line(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let text = stdout(&output);
    let line = text.lines().last().unwrap_or_default();
    assert!(output.status.success(), "{command:?}\n{text}\n{}", stderr(&output));
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}\n{}", stderr(&output)))
}

/// The protocol was the expected one, the list is whole, and `echo` answered.
#[track_caller]
fn check(answer: &Value, protocol: &str) {
    assert_eq!(answer["protocol"], protocol, "{answer}");
    let tools: Vec<&str> = answer["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for tool in ["echo", "edit_file", "glob", "grep", "read_file", "system_info", "write_file"] {
        assert!(tools.contains(&tool), "{tool} is not in {tools:?}");
    }
    assert_eq!(answer["result"]["content"][0], json!({"type": "text", "text": "Echo: hi"}), "{answer}");
    assert_eq!(answer["resources"], json!(["config://server", "status://health"]), "{answer}");
    assert_eq!(answer["prompts"], json!(["code_review", "debug_help", "explain_code"]), "{answer}");
    let health: Value = serde_json::from_str(answer["read"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(health["callsCanBeRecorded"], true, "{health}");
    assert_eq!(health["openCalls"], 1, "this very request: {health}");
    let prompt = answer["prompt"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(prompt.contains("let x = 1;"), "{prompt}");
}

#[test]
fn the_python_sdk_lists_and_calls() {
    let place = Place::new();
    for way in [Way::Stdio, Way::Http] {
        for (mode, protocol) in [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
            let answer = place.client(python_program("python"), Some(peer("client.py")), mode, way);
            check(&answer, protocol);
            // The health report sends no notifications about its changes.
            let agreed = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
            assert!(protocol != "2026-07-28" || answer["agreed"] == agreed, "{answer}");
        }
    }
}

#[test]
fn the_typescript_sdk_1_lists_and_calls() {
    let place = Place::new();
    for way in [Way::Stdio, Way::Http] {
        check(&place.client(node_program("node"), Some(peer("client1.mjs")), "", way), "2025-11-25");
    }
}

#[test]
fn the_typescript_sdk_2_lists_and_calls() {
    let place = Place::new();
    for way in [Way::Stdio, Way::Http] {
        for (mode, protocol) in [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
            check(&place.client(node_program("node"), Some(peer("client2.mjs")), mode, way), protocol);
        }
    }
}

#[test]
fn the_inspector_lists_and_calls() {
    let place = Place::new();
    for way in [Way::Stdio, Way::Http] {
        for era in ["legacy", "auto", "modern"] {
            let inspect = |arguments: &[&str]| {
                let mut command = place.home.command(node_program("mcp-inspector"), &["--cli"]);
                command.env("PATH", node_path()).stdin(Stdio::null());
                match way {
                    Way::Stdio => command.arg(env!("CARGO_BIN_EXE_toolstead")).arg("mcp"),
                    Way::Http => command
                        .args(["--server-url", &place.server.url(), "--transport", "http", "--stored-auth-only"])
                        .args(["--header", &format!("Authorization: Bearer {TOKEN}")]),
                };
                command.args(["--protocol-era", era, "--format", "json", "-q"]).args(arguments);
                let output = command.output().unwrap();
                assert!(output.status.success(), "{era}: {}\n{}", stdout(&output), stderr(&output));
                serde_json::from_slice::<Value>(&output.stdout).unwrap()
            };
            let list = inspect(&["--method", "tools/list", "--strict"]);
            let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
            assert!(tools.iter().any(|tool| tool["name"] == "read_file"), "{list}");
            let call =
                inspect(&["--method", "tools/call", "--tool-name", "echo", "--tool-args-json", r#"{"message":"hi"}"#]);
            assert_eq!(call["result"]["content"][0]["text"], "Echo: hi", "{call}");
        }
    }
}

#[test]
fn a_client_without_the_token_is_turned_away() {
    let place = Place::new();
    let mut command = place.home.command(node_program("node"), &[]);
    command.arg(peer("client1.mjs")).arg(place.server.url()).env("PATH", node_path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(!output.status.success() && stderr(&output).contains("401"), "{}", stderr(&output));
}
