//! The folders of an MCP client on stdio as roots, where nothing else gives one: through the real binary, with a client
//! that answers as the test says.

use crate::binaries::{Home, Pipe, stdout};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

/// A client that was started in a home folder, or another one, and what it was asked so far.
struct Client {
    pipe: Pipe,
    /// Messages that arrived while another one was awaited.
    early: VecDeque<Value>,
    calls: i64,
}

impl Client {
    /// Opens a session in this folder; the capabilities are what the client declares.
    fn start(home: &Home, folder: &Path, arguments: &[&str], capabilities: Value) -> Self {
        let mut command = home.toolstead(&[&["mcp"], arguments].concat());
        command.current_dir(folder);
        let mut pipe = Pipe::start(command);
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}}});
        pipe.send(initialize.to_string());
        assert_eq!(pipe.answer(0)["result"]["protocolVersion"], "2025-11-25");
        pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        Self { pipe, early: VecDeque::new(), calls: 0 }
    }

    /// One that names folders and can ask its person.
    fn asking(home: &Home) -> Self {
        Self::start(home, &home_folder(home), &[], json!({"roots": {"listChanged": true}, "elicitation": {}}))
    }

    /// Returns the next message that fits; others are stored for later.
    fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let message = self.pipe.receive();
            if fits(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// Waits for a request of the server and answers it; returns its parameters.
    fn answer_to(&mut self, method: &str, result: Value) -> Value {
        let request = self.next(|message| message["method"] == method);
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.pipe.send(answer.to_string());
        request["params"].clone()
    }

    fn names(&mut self, folders: &[&Path]) {
        let roots: Vec<Value> =
            folders.iter().map(|folder| json!({"uri": format!("file://{}", folder.display())})).collect();
        self.answer_to("roots/list", json!({"roots": roots}));
    }

    /// Waits for the question about these folders, and answers it.
    #[track_caller]
    fn says(&mut self, answers: &[(&Path, &str)]) {
        let content: serde_json::Map<String, Value> =
            answers.iter().enumerate().map(|(at, (_, answer))| (format!("folder_{}", at + 1), json!(answer))).collect();
        let asked = self.answer_to("elicitation/create", json!({"action": "accept", "content": content}));
        for (folder, _) in answers {
            assert!(asked["message"].as_str().unwrap().contains(folder.to_str().unwrap()), "{asked}");
        }
        assert_eq!(asked["requestedSchema"]["required"].as_array().unwrap().len(), answers.len(), "{asked}");
    }

    fn call(&mut self, path: &Path) -> i64 {
        self.calls += 1;
        let call = json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call",
            "params": {"name": "read_file", "arguments": {"path": path}}});
        self.pipe.send(call.to_string());
        self.calls
    }

    fn text(&mut self, call: i64) -> String {
        let answer = self.next(|message| message["id"] == call && message.get("method").is_none());
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn read(&mut self, path: &Path) -> String {
        let call = self.call(path);
        self.text(call)
    }

    /// Returns `true` if an unanswered question to the user has arrived.
    fn was_asked(&self) -> bool {
        self.early.iter().any(|message| message["method"] == "elicitation/create")
    }
}

fn home_folder(home: &Home) -> PathBuf {
    home.work().parent().unwrap().join("home").canonicalize().unwrap()
}

/// A folder with a file `a.txt` in it.
fn project(home: &Home, name: &str) -> PathBuf {
    let folder = home.work().canonicalize().unwrap().join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), format!("in {name}\n")).unwrap();
    folder
}

#[track_caller]
fn check_no_root(outcome: &str) {
    // The flag is for the user: the next member of the result has it.
    assert!(
        outcome.contains("no root") && outcome.contains("Ask your user") && !outcome.contains("--root"),
        "{outcome}"
    );
}

