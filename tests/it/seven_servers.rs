//! Seven real servers, three of them twice, are aggregated by one; all are killed under load, and each call ends once.

use crate::{
    binaries::{Home, Pipe, kill, node_path, node_program, python_program, stdout},
    real_servers::{Gateway, children_with, repository, succeeded},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const CALLS: usize = 500;

/// The name of an entry, the program behind it, and a call that it answers.
struct Peer {
    name: &'static str,
    program: &'static str,
    tool: &'static str,
    arguments: Value,
}

fn peers(work: &Path) -> Vec<Peer> {
    let peer = |name, program, tool, arguments: &Value| Peer { name, program, tool, arguments: arguments.clone() };
    let sum = json!({"a": 2, "b": 3});
    let file = json!({"path": work.join("a.txt")});
    let repository = json!({"repo_path": work});
    let thought = json!({"thought": "a", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    vec![
        peer("everything", "mcp-server-everything", "get-sum", &sum),
        peer("everything-too", "mcp-server-everything", "get-sum", &sum),
        peer("filesystem", "mcp-server-filesystem", "read_text_file", &file),
        peer("filesystem-too", "mcp-server-filesystem", "read_text_file", &file),
        peer("git", "mcp-server-git", "git_status", &repository),
        peer("git-too", "mcp-server-git", "git_status", &repository),
        peer("memory", "mcp-server-memory", "read_graph", &json!({})),
        peer("thinking", "mcp-server-sequential-thinking", "sequentialthinking", &thought),
        peer("time", "mcp-server-time", "convert_time", &noon),
        // Nothing listens there: the server says so, which is an answer like any other.
        peer("fetch", "mcp-server-fetch", "fetch", &json!({"url": "http://127.0.0.1:9/"})),
    ]
}

impl Peer {
    fn tool(&self) -> String {
        format!("mcp__{}__{}", self.name, self.tool)
    }

    /// Returns a server that does not start before the file `gate` exists, so that it cannot have received a call
    /// before.
    fn entry(&self, work: &Path) -> String {
        let (program, arguments): (PathBuf, Vec<String>) = match self.program {
            "mcp-server-everything" => (node_program(self.program), vec!["stdio".into()]),
            "mcp-server-filesystem" => (node_program(self.program), vec![work.display().to_string()]),
            "mcp-server-git" => (python_program(self.program), vec!["--repository".into(), work.display().to_string()]),
            "mcp-server-time" => (python_program(self.program), vec!["--local-timezone".into(), "UTC".into()]),
            "mcp-server-fetch" => (python_program(self.program), vec![]),
            node => (node_program(node), vec![]),
        };
        let wait = format!("while ! test -e {}; do sleep 0.05; done; exec \"$@\"", work.join("gate").display());
        let mut all = vec!["-c".to_owned(), wait, "sh".into(), program.display().to_string()];
        all.extend(arguments);
        format!(
            "[mcp_servers.{}]\ncommand = \"/bin/sh\"\nargs = {all:?}\nprofile = \"open\"\nallow_tools = [\"*\"]\n\
             env = {{ PATH = {:?}, MEMORY_FILE_PATH = {:?}, DISABLE_THOUGHT_LOGGING = \"true\" }}\n",
            self.name,
            node_path(),
            work.join("memory.json"),
        )
    }
}

fn start(home: &Home, config: &Path) -> Gateway {
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(config);
    let mut gateway = Gateway { pipe: Pipe::start(command), next: 0 };
    gateway.pipe.initialize();
    gateway
}

fn has_all(peers: &[Peer], tools: &[String]) -> bool {
    peers.iter().all(|peer| tools.contains(&peer.tool()))
}

/// Returns the kind of a failure: of a JSON-RPC error, or of a result that contains one.
fn kind(answer: &Value) -> Option<&str> {
    let kind = [&answer["error"]["data"]["kind"], &answer["result"]["_meta"]["toolstead/errorKind"]];
    kind.into_iter().find_map(Value::as_str)
}

#[test]
fn all_servers_are_listed_before_starting_and_each_call_ends_once_when_servers_are_killed() {
    let home = Home::new();
    repository(&home);
    let (work, gate) = (home.work(), home.work().join("gate"));
    let peers = peers(&work);
    let entries = peers.iter().map(|peer| peer.entry(&work)).collect::<String>();
    // Over a hundred tools.
    let config = home.config(&format!("[tools]\ndefer_above = 0\ndefer_above_tokens = 0\n{entries}"));

    // Once, so that what they offer is known.
    std::fs::write(&gate, "").unwrap();
    let mut gateway = start(&home, &config);
    let deadline = Instant::now() + Duration::from_secs(120);
    while !has_all(&peers, &gateway.tools()) {
        assert!(Instant::now() < deadline, "{:?}", gateway.tools());
    }
    assert!(gateway.pipe.finish().1.success());

    // The first list names all of them while not one can have started. One that waits for them waits ten seconds.
    std::fs::remove_file(&gate).unwrap();
    let mut gateway = start(&home, &config);
    let begun = Instant::now();
    let tools = gateway.tools();
    assert!(has_all(&peers, &tools), "{tools:?}");
    assert!(begun.elapsed() < Duration::from_secs(8), "the first list waited for servers: {:?}", begun.elapsed());
    std::fs::write(&gate, "").unwrap();

    let toolstead = gateway.pipe.child.id();
    let is_answer =
        |answer: &Value| succeeded(answer) || (answer["result"]["isError"] == true && kind(answer).is_none());
    for peer in &peers {
        gateway.call_until(&peer.tool(), &peer.arguments, is_answer);
    }

    // Ten of the calls would run for minutes: their server is killed when they have said that they run.
    let long = json!({"duration": 600, "steps": 1200});
    let first = gateway.next + 1;
    let mut asked = HashMap::new();
    for number in 0..CALLS {
        let peer = &peers[number % peers.len()];
        gateway.next += 1;
        let is_long = peer.program == "mcp-server-everything" && number < 50;
        let (tool, arguments) = match is_long {
            true => (format!("mcp__{}__trigger-long-running-operation", peer.name), &long),
            false => (peer.tool(), &peer.arguments),
        };
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": gateway.next}});
        gateway
            .pipe
            .send(json!({"jsonrpc": "2.0", "id": gateway.next, "method": "tools/call", "params": params}).to_string());
        asked.insert(gateway.next, (peer, is_long));
    }
    let mut running: HashSet<i64> = asked.iter().filter(|(_, (_, is_long))| *is_long).map(|(id, _)| *id).collect();
    let mut victims = ["git", "filesystem", "time", "memory", "sequential-thinking", "fetch"].into_iter();
    let mut due: Vec<&str> = Vec::new();
    let mut answers: HashMap<i64, Value> = HashMap::new();
    let kill_all = |program: &str| {
        let found = children_with(program, toolstead);
        assert!(!found.is_empty(), "{program} does not run");
        found.iter().for_each(|process| kill(*process, Signal::KILL));
    };
    while answers.len() < CALLS {
        let message = gateway.pipe.receive();
        if let Some(token) = message["params"]["progressToken"].as_i64() {
            if running.remove(&token) && running.is_empty() {
                kill_all("server-everything");
            }
            continue;
        }
        let Some(id) = message["id"].as_i64() else { continue };
        let had = answers.insert(id, message);
        assert!(had.is_none() && id >= first, "two answers to {id}: {had:?}, {}", answers[&id]);
        if answers.len().is_multiple_of(40) {
            due.extend(victims.next());
        }
        // A server is killed once it has answered a call: slow ones may have all of theirs in flight until then.
        due.retain(|victim| {
            let is_of = |peer: &Peer, is_long: bool| !is_long && peer.program.ends_with(victim);
            let has_answered = asked
                .iter()
                .any(|(id, (peer, is_long))| is_of(peer, *is_long) && answers.get(id).is_some_and(is_answer));
            if has_answered {
                kill_all(&format!("server-{victim}"));
            }
            !has_answered
        });
    }
    assert!(running.is_empty() && due.is_empty() && victims.next().is_none(), "each was killed once");

    for (id, (peer, is_long)) in &asked {
        let answer = &answers[id];
        assert!(is_answer(answer) || kind(answer).is_some(), "{} is told without a kind: {answer}", peer.name);
        assert!(!is_long || kind(answer).is_some(), "a call in flight at the kill: {answer}");
    }
    for peer in &peers {
        gateway.call_until(&peer.tool(), &peer.arguments, is_answer);
        let calls = asked.iter().filter(|(_, (other, is_long))| other.name == peer.name && !is_long);
        assert!(calls.clone().any(|(id, _)| is_answer(&answers[id])), "{} answered nothing", peer.name);
    }

    let children = children_with("", toolstead);
    let (rest, status) = gateway.pipe.finish();
    assert!(status.success(), "{status}");
    assert!(!rest.lines().any(|line| line.contains("\"result\"") || line.contains("\"error\"")), "{rest}");
    let alive: Vec<_> = children.iter().filter(|process| Path::new(&format!("/proc/{process}")).exists()).collect();
    assert!(children.len() >= peers.len() && alive.is_empty(), "nobody outlives us: {alive:?} of {children:?}");

    let mut list = home.toolstead(&["executions", "list", "--json", "--limit", "2000", "--config"]);
    let rows: Value = serde_json::from_str(&stdout(&list.arg(&config).output().unwrap())).unwrap();
    let rows: Vec<&str> =
        rows["executions"].as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert!(rows.len() >= CALLS + 2 * peers.len(), "{}", rows.len());
    let ended = |outcome: &&str| ["succeeded", "failed", "refused"].contains(outcome);
    assert!(rows.iter().all(ended), "each row has an outcome: {rows:?}");
}
