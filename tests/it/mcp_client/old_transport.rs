//! A real server behind the old HTTP+SSE transport.

use super::provider_calls::{call, config, deps, http, text, until_ready};
use crate::binaries::{peer, python_program};
use serde_json::json;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};
use toolstead_domain::ToolProvider;
use toolstead_infrastructure::mcp::client::{Upstream, config::McpTransport};

struct OldServer {
    child: Child,
    url: String,
}

impl OldServer {
    fn start() -> Self {
        let mut command = Command::new(python_program("python"));
        command.arg(peer("sse_server.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line:?}"));
        Self { url: format!("http://127.0.0.1:{port}/sse"), child }
    }
}

impl Drop for OldServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn http_sse_is_used_with_a_python_sdk_server_when_configured_or_detected() {
    let old = OldServer::start();
    let McpTransport::Http(reached) = http(&old.url) else { unreachable!() };
    for transport in [McpTransport::Sse(reached.clone()), McpTransport::Http(reached)] {
        let server = Upstream::start(config("old", transport), deps());
        let status = until_ready(&server).await;
        assert_eq!((status.transport, status.tools), ("sse", Some(1)));
        let result = call(&server, "count", json!({"to": 3})).await.unwrap();
        assert_eq!(text(&result), "counted to 3");
        server.close().await;
    }
}
