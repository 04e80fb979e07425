//! Literal calls of other tool systems, each in its dialect: over MCP and on the command line, arguments in and answers
//! out. The sections are those of the systems' documents.

mod clai;
mod claude_code;
mod micro_x;

use crate::binaries::{Home, Pipe, stderr, stdout};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A call as models of the system make it, and its answer. `WORK` stands for the start folder.
struct Call {
    name: &'static str,
    arguments: Value,
    says: Says,
    structured: Option<Value>,
    /// It belongs to what only lasts as long as a session.
    needs_session: bool,
}

/// The answer of a call.
enum Says {
    /// This text.
    Text(&'static str),
    /// A text that begins so.
    Begins(&'static str),
    /// The JSON text of an object with these members.
    Members(Value),
    /// An error with this text.
    Error(&'static str),
    /// An error whose text begins so.
    ErrorBegins(&'static str),
    /// The error for an unknown tool, in these words.
    Unknown(&'static str),
}

use Says::{Begins, Error, ErrorBegins, Members, Text, Unknown};

fn call(name: &'static str, arguments: Value, says: Says) -> Call {
    Call { name, arguments, says, structured: None, needs_session: false }
}

/// Adds this structured content to the expectation.
fn with(structured: Value, call: Call) -> Call {
    Call { structured: Some(structured), ..call }
}

fn in_session(call: Call) -> Call {
    Call { needs_session: true, ..call }
}

/// The files of every folder.
const FILES: &[(&str, &str)] = &[
    ("poem.txt", "one\ntwo\n\n\nthree\nfour\n"),
    ("empty.txt", ""),
    ("src/main.rs", "fn main() {\n    println!(\"two\");\n}\n"),
    ("src/.hidden.rs", "// two\n"),
    (
        "book.ipynb",
        r##"{"cells": [{"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Title"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"##,
    ),
];

fn home() -> Home {
    let home = Home::new();
    for (path, content) in FILES {
        let path = home.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    home
}

const RULES: &str = "[permissions]\nallow = [\"Read\", \"Write\", \"Bash\"]\n";

/// A server in that dialect.
fn server(home: &Home, dialect: &str) -> Pipe {
    let mut command = home.toolstead(&["mcp", "--dialect", dialect, "--config"]);
    command.arg(home.config(RULES));
    let mut pipe = Pipe::start(command);
    pipe.initialize();
    pipe
}

/// Makes the calls one after another in one folder: over MCP, and in another folder on the command line.
#[track_caller]
fn check(dialect: &str, calls: &[Call]) {
    let over_mcp = home();
    let mut pipe = server(&over_mcp, dialect);
    let on_command_line = home();
    let config = on_command_line.config(RULES).to_string_lossy().into_owned();
    let wrong: Vec<String> = calls
        .iter()
        .filter_map(|call| {
            let said = json!({"name": call.name, "arguments": call.arguments});
            pipe.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": said}).to_string());
            let answer = pipe.answer(1);
            let fault = |how| format!("{how}: {said} answered {answer}");
            if !fits(call, &answer, &over_mcp.work()) {
                return Some(fault("over MCP"));
            }
            let arguments = call.arguments.to_string();
            let words = ["call", "--dialect", dialect, "--config", &config, call.name, &arguments];
            let printed = (!call.needs_session).then(|| on_command_line.run(&words));
            printed
                .filter(|output| !fits_printed(call, output, &on_command_line.work()))
                .map(|output| format!("on the command line: {said} printed {:?}{:?}", stdout(&output), stderr(&output)))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn fits(call: &Call, answer: &Value, work: &Path) -> bool {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let is_error = result["isError"] == true;
    let is_said = match &call.says {
        Text(expected) => !is_error && text == in_folder(expected, work),
        Begins(expected) => !is_error && text.starts_with(&in_folder(expected, work)),
        Members(expected) => {
            let said: Value = serde_json::from_str(text).unwrap_or_default();
            !is_error && expected.as_object().unwrap().iter().all(|(name, value)| said[name] == *value)
        }
        Error(expected) => is_error && text == in_folder(expected, work),
        ErrorBegins(expected) => is_error && text.starts_with(&in_folder(expected, work)),
        Unknown(expected) => answer["error"]["message"] == *expected && answer["error"]["data"]["kind"] == "not_found",
    };
    is_said && result.get("structuredContent") == call.structured.as_ref()
}

fn fits_printed(call: &Call, output: &std::process::Output, work: &Path) -> bool {
    let (printed, failed) = (stdout(output), !output.status.success());
    let all = format!("{printed}{}", stderr(output));
    match &call.says {
        Text(expected) => !failed && printed.trim_end() == in_folder(expected, work).trim_end(),
        Begins(expected) => !failed && printed.starts_with(&in_folder(expected, work)),
        Members(expected) => {
            let said: Value = serde_json::from_str(&printed).unwrap_or_default();
            !failed && expected.as_object().unwrap().iter().all(|(name, value)| said[name] == *value)
        }
        Error(expected) | ErrorBegins(expected) => {
            let expected = in_folder(expected, work);
            let expected = expected.trim_end();
            // The further lines of an error message are indented, those of a result are not.
            failed && (all.contains(expected) || all.contains(&expected.replace('\n', "\n    ")))
        }
        Unknown(_) => failed && all.contains(call.name),
    }
}

fn in_folder(text: &str, work: &Path) -> String {
    text.replace("WORK", &work.to_string_lossy())
}

/// The tools as a list in that dialect shows them.
fn listed(dialect: &str) -> Vec<Value> {
    let home = home();
    let mut pipe = server(&home, dialect);
    pipe.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    serde_json::from_value(pipe.answer(1)["result"]["tools"].take()).unwrap()
}

/// Compares the listed definition of each of these tools with lines like `Glob(pattern: string, path?: string)`. Tools
/// of a program that is not installed are not listed.
#[track_caller]
fn check_list(dialect: &str, expected: &[&str], of_programs: &[&str]) {
    let listed = listed(dialect);
    for line in expected {
        let (name, _) = line.split_once('(').unwrap();
        match listed.iter().find(|tool| tool["name"] == name) {
            Some(tool) => assert_eq!(signature(tool), *line),
            None => assert!(of_programs.contains(&name), "`{name}` is not listed"),
        }
    }
    let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "{names:?}");
}

fn signature(tool: &Value) -> String {
    let schema = &tool["inputSchema"];
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let parameters = schema["properties"].as_object().unwrap().iter().map(|(name, property)| {
        let mark = if is_required(name) { "" } else { "?" };
        format!("{name}{mark}: {}", property["type"].as_str().unwrap_or("any"))
    });
    format!("{}({})", tool["name"].as_str().unwrap(), parameters.collect::<Vec<_>>().join(", "))
}