#[test]
fn a_client_folder_becomes_a_root_after_an_approval_that_is_remembered() {
    let home = Home::new();
    let (one, other) = (project(&home, "one"), project(&home, "other"));
    let mut client = Client::asking(&home);
    // A call waits for the answer; a list does not.
    let early = client.call(&one.join("a.txt"));
    client.names(&[&one, &other]);
    client.pipe.send(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
    assert!(client.next(|message| message["id"] == "list")["result"]["tools"].as_array().unwrap().len() > 10);
    client.says(&[(&one, "yes"), (&other, "no")]);
    assert!(client.text(early).contains("in one"));
    assert!(client.read(Path::new("a.txt")).contains("in one"), "relative paths start there");
    let text = client.read(&other.join("a.txt"));
    assert!(text.contains("outside of the workspace's roots"), "{text}");
    let (_, status) = client.pipe.finish();
    assert!(status.success());

    let mut client = Client::asking(&home);
    client.names(&[&one]);
    assert!(client.read(&one.join("a.txt")).contains("in one"));
    assert!(!client.was_asked());
    drop(client);

    let taken_back = home.run(&["config", "trust", "--remove", one.to_str().unwrap()]);
    assert!(taken_back.status.success(), "{}", stdout(&taken_back));
    let mut client = Client::asking(&home);
    client.names(&[&one]);
    client.says(&[(&one, "no")]);
    check_no_root(&client.read(&one.join("a.txt")));
}

#[test]
fn a_client_folder_without_an_approval_is_no_root_and_tools_report_it() {
    let home = Home::new();
    let one = project(&home, "one");
    let file = one.join("a.txt");
    let mut client = Client::start(&home, &home_folder(&home), &[], json!({"roots": {}}));
    client.names(&[&one]);
    check_no_root(&client.read(&file));
    let mut client = Client::start(&home, &home_folder(&home), &[], json!({"elicitation": {}}));
    check_no_root(&client.read(&file));
    let mut client = Client::asking(&home);
    client.names(&[&one]);
    client.answer_to("elicitation/create", json!({"action": "decline"}));
    check_no_root(&client.read(&file));
    assert!(!home.data().join("toolstead/trusted.json").exists());
}

#[test]
fn unsafe_or_missing_client_folders_never_become_roots() {
    let home = Home::new();
    let top = home.work().parent().unwrap().canonicalize().unwrap();
    let mut client = Client::asking(&home);
    let data = top.join("data");
    client.names(&[Path::new("/"), &home_folder(&home), &top, &data, Path::new("/proc"), &top.join("missing")]);
    check_no_root(&client.read(&top.join("test.toml")));
    assert!(!client.was_asked());
}

#[test]
fn a_folder_that_the_client_removes_is_no_longer_a_root_and_a_new_one_requires_approval() {
    let home = Home::new();
    let (one, other) = (project(&home, "one"), project(&home, "other"));
    let mut client = Client::asking(&home);
    client.names(&[&one]);
    client.says(&[(&one, "yes")]);
    assert!(client.read(&one.join("a.txt")).contains("in one"));
    client.pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    client.names(&[&other]);
    client.says(&[(&other, "yes")]);
    assert!(client.read(&other.join("a.txt")).contains("in other"));
    let message = client.read(&one.join("a.txt"));
    assert!(message.contains("outside of the workspace's roots"), "{message}");
    client.pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    client.names(&[]);
    check_no_root(&client.read(&other.join("a.txt")));
    let (_, status) = client.pipe.finish();
    assert!(status.success());
}

#[test]
fn client_folders_are_not_requested_if_a_flag_or_the_start_folder_gives_a_root() {
    let home = Home::new();
    let (one, other) = (project(&home, "one"), project(&home, "other"));
    let capabilities = json!({"roots": {}, "elicitation": {}});
    let flag = ["--root", one.to_str().unwrap()];
    for (folder, arguments) in [(home_folder(&home), &flag[..]), (one.clone(), &[])] {
        let mut client = Client::start(&home, &folder, arguments, capabilities.clone());
        assert!(client.read(&one.join("a.txt")).contains("in one"));
        assert!(client.read(&other.join("a.txt")).contains("outside of the workspace's roots"));
        assert!(client.early.iter().all(|message| message["method"] != "roots/list"), "{:?}", client.early);
    }
}

#[test]
fn requests_are_answered_even_if_the_client_closes_input_before_naming_roots() {
    let home = Home::new();
    let mut client = Client::asking(&home);
    client.pipe.send(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
    let (rest, status) = client.pipe.finish();
    assert!(status.success());
    assert!(rest.contains("\"read_file\""), "{rest}");
}

#[test]
fn folders_of_a_2026_07_28_client_are_not_used_as_roots() {
    let home = Home::new();
    let one = project(&home, "one");
    let mut command = home.toolstead(&["mcp"]);
    command.current_dir(home_folder(&home));
    let mut pipe = Pipe::start(command);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "read_file", "arguments": {"path": one.join("a.txt")}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "elicitation": {}}}}});
    pipe.send(call.to_string());
    check_no_root(pipe.answer(1)["result"]["content"][0]["text"].as_str().unwrap());
}
