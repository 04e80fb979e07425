//! Answers of both programs to a fixed list of messages, compared with the captures in `tests/fixtures/wire`.
//!
//! A capture has the structure, member names, codes and identifiers of each answer, in their order. Texts are replaced,
//! so that a change of wording leaves a capture unchanged.

use crate::{
    binaries::{Home, Pipe, Server, TOKEN},
    support::{Events, call, initialize, legacy, modern, soon},
};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const CONFIG: &str = "[tools]\nselect = \"echo,read_file,write_file,bash,ask_user,read_resource,get_prompt\"\n\
                      [permissions]\nallow = [\"Write(allowed/**)\"]\n";
/// Members with another text in each run or release, and the word that replaces the text.
const VARYING: &[(&str, &str)] = &[("version", "VERSION"), ("requestState", STATE), ("call", "CALL")];
/// Replaced in a request by the state that accompanied the last questions of the server.
const STATE: &str = "STATE";
/// Number of unchanged lines that a report prints around a difference.
const CONTEXT: usize = 4;
/// Maximum number of lines that a report prints of each side of a difference.
const SHOWN: usize = 40;

/// A client with a fixed list of messages.
struct Client {
    file: &'static str,
    version: &'static str,
    messages: fn(&Home) -> Vec<ClientMessage>,
}

/// A message as it is sent, and its name in the capture.
struct ClientMessage {
    name: &'static str,
    text: String,
}

impl ClientMessage {
    fn new(name: &'static str, message: &Value) -> Self {
        Self { name, text: message.to_string() }
    }

    fn raw(name: &'static str, text: &str) -> Self {
        Self { name, text: text.to_owned() }
    }
}

const CLIENTS: [Client; 3] = [
    Client { file: "2025-11-25", version: LEGACY, messages: legacy_messages },
    Client { file: "2025-11-25-elicitation", version: LEGACY, messages: elicitation_messages },
    Client { file: "2026-07-28", version: MODERN, messages: modern_messages },
];

