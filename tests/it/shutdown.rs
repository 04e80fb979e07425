//! The end of the server: signals and the drain.

use crate::{
    binaries::{Home, Server, TOKEN, kill},
    support::{Events, initialize, legacy, soon},
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A client of the binary, in a session of 2025-11-25 that fills in forms.
struct Client {
    http: reqwest::Client,
    address: String,
    session: Option<String>,
}

impl Client {
    async fn of(server: &Server) -> Self {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let mut client = Self { http, address: server.address.clone(), session: None };
        let mut opening = initialize("2025-11-25");
        opening["params"]["capabilities"] = json!({"elicitation": {}});
        let opened = client.post(&opening).await;
        client.session = Some(opened.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        client
    }

    async fn post(&self, message: &Value) -> reqwest::Response {
        let request = self.http.post(format!("http://{}/mcp", self.address)).bearer_auth(TOKEN);
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(message.to_string());
        let request = match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        };
        soon(request.send()).await.unwrap()
    }

    /// Calls a tool that requires approval and returns the stream of the call, and the question.
    async fn pending_call(&self) -> (Events, Value) {
        let write = json!({"name": "write_file", "arguments": {"path": "a.txt", "content": "text"}});
        let mut stream = Events::of(self.post(&legacy(1, "tools/call", write)).await);
        let question = stream.next().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        (stream, question)
    }

    /// Returns once the server reports that it shuts down, over a connection of its own.
    async fn drain_began(&self) {
        let readyz = async || soon(self.http.get(format!("http://{}/readyz", self.address)).send()).await.unwrap();
        loop {
            let response = readyz().await;
            if response.status() == 503 && response.text().await.unwrap() == "shutting down\n" {
                return;
            }
        }
    }
}

#[track_caller]
fn check_outcomes(home: &Home, expected: &[&str]) {
    let listed = home.run(&["executions", "list", "--json", "--kind", "tool"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let rows = listed["executions"].as_array().unwrap();
    let outcomes: Vec<&str> = rows.iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, expected, "{listed}");
}

#[tokio::test]
async fn the_server_ends_once_its_calls_have_ended() {
    let home = Home::new();
    let server = Server::start(&home, "[server]\ndrain_seconds = 3600\n");
    let client = Client::of(&server).await;
    let (mut stream, question) = client.pending_call().await;
    kill(server.child.id(), Signal::TERM);
    client.drain_began().await;
    let accept = json!({"action": "accept", "content": {"part_1": "once"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": accept});
    assert_eq!(client.post(&answer).await.status(), 202);
    assert!(stream.next().await["result"]["isError"].is_null());
    assert!(wait(server).await.success());
    check_outcomes(&home, &["succeeded"]);
    assert_eq!(std::fs::read_to_string(home.work().join("a.txt")).unwrap(), "text");
}

#[tokio::test]
async fn calls_that_outlast_the_drain_are_cancelled() {
    let home = Home::new();
    let server = Server::start(&home, "[server]\ndrain_seconds = 0\n");
    let (_stream, _) = Client::of(&server).await.pending_call().await;
    kill(server.child.id(), Signal::TERM);
    assert!(wait(server).await.success());
    check_outcomes(&home, &["cancelled"]);
}

#[tokio::test]
async fn a_second_signal_ends_the_server_at_once() {
    let home = Home::new();
    let server = Server::start(&home, "[server]\ndrain_seconds = 3600\n");
    let client = Client::of(&server).await;
    let (_stream, _) = client.pending_call().await;
    kill(server.child.id(), Signal::TERM);
    client.drain_began().await;
    kill(server.child.id(), Signal::INT);
    assert!(wait(server).await.success());
    check_outcomes(&home, &["cancelled"]);
}

#[tokio::test]
async fn a_signal_ends_a_server_that_waits_for_a_required_mcp_server() {
    let home = Home::new();
    let config = home.config(
        "[mcp_servers.silent]\ncommand = \"sleep\"\nargs = [\"1000\"]\nrequired = true\nprofile = \"open\"\n\
         connect_timeout_seconds = 3600\n",
    );
    let mut command = home.command(env!("CARGO_BIN_EXE_toolstead-server"), &["--listen", "127.0.0.1:0", "--config"]);
    let child = command.arg(config).env("TOOLSTEAD_SERVER_TOKEN", TOKEN).spawn().unwrap();
    let server = Server { child, address: String::new() };
    let status = format!("/proc/{}/status", server.child.id());
    // Without a handler the signal would end the server by itself.
    let is_handled = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (Signal::TERM.as_raw() - 1)) != 0
    };
    while !is_handled() {
        tokio::task::yield_now().await;
    }
    kill(server.child.id(), Signal::TERM);
    assert!(wait(server).await.success());
}

/// Waits for the end of the server. The limit is far below the drain.
async fn wait(mut server: Server) -> std::process::ExitStatus {
    soon(tokio::task::spawn_blocking(move || server.child.wait())).await.unwrap().unwrap()
}
