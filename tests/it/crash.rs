//! `kill -9` under load, again and again: after each start the database opens, every answered call has its row with its
//! outcome, what was running is marked as interrupted, and what a living sibling runs is not.

use crate::binaries::{Home, Pipe, Server, TOKEN, kill, peer, python_program};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const ROUNDS: usize = 50;

fn config() -> String {
    format!(
        "[permissions]\nallow = [\"Write\"]\n[mcp_servers.hang]\ncommand = {:?}\nargs = [{:?}, \"hang\"]\nallow_tools = [\"*\"]\nprotocol = \"2025-11-25\"\n",
        python_program("python"),
        peer("hostile_upstream.py")
    )
}

/// The database of the home.
fn database(folder: &Path) -> PathBuf {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let file = entries.iter().find(|path| path.extension().is_some_and(|extension| extension == "db"));
    file.cloned().unwrap_or_else(|| database(entries.iter().find(|path| path.is_dir()).expect("no database")))
}

async fn rows(file: &Path, condition: &'static str) -> Vec<(String, String)> {
    let options =
        sqlx::sqlite::SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(Duration::from_secs(20));
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let statement = "SELECT coalesce(json_extract(record, '$.arguments'), ''), outcome FROM tool_executions
        WHERE $1 = 'all' OR outcome = 'running'";
    let rows = sqlx::query_as(statement).bind(condition).fetch_all(&pool).await.unwrap();
    pool.close().await;
    rows
}

/// Calls `echo` and `write_file` repeatedly, and stores every answer that arrives.
async fn load(client: reqwest::Client, url: String, session: String, worker: usize, answered: Arc<Mutex<Vec<String>>>) {
    for number in 0.. {
        let mark = format!("{session}-{worker}-{number}");
        let (tool, arguments) = match number % 4 {
            0 => ("write_file", json!({"path": format!("{worker}.txt"), "content": mark})),
            _ => ("echo", json!({"message": mark})),
        };
        let body = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let request = client.post(&url).bearer_auth(TOKEN).header("accept", "application/json, text/event-stream");
        let request =
            request.header("mcp-session-id", &session).header("mcp-protocol-version", "2025-11-25").json(&body);
        let Ok(response) = request.send().await else { return };
        let Ok(answer) = response.json::<Value>().await else { return };
        assert!(answer["result"]["content"].is_array() && answer["result"]["isError"] != true, "{answer}");
        answered.lock().unwrap().push(mark);
    }
}

async fn open_session(client: &reqwest::Client, url: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}});
    let request =
        client.post(url).bearer_auth(TOKEN).header("accept", "application/json, text/event-stream").json(&body);
    request.send().await.unwrap().headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

/// Waits for a condition that another process brings about.
async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !done().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answered_calls_stay_recorded_after_a_kill_and_interrupted_calls_are_marked() {
    let home = Home::new();
    let first = Server::start(&home, &config());
    let file = database(&home.data());
    drop(first);

    // A sibling that lives through it all, with a call that never ends.
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(home.config(&config()));
    let mut sibling = Pipe::start(command);
    sibling.initialize();
    sibling.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp__hang__work","arguments":{"n":"sibling"}}}"#);
    let sibling_runs = async || rows(&file, "running").await.iter().any(|(arguments, _)| arguments.contains("sibling"));
    until("the sibling's call is on record", sibling_runs).await;

    // Fails where another test was first, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut total = 0;
    for round in 0..ROUNDS {
        let server = Server::start(&home, &config());
        let session = open_session(&client, &server.url()).await;
        let answered = Arc::new(Mutex::new(Vec::new()));
        let workers: Vec<_> = (0..4)
            .map(|worker| tokio::spawn(load(client.clone(), server.url(), session.clone(), worker, answered.clone())))
            .collect();
        // Not always at the same point of the work.
        let enough = 5 + round * 7 % 90;
        until("calls are answered", async || answered.lock().unwrap().len() >= enough).await;
        kill(server.child.id(), Signal::KILL);
        for worker in workers {
            worker.await.unwrap();
        }
        drop(server);
        let answered = std::mem::take(&mut *answered.lock().unwrap());
        // The next process that opens the database writes the backlog of the killed one.
        assert!(home.run(&["executions", "list"]).status.success());
        let recorded = rows(&file, "all").await;
        for mark in &answered {
            // The row of a text that another text begins with is another row: marks end in a quote.
            let row = recorded.iter().find(|(arguments, _)| arguments.contains(&format!("{mark}\"")));
            assert_eq!(row.map(|(_, outcome)| outcome.as_str()), Some("succeeded"), "{mark}");
        }
        total += answered.len();
    }
    let output = home.run(&["executions", "list"]);
    assert!(output.status.success());
    let running = rows(&file, "running").await;
    assert!(running.len() == 1 && running[0].0.contains("sibling"), "only the living sibling's call runs: {running:?}");
    println!("{ROUNDS} kills, {total} answered calls, all on record");
}

#[test]
fn a_write_above_the_file_size_limit_fails_without_killing_the_process() {
    let home = Home::new();
    let file = home.work().join("arguments.json");
    std::fs::write(&file, json!({"path": "large", "content": "x".repeat(6 << 20)}).to_string()).unwrap();
    let limited = ["-c", "ulimit -f 4096 && exec \"$@\"", "bash", env!("CARGO_BIN_EXE_toolstead")];
    let config = home.config("");
    let call = ["--config", config.to_str().unwrap(), "--allow", "Write", "call", "write_file", "@arguments.json"];
    let output = home.command("bash", &[&limited[..], &call[..]].concat()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code != 0), "{:?} {stderr}", output.status);
    assert!(stderr.contains("File too large"), "{stderr}");
    assert!(!home.work().join("large").exists());
}
