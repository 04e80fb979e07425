//! The log of the server.

use crate::{
    binaries::{Home, TOKEN, kill, stdout},
    support::{call, initialize, legacy},
};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStderr, Stdio},
};

/// A server and what it has logged so far.
struct LoggingServer {
    child: Child,
    messages: BufReader<ChildStderr>,
    address: String,
    log: String,
}

impl LoggingServer {
    fn start(home: &Home, arguments: &[&str], config: &str) -> Self {
        let mut command = home.command(env!("CARGO_BIN_EXE_toolstead-server"), &["--listen", "127.0.0.1:0"]);
        command.args(arguments).arg("--config").arg(home.config(config)).env("TOOLSTEAD_SERVER_TOKEN", TOKEN);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        while !printed.contains("Ctrl-C") {
            assert!(output.read_line(&mut printed).unwrap() > 0, "{printed}");
        }
        let address = printed.split_once("http://").unwrap().1.split('/').next().unwrap().to_owned();
        let messages = BufReader::new(child.stderr.take().unwrap());
        Self { child, messages, address, log: String::new() }
    }

    /// Reads the log until it has a line with all of these texts, and returns that line.
    fn line_with(&mut self, texts: &[&str]) -> String {
        loop {
            if let Some(line) = self.log.lines().find(|line| texts.iter().all(|text| line.contains(text))) {
                return line.to_owned();
            }
            assert!(self.messages.read_line(&mut self.log).unwrap() > 0, "{texts:?} is missing in {}", self.log);
        }
    }

    /// Sends one request and returns the whole response.
    fn exchange(&self, line: &str, token: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{line} /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Opens a session as this client, calls `echo`, ends the session and returns its id.
    fn one_call(&self, client: &str) -> String {
        let mut opening = initialize("2025-11-25");
        opening["params"]["clientInfo"]["name"] = client.into();
        let opened = self.exchange("POST", TOKEN, "", &opening.to_string());
        let session = opened.split_once("mcp-session-id: ").unwrap().1.split('\r').next().unwrap().to_owned();
        let headers = format!("mcp-session-id: {session}\r\n");
        let echo = legacy(1, "tools/call", call("echo", serde_json::json!({"message": "hi"})));
        assert!(self.exchange("POST", TOKEN, &headers, &echo.to_string()).contains("Echo: hi"));
        assert!(self.exchange("DELETE", TOKEN, &headers, "").starts_with("HTTP/1.1 204"));
        session
    }

    /// Ends the server and returns its whole log.
    fn end(mut self) -> String {
        kill(self.child.id(), Signal::TERM);
        self.messages.read_to_string(&mut self.log).unwrap();
        assert!(self.child.wait().unwrap().success());
        self.log
    }
}

#[test]
fn the_server_logs_start_connections_sessions_and_shutdown_by_default() {
    let home = Home::new();
    let upstream = format!(
        "[mcp_servers.inner]\ncommand = {:?}\nargs = [\"mcp\"]\nprofile = \"open\"\n\
         [mcp_servers.gone]\ncommand = \"no-such-program\"\n",
        env!("CARGO_BIN_EXE_toolstead")
    );
    let mut server = LoggingServer::start(&home, &[], &upstream);
    let started = server.line_with(&["started", "version="]);
    assert!(started.contains(&server.address) && started.contains("test.toml"), "{started}");
    let ready = server.line_with(&["ready", "tools=", "sandbox="]);
    assert!(ready.contains("tier "), "{ready}");
    server.line_with(&["connected to the MCP server", "server=inner"]);
    server.line_with(&[" WARN ", "the MCP server is down", "server=gone"]);

    let guess = "a-guess-of-the-token-that-is-wrong";
    assert!(server.exchange("POST", guess, "", "{}").starts_with("HTTP/1.1 401"));
    server.line_with(&["refused a wrong token", "address=127.0.0.1"]);
    let session = server.one_call("a\u{1b}[31m client\nforged");
    server.line_with(&["session started", &session, "principal=\"token:server\"", "client="]);
    server.line_with(&["session ended", &session, "ended by its client"]);
    let log = server.end();
    for expected in ["draining calls=0 waiting=0 sessions=0", "drained finished=0 cancelled=0", "ended"] {
        assert!(log.contains(expected), "{expected} is missing in {log}");
    }
    assert!(!log.contains(guess) && !log.contains(TOKEN), "{log}");
    assert!(!log.contains("call ended"), "{log}");
    assert!(!log.chars().any(|c| c.is_control() && c != '\n') && !log.contains("\nforged"), "{log}");
}

#[track_caller]
fn check_call_is_logged(arguments: &[&str], config: &str) {
    let home = Home::new();
    let mut server = LoggingServer::start(&home, arguments, config);
    let session = server.one_call("test");
    let line = server.line_with(&["call ended", "tool=\"echo\""]);
    for expected in ["decision=\"allow\"", "outcome=\"succeeded\"", "ms=", "principal=\"token:server\"", &session] {
        assert!(line.contains(expected), "{expected} is missing in {line}");
    }
    let id = line.split_once("call=").unwrap().1.split(' ').next().unwrap();
    server.end();
    let shown = home.run(&["executions", "show", id]);
    assert!(shown.status.success() && stdout(&shown).contains("echo"), "{}", stdout(&shown));
}

#[test]
fn each_call_is_logged_with_its_record_id_if_call_logging_is_enabled() {
    check_call_is_logged(&["-v"], "");
    check_call_is_logged(&[], "[server]\nlog_calls = true\n");
}

#[test]
fn every_line_of_the_json_log_is_an_object() {
    let home = Home::new();
    let mut server = LoggingServer::start(&home, &["-v", "--log-format", "json"], "");
    let client = "a\u{1b}[31m \"client\"\u{202e}\nforged";
    let session = server.one_call(client);
    server.line_with(&["call ended"]);
    let log = server.end();
    let events: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let with = |message: &str| events.iter().find(|event| event["message"] == message).unwrap();
    assert_eq!((&with("call ended")["tool"], &with("call ended")["session"]), (&"echo".into(), &Value::from(session)));
    assert!(with("session started")["client"].as_str().unwrap().contains("[31m \"client\""), "{log}");
    assert!(!log.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{log}");
    assert!(with("started")["timestamp"].is_string() && with("drained")["cancelled"] == 0, "{log}");
}

#[test]
fn a_quiet_server_logs_errors_only() {
    let home = Home::new();
    let server = LoggingServer::start(&home, &["-q"], "[server]\nlog_calls = true\n");
    server.one_call("test");
    assert_eq!(server.end(), "");
}
