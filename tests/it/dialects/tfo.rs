//! TelemetryFlow: "Tool System Specification".

use super::{Advertised, Answer, Call, System, check};
use crate::{binaries::Home, dialects::Session};
use serde_json::{Value, json};

/// Categories, from the table "Tool Categories".
const CATEGORIES: &[(&str, &[&str])] = &[
    ("utility", &["echo"]),
    ("file", &["list_directory", "read_file", "search_files", "write_file"]),
    ("system", &["execute_command", "system_info"]),
];

fn tools() -> Vec<Advertised> {
    let tool = |name, required, optional| Advertised { name, required, optional };
    vec![
        tool("echo", &[], &[("message", "string")]),
        tool("read_file", &[("path", "string")], &[("encoding", "string")]),
        tool("write_file", &[("path", "string")], &[("content", "string"), ("create_dirs", "boolean")]),
        tool("list_directory", &[], &[("path", "string"), ("recursive", "boolean")]),
        tool("search_files", &[], &[("path", "string"), ("pattern", "string")]),
        tool("execute_command", &[("command", "string")], &[("working_dir", "string"), ("timeout", "number")]),
        tool("system_info", &[], &[]),
    ]
}

fn calls() -> Vec<Call> {
    let call = |section, name, arguments, answer| Call { section, name, arguments, answer };
    vec![
        call("Echo Tool", "echo", json!({"message": "Hello"}), Answer::Text("Echo: Hello")),
        call("Echo Tool", "echo", json!({}), Answer::Text("Echo: ")),
        call("Read File Tool", "read_file", json!({"path": "poem.txt"}), Answer::Text("one\ntwo\nthree\n")),
        call(
            "Read File Tool",
            "read_file",
            json!({"path": "poem.txt", "encoding": "utf-8"}),
            Answer::Text("one\ntwo\nthree\n"),
        ),
        call("Read File Tool", "read_file", json!({}), Answer::Protocol(-32602, "invalid_input", "path is required")),
        call(
            "Read File Tool",
            "read_file",
            json!({"path": ""}),
            Answer::Protocol(-32602, "invalid_input", "path is required"),
        ),
        call(
            "Write File Tool",
            "write_file",
            json!({"path": "a.txt", "content": "hi\n"}),
            Answer::Text("Written to a.txt"),
        ),
        call("Write File Tool", "read_file", json!({"path": "a.txt"}), Answer::Text("hi\n")),
        // `content` is "" without it, also where a file is there.
        call("Write File Tool", "write_file", json!({"path": "a.txt"}), Answer::Text("Written to a.txt")),
        call(
            "Write File Tool",
            "write_file",
            json!({"path": "new/a.txt", "content": "hi"}),
            Answer::ErrorLike("", "to create it."),
        ),
        call(
            "Write File Tool",
            "write_file",
            json!({"path": "new/a.txt", "content": "hi", "create_dirs": true}),
            Answer::Text("Written to new/a.txt"),
        ),
        call(
            "List Directory Tool",
            "list_directory",
            json!({"path": "src"}),
            Answer::Json(json!([
                {"name": "deep", "path": "src/deep", "type": "directory", "size": null},
                {"name": "main.rs", "path": "src/main.rs", "type": "file", "size": 13},
            ])),
        ),
        call(
            "List Directory Tool",
            "list_directory",
            json!({"path": "src", "recursive": true}),
            Answer::Json(json!([
                {"name": "deep", "path": "src/deep", "type": "directory", "size": null},
                {"name": "lib.rs", "path": "src/deep/lib.rs", "type": "file", "size": 7},
                {"name": "main.rs", "path": "src/main.rs", "type": "file", "size": 13},
            ])),
        ),
        call(
            "List Directory Tool",
            "list_directory",
            json!({"path": "poem.txt"}),
            Answer::Error("Not a directory: poem.txt"),
        ),
        call(
            "List Directory Tool",
            "list_directory",
            json!({"path": "nowhere"}),
            Answer::Numbered("Not a directory: nowhere", -32005),
        ),
        call(
            "Search Files Tool",
            "search_files",
            json!({"path": "src", "pattern": "main.*"}),
            Answer::Json(json!(["src/main.rs"])),
        ),
        call("Search Files Tool", "search_files", json!({"path": "src", "pattern": "*.py"}), Answer::Json(json!([]))),
        call(
            "Search Files Tool",
            "search_files",
            json!({"path": "src/deep"}),
            Answer::Json(json!(["src/deep/lib.rs"])),
        ),
        call(
            "Execute Command Tool",
            "execute_command",
            json!({"command": "echo out; echo err >&2"}),
            Answer::Json(json!({"exit_code": 0, "stdout": "out\n", "stderr": "err\n"})),
        ),
        call(
            "Execute Command Tool",
            "execute_command",
            json!({"command": "exit 3"}),
            Answer::Json(json!({"exit_code": 3, "stdout": "", "stderr": ""})),
        ),
        call(
            "Execute Command Tool; Error Types",
            "execute_command",
            json!({"command": "sleep 60", "timeout": 1}),
            Answer::Numbered("Command timed out after 1s", -32006),
        ),
        call(
            "Execute Command Tool",
            "execute_command",
            json!({}),
            Answer::Protocol(-32602, "invalid_input", "command is required"),
        ),
        call(
            "System Info Tool",
            "system_info",
            json!({}),
            Answer::Members(&[
                "platform",
                "system",
                "release",
                "version",
                "machine",
                "processor",
                "python_version",
                "cwd",
                "user",
            ]),
        ),
        call("Error Types", "nothing", json!({}), Answer::Protocol(-32001, "not_found", "nothing")),
    ]
}

#[test]
fn the_tfo_dialect_matches_its_documented_tools_and_answers() {
    check(&System { dialect: "tfo", tools: tools(), calls: calls() });
}

#[test]
fn a_disabled_tool_returns_the_documented_tfo_error_code() {
    let session = Session::configured(Some("tfo"), "", &["bash"]);
    let answer = session.call("execute_command", &json!({"command": "echo hi"}));
    assert_eq!((&answer["error"]["code"], &answer["error"]["data"]["kind"]), (&json!(-32004), &json!("disabled")));
    assert!(session.list().iter().all(|tool| tool["name"] != "execute_command"));
}

#[test]
fn tools_can_be_listed_by_tfo_category() {
    let home = Home::new();
    for (category, expected) in CATEGORIES {
        let output = home.run(&["tools", "--dialect", "tfo", "--category", category, "--json"]);
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let names: Vec<&str> =
            listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        for name in *expected {
            assert!(names.contains(name), "{category}: {names:?}");
        }
    }
}
