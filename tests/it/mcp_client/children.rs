//! Servers that are children: what they get, and how they end.

use super::provider_calls::{SOON, call, config, deps, stdio, text, until_ready};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{ProviderState, ToolProvider};
use toolstead_infrastructure::mcp::client::{Upstream, config::McpTransport};

/// A server that returns its environment, its descriptors and its process id.
const TELLS: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        server = {"name": "tells", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "get-env", "inputSchema": {"type": "object"}}]}
    else:
        fds = sorted(os.listdir("/proc/self/fd"))
        told = {"env": dict(os.environ), "fds": fds, "pid": os.getpid(), "cwd": os.getcwd()}
        result = {"content": [{"type": "text", "text": json.dumps(told)}]}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    unknown = message["method"] == "server/discover"
    answer.update({"error": {"code": -32601, "message": "no"}} if unknown else {"result": result})
    print(json.dumps(answer), flush=True)
"#;

async fn facts_of(server: &Upstream) -> Value {
    serde_json::from_str(text(&call(server, "get-env", json!({})).await.unwrap())).unwrap()
}

#[tokio::test]
async fn a_child_process_receives_only_its_configured_environment_and_standard_streams() {
    let folder = tempfile::tempdir().unwrap();
    let McpTransport::Stdio(mut server) = stdio("python3", &["-c", TELLS]) else { unreachable!() };
    server.env = BTreeMap::from([("DECLARED".to_owned(), "yes".to_owned())]);
    server.working_dir = Some(folder.path().canonicalize().unwrap());
    let server = Upstream::start(config("tells", McpTransport::Stdio(server)), deps());
    until_ready(&server).await;
    let answer = facts_of(&server).await;
    let environment = answer["env"].as_object().unwrap();
    // Cargo gives its tests many variables; whatever starts Python on this machine adds none of these.
    let ours = std::env::vars().filter(|(name, _)| name.starts_with("CARGO_"));
    let inherited: Vec<_> = ours.filter(|(name, _)| environment.contains_key(name)).collect();
    assert_eq!(inherited, []);
    assert_eq!((&environment["DECLARED"], environment.contains_key("CARGO_MANIFEST_DIR")), (&json!("yes"), false));
    assert_eq!(answer["cwd"], folder.path().canonicalize().unwrap().to_str().unwrap());
    // Three streams, and the folder that it reads to know them.
    assert_eq!(answer["fds"], json!(["0", "1", "2", "3"]));
}

#[tokio::test]
async fn a_child_ends_with_its_server_whether_closed_or_dropped() {
    for closes in [true, false] {
        let server = Upstream::start(config("tells", stdio("python3", &["-c", TELLS])), deps());
        until_ready(&server).await;
        let process = format!("/proc/{}", facts_of(&server).await["pid"]);
        assert!(Path::new(&process).exists());
        if closes {
            timeout(SOON, server.close()).await.unwrap();
            assert_eq!(server.state(), ProviderState::Closed);
        }
        drop(server);
        let gone = async {
            while Path::new(&process).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, gone).await.expect("the child is gone and waited for");
    }
}

#[tokio::test]
async fn a_missing_program_is_reported_with_the_searched_directories() {
    let server = Upstream::start(config("absent", stdio("no-such-server", &[])), deps());
    let reason = loop {
        if let ProviderState::Failed { reason } = server.state() {
            break reason;
        }
        let _ = server.list().await;
        server.changed().await;
    };
    assert!(reason.starts_with("the program `no-such-server` was not found; it was looked for in `/"), "{reason}");
}