fn initialized() -> ClientMessage {
    ClientMessage::new("the end of the handshake", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

fn legacy_messages(home: &Home) -> Vec<ClientMessage> {
    let mut messages = vec![
        ClientMessage::new("a list before the handshake", &legacy(101, "tools/list", json!({}))),
        ClientMessage::new("the handshake", &initialize(LEGACY)),
        initialized(),
        ClientMessage::new("a second handshake", &initialize(LEGACY)),
    ];
    messages.extend(shared_messages(home, legacy));
    let level = |id, level: &str| legacy(id, "logging/setLevel", json!({"level": level}));
    messages.push(ClientMessage::new("a log level", &level(102, "warning")));
    messages.push(ClientMessage::new("an unknown log level", &level(103, "loud")));
    messages
}

/// Returns the messages of a client that shows questions to the user.
fn elicitation_messages(_: &Home) -> Vec<ClientMessage> {
    let mut handshake = initialize(LEGACY);
    handshake["params"]["capabilities"] = json!({"elicitation": {}});
    vec![
        ClientMessage::new("the handshake", &handshake),
        initialized(),
        ClientMessage::new("a call that requires approval", &legacy(1, "tools/call", unapproved_write())),
        ClientMessage::new("questions to the user", &legacy(2, "tools/call", call("ask_user", questions()))),
    ]
}

fn modern_messages(home: &Home) -> Vec<ClientMessage> {
    let mut messages = vec![ClientMessage::new("the discovery", &modern(101, "server/discover", json!({})))];
    messages.extend(shared_messages(home, modern));
    messages.push(ClientMessage::new("a handshake", &modern(102, "initialize", json!({}))));
    messages.push(ClientMessage::new("a request without metadata", &legacy(103, "tools/list", json!({}))));
    let with_meta = |mut request: Value, name: &str, value: Value| {
        request["params"]["_meta"][format!("io.modelcontextprotocol/{name}")] = value;
        request
    };
    let version = with_meta(modern(104, "tools/list", json!({})), "protocolVersion", json!("1900-01-01"));
    messages.push(ClientMessage::new("an unsupported version", &version));
    let echo = || call("echo", json!({"message": "hi"}));
    let level = with_meta(modern(105, "tools/call", echo()), "logLevel", json!("warning"));
    messages.push(ClientMessage::new("a log level", &level));
    let level = with_meta(modern(106, "tools/call", echo()), "logLevel", json!("loud"));
    messages.push(ClientMessage::new("an unknown log level", &level));

    let elicits = |request| with_meta(request, "clientCapabilities", json!({"elicitation": {}}));
    let retry = |mut request: Value, id: i64, key: &str| {
        request["id"] = id.into();
        request["params"]["inputResponses"] = json!({key: {"action": "decline"}});
        request["params"]["requestState"] = STATE.into();
        request
    };
    let write = elicits(modern(107, "tools/call", unapproved_write()));
    messages.push(ClientMessage::new("a call that requires approval", &write));
    messages.push(ClientMessage::new("a declined approval", &retry(write, 108, "toolstead/approval")));
    let ask = elicits(modern(109, "tools/call", call("ask_user", questions())));
    messages.push(ClientMessage::new("questions to the user", &ask));
    messages.push(ClientMessage::new("declined questions", &retry(ask, 110, "toolstead/question-1")));
    messages
}

fn unapproved_write() -> Value {
    call("write_file", json!({"path": "other.txt", "content": "x\n"}))
}

fn questions() -> Value {
    let option = |label: &str| json!({"label": label, "description": "One of two"});
    json!({"questions": [
        {"question": "Which database?", "header": "Database", "options": [option("SQLite"), option("Postgres")]},
    ]})
}

/// Returns the messages of both generations, with requests in the form of one.
fn shared_messages(home: &Home, request: fn(i64, &str, Value) -> Value) -> Vec<ClientMessage> {
    let folder = format!("file://{}", home.work().canonicalize().unwrap().display());
    let tool = |name: &str, arguments: Value| ("tools/call", call(name, arguments));
    let completion = |prompt: &str| {
        let argument = json!({"name": "language", "value": "ru"});
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": argument}))
    };
    let requests = [
        ("a ping", ("ping", json!({}))),
        ("the tools", ("tools/list", json!({}))),
        ("tools after an invalid cursor", ("tools/list", json!({"cursor": "elsewhere"}))),
        ("a call", tool("echo", json!({"message": "hi"}))),
        ("a call with structured content", tool("read_file", json!({"path": "notes.txt"}))),
        ("a call that a rule allows", tool("write_file", json!({"path": "allowed/a.txt", "content": "x\n"}))),
        ("a call that fails", tool("read_file", json!({"path": "absent.txt"}))),
        ("a call without a required argument", tool("read_file", json!({}))),
        ("a call with an unknown argument", tool("echo", json!({"massage": "hi"}))),
        ("a call whose arguments are a text", tool("echo", json!("hi"))),
        ("a call without a name", ("tools/call", json!({"arguments": {}}))),
        ("a call of an unknown tool", tool("ecco", json!({}))),
        ("a call of a tool that is not offered", tool("grep", json!({"pattern": "x"}))),
        ("a denied call", ("tools/call", unapproved_write())),
        ("a denied command", tool("bash", json!({"command": "rm notes.txt"}))),
        ("questions without a user", tool("ask_user", questions())),
        ("the resources", ("resources/list", json!({}))),
        ("the templates of resources", ("resources/templates/list", json!({}))),
        ("a resource", ("resources/read", json!({"uri": format!("{folder}/notes.txt")}))),
        ("a resource that does not exist", ("resources/read", json!({"uri": format!("{folder}/absent.txt")}))),
        ("the prompts", ("prompts/list", json!({}))),
        ("a prompt", ("prompts/get", json!({"name": "explain_code", "arguments": {"code": "x = 1"}}))),
        ("a prompt without a required argument", ("prompts/get", json!({"name": "explain_code"}))),
        ("an unknown prompt", ("prompts/get", json!({"name": "absent"}))),
        ("a completion", completion("explain_code")),
        ("a completion for an unknown prompt", completion("absent")),
        ("a completion without a reference", ("completion/complete", json!({"ref": {}}))),
        ("an unknown method", ("no/such", json!({}))),
    ];
    let mut messages = Vec::new();
    for (id, (name, (method, params))) in (1..).zip(requests) {
        messages.push(ClientMessage::new(name, &request(id, method, params)));
    }
    for (name, text) in [
        ("invalid JSON", "{not json"),
        ("a batch", r#"[{"jsonrpc":"2.0","id":201,"method":"ping"}]"#),
        ("an empty batch", "[]"),
        ("another version of JSON-RPC", r#"{"jsonrpc":"1.0","id":202,"method":"ping"}"#),
        ("an id of null", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
        ("parameters in an array", r#"{"jsonrpc":"2.0","id":203,"method":"ping","params":[]}"#),
    ] {
        messages.push(ClientMessage::raw(name, text));
    }
    messages
}

/// Messages of a program after one of the client, with the facts of the HTTP response.
struct Response {
    head: Map<String, Value>,
    messages: Vec<Value>,
}

/// Returns `true` for a notification. Captures omit those of the server, because their number differs between runs.
fn is_notification(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_none()
}

/// Returns the answer of a user who declines, if the message is a question.
fn declined(message: &Value) -> Option<Value> {
    let is_question = message.get("method").is_some() && message.get("id").is_some();
    is_question.then(|| json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}}))
}

/// Sends the message to `toolstead mcp`. Returns `None` for a notification, which has no answer.
fn exchange_over_stdio(pipe: &mut Pipe, text: &str) -> Option<Response> {
    pipe.send(text);
    let sent: Value = serde_json::from_str(text).unwrap_or_default();
    if is_notification(&sent) {
        return None;
    }
    let mut messages = Vec::new();
    loop {
        let message = pipe.receive();
        if is_notification(&message) {
            continue;
        }
        let reply = declined(&message);
        messages.push(message);
        match reply {
            Some(reply) => pipe.send(reply.to_string()),
            None => return Some(Response { head: Map::new(), messages }),
        }
    }
}

/// A client of `toolstead-server`.
struct HttpClient {
    http: reqwest::Client,
    server: Server,
    version: &'static str,
    session: Option<String>,
}

impl HttpClient {
    fn start(home: &Home, version: &'static str) -> Self {
        // Fails if another test has installed the provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, server: Server::start(home, CONFIG), version, session: None }
    }

    /// Returns the request with the headers that this message requires.
    fn post(&self, text: &str) -> reqwest::RequestBuilder {
        let mut post = self.http.post(self.server.url()).bearer_auth(TOKEN);
        post = post.header("accept", "application/json, text/event-stream").header("content-type", "application/json");
        if let Some(session) = &self.session {
            post = post.header("mcp-session-id", session).header("mcp-protocol-version", self.version);
        }
        if self.version == MODERN {
            let message: Value = serde_json::from_str(text).unwrap_or_default();
            let params = &message["params"];
            let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().unwrap_or(self.version);
            post = post.header("mcp-protocol-version", version);
            if let Some(method) = message["method"].as_str() {
                post = post.header("mcp-method", method);
            }
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                post = post.header("mcp-name", name);
            }
        }
        post.body(text.to_owned())
    }

    async fn exchange(&mut self, text: &str) -> Response {
        let response = soon(self.post(text).send()).await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (content_type, session) = (header("content-type"), header("mcp-session-id"));
        let mut head = Map::new();
        head.insert("status".into(), response.status().as_u16().into());
        head.insert("content-type".into(), content_type.clone().into());
        if session.is_some() {
            head.insert("mcp-session-id".into(), "SESSION".into());
            self.session = session;
        }
        let mut messages = Vec::new();
        if content_type.is_some_and(|value| value == "text/event-stream") {
            let mut events = Events::of(response);
            while let Some(message) = events.try_next().await {
                if let Some(reply) = declined(&message) {
                    soon(self.post(&reply.to_string()).send()).await.unwrap();
                }
                messages.push(message);
            }
            messages.retain(|message| !is_notification(message));
        } else {
            let body = soon(response.text()).await.unwrap();
            if !body.is_empty() {
                messages.push(serde_json::from_str(&body).unwrap_or(Value::String(body)));
            }
        }
        Response { head, messages }
    }
}

enum Connection {
    Stdio(Pipe),
    Http(HttpClient),
}

impl Connection {
    fn stdio(home: &Home) -> Self {
        let mut command = home.toolstead(&["mcp", "--config"]);
        command.arg(home.config(CONFIG));
        Self::Stdio(Pipe::start(command))
    }

    async fn exchange(&mut self, text: &str) -> Option<Response> {
        match self {
            Self::Stdio(pipe) => exchange_over_stdio(pipe, text),
            Self::Http(client) => Some(client.exchange(text).await),
        }
    }
}

/// Sends the messages of the client. Returns the capture of each response.
async fn captures(client: &Client, home: &Home, mut connection: Connection) -> Vec<Value> {
    let folder = home.work().parent().unwrap().to_path_buf();
    let folders = [folder.canonicalize().unwrap(), folder].map(|folder| folder.to_str().unwrap().to_owned());
    let placeholder = format!("{STATE:?}");
    let mut state = Value::Null;
    let mut captures = Vec::new();
    for ClientMessage { name, text } in (client.messages)(home) {
        let text = text.replace(&placeholder, &state.to_string());
        let Some(Response { head, messages }) = connection.exchange(&text).await else { continue };
        if let Some(given) = messages.last().and_then(|answer| answer.pointer("/result/requestState")) {
            state = given.clone();
        }
        let mut capture = Map::new();
        capture.insert("sent".into(), name.into());
        capture.extend(head);
        let messages = messages.iter().map(|message| normalized(message, &folders));
        capture.insert("received".into(), messages.collect());
        captures.push(Value::Object(capture));
    }
    captures
}

/// Replaces texts with a blank, and texts that differ from run to run.
fn normalized(value: &Value, folders: &[String]) -> Value {
    match value {
        Value::String(text) => {
            let text = folders.iter().fold(text.clone(), |text, folder| text.replace(folder.as_str(), "HOME"));
            if text.contains(char::is_whitespace) { "…".into() } else { text.into() }
        }
        Value::Array(items) => items.iter().map(|item| normalized(item, folders)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let varying = VARYING.iter().find(|(varying, _)| value.is_string() && *varying == name.as_str());
                let value = varying.map_or_else(|| normalized(value, folders), |(_, word)| Value::from(*word));
                (name.clone(), value)
            };
            Value::Object(members.iter().map(member).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Returns a report for each message whose capture changed. Compares texts, because values are equal in any order of
/// their members.
fn differences(file: &str, stored: &[Value], present: &[Value]) -> Vec<String> {
    let capture_of = |captures: &[Value], name: &str| {
        captures.iter().find(|capture| capture["sent"] == name).map_or_else(String::new, pretty)
    };
    let names: BTreeSet<&str> = stored.iter().chain(present).filter_map(|capture| capture["sent"].as_str()).collect();
    let reports = names.into_iter().filter_map(|name| {
        let (stored, present) = (capture_of(stored, name), capture_of(present, name));
        (stored != present).then(|| format!("{file}: \"{name}\"\n{}", changed_lines(&stored, &present)))
    });
    reports.collect()
}

/// Returns the lines from the first difference to the last one, with some lines around them.
fn changed_lines(stored: &str, present: &str) -> String {
    let (stored, present): (Vec<&str>, Vec<&str>) = (stored.lines().collect(), present.lines().collect());
    let before = stored.iter().zip(&present).take_while(|(one, other)| one == other).count();
    let ends = stored[before..].iter().rev().zip(present[before..].iter().rev());
    let after = ends.take_while(|(one, other)| one == other).count();
    let lines = |sign: &str, lines: &[&str]| -> String {
        let mut text: String = lines.iter().take(SHOWN).map(|line| format!("{sign} {line}\n")).collect();
        if lines.len() > SHOWN {
            text.push_str(&format!("{sign} … {} more lines\n", lines.len() - SHOWN));
        }
        text
    };
    let end = stored.len() - after;
    [
        lines(" ", &stored[before.saturating_sub(CONTEXT)..before]),
        lines("-", &stored[before..end]),
        lines("+", &present[before..present.len() - after]),
        lines(" ", &stored[end..stored.len().min(end + CONTEXT)]),
    ]
    .concat()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/wire")
}

#[tokio::test]
async fn answers_of_both_protocol_generations_equal_the_captures() {
    let writes = std::env::var_os("TOOLSTEAD_WRITE_CAPTURES").is_some();
    let mut faults = Vec::new();
    for client in &CLIENTS {
        for transport in ["stdio", "http"] {
            let home = Home::new();
            fs::write(home.work().join("notes.txt"), "one\ntwo\n").unwrap();
            let connection = match transport {
                "stdio" => Connection::stdio(&home),
                _ => Connection::Http(HttpClient::start(&home, client.version)),
            };
            let present = captures(client, &home, connection).await;
            let file = format!("{transport}-{}.json", client.file);
            let path = folder().join(&file);
            if writes {
                fs::create_dir_all(folder()).unwrap();
                fs::write(&path, format!("{}\n", pretty(&Value::Array(present)))).unwrap();
                continue;
            }
            let stored = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
            let stored: Vec<Value> = serde_json::from_str(&stored).unwrap_or_else(|error| panic!("{file}: {error}"));
            faults.extend(differences(&file, &stored, &present));
        }
    }
    let hint = "run this test with TOOLSTEAD_WRITE_CAPTURES=1 if each change is intended";
    assert!(faults.is_empty(), "{} answers changed: {hint}\n\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_change_of_wording_leaves_a_capture_unchanged_and_a_change_of_structure_does_not() {
    let folders = ["/tmp/home".to_owned()];
    let answer = |text: &str| json!({"code": -1, "kind": "not_found", "version": "1.2", "message": text});
    let capture = normalized(&answer("no file `a`"), &folders);
    assert_eq!(capture, json!({"code": -1, "kind": "not_found", "version": "VERSION", "message": "…"}));
    assert_eq!(capture, normalized(&answer("cannot find `a`"), &folders));
    assert_eq!(normalized(&json!(["file:///tmp/home/a"]), &folders), json!(["file://HOME/a"]));

    let stored = [json!({"sent": "a call", "received": [{"a": 1, "b": 2, "c": 3}]})];
    assert_eq!(differences("f", &stored, &stored), [""; 0]);
    let reordered = [json!({"sent": "a call", "received": [{"b": 2, "a": 1, "c": 3}]})];
    let expected = "f: \"a call\"\n  {\n    \"sent\": \"a call\",\n    \"received\": [\n      {\n\
                    -       \"a\": 1,\n-       \"b\": 2,\n+       \"b\": 2,\n+       \"a\": 1,\n\
                    \x20       \"c\": 3\n      }\n    ]\n  }\n";
    assert_eq!(differences("f", &stored, &reordered), [expected]);
}
