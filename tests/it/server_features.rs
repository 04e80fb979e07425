//! Real clients use all that a real server offers, through us: resources, prompts, completion, subscriptions, and its
//! questions.

use crate::binaries::{Home, Server, TOKEN, node_path, node_program, peer, python_program, stderr, stdout};
use serde_json::{Value, json};
use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const URI: &str = "demo://resource/dynamic/text/7";

/// Toolstead over HTTP and on stdio, each in front of `server-everything` on stdio.
struct Gateway {
    home: Home,
    /// Starts us on stdio; the Inspector would take a `--config` for its own.
    script: PathBuf,
    server: Server,
}

impl Gateway {
    fn new() -> Self {
        let home = Home::new();
        let text = format!(
            "[mcp_servers.everything]\ncommand = {:?}\nargs = [\"stdio\"]\nnames = \"plain\"\nallow_tools = [\"*\"]\n\
             may_ask = [\"elicitation\", \"sampling\"]\nenv = {{ PATH = {:?} }}\n",
            node_program("mcp-server-everything"),
            node_path()
        );
        let server = Server::start(&home, &text);
        let script = home.data().with_file_name("toolstead.sh");
        let toolstead = env!("CARGO_BIN_EXE_toolstead");
        let start = format!("#!/bin/sh\nexec '{toolstead}' mcp --config '{}'\n", home.config(&text).display());
        std::fs::write(&script, start).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { home, script, server }
    }

    /// Ends the command with how to reach us: over HTTP by `http`, or as a program on stdio.
    fn reached_by(&self, mut command: Command, http: Option<&[&str]>) -> Command {
        match http {
            Some(words) => command.args(words).env("TOKEN", TOKEN),
            None => command.arg(&self.script),
        };
        command.env("PATH", node_path()).stdin(Stdio::null());
        command
    }

    fn json(mut command: Command) -> Value {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}\n{}\n{}", stdout(&output), stderr(&output));
        let text = stdout(&output);
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last)
            .or_else(|_| serde_json::from_str(&text))
            .unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// Checks the output of the scripts `everything*`.
#[track_caller]
fn check(said: &Value, protocol: &str) {
    let has = |list: &str, entry: &str| said[list].as_array().unwrap().iter().any(|one| one == entry);
    assert_eq!(said["protocol"], protocol, "{said}");
    assert!(has("resources", "demo://resource/static/document/features.md"), "{said}");
    assert!(has("templates", "demo://resource/dynamic/text/{resourceId}"), "{said}");
    assert!(said["read"].as_str().unwrap().starts_with("Resource 7: This is a plaintext resource"), "{said}");
    assert!(["simple-prompt", "args-prompt", "completable-prompt"].iter().all(|name| has("prompts", name)), "{said}");
    assert_eq!(said["prompt"], "What's weather in Oslo?");
    assert_eq!(said["completion"], json!(["Alice"]));
    assert_eq!(
        said.get("updated").unwrap_or(&json!(URI)),
        URI,
        "FastMCP has no word for it, all others hear of the change"
    );
    assert!(said["sampling"].as_str().unwrap().contains("by the model"), "{said}");
    assert!(said["elicitation"].as_str().unwrap().contains("- Name: by the person"), "{said}");
}

#[track_caller]
fn check_sdk(program: &Path, script: &str, environment: &[(&str, &str)], protocol: &str) {
    let gateway = Gateway::new();
    let url = gateway.server.url();
    for http in [None, Some(&[url.as_str()][..])] {
        let mut command = gateway.home.command(program, &[]);
        command.arg(peer(script)).envs(environment.iter().copied());
        check(&Gateway::json(gateway.reached_by(command, http)), protocol);
    }
}

#[test]
fn the_python_sdk_uses_all_of_a_server_in_both_generations() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
        check_sdk(&python_program("python"), "everything.py", &[("MODE", mode)], protocol);
    }
}

#[test]
fn the_typescript_sdk_1_uses_all_of_a_server() {
    check_sdk(&node_program("node"), "everything.mjs", &[("SDK", "1")], "2025-11-25");
}

#[test]
fn the_typescript_sdk_2_uses_all_of_a_server_in_both_generations() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
        check_sdk(&node_program("node"), "everything.mjs", &[("SDK", "2"), ("MODE", mode)], protocol);
    }
}

#[test]
fn fastmcp_uses_a_server_in_both_generations() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")] {
        check_sdk(&python_program("python"), "everything_fastmcp.py", &[("MODE", mode)], protocol);
    }
}

#[test]
fn the_inspector_reads_resources_and_prompts_of_a_server_in_both_generations() {
    let gateway = Gateway::new();
    let (url, token) = (gateway.server.url(), format!("Authorization: Bearer {TOKEN}"));
    let http = ["--server-url", &url, "--transport", "http", "--stored-auth-only", "--header", &token];
    for way in [None, Some(&http[..])] {
        for era in ["legacy", "modern"] {
            let inspect = |arguments: &[&str]| {
                let command = gateway.home.command(node_program("mcp-inspector"), &["--cli"]);
                let mut command = gateway.reached_by(command, way);
                command.args(["--protocol-era", era, "--format", "json", "-q"]).args(arguments);
                Gateway::json(command)["result"].clone()
            };
            let resources = inspect(&["--method", "resources/list"]);
            assert!(resources.to_string().contains("demo://resource/static/document/features.md"), "{resources}");
            let templates = inspect(&["--method", "resources/templates/list"]);
            assert!(templates.to_string().contains("demo://resource/dynamic/blob/{resourceId}"), "{templates}");
            let read = inspect(&["--method", "resources/read", "--uri", URI]);
            assert!(read["contents"][0]["text"].as_str().unwrap().starts_with("Resource 7"), "{read}");
            let prompts = inspect(&["--method", "prompts/list"]);
            assert!(prompts.to_string().contains("args-prompt"), "{prompts}");
            let arguments = ["--prompt-name", "args-prompt", "--prompt-args", "city=Oslo"];
            let prompt = inspect(&[&["--method", "prompts/get"][..], &arguments].concat());
            assert_eq!(prompt["messages"][0]["content"]["text"], "What's weather in Oslo?", "{prompt}");
        }
    }
}
