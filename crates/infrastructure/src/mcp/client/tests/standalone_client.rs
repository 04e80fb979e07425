//! The client as used by an application without the rest of Toolstead.

use super::{
    http_server::{Reply, Request, http_server},
    line_server::line_server,
    provider_calls::{SOON, config, deps},
};
use crate::mcp::{
    client::config::{McpTransport, StdioUpstream},
    mcp_client::{McpClient, McpConnectError},
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::{sync::Notify, time::timeout};
use toolstead_domain::{ProtocolVersion, error_kind::ErrorKind};

#[tokio::test]
async fn a_client_lists_and_calls_tools_and_closes_its_server() {
    let ended = Arc::new(Notify::new());
    let outcome = ended.clone();
    let transport = line_server(move |_, mut end| {
        let outcome = outcome.clone();
        Box::pin(async move {
            end.serve_plainly().await;
            outcome.notify_one();
        })
    });
    let client = McpClient::connect(transport).await.unwrap();
    let names: Vec<String> = client.tools().await.unwrap().iter().map(|tool| tool.name().to_string()).collect();
    assert_eq!(names, ["echo"]);
    let result = client.call("echo", json!({"a": [1, null]})).await.unwrap();
    assert_eq!(result.structured_content(), Some(&json!({"a": [1, null]})));
    client.close().await;
    timeout(SOON, ended.notified()).await.expect("the server sees the end");
}

#[tokio::test]
async fn invalid_calls_are_rejected_before_the_server_receives_them() {
    let called = Arc::new(AtomicBool::new(false));
    let noted = called.clone();
    let transport = line_server(move |_, mut end| {
        let noted = noted.clone();
        Box::pin(async move {
            while let Some(message) = end.hear().await {
                noted.fetch_or(message["method"] == "tools/call", Ordering::SeqCst);
                end.answer_plainly(&message).await;
            }
        })
    });
    let client = McpClient::connect(transport).await.unwrap();
    let unknown = client.call("eccho", json!({})).await.unwrap_err();
    assert_eq!((unknown.kind, &*unknown.text()), (ErrorKind::NotFound, "the server has no tool `eccho`. It has echo."));
    assert_eq!(client.call("echo", json!([1])).await.unwrap_err().kind, ErrorKind::InvalidInput);
    assert!(!called.load(Ordering::SeqCst));
}

#[tokio::test]
async fn an_http_server_of_either_protocol_generation_can_be_called() {
    let old: fn(Request) -> Reply = |request| request.answer_plainly(None);
    let new: fn(Request) -> Reply = |request| request.answer_as_new_server();
    for (reply, protocol) in [(old, ProtocolVersion::V20251125), (new, ProtocolVersion::V20260728)] {
        let end = http_server(reply).await;
        let client = McpClient::at(end.url.as_str()).await.unwrap();
        assert_eq!(client.status().protocol, Some(protocol));
        let result = client.call("echo", json!({"x": 1})).await.unwrap();
        assert_eq!(result.structured_content(), Some(&json!({"x": 1})));
        client.close().await;
    }
}

#[tokio::test]
async fn a_stdio_server_without_a_launcher_is_rejected_naming_the_required_feature() {
    let server = StdioUpstream { command: "x".into(), args: vec![], env: Default::default(), working_dir: None };
    let none = McpClient::connect_with(config(McpTransport::Stdio(server)), deps()).await.unwrap_err();
    assert!(none.to_string().contains("feature `mcp-stdio`"), "{none}");
}

#[tokio::test]
async fn a_missing_server_program_is_reported_with_the_reason() {
    let none = McpClient::start("no-such-server", ["--x"]).await.unwrap_err();
    let McpConnectError::NotReady { reason } = &none else { panic!("{none:?}") };
    let expected = match cfg!(feature = "mcp-stdio") {
        true => "`no-such-server` was not found",
        false => "feature `mcp-stdio`",
    };
    assert!(reason.contains(expected), "{reason}");
    let address = McpClient::at("example.com/mcp").await.unwrap_err();
    assert!(matches!(address, McpConnectError::Address { .. }), "{address:?}");
}
