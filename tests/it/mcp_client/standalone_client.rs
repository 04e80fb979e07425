//! The client as used by an application without the rest of Toolstead, against a server of the official SDK.

use super::provider_calls::{config, deps};
use crate::binaries::{node_path, node_program};
use serde_json::json;
use std::collections::BTreeMap;
use toolstead_domain::error_kind::ErrorKind;
use toolstead_infrastructure::mcp::{
    client::config::{McpTransport, StdioUpstream},
    mcp_client::McpClient,
};

#[tokio::test]
async fn a_standalone_client_lists_and_calls_tools_of_a_real_server_and_closes() {
    let server = StdioUpstream {
        command: node_program("mcp-server-everything").to_str().unwrap().into(),
        args: vec!["stdio".into()],
        env: BTreeMap::from([("PATH".to_owned(), node_path())]),
        working_dir: None,
    };
    let client = McpClient::connect_with(config("everything", McpTransport::Stdio(server)), deps()).await.unwrap();
    assert!(client.tools().await.unwrap().iter().any(|tool| tool.name().as_str() == "mcp__everything__echo"));
    let result = client.call("echo", json!({"message": "hi"})).await.unwrap();
    assert_eq!(result.joined_text(), "Echo: hi");
    let wrong = client.call("echo", json!({})).await;
    assert!(wrong.as_ref().map_or(true, |result| result.is_error()), "{wrong:?}");
    assert_eq!(client.call("no-such-tool", json!({})).await.unwrap_err().kind, ErrorKind::NotFound);
    client.close().await;
}
