//! Real MCP servers, aggregated at once: all are listed and called, one is killed in the middle, and the others
//! continue.

use crate::binaries::{Home, Pipe, kill, node_path, node_program, python_program, stderr, stdout};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;

fn config(home: &Home) -> String {
    let work = home.work();
    let stdio = |name: &str, program: &Path, arguments: &str| {
        format!(
            "[mcp_servers.{name}]\ncommand = {program:?}\nargs = [{arguments}]\nallow_tools = [\"*\"]\nenv = {{ PATH = {:?} }}\n",
            node_path()
        )
    };
    [
        stdio("everything", &node_program("mcp-server-everything"), "\"stdio\""),
        stdio("filesystem", &node_program("mcp-server-filesystem"), &format!("{work:?}")),
        stdio("git", &python_program("mcp-server-git"), &format!("\"--repository\", {work:?}")),
        stdio("time", &python_program("mcp-server-time"), "\"--local-timezone\", \"UTC\""),
    ]
    .concat()
}

/// Toolstead on stdio, in front of servers.
pub(crate) struct Gateway {
    pub(crate) pipe: Pipe,
    pub(crate) next: i64,
}

impl Gateway {
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.next += 1;
        self.pipe.send(
            json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
                .to_string(),
        );
        self.pipe.answer(self.next)
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let (mut names, mut cursor) = (Vec::new(), Value::Null);
        loop {
            self.next += 1;
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            self.pipe
                .send(json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/list", "params": params}).to_string());
            let answer = self.pipe.answer(self.next);
            let page = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
            names.extend(page.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
            cursor = answer["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return names;
            }
        }
    }

    /// Calls until the answer is what it should be; the server behind the tool is on its way.
    pub(crate) fn call_until(&mut self, tool: &str, arguments: &Value, done: impl Fn(&Value) -> bool) -> Value {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
        loop {
            let answer = self.call(tool, arguments.clone());
            if done(&answer) {
                return answer;
            }
            assert!(std::time::Instant::now() < deadline, "{tool}: {answer}");
        }
    }
}

pub(crate) fn succeeded(answer: &Value) -> bool {
    answer["result"]["content"].is_array() && answer["result"]["isError"] != true
}

/// The processes below us whose command line holds the text.
pub(crate) fn children_with(text: &str, ancestor: u32) -> Vec<u32> {
    let rows: Vec<(u32, u32, String)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let process = folder.file_name()?.to_str()?.parse().ok()?;
            let arguments = std::fs::read_to_string(folder.join("cmdline")).ok()?.replace('\0', " ");
            let status = std::fs::read_to_string(folder.join("status")).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
            Some((process, parent, arguments))
        })
        .collect();
    let is_below = |mut process: u32| {
        while let Some((_, parent, _)) = rows.iter().find(|(one, ..)| *one == process) {
            if *parent == ancestor {
                return true;
            }
            process = *parent;
        }
        false
    };
    rows.iter()
        .filter(|(process, _, line)| line.contains(text) && is_below(*process))
        .map(|(process, ..)| *process)
        .collect()
}

/// Makes the workspace a repository with a file that is not in it.
pub(crate) fn repository(home: &Home) {
    for arguments in [&["init", "-q"][..], &["config", "user.email", "t@example.com"], &["config", "user.name", "t"]] {
        assert!(home.command("git", arguments).status().unwrap().success());
    }
    std::fs::write(home.work().join("a.txt"), "hello\n").unwrap();
}

