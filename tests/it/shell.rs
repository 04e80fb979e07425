//! Commands and tasks over MCP, through the real binaries: what is answered, and what is left on the machine.

use crate::binaries::{Home, Pipe, Server, TOKEN, kill};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

const ALLOWED: &str = "[permissions]\nallow = [\"Read\", \"Write\", \"Bash\"]\n";
const PATIENCE: Duration = Duration::from_secs(120);

/// `toolstead mcp`, and a client in one session of it.
struct Client {
    home: Home,
    pipe: Pipe,
    calls: i64,
}

impl Client {
    fn start(config: &str) -> Self {
        Self::with(config, &[])
    }

    fn with(config: &str, environment: &[(&str, &str)]) -> Self {
        let home = Home::new();
        let mut command = home.toolstead(&["mcp", "--config"]);
        command.arg(home.config(&format!("{ALLOWED}{config}"))).envs(environment.iter().copied());
        let mut pipe = Pipe::start(command);
        pipe.initialize();
        Self { home, pipe, calls: 0 }
    }

    /// Sends a call and returns its id.
    fn send(&mut self, tool: &str, arguments: Value) -> i64 {
        self.calls += 1;
        self.pipe.send(request(self.calls, tool, arguments).to_string());
        self.calls
    }

    /// The result of a call.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send(tool, arguments);
        let answer = self.pipe.answer(id);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The content of a file of the workspace, once it is there.
    fn file(&self, name: &str) -> String {
        let path = self.home.work().join(name);
        until(|| fs::read_to_string(&path).ok().filter(|content| content.ends_with('\n'))).trim().to_owned()
    }
}

fn request(id: i64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// All text blocks of a result.
fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Repeats `look` until it returns a value.
#[track_caller]
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain");
        std::thread::yield_now();
    }
}

/// A time to sleep that no other test on this machine has. A command that names it is known by it from outside of its
/// sandbox, where it has other process ids than inside.
fn mark(number: u32) -> String {
    format!("300.{:07}{number}", std::process::id())
}

/// Returns `true` if a process runs whose command line contains the mark. A zombie has no command line.
fn lives(mark: &str) -> bool {
    command_lines().any(|line| line.contains(mark))
}

/// Returns `true` if a process has become `sleep` with the mark. The shell that starts it has the mark, too, but no
/// command line at the moment at which it executes the other program.
fn sleeps(mark: &str) -> bool {
    command_lines().any(|line| line == format!("sleep\0{mark}\0"))
}

/// Those of all processes; NUL ends each word.
fn command_lines() -> impl Iterator<Item = String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Returns when no process with the mark is there any more.
#[track_caller]
fn gone(mark: &str) {
    until(|| (!lives(mark)).then_some(()));
}

/// A command with a child, both with the mark, that never ends.
fn endless(mark: &str) -> String {
    format!("sleep {mark} & echo started; echo up > shell; wait")
}

