//! The command line, through the real binary: what it prints, and its exit codes.

use crate::binaries::{Home, Pipe, Server, TOKEN, kill, peer, python_program, stderr, stdout};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{io::Write, process::Stdio, time::Instant};

/// Checks the exit code, and that the output on both streams contains the texts.
#[track_caller]
fn check(home: &Home, arguments: &[&str], code: i32, texts: &[&str]) {
    let output = home.run(arguments);
    let printed = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
    for text in texts {
        assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
    }
}

fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let output = home.run(arguments);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)))
}

#[test]
fn each_kind_of_result_has_its_own_exit_code() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), "hello\n").unwrap();
    check(&home, &["call", "echo", r#"{"message":"hi"}"#], 0, &["Echo: hi"]);
    check(&home, &["call", "read_file", r#"{"path":"missing.txt"}"#], 4, &["missing.txt"]);
    check(
        &home,
        &["call", "edit_file", r#"{"path":"a.txt","old_text":"x","new_text":"y"}"#, "--allow", "Write"],
        1,
        &["a.txt"],
    );
    check(&home, &["call", "echo", "{"], 2, &["the arguments are not JSON"]);
    check(&home, &["call", "echo", r#"{"message":7}"#], 2, &["/message: expected a string, got 7"]);
    check(
        &home,
        &["call", "echo", r#"{"message":18446744073709551617}"#],
        2,
        &["18446744073709551617 is not a 64-bit integer"],
    );
    check(
        &home,
        &["call", "write_file", r#"{"path":"b","content":""}"#],
        3,
        &["No approver is available", "--allow 'Write("],
    );
    check(
        &home,
        &["call", "read_file", r#"{"path":"/etc/passwd"}"#],
        3,
        &["outside of the workspace's roots", "--root DIR"],
    );
    check(&home, &["call", "xyzzy", "{}"], 4, &["Unknown tool: xyzzy. `toolstead tools` lists the tools."]);
    check(&home, &["resources", "read", "foo"], 4, &["Resource not found: foo. `toolstead resources` lists"]);
    check(&home, &["prompts", "get", "foo"], 4, &["Unknown prompt: foo. `toolstead prompts` lists"]);
    check(&home, &["call", "ecko", "{}"], 4, &["Unknown tool: ecko. Did you mean `echo`?"]);
    check(&home, &["tools", "ecko"], 4, &["did you mean echo?"]);
    check(&home, &["executions", "show", "01a1fab5-59da-773a-85ab-31997d167df0"], 4, &["no call with the id"]);
    check(&home, &["nonsense"], 2, &["nonsense"]);
    check(&home, &["--config", "missing.toml", "tools"], 2, &["there is no such file"]);
}

#[test]
fn terminal_control_characters_in_arguments_are_escaped_in_error_messages() {
    let home = Home::new();
    let word = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}";
    for arguments in [&["servers", word][..], &["tools", word], &["call", word], &["call", "echo", word], &[word]] {
        let output = home.run(arguments);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(printed.starts_with("error: "), "{arguments:?}: {printed:?}");
        assert!(
            !printed.chars().any(toolstead_domain::invisible_characters::displaces_text),
            "{arguments:?}: {printed:?}"
        );
    }
    let help = home.run(&["--help"]);
    assert!(help.status.success() && stdout(&help).contains("Exit codes: 0 done"), "{}", stdout(&help));
}

#[test]
fn call_arguments_are_read_from_a_file_or_standard_input() {
    let home = Home::new();
    std::fs::write(home.work().join("arguments.json"), r#"{"message":"from a file"}"#).unwrap();
    check(&home, &["call", "echo", "@arguments.json"], 0, &["Echo: from a file"]);
    let mut child =
        home.toolstead(&["call", "echo", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"message":"from a pipe"}"#).unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "Echo: from a pipe\n");
    check(&home, &["call", "echo", "@missing.json"], 2, &["missing.json"]);
}

#[test]
fn a_command_line_rule_allows_a_change_and_is_recorded_in_the_audit_log() {
    let home = Home::new();
    let write = r#"{"path":"b.txt","content":"text"}"#;
    check(&home, &["--allow", "Write(b.txt)", "call", "write_file", write], 0, &[]);
    assert_eq!(std::fs::read_to_string(home.work().join("b.txt")).unwrap(), "text");
    check(&home, &["call", "write_file", write], 3, &[]);
    let listed = json_of(&home, &["executions", "list", "--json", "--tool", "write_file"]);
    let rows = listed["executions"].as_array().unwrap();
    let outcomes: Vec<&str> = rows.iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["refused", "succeeded"]);
    assert!(
        rows[1]["decision"]["reason"].as_str().unwrap().contains("the allow rule `Write(b.txt)` in the command line"),
        "{rows:?}"
    );
    let shown = json_of(&home, &["executions", "show", rows[1]["id"].as_str().unwrap(), "--json"]);
    assert_eq!(
        (&shown["tool"], &shown["accesses"][0]),
        (&json!("write_file"), &json!(format!("write {}", home.work().join("b.txt").display())))
    );
    let refused = json_of(&home, &["executions", "list", "--json", "--outcome", "refused"]);
    assert_eq!(refused["executions"].as_array().unwrap().len(), 1);
    check(&home, &["executions", "list", "--outcome", "lost"], 2, &["`lost` is not an outcome"]);
}

#[test]
fn unselected_tools_are_hidden_and_their_calls_are_refused() {
    let home = Home::new();
    let names = |arguments: &[&str]| -> Vec<String> {
        let list = json_of(&home, &[&["tools", "--json"], arguments].concat());
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["--tools", "echo,Grep"]), ["echo", "grep"]);
    assert_eq!(names(&["--tools", ""]), [""; 0]);
    assert!(!names(&["--tools=-echo"]).contains(&"echo".to_owned()));
    assert_eq!(names(&["--category", "search"]), ["glob", "grep"]);
    check(
        &home,
        &["--tools", "grep", "call", "echo", "{}"],
        3,
        &["not among the selected ones", "include `echo` in `--tools`"],
    );
    check(&home, &["--tools", "ecko", "tools"], 2, &["no tool is called `ecko`; did you mean `echo`?"]);
    check(&home, &["--tools", "echo,-grep", "tools"], 2, &["mixes"]);
    check(&home, &["tools", "--category", "nonsense"], 2, &["`nonsense` is not a category"]);
    assert_eq!(names(&["--tools", "mcp__absent__tool,echo"]), ["echo"], "a server that is not there is no error");
    assert_eq!(names(&["-tools=echo,grep"]), ["echo", "grep"]);
    assert_eq!(names(&["--tools", "*_tool"]), ["glob", "grep"]);
    for idle in ["mcp_absent_tool", "absent__tool", "mcp_tool", "mcp_absent_*", "x*"] {
        let message = format!("the choice of tools: `{idle}` fits no tool");
        check(&home, &["--tools", &format!("{idle},echo"), "tools"], 0, &["echo ", &message]);
    }
}

#[test]
fn the_tool_names_of_a_server_are_reserved_once_a_file_defines_the_server() {
    let home = Home::new();
    let file = home.work().join("toolstead.toml");
    check(&home, &["call", "system-info__disk_info", "{}"], 0, &[]);
    // In an untrusted file, and in a file that takes effect but disables the server.
    let server = "[mcp_servers.system-info]\ncommand = \"/bin/false\"\n";
    std::fs::write(&file, server).unwrap();
    check(&home, &["call", "system-info__disk_info", "{}"], 4, &["Unknown tool: system-info__disk_info"]);
    let chosen = file.with_file_name("chosen.toml");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&chosen, format!("{server}disabled = true\n")).unwrap();
    let chosen = chosen.to_str().unwrap();
    check(
        &home,
        &["--config", chosen, "call", "system-info__disk_info", "{}"],
        4,
        &["the MCP server `system-info` is not available", "`toolstead servers` shows more"],
    );
    check(&home, &["--config", chosen, "call", "disk_info", "{}"], 0, &[]);
    std::fs::write(chosen, format!("[permissions]\nallow = [\"system-info__disk_info\"]\n{server}")).unwrap();
    check(&home, &["--config", chosen, "tools"], 2, &["are called `mcp__system-info__disk_info`"]);
}

#[test]
fn a_tool_that_is_switched_off_is_hidden_and_refused_until_it_is_switched_on() {
    let home = Home::new();
    check(&home, &["tools", "echo", "--disable"], 0, &["switched off"]);
    assert!(!stdout(&home.run(&["tools"])).contains("echo "));
    assert!(stdout(&home.run(&["tools", "--all"])).contains("(it is switched off)"));
    let all = json_of(&home, &["tools", "--all", "--json"]);
    let tool = |name: &str| all["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!((&tool("echo")["available"], &tool("echo")["reason"]), (&json!(false), &json!("it is switched off")));
    assert_eq!((&tool("glob")["available"], tool("glob").get("reason")), (&json!(true), None));
    check(&home, &["call", "echo", "{}"], 4, &["the tool `echo` is switched off"]);
    assert_eq!(json_of(&home, &["tools", "echo", "--enable", "--json"]), json!({"tool": "echo", "enabled": true}));
    check(&home, &["call", "echo", r#"{"message":"hi"}"#], 0, &["Echo: hi"]);
}

#[test]
fn a_single_tool_is_shown_with_all_its_details() {
    let home = Home::new();
    check(
        &home,
        &["tools", "Read"],
        0,
        &["read_file", "aliases", "Read", "category     file", "input schema", "\"path\""],
    );
}

#[test]
fn a_project_file_waits_for_trust_and_secrets_are_never_shown() {
    let home = Home::new();
    let file = home.work().join("toolstead.toml");
    let text = "[permissions]\nallow = [\"Write\"]\n[mcp_servers.up]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { Authorization = \"hidden-secret\" }\n";
    std::fs::write(&file, text).unwrap();
    let write = ["call", "write_file", r#"{"path":"b.txt","content":""}"#];
    check(&home, &write, 3, &[]);
    check(&home, &["servers"], 0, &["found, not used: `up`"]);
    check(&home, &["config", "show"], 0, &["waits for trust"]);
    let trusted = home.run(&["config", "trust", "--yes"]);
    assert!(stderr(&trusted).contains("takes effect: permissions.allow"), "{}", stderr(&trusted));
    for output in [trusted, home.run(&["config", "show"]), home.run(&["config", "show", "--json"])] {
        assert!(
            output.status.success() && !format!("{}{}", stdout(&output), stderr(&output)).contains("hidden-secret")
        );
    }
    check(&home, &write, 0, &[]);
    std::fs::write(&file, format!("{text}# changed\n")).unwrap();
    check(&home, &write, 3, &[]);
}

#[test]
fn configuration_errors_are_reported_with_file_and_line() {
    let home = Home::new();
    std::fs::write(
        home.work().join("toolstead.toml"),
        "[limits]\noutput_byte = 5\n[permissions]\ndeny = [\"Read(\", \"ecko\"]\n",
    )
    .unwrap();
    check(
        &home,
        &["config", "check"],
        2,
        &["toolstead.toml:2: unknown key `limits.output_byte`; did you mean `output_bytes`?"],
    );
    check(&home, &["tools"], 2, &["toolstead.toml:4"]);
    std::fs::write(home.work().join("toolstead.toml"), "[permissions]\ndeny = [\"ecko\"]\n").unwrap();
    check(&home, &["config", "check"], 2, &["no tool is called `ecko`; did you mean `echo`?"]);
    std::fs::remove_file(home.work().join("toolstead.toml")).unwrap();
    check(&home, &["config", "check"], 0, &["can be used"]);
}

#[test]
fn servers_and_doctor_report_the_states_of_servers_and_the_system() {
    let home = Home::new();
    let config = home.config(&format!(
        "[mcp_servers.good]\ncommand = {:?}\nargs = [{:?}, \"good\"]\n[mcp_servers.gone]\ncommand = \"no-such-program\"\n",
        python_program("python"),
        peer("hostile_upstream.py")
    ));
    let config = config.to_str().unwrap();
    let servers = json_of(&home, &["servers", "--json", "--config", config]);
    let state = |name: &str| {
        let all = servers["servers"].as_array().unwrap();
        all.iter().find(|server| server["name"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state("good"), state("gone")), (json!("ready"), json!("failed")));
    check(&home, &["servers", "--config", config], 4, &["good", "ready", "no-such-program"]);
    check(
        &home,
        &["doctor", "--config", config],
        2,
        &["openat2", "control groups", "database", "good: ready", "gone: failed"],
    );
}

#[test]
fn with_json_every_failure_is_an_object_with_its_kind() {
    let home = Home::new();
    std::fs::write(home.work().join("bad.toml"), "[permisions]\nallow = []\n").unwrap();
    let check = |arguments: &[&str], code: i32, kind: &str, text: &str| {
        let output = home.run(&[arguments, &["--json"]].concat());
        let printed: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}{}", stdout(&output), stderr(&output)));
        assert_eq!((output.status.code(), printed["error"]["kind"].as_str()), (Some(code), Some(kind)), "{printed}");
        assert!(printed["error"]["message"].as_str().unwrap().contains(text), "{printed}");
        printed
    };
    let refused = check(
        &["call", "write_file", r#"{"path":"b","content":""}"#],
        3,
        "permission_denied",
        "No approver is available",
    );
    assert_eq!(refused["error"]["data"]["decision"][0]["verdict"], "ask", "{refused}");
    check(&["call", "echo", r#"{"message":7}"#], 2, "invalid_input", "/message");
    check(&["call", "echo", "{"], 2, "invalid_input", "not JSON");
    check(&["call", "ecko"], 4, "not_found", "Unknown tool");
    check(&["tools", "ecko"], 4, "not_found", "ecko");
    check(&["tools", "--category", "nonsense"], 2, "invalid_input", "nonsense");
    check(&["permissions", "allow", "Nonsense("], 2, "invalid_input", "is not a valid rule");
    check(&["permissions", "explain", "ecko"], 4, "not_found", "ecko");
    check(&["config", "trust", "--yes", "missing.toml"], 2, "invalid_input", "missing.toml");
    let checked = check(&["config", "check", "--config", "bad.toml"], 2, "invalid_input", "permisions");
    assert!(checked["error"]["problems"][0]["origin"].as_str().unwrap().contains("bad.toml"), "{checked}");
    check(&["hooks", "test", "Nonsense"], 2, "invalid_input", "Nonsense");
    check(&["executions", "show", "01a1fab5-59da-773a-85ab-31997d167df0"], 4, "not_found", "no call");
    check(&["nonsense"], 2, "invalid_input", "unrecognized");
    check(&["call"], 2, "invalid_input", "required");
    let late = r#"{"command":"echo part; sleep 60","timeout_ms":3000}"#;
    let late = check(&["--allow", "Bash", "call", "bash", late], 5, "timeout", "ran out of time");
    assert!(late["error"]["partial"]["content"][0]["text"].as_str().unwrap().contains("part"), "{late}");

    let server =
        home.command(env!("CARGO_BIN_EXE_toolstead-server"), &["--listen", "nowhere", "--json"]).output().unwrap();
    let printed: Value = serde_json::from_slice(&server.stdout).unwrap();
    assert_eq!((server.status.code(), &printed["error"]["kind"]), (Some(2), &json!("invalid_input")), "{printed}");
}

#[test]
fn the_executable_name_selects_the_command_line_or_the_server() {
    // Hard links must stay on the file system of the build.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let version = |name: &str| {
        let output = std::process::Command::new(folder.path().join(name)).arg("--version").output().unwrap();
        (output.status.code(), stdout(&output).split(' ').next().unwrap().to_owned(), stderr(&output))
    };
    let launcher = folder.path().join("toolstead-server");
    std::fs::hard_link(env!("CARGO_BIN_EXE_toolstead-server"), &launcher).unwrap();
    let (code, _, message) = version("toolstead-server");
    assert!(code == Some(70) && message.contains("install `toolstead` and `toolstead-server`"), "{message}");

    std::fs::hard_link(env!("CARGO_BIN_EXE_toolstead"), folder.path().join("toolstead")).unwrap();
    assert_eq!(version("toolstead-server"), (Some(0), "toolstead-server".into(), String::new()));
    assert_eq!(version("toolstead"), (Some(0), "toolstead".into(), String::new()));

    std::fs::remove_file(&launcher).unwrap();
    std::os::unix::fs::symlink("toolstead", &launcher).unwrap();
    assert_eq!(version("toolstead-server"), (Some(0), "toolstead-server".into(), String::new()));
}

#[test]
fn the_output_of_a_failing_command_is_returned_as_the_result() {
    let home = Home::new();
    let output = home.run(&["--allow", "Bash", "call", "bash", r#"{"command":"echo out; exit 3"}"#]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("out\n") && stdout(&output).contains("exit code 3"), "{output:?}");
    // Some clients show a model the first block alone.
    let output = home.run(&["--allow", "Bash", "--json", "call", "bash", r#"{"command":"echo out; exit 3"}"#]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let blocks = result["content"].as_array().unwrap();
    let text = blocks[0]["text"].as_str().unwrap();
    assert!(blocks.len() == 1 && text.starts_with("out\nThe command ended with exit code 3"), "{result}");
}

#[test]
fn trailing_blank_lines_of_command_output_are_kept() {
    let output = Home::new().run(&["--allow", "Bash", "-q", "call", "bash", r#"{"command": "echo a; echo; echo"}"#]);
    assert_eq!(stdout(&output), "a\n\n\n");
}

#[test]
fn ctrl_c_prints_the_partial_output_of_the_command() {
    let home = Home::new();
    let command = format!("echo part; echo > {}; sleep 300", home.work().join("begun").display());
    let mut child = home
        .toolstead(&["--allow", "Bash", "call", "bash", &json!({"command": command}).to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !home.work().join("begun").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::yield_now();
    }
    kill(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(stdout(&output).starts_with("part\n"), "{output:?}");
}

#[test]
fn config_trust_reports_why_a_symbolic_link_cannot_be_trusted() {
    let home = Home::new();
    std::fs::write(home.work().join("real.toml"), "[permissions]\nmode = \"plan\"\n").unwrap();
    std::os::unix::fs::symlink("real.toml", home.work().join("toolstead.toml")).unwrap();
    check(
        &home,
        &["config", "trust", "--yes"],
        2,
        &["toolstead.toml` is a link, or is below one, to ", "put a copy of the file here"],
    );
}

#[test]
fn completions_are_made_for_each_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        check(&home, &["completions", shell], 0, &["executions"]);
    }
}

#[test]
fn a_closed_output_pipe_ends_the_program_without_an_error() {
    let home = Home::new();
    let mut child = home.toolstead(&["tools", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{:?} {}", output.status, stderr(&output));
}

#[test]
fn an_interrupted_call_is_recorded_as_cancelled_and_exits_with_5() {
    let home = Home::new();
    let config = home.config(&format!(
        "[mcp_servers.hang]\ncommand = {:?}\nargs = [{:?}, \"hang\"]\nallow_tools = [\"*\"]\n",
        python_program("python"),
        peer("hostile_upstream.py")
    ));
    let config = config.to_str().unwrap();
    check(&home, &["call", "mcp__hang__work", r#"{"n":1}"#, "--timeout", "1", "--config", config], 5, &["hang", "1 s"]);
    let mut child = home
        .toolstead(&["call", "mcp__hang__work", r#"{"n":2}"#, "--config", config])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    loop {
        let running = json_of(&home, &["executions", "list", "--json", "--outcome", "running"]);
        if !running["executions"].as_array().unwrap().is_empty() {
            break;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
    }
    let asked = Instant::now();
    kill(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    // Far below the time of the call, which is 120 s.
    assert!(asked.elapsed().as_secs() < 60, "{:?}", asked.elapsed());
    let last = json_of(&home, &["executions", "list", "--json", "--limit", "1"]);
    assert_eq!(last["executions"][0]["outcome"], "cancelled", "{last}");
}

#[test]
fn the_stdio_server_exits_at_the_end_of_input_and_on_a_signal() {
    let home = Home::new();
    let mut pipe = Pipe::start(home.toolstead(&["mcp"]));
    pipe.initialize();
    pipe.send("{");
    assert_eq!(pipe.receive()["error"]["code"], -32700);
    pipe.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}"#);
    assert_eq!(pipe.answer(1)["error"]["data"]["kind"], "not_found");
    pipe.send(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#,
    );
    assert_eq!(pipe.answer(2)["result"]["content"][0]["text"], "Echo: hi");
    let (rest, status) = pipe.finish();
    assert!(status.success() && rest.is_empty(), "{status} {rest}");

    let mut pipe = Pipe::start(home.toolstead(&["mcp"]));
    pipe.initialize();
    kill(pipe.child.id(), Signal::TERM);
    assert!(pipe.child.wait().unwrap().success());
}

/// The status of the answer to one HTTP request.
fn status(address: &str, line: &str, headers: &str, body: &str) -> u16 {
    exchange(address, line, headers, body).0
}

/// The status and the body of the answer to one HTTP request.
fn exchange(address: &str, line: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Returns the answer of `/readyz` once the server has started.
fn readyz(address: &str) -> (u16, String) {
    loop {
        let answer = exchange(address, "GET /readyz", "", "");
        if answer.1 != "starting\n" {
            return answer;
        }
    }
}

#[test]
fn the_server_requires_its_token_and_shuts_down_cleanly() {
    let home = Home::new();
    let server = Server::start(&home, "");
    let address = server.address.clone();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let post = |token: &str| {
        let headers = format!(
            "authorization: {token}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        );
        status(&address, "POST /mcp", &headers, initialize)
    };
    assert_eq!((post("none"), post("Bearer wrong"), post(&format!("Bearer {TOKEN}"))), (401, 401, 200));
    assert_eq!((status(&address, "GET /healthz", "", ""), status(&address, "GET /readyz", "", "")), (200, 200));
    assert!(server.end(Signal::TERM).success());
}

/// `toolstead-server` with its messages, when it has printed the last line of its beginning.
fn server_telling(home: &Home, arguments: &[&str], config: &str) -> (std::process::Child, String) {
    let mut command = home.command(env!("CARGO_BIN_EXE_toolstead-server"), arguments);
    command.arg("--config").arg(home.config(config)).env("TOOLSTEAD_SERVER_TOKEN", TOKEN);
    started(command)
}

/// Starts a server and returns it with its address once it has printed the last line of its beginning.
fn started(mut command: std::process::Command) -> (std::process::Child, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    let mut output = std::io::BufReader::new(child.stdout.as_mut().unwrap());
    while !printed.contains("Ctrl-C") {
        assert!(std::io::BufRead::read_line(&mut output, &mut printed).unwrap() > 0, "{printed}");
    }
    let url = printed.split_once("http://").unwrap().1;
    let address = url.split('/').next().unwrap().to_owned();
    (child, address)
}

/// Shuts a server down and returns its output.
fn told_until_the_end(child: std::process::Child) -> String {
    kill(child.id(), Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn a_server_outlives_the_terminal_that_it_was_started_from() {
    let home = Home::new();
    let (mut child, address) = server_telling(&home, &["--listen", "127.0.0.1:0"], "");
    kill(child.id(), Signal::HUP);
    let mut outcome = String::new();
    let mut messages = std::io::BufReader::new(child.stderr.take().unwrap());
    while !outcome.contains("SIGHUP is ignored") {
        assert!(std::io::BufRead::read_line(&mut messages, &mut outcome).unwrap() > 0, "{outcome}");
    }
    assert_eq!(status(&address, "GET /healthz", "", ""), 200);
    told_until_the_end(child);
}

#[test]
fn a_server_warns_if_it_listens_on_a_network_address() {
    let home = Home::new();
    let (child, address) = server_telling(&home, &["--listen", "0.0.0.0:0"], "");
    let outcome = told_until_the_end(child);
    assert!(
        outcome.contains(&format!(" WARN {address} can be reached from the network, and speaks plain HTTP")),
        "{outcome}"
    );
    let (child, _) = server_telling(&home, &["--listen", "127.0.0.1:0"], "");
    let outcome = told_until_the_end(child);
    assert!(!outcome.contains("WARN"), "{outcome}");
}

#[test]
fn a_server_started_in_the_root_directory_reports_the_missing_root() {
    let home = Home::new();
    let mut command = home.command(env!("CARGO_BIN_EXE_toolstead-server"), &["--listen", "127.0.0.1:0"]);
    command.current_dir("/").env("TOOLSTEAD_SERVER_TOKEN", TOKEN);
    let (child, address) = started(command);
    let ready = readyz(&address);
    assert!(ready.0 == 200 && ready.1.starts_with("ready\nno root: ") && ready.1.contains("--root DIR"), "{ready:?}");
    let outcome = told_until_the_end(child);
    assert!(outcome.contains("started in `/`: no root") && outcome.contains("`--root DIR`"), "{outcome}");

    let (child, address) = server_telling(&home, &["--listen", "127.0.0.1:0"], "");
    assert_eq!(readyz(&address), (200, "ready\n".into()));
    let outcome = told_until_the_end(child);
    assert!(!outcome.contains("no root"), "{outcome}");
}

#[test]
fn the_audit_log_is_listed_shown_and_filtered_by_short_ids_clients_and_times() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), "text").unwrap();
    check(&home, &["call", "read_file", r#"{"path":"a.txt"}"#], 0, &[]);
    check(&home, &["call", "echo", r#"{"message":"hi"}"#], 0, &[]);
    let path = home.work().join("a.txt").display().to_string();
    let listed = stdout(&home.run(&["executions", "list"]));
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines[0].ends_with("CALLED"), "{listed}");
    assert!(lines[1].contains("echo") && lines[1].ends_with(r#"{"message":"hi"}"#), "{listed}");
    assert!(lines[2].contains("read_file") && lines[2].ends_with(&path), "{listed}");
    let id = lines[2].split(' ').next().unwrap();
    let shown = stdout(&home.run(&["executions", "show", id]));
    assert!(shown.contains("tool         read_file") && shown.contains(&format!("read {path}")), "{shown}");
    assert!(serde_json::from_str::<Value>(&shown).is_err(), "it is for people: {shown}");
    let record = json_of(&home, &["executions", "show", id, "--json"]);
    assert_eq!(
        (&record["toolName"], &record["success"], record.get("error")),
        (&json!("read_file"), &json!(true), None)
    );
    assert!(record["metadata"].is_object() && record["timestamp"].is_string(), "{record}");
    check(&home, &["executions", "show", "0"], 2, &["several calls begin with 0: "]);
    check(&home, &["executions", "show", "fff"], 4, &["no call whose id begins with fff is recorded"]);
    check(&home, &["executions", "show", "x1"], 2, &["`x1` is not a call id"]);
    let count = |arguments: &[&str]| {
        let listed = json_of(&home, &[&["executions", "list", "--json"], arguments].concat());
        listed["executions"].as_array().unwrap().len()
    };
    let client = record["client"].as_str().unwrap().split(' ').next().unwrap();
    assert_eq!((count(&["--client", client]), count(&["--client", "nobody"])), (2, 0));
    assert_eq!((count(&["--since", "1h"]), count(&["--since", "2999-01-01"])), (2, 0));
    assert_eq!((count(&["--before", id]), count(&["--before", lines[1].split(' ').next().unwrap()])), (0, 1));
    check(&home, &["executions", "list", "--since", "soon"], 2, &["use `30m`"]);
}

#[test]
fn the_audit_log_is_readable_on_a_full_or_read_only_disk() {
    let home = Home::new();
    check(&home, &["call", "echo", r#"{"message":"hi"}"#], 0, &[]);
    let data = home.data();
    let data = data.to_str().unwrap();
    for (disk, prepare) in [
        ("read-only", r#"mount --bind "$D" "$D" && mount -o remount,ro,bind "$D""#),
        (
            "full",
            r#"S=$(mktemp -d) && cp -a "$D"/. "$S" && mount -t tmpfs -o size=8m none "$D" && cp -a "$S"/. "$D" && rm -r "$S"
               dd if=/dev/zero of="$D/filling" bs=4096 2>/dev/null || true"#,
        ),
    ] {
        let script = format!("set -e\n{prepare}\nexec \"$@\"");
        let toolstead = env!("CARGO_BIN_EXE_toolstead");
        for asked in [&["executions", "list", "--json"][..], &["executions", "show", "0", "--json"]] {
            let mut command = home.command("unshare", &["-rm", "sh", "-c", &script, "sh", toolstead]);
            let output = command.args(asked).env("D", data).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{disk}: {}", stderr(&output));
            assert!(stdout(&output).contains(r#""tool": "echo""#), "{disk}: {}", stdout(&output));
        }
    }
}