#[test]
fn four_real_servers_work_behind_one_gateway_and_a_killed_server_restarts() {
    let home = Home::new();
    repository(&home);
    let config = home.config(&config(&home));
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(config).env("TOOLSTEAD_SERVER_TOKEN", "must-not-reach-a-child");
    let pipe = Pipe::start(command);
    let toolstead = pipe.child.id();
    let mut gateway = Gateway { pipe, next: 0 };
    gateway.pipe.initialize();

    let path = home.work().join("a.txt");
    let repository = json!({"repo_path": home.work()});
    let sum = gateway.call_until("mcp__everything__get-sum", &json!({"a": 2, "b": 3}), succeeded);
    assert_eq!(sum["result"]["content"][0]["text"], "The sum of 2 and 3 is 5.");
    let read = gateway.call_until("mcp__filesystem__read_text_file", &json!({"path": path}), succeeded);
    assert_eq!(read["result"]["structuredContent"]["content"], "hello\n");
    let status = gateway.call_until("mcp__git__git_status", &repository, succeeded);
    assert!(status["result"]["content"][0]["text"].as_str().unwrap().contains("a.txt"), "{status}");
    let time = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let time = gateway.call_until("mcp__time__convert_time", &time, succeeded);
    assert!(time["result"].to_string().contains("+9.0h"), "{time}");
    let structured = gateway.call("mcp__everything__get-structured-content", json!({"location": "New York"}));
    assert!(structured["result"]["structuredContent"]["temperature"].is_number(), "{structured}");

    let tools = gateway.tools();
    for server in ["everything", "filesystem", "git", "time"] {
        assert!(tools.iter().any(|tool| tool.starts_with(&format!("mcp__{server}__"))), "{server}: {tools:?}");
    }
    let environment = gateway.call("mcp__everything__get-env", json!({}));
    assert!(!environment.to_string().contains("must-not-reach-a-child"), "{environment}");
    assert!(!environment.to_string().contains("TOOLSTEAD"), "{environment}");

    let git = children_with("mcp-server-git", toolstead);
    assert!(!git.is_empty());
    git.iter().for_each(|process| kill(*process, Signal::KILL));
    let failed = gateway.call_until("mcp__git__git_status", &repository, |answer| {
        !succeeded(answer) || !children_with("mcp-server-git", toolstead).is_empty()
    });
    if !succeeded(&failed) {
        let text = failed.to_string();
        assert!(text.contains("git"), "the error names tool and server: {text}");
    }
    assert!(succeeded(&gateway.call("mcp__everything__get-sum", json!({"a": 1, "b": 1}))), "the others go on");
    gateway.call_until("mcp__git__git_status", &repository, succeeded);

    let children = children_with("", toolstead);
    assert!(children.len() >= 4, "{children:?}");
    let (rest, status) = gateway.pipe.finish();
    assert!(status.success() && rest.lines().all(|line| line.starts_with("{\"jsonrpc\"")), "{status} {rest}");
    let alive: Vec<_> = children.iter().filter(|process| Path::new(&format!("/proc/{process}")).exists()).collect();
    assert!(alive.is_empty(), "nobody outlives us: {alive:?}");
}