#[test]
fn a_command_may_run_for_its_requested_timeout_up_to_the_maximum() {
    // Seed defects 8, 12 and 23: the usual time is 1 s here.
    let mut client = Client::start("[limits]\ntimeout_seconds = 1\nmax_timeout_seconds = 3\n");
    let slow = client.call("execute_command", json!({"command": "sleep 1.5; echo done", "timeout": 60}));
    assert!(text(&slow).contains("was reduced"), "{slow}");
    let slow: Value = serde_json::from_str(slow["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&slow["stdout"], &slow["exit_code"]), (&json!("done\n"), &json!(0)));
    let reduced = client.call("bash", json!({"command": "echo works", "timeout": 60}));
    assert!(text(&reduced).starts_with("works\n") && text(&reduced).contains("was reduced"), "{reduced}");
    assert_eq!(text(&client.call("bash", json!({"command": "echo works"}))), "works\n");
    let mark = mark(1);
    let late = client.call("bash", json!({"command": endless(&mark)}));
    assert_eq!((&late["isError"], &late["structuredContent"]["timed_out"]), (&json!(true), &json!(true)), "{late}");
    assert!(text(&late).starts_with("started\n") && text(&late).contains("ran out of time"), "{late}");
    gone(&mark);
    let wrong = client.call("bash", json!({"command": "true", "timeout": 120_000}));
    assert!(text(&wrong).contains("`timeout_ms`"), "{wrong}");
}

#[test]
fn a_background_server_is_reachable_and_ends_with_its_session() {
    let mut client = Client::start("");
    fs::write(client.home.work().join("page.txt"), "the page\n").unwrap();
    let mark = mark(2);
    let serve = format!(": {mark}; python3 -u -m http.server --bind 127.0.0.1 0; true");
    let started =
        client.call("Bash", json!({"command": serve, "run_in_background": true, "ready_when": "Serving HTTP"}));
    let line = text(&started);
    let port = line.split("port ").nth(1).unwrap_or_else(|| panic!("{started}")).split(' ').next().unwrap();
    let id = started["structuredContent"]["backgroundTaskId"].as_str().unwrap();
    let get =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /page.txt HTTP/1.0\\r\\n\\r\\n' >&3; tail -n 1 <&3");
    assert_eq!(text(&client.call("bash", json!({"command": get}))), "the page\n");
    let answer = client.call("BashOutput", json!({"bash_id": id, "filter": "GET"}));
    assert!(text(&answer).contains("GET /page.txt"), "{answer}");
    assert!(lives(&mark));
    let (_, status) = client.pipe.finish();
    assert!(status.success());
    gone(&mark);
}

#[test]
fn the_end_of_a_task_is_announced_once() {
    let mut client = Client::start("");
    let command = "until [ -e go ]; do sleep 0.01; done; exit 3";
    client.call("async_cmd", json!({"command": "sh", "args": ["-c", command]}));
    assert_eq!(text(&client.call("echo", json!({"message": "x"}))), "Echo: x");
    fs::write(client.home.work().join("go"), "").unwrap();
    let news = until(|| {
        let answer = text(&client.call("echo", json!({"message": "x"})));
        answer.strip_prefix("Echo: x\n").map(str::to_owned)
    });
    assert!(news.starts_with("[`task_1` (sh -c ") && news.contains("ended with exit code 3"), "{news}");
    assert_eq!(text(&client.call("echo", json!({"message": "x"}))), "Echo: x");
    let listed = client.call("task_list", json!({}));
    assert_eq!(listed["structuredContent"]["tasks"][0]["exit_code"], 3);
}

#[test]
fn a_cancelled_call_leaves_no_process() {
    let mut client = Client::start("");
    let mark = mark(3);
    let id = client.send("bash", json!({"command": endless(&mark)}));
    client.file("shell");
    assert!(lives(&mark));
    client
        .pipe
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
    gone(&mark);
    assert_eq!(text(&client.call("bash", json!({"command": "echo on"}))), "on\n");
}

#[test]
fn a_client_that_requests_progress_receives_the_output_of_a_running_command() {
    let mut client = Client::start("");
    let mut request =
        request(1, "bash", json!({"command": "echo one; until [ -e go ]; do sleep 0.01; done; echo two"}));
    request["params"]["_meta"] = json!({"progressToken": "p"});
    client.pipe.send(request.to_string());
    let answer = client.pipe.receive();
    assert_eq!((&answer["method"], &answer["params"]["message"]), (&json!("notifications/progress"), &json!("one\n")));
    fs::write(client.home.work().join("go"), "").unwrap();
    assert_eq!(text(&client.pipe.answer(1)["result"]), "one\ntwo\n");
}

#[test]
fn a_killed_server_leaves_no_commands_running() {
    let mut client = Client::start("");
    let (shell, task) = (mark(4), mark(5));
    let waits = |mark: &str, name: &str| format!(": {mark}; echo up > {name}; while :; do read -t 300 <> <(:); done");
    client.send("bash", json!({"command": waits(&shell, "shell")}));
    client.call("bash", json!({"command": waits(&task, "task"), "background": true}));
    client.file("shell");
    client.file("task");
    assert!(lives(&shell) && lives(&task));
    kill(client.pipe.child.id(), Signal::KILL);
    gone(&shell);
    gone(&task);
}

#[test]
fn output_without_end_stays_bounded_in_memory_and_is_kept() {
    let mut client = Client::start("");
    let much = client.call("bash", json!({"command": "yes 0123456789 | head -c 100000000", "timeout_ms": 120_000}));
    let shown = text(&much);
    assert!(
        shown.len() < 31_000 && shown.contains("printed more than 67108864 bytes"),
        "{}",
        &shown[shown.len() - 500..]
    );
    let handle = much["structuredContent"]["output"].as_str().unwrap().to_owned();
    let line =
        client.call("bash", json!({"command": "head -c 50000000 /dev/zero | tr '\\0' x", "timeout_ms": 120_000}));
    let shown = text(&line);
    assert!(shown.len() < 31_000 && line["isError"] != true && shown.starts_with("xxx"), "{}", &shown[..300]);
    let kept = client.call("read_file", json!({"path": handle, "offset": 3_000_000, "limit": 1}));
    assert!(text(&kept).contains("0123456789"), "{kept}");
    let status = fs::read_to_string(format!("/proc/{}/status", client.pipe.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("the most memory was {} MiB", kilobytes >> 10);
    assert!(kilobytes < 400 << 10, "{peak}");
}

#[test]
fn commands_do_not_receive_secret_environment_variables() {
    // Seed defect 30.
    let secret = "sk-live-0123456789abcdef";
    let mut client =
        Client::with("", &[("ANTHROPIC_API_KEY", secret), ("MY_TOKEN", secret), ("SSH_AUTH_SOCK", secret)]);
    let answer = client.call("bash", json!({"command": "env; export -p; cat /proc/$$/environ"}));
    assert!(text(&answer).contains("GIT_TERMINAL_PROMPT") && !answer.to_string().contains(secret), "{answer}");
}

#[test]
fn every_alias_of_the_shell_tools_works_with_its_own_parameters() {
    let mut client = Client::start("");
    let as_json = "{\n  \"exit_code\": 0,\n  \"stdout\": \"hi\\n\",\n  \"stderr\": \"\"\n}";
    for (name, arguments, expected) in [
        (
            "Bash",
            json!({"command": "echo hi", "timeout": 5000, "description": "Greets", "dangerouslyDisableSandbox": true}),
            "hi",
        ),
        ("bash", json!({"command": "echo hi", "timeout": 10, "description": "Greets", "background": false}), "hi\n"),
        ("bash", json!({"command": "echo hi"}), "hi\n"),
        ("execute_command", json!({"command": "echo hi", "working_dir": ".", "timeout": 30}), as_json),
        ("freetext_command", json!({"command": "echo hi"}), "hi\n"),
        ("cmd", json!({"command": "echo hi", "timeout_seconds": 5}), "hi\n"),
    ] {
        let result = client.call(name, arguments.clone());
        assert_eq!(text(&result), expected, "{name} {arguments}");
    }
    let task = client.call("async_cmd_run", json!({"command": "cat", "args": ["a b"], "cwd": ".", "env": {"X": "y"}}));
    let id = task["structuredContent"]["async_cmd_id"].as_str().unwrap().to_owned();
    let awaited = client.call("async_cmd_await", json!({"ids": [id], "timeout_seconds": 20}));
    let awaited: Value = serde_json::from_str(&text(&awaited)).unwrap();
    assert_eq!(awaited["async_cmds"][0]["status"], "failed", "{awaited}");
    for (name, arguments, part) in [
        ("async_cmd_status", json!({"async_cmd_id": id}), "\"exit_code\":1"),
        ("async_cmd_logs", json!({"async_cmd_id": id}), "No such file"),
        ("clai_check", json!({"run_id": id}), "FAILED"),
        ("clai_result", json!({"run_id": id}), "No such file"),
        ("clai_wait_for_workers", json!({"timeout_seconds": 1}), "FAILED (exit code: 1)"),
        ("task_wait", json!({"task_ids": []}), "exit code 1"),
        ("task_list", json!({"task_ids": []}), "exit code 1"),
        ("task_output", json!({"task_id": id}), "; `since: "),
        ("TaskOutput", json!({"task_id": id, "block": true, "timeout": 10}), "exit code 1"),
        ("BashOutput", json!({"bash_id": id}), "<exit_code>1</exit_code>"),
        ("async_cmd_cancel", json!({"async_cmd_id": id}), "\"exit_code\":1"),
        ("KillShell", json!({"shell_id": id}), "exit code 1"),
        ("TaskStop", json!({"task_id": id}), "exit code 1"),
    ] {
        let result = client.call(name, arguments);
        assert!(text(&result).contains(part) && result["isError"] != true, "{name}: {result}");
    }
}

#[test]
fn a_command_without_approval_does_not_run_and_a_timed_out_command_returns_its_output() {
    let home = Home::new();
    let refused = home.run(&["call", "bash", r#"{"command": "touch made"}"#]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(!home.work().join("made").exists());
    let late =
        home.run(&["--allow", "Bash", "call", "bash", r#"{"command": "echo part; sleep 60", "timeout_ms": 3000}"#]);
    assert_eq!(late.status.code(), Some(5), "{late:?}");
    assert!(format!("{late:?}").contains("part"), "{late:?}");
}

/// One session of `toolstead-server`.
struct HttpSession<'a> {
    http: &'a reqwest::Client,
    url: String,
    id: String,
}

impl<'a> HttpSession<'a> {
    async fn open(http: &'a reqwest::Client, url: &str) -> Self {
        let mut session = Self { http, url: url.to_owned(), id: String::new() };
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        let response = session.post(initialize).await;
        session.id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        session.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        session
    }

    async fn post(&self, message: Value) -> reqwest::Response {
        let mut request =
            self.http.post(&self.url).bearer_auth(TOKEN).header("accept", "application/json, text/event-stream");
        request = request.header("content-type", "application/json");
        if !self.id.is_empty() {
            request = request.header("mcp-session-id", &self.id).header("mcp-protocol-version", "2025-11-25");
        }
        request.body(message.to_string()).send().await.unwrap()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let body = self.post(request(1, tool, arguments)).await.text().await.unwrap();
        let json = body.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| data.contains("\"id\":1")));
        let answer: Value =
            serde_json::from_str(json.unwrap_or(&body)).unwrap_or_else(|error| panic!("{error}: {body}"));
        answer["result"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_accesses_only_its_own_tasks_and_stops_them_when_it_ends() {
    let home = Home::new();
    let server = Server::start(&home, ALLOWED);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let (one, two) = (HttpSession::open(&http, &server.url()).await, HttpSession::open(&http, &server.url()).await);
    let (first_mark, second_mark) = (mark(6), mark(7));
    let task = |mark: &str| json!({"command": format!("exec sleep {mark}"), "background": true});
    let first = one.call("bash", task(&first_mark)).await["structuredContent"]["task_id"].clone();
    let second = two.call("bash", task(&second_mark)).await["structuredContent"]["task_id"].clone();
    assert!(first.is_string() && second.is_string() && first != second);
    let stolen = two.call("task_stop", json!({"task_id": first})).await;
    assert!(
        stolen["isError"] == true && !text(&two.call("task_list", json!({})).await).contains(first.as_str().unwrap())
    );
    until(|| (sleeps(&first_mark) && sleeps(&second_mark)).then_some(()));
    let ended = http.delete(server.url()).bearer_auth(TOKEN).header("mcp-session-id", &one.id).send().await.unwrap();
    assert_eq!(ended.status(), 204);
    gone(&first_mark);
    assert!(lives(&second_mark));
    let status = tokio::task::spawn_blocking(move || server.end(Signal::TERM)).await.unwrap();
    assert!(status.success());
    gone(&second_mark);
}