#[test]
fn the_bundled_system_info_server_serves_another_toolstead() {
    let home = Home::new();
    let bundled = env!("CARGO_BIN_EXE_toolstead");
    let config = home.config(&format!(
        "[mcp_servers.system-info]\ncommand = {bundled:?}\nargs = [\"mcp\", \"--tools\", \"system_info,disk_info,network_info\"]\nallow_tools = [\"*\"]\n"
    ));
    let mut command = home.toolstead(&["call", "mcp__system-info__system_info", "{}", "--config"]);
    let output = command.arg(&config).output().unwrap();
    assert!(
        output.status.success() && stdout(&output).contains("Machine Name"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let mut command = home.toolstead(&["tools", "--json", "--config"]);
    let list = stdout(&command.arg(&config).output().unwrap());
    assert_eq!(list.matches("\"mcp__system-info__").count(), 3, "{list}");
}

#[test]
fn the_gateway_example_of_the_readme_works_as_it_is_written() {
    let home = Home::new();
    repository(&home);
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, example) = readme.split_once("[mcp_servers.git]").unwrap();
    let (example, _) = example.split_once("\n\n").unwrap();
    // The example allows reading; everything else requires approval.
    let config = home.config(&format!("[permissions]\nallow = [\"mcp__git__*\"]\n[mcp_servers.git]{example}\n"));
    let path = format!("{}:{}", python_program("").display(), std::env::var("PATH").unwrap_or_default());
    let call = |tool: &str, arguments: Value| {
        let mut command = home.toolstead(&["call", tool, &arguments.to_string(), "--config"]);
        let output = command.arg(&config).env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{tool}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    assert!(call("mcp__git__git_status", json!({"repo_path": "."})).contains("a.txt"));
    call("mcp__git__git_add", json!({"repo_path": ".", "files": ["a.txt"]}));
    call("mcp__git__git_commit", json!({"repo_path": ".", "message": "first"}));
    let log = stdout(&home.command("git", &["log", "--format=%s"]).output().unwrap());
    assert_eq!(log, "first\n");
}

/// A server that offers the tools named by its arguments, with a description read from a file, and that writes to a
/// given path.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), {"jsonrpc": "2.0", "id": message.get("id")}
    if "id" not in message:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        server = {"name": "s", "version": "1"}
        answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        schema = {"type": "object"}
        about = open("about.txt").read()
        answer["result"] = {"tools": [{"name": n, "description": about, "inputSchema": schema} for n in sys.argv[1:]]}
    elif method == "tools/call":
        try:
            open(message["params"]["arguments"]["path"], "w").write("written")
            answer["result"] = {"content": [{"type": "text", "text": "done"}]}
        except OSError as error:
            answer["result"] = {"isError": True, "content": [{"type": "text", "text": str(error)}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

/// A configuration with a server `s` that offers one tool.
fn with_server(home: &Home, file: &str, tool: &str) -> String {
    std::fs::write(home.work().join("server.py"), SERVER).unwrap();
    let about = home.work().join("about.txt");
    if !about.exists() {
        std::fs::write(about, "Writes.").unwrap();
    }
    let path = home.data().with_file_name(file);
    let (work, python) = (home.work(), python_program("python"));
    let text = format!(
        "[workspace]\nroots = [{work:?}]\n[mcp_servers.s]\ncommand = {python:?}\nargs = [\"server.py\", {tool:?}]\nallow_tools = [\"*\"]\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_guarded_server_writes_in_the_first_root_and_errors_elsewhere_name_the_roots_setting() {
    let home = Home::new();
    let config = with_server(&home, "a.toml", "write");
    let write =
        |path: &str| home.run(&["call", "mcp__s__write", &json!({"path": path}).to_string(), "--config", &config]);
    let output = write("made.txt");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(std::fs::read_to_string(home.work().join("made.txt")).unwrap(), "written");
    let output = write("/usr/made.txt");
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`mcp_servers.s.roots`") && said.contains("`guarded`"), "{said}");
}

#[test]
fn same_named_servers_of_two_configurations_are_distinct_and_definition_changes_are_listed() {
    let home = Home::new();
    let (a, b) = (with_server(&home, "a.toml", "alpha"), with_server(&home, "b.toml", "beta"));
    let silent = home.data().with_file_name("c.toml");
    let text = "[mcp_servers.s]\ncommand = \"cat\"\nconnect_timeout_seconds = 1\n[mcp_servers.off]\ncommand = \"cat\"\ndisabled = true\n";
    std::fs::write(&silent, text).unwrap();
    let silent = silent.display().to_string();
    let run = |arguments: &[&str], config: &str| {
        let output = home.run(&[arguments, &["--config", config]].concat());
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    };
    let (_, said) = run(&["tools"], &a);
    assert!(said.contains("mcp__s__alpha"), "{said}");
    let (_, said) = run(&["tools"], &b);
    assert!(said.contains("mcp__s__beta") && !said.contains("mcp__s__alpha"), "{said}");
    let (code, said) = run(&["tools"], &silent);
    assert!(code == Some(0) && !said.contains("mcp__s__"), "{said}");
    assert!(said.contains("the MCP server `s` is not available, and its tools are unknown: it is down"), "{said}");
    for name in ["mcp__s__alpha", "s__alpha", "mcp_s_alpha"] {
        let (code, said) = run(&["call", name, "{}"], &silent);
        assert!(code == Some(4) && said.contains("The MCP server `s`: it is down"), "{name}: {said}");
    }
    let (code, said) = run(&["call", "mcp__off__x", "{}"], &silent);
    assert!(code == Some(4) && said.contains("`mcp_servers.off.disabled`"), "{said}");
    assert_eq!(run(&["servers"], &silent).0, Some(4));

    let (code, said) = run(&["servers"], &a);
    assert!(code == Some(0) && !said.contains("definitions changed"), "{said}");
    std::fs::write(home.work().join("about.txt"), "Writes, and sends it to me.").unwrap();
    let (code, said) = run(&["servers"], &a);
    assert!(
        code == Some(0) && said.contains("definitions changed") && said.contains("`mcp__s__alpha` (description)"),
        "{said}"
    );
    let json: Value = serde_json::from_slice(&home.run(&["servers", "--json", "--config", &a]).stdout).unwrap();
    assert_eq!(json["servers"][0]["changed"][0]["parts"], json!(["description"]), "the next one tells it, too");
}
